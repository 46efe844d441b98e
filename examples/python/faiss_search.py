# SPDX-License-Identifier: Apache-2.0
"""Unit vectors of the shared space in a FAISS index: the dot product is the cosine. Needs faiss."""

import sys

try:
    import faiss
except ImportError:
    print("skipped: faiss is not installed (pip install faiss-cpu)")
    sys.exit()

import unicon

x, y, _ = unicon.synth("linear", 5000)
aligner = unicon.Aligner(preset="fast", rank=10).fit(x[:2000], y[:2000])

base = aligner.transform_y(y)
index = faiss.IndexFlatIP(base.shape[1])
index.add(base)

queries = aligner.transform_x(x[2000:2100])
cosines, ids = index.search(queries, 5)
ours, _ = aligner.search(x[2000:2100], y, k=5)
print(f"the first of five agrees for {(ids[:, 0] == ours[:, 0]).mean():.2%} of the queries")
print("row 2000 finds", ids[0].tolist(), cosines[0].round(3).tolist())
