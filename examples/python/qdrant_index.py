# SPDX-License-Identifier: Apache-2.0
"""A Qdrant collection that finds what `unicon search` finds. Needs qdrant-client (pip install
qdrant-client); it runs in the process, without a server.

Distance.DOT is the inner product, so points are rows of form "index" and queries of form "query".
"""

import sys
from pathlib import Path

try:
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, PointStruct, VectorParams
except ImportError:
    print("skipped: qdrant-client is not installed (pip install qdrant-client)")
    sys.exit()

import unicon

data = Path(__file__).resolve().parents[2] / "data" / "digits"
aligner = unicon.Aligner(preset="fast", balance="softmax:5")
aligner.fit(data / "upper.train.npy", data / "lower.train.npy")
upper, lower = data / "upper.test.npy", data / "lower.test.npy"
expected, exact = aligner.search(upper, lower, k=5)

rows = aligner.transform_y(lower, "index")  # [v, -b(v)]
client = QdrantClient(":memory:")
client.create_collection("lower", vectors_config=VectorParams(size=rows.shape[1], distance=Distance.DOT))
client.upsert("lower", [PointStruct(id=i, vector=row.tolist()) for i, row in enumerate(rows)])

same = 0
for i, query in enumerate(aligner.transform_x(upper, "query")[:100]):  # [u, 1]
    found = client.query_points("lower", query=query.tolist(), limit=5).points
    assert all(abs(point.score - score) < 1e-5 for point, score in zip(found, exact[i])), "same scores"
    same += sum(point.id == row for point, row in zip(found, expected[i]))
print(f"{same / 500:.2%} of 500 places agree, any others are within 1e-5")
client.close()
