# SPDX-License-Identifier: Apache-2.0
"""A Qdrant collection of old vectors, carried over to a new model. Needs qdrant-client (pip install
qdrant-client); it runs in the process, on a folder, without a server.

The rewritten vectors go into a second collection under the same ids, so that both can be asked until
the old one is dropped.
"""

import sys
import tempfile

try:
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, PointStruct, VectorParams
except ImportError:
    print("skipped: qdrant-client is not installed (pip install qdrant-client)")
    sys.exit()

import numpy as np
from two_models import overlap, two_models

import unicon


def fill(client, name, vectors, ids):
    client.create_collection(name, vectors_config=VectorParams(size=vectors.shape[1], distance=Distance.COSINE))
    client.upsert(name, [PointStruct(id=int(i), vector=row.tolist()) for i, row in zip(ids, vectors)])


def ask(client, name, queries):
    return [[point.id for point in client.query_points(name, query=row.tolist(), limit=10).points]
            for row in queries]


old, new, queries_old, queries_new = two_models(1500, 100)
truth, _ = unicon.search(queries_new, new, k=10)
migration = unicon.Migration(into="new").fit(old[:800], new[:800])

with tempfile.TemporaryDirectory() as folder:
    client = QdrantClient(path=folder)
    fill(client, "items", old, range(len(old)))  # filled long ago
    print(f"the old model finds {overlap(ask(client, 'items', queries_old), truth):.3f} of the ten nearest")
    offset, done = None, 0
    while True:  # page by page, as a collection larger than memory would be read
        points, offset = client.scroll("items", limit=500, offset=offset, with_vectors=True)
        moved = migration.embed(np.array([point.vector for point in points], "f4"))
        ids = [point.id for point in points]
        if done == 0:
            fill(client, "items_new", moved, ids)
        else:
            client.upsert("items_new", [PointStruct(id=i, vector=row.tolist()) for i, row in zip(ids, moved)])
        done += len(points)
        if offset is None:
            break
    print(f"new queries in {done} rewritten vectors: {overlap(ask(client, 'items_new', queries_new), truth):.3f}")
    client.close()
