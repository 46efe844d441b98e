# SPDX-License-Identifier: Apache-2.0
"""A FAISS index that finds what `unicon search` finds. Needs faiss (pip install faiss-cpu).

The score of a candidate v for a query u is u.v - b(v): its cosine less a bias that is large for
rows that are near everything. That is the inner product of [u, 1] with [v, -b(v)], so one more
column is all that an index needs.
"""

import sys
from pathlib import Path

try:
    import faiss
except ImportError:
    print("skipped: faiss is not installed (pip install faiss-cpu)")
    sys.exit()

import unicon

data = Path(__file__).resolve().parents[2] / "data" / "digits"
aligner = unicon.Aligner(preset="fast", balance="softmax:5")
aligner.fit(data / "upper.train.npy", data / "lower.train.npy")
upper, lower = data / "upper.test.npy", data / "lower.test.npy"

rows = aligner.transform_y(lower, "index")    # unicon embed --index: [v, -b(v)]
index = faiss.IndexFlatIP(rows.shape[1])      # or any other index with METRIC_INNER_PRODUCT
index.add(rows)

queries = aligner.transform_x(upper, "query")  # unicon embed --query: [u, 1]
scores, ids = index.search(queries, 5)

expected, exact = aligner.search(upper, lower, k=5)
assert abs(scores - exact).max() < 1e-6, "the scores are the same"
print(f"{(ids == expected).mean():.2%} of {ids.size} places agree, any others are within 1e-6")
print("upper half 0 finds", ids[0].tolist(), "with scores", [round(float(s), 3) for s in scores[0]])

plain = faiss.IndexFlatIP(rows.shape[1] - 1)  # without balance: unit vectors, cosines
plain.add(aligner.transform_y(lower))
_, near = plain.search(aligner.transform_x(upper), 1)
own = range(len(near))
print(f"finds its own lower half first: {(ids[:, 0] == own).mean():.3f} with balance, "
      f"{(near[:, 0] == own).mean():.3f} without")
