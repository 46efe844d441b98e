# SPDX-License-Identifier: Apache-2.0
"""A graph index (HNSW) that finds what `unicon search` finds. Needs usearch or hnswlib (pip install
usearch hnswlib).

The same two forms of rows as in faiss_index.py serve every index for inner products: usearch,
hnswlib, Qdrant (qdrant_index.py), LanceDB (lancedb_index.py), Milvus (IP), pgvector (<#>). For one
that knows the cosine alone there are the forms "index_cosine" and "query_cosine".
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np

import unicon

K = 5


def search_usearch(metric, rows, queries):
    from usearch.index import Index

    # A graph finds nearly all neighbours: more with a larger expansion, all with as many as rows.
    index = Index(ndim=rows.shape[1], metric=metric, dtype="f32", connectivity=32,
                  expansion_add=256, expansion_search=len(rows))
    # Rows added by several threads at once may end where no search gets: by one, all are reached.
    index.add(np.arange(len(rows)), rows, threads=1)
    found = index.search(queries, K)
    return found.keys.astype(np.int64), 1 - found.distances


def search_hnswlib(metric, rows, queries):
    import hnswlib

    index = hnswlib.Index(space={"ip": "ip", "cos": "cosine"}[metric], dim=rows.shape[1])
    index.init_index(max_elements=len(rows), ef_construction=256, M=32)
    index.add_items(rows, np.arange(len(rows)), num_threads=1)
    index.set_ef(len(rows))
    ids, distances = index.knn_query(queries, K)
    return ids.astype(np.int64), 1 - distances


there = [(name, search) for name, search in (("usearch", search_usearch), ("hnswlib", search_hnswlib))
         if importlib.util.find_spec(name)]
if not there:
    print("skipped: neither usearch nor hnswlib is installed (pip install usearch)")
    sys.exit()

data = Path(__file__).resolve().parents[2] / "data" / "digits"
aligner = unicon.Aligner(preset="fast", balance="softmax:5")
aligner.fit(data / "upper.train.npy", data / "lower.train.npy")
upper, lower = data / "upper.test.npy", data / "lower.test.npy"
expected, exact = aligner.search(upper, lower, k=K)

for name, search in there:
    for metric, base_form, query_form in (("ip", "index", "query"),
                                          ("cos", "index_cosine", "query_cosine")):
        rows = aligner.transform_y(lower, base_form)
        queries = aligner.transform_x(upper, query_form)
        ids, products = search(metric, rows, queries)
        # Lengths 2^1/2 of both: their cosine is half of the balanced score.
        scores = products if metric == "ip" else 2 * products
        assert abs(scores - exact).max() < 2e-6, "the scores are the same"
        print(f"{name}, {metric}: {(ids == expected).mean():.2%} of {ids.size} places agree, any "
              "others are within 2e-6")
print("upper half 0 finds", ids[0].tolist(), "with scores", [round(float(s), 3) for s in scores[0]])
