# SPDX-License-Identifier: Apache-2.0
"""A LanceDB table that finds what `unicon search` finds. Needs lancedb (pip install lancedb).

LanceDB knows the inner product ("dot"), so rows of form "index" and queries of form "query" give
balanced scores. Its tables speak Arrow, so a column of a table is rows for unicon as it is.
"""

import sys
import tempfile
from pathlib import Path

try:
    import lancedb
    import pyarrow as pa
except ImportError:
    print("skipped: lancedb is not installed (pip install lancedb)")
    sys.exit()

import unicon

data = Path(__file__).resolve().parents[2] / "data" / "digits"
aligner = unicon.Aligner(preset="fast", balance="softmax:5")
aligner.fit(data / "upper.train.npy", data / "lower.train.npy")
upper, lower = data / "upper.test.npy", data / "lower.test.npy"
expected, exact = aligner.search(upper, lower, k=5)

rows = aligner.transform_y(lower, "index")  # [v, -b(v)]
table = pa.table({"id": pa.array(range(len(rows))),
                  "vector": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])})
with tempfile.TemporaryDirectory() as folder:
    items = lancedb.connect(folder).create_table("lower", table)
    same = 0
    for i, query in enumerate(aligner.transform_x(upper, "query")):  # [u, 1]
        found = items.search(query).distance_type("dot").limit(5).to_arrow()
        scores = 1 - found["_distance"].to_numpy()  # LanceDB's distance is 1 - u.v
        assert abs(scores - exact[i]).max() < 1e-5, "the scores are the same"
        same += (found["id"].to_numpy() == expected[i]).sum()
        if i == 0:
            first = found["id"].to_pylist(), [round(float(score), 3) for score in scores]
    print(f"{same / expected.size:.2%} of {expected.size} places agree, any others are within 1e-5")
    print("upper half 0 finds", first[0], "with scores", first[1])

    column = items.to_arrow().select(["vector"])  # rows for unicon, without a copy in NumPy
    ids, _ = unicon.search(aligner.transform_x(upper), column, k=5)  # one column more: the biases
    print(f"unicon.search in the table itself: {(ids == expected).mean():.2%} agree")
