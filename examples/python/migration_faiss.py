# SPDX-License-Identifier: Apache-2.0
"""A FAISS index of old vectors, asked by a new model. Needs faiss (pip install faiss-cpu).

Two ways: the index stays as it is and queries are mapped into it (a bridge), or its vectors are
rewritten into the space of the new model and queries go in as they are.
"""

import sys

try:
    import faiss
except ImportError:
    print("skipped: faiss is not installed (pip install faiss-cpu)")
    sys.exit()

from two_models import overlap, two_models

import unicon

old, new, queries_old, queries_new = two_models()
index = faiss.IndexFlatIP(old.shape[1])  # filled long ago
index.add(old)
truth, _ = unicon.search(queries_new, new, k=10)
_, ids = index.search(queries_old, 10)
print(f"the old model finds {overlap(ids, truth):.3f} of the ten nearest by the new one")

bridge = unicon.Migration(into="old").fit(old[:1000], new[:1000])
_, ids = index.search(bridge.embed(queries_new), 10)
print(f"new queries in the index as it is: {overlap(ids, truth):.3f}")

rewriting = unicon.Migration(into="new").fit(old[:1000], new[:1000])
moved = faiss.IndexFlatIP(new.shape[1])
moved.add(rewriting.embed(index.reconstruct_n(0, index.ntotal)))  # the vectors come from the index itself
scores, ids = moved.search(queries_new, 10)
print(f"new queries in the rewritten index: {overlap(ids, truth):.3f}")
print("best scores of query 0 as the new model would have them:", rewriting.calibrate(scores[0, :3]).round(3).tolist())
