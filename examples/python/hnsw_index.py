# SPDX-License-Identifier: Apache-2.0
"""A graph index (HNSW) that finds what `unicon search` finds. Needs usearch (pip install usearch).

The same two forms of rows as in faiss_index.py serve every index for inner products: usearch,
hnswlib (space="ip"), Qdrant (Distance.DOT), Milvus (IP), pgvector (<#>). For one that knows the
cosine alone there are the forms "index_cosine" and "query_cosine".
"""

import sys
from pathlib import Path

try:
    from usearch.index import Index
except ImportError:
    print("skipped: usearch is not installed (pip install usearch)")
    sys.exit()

import numpy as np

import unicon

data = Path(__file__).resolve().parents[2] / "data" / "digits"
aligner = unicon.Aligner(preset="fast", balance="softmax:5")
aligner.fit(data / "upper.train.npy", data / "lower.train.npy")
upper, lower = data / "upper.test.npy", data / "lower.test.npy"
expected, exact = aligner.search(upper, lower, k=5)

for metric, base_form, query_form in (("ip", "index", "query"),
                                      ("cos", "index_cosine", "query_cosine")):
    rows = aligner.transform_y(lower, base_form)
    queries = aligner.transform_x(upper, query_form)
    # A graph finds nearly all neighbours: more with a larger expansion, all with as many as rows.
    index = Index(ndim=rows.shape[1], metric=metric, dtype="f32", connectivity=32,
                  expansion_add=256, expansion_search=len(rows))
    index.add(np.arange(len(rows)), rows)
    found = index.search(queries, 5)
    ids = found.keys.astype(np.int64)
    # Lengths 2^1/2 of both: their cosine is half of the balanced score.
    scores = 1 - found.distances if metric == "ip" else 2 * (1 - found.distances)
    assert abs(scores - exact).max() < 1e-6, "the scores are the same"
    print(f"{metric}: {(ids == expected).mean():.2%} of {ids.size} places agree, any others are "
          "within 1e-6")
print("upper half 0 finds", ids[0].tolist(), "with scores", [round(float(s), 3) for s in scores[0]])
