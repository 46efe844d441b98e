# SPDX-License-Identifier: Apache-2.0
"""A new embedding model comes, but the archive holds vectors of the old one.

A few documents embedded by both models are enough to put old and new vectors into one space: new
queries then find old documents, and the archive is embedded again when there is time, or never.
"""

import numpy as np

import unicon

rng = np.random.default_rng(0)


def embed_twice(first, count):
    """The same documents by an old and a new model: different sizes, different noise."""
    z, _, _ = unicon.synth("linear", count, first=first, dim_x=64, dim_y=64, latent=32, clusters=50)
    old = np.random.default_rng(1).standard_normal((64, 96))
    new = np.random.default_rng(2).standard_normal((64, 160))
    return ((z @ old + 8 * rng.standard_normal((count, 96))).astype("f4"),
            (z @ new + 8 * rng.standard_normal((count, 160))).astype("f4"))


archive_old, archive_new = embed_twice(0, 5000)   # archive_new is what we want to do without
queries_old, queries_new = embed_twice(5000, 300)

# The truth, as far as there is one: neighbours among old vectors alone.
truth, _ = unicon.search(queries_old, archive_old, k=10)

both = rng.choice(5000, 1500, replace=False)      # these were embedded by both models
aligner = unicon.Aligner(preset="fast").fit(archive_old[both], archive_new[both])

# The archive is mapped once, by a small matrix. New queries search it.
shared = aligner.transform_x(archive_old)
ids, _ = aligner.search(queries_new, shared, k=10, query_side="y", base_embedded=True)
overlap = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids, truth)])
print(f"old neighbours that a new query finds: {overlap:.3f} of 10")

# Vectors of both models may lie in one index: a document is found by either.
rest = np.setdiff1d(np.arange(5000), both)
found = aligner.evaluate(archive_old[rest], archive_new[rest])
print(f"a document finds itself across models: hit@1 {found['x_to_y']['hit@1']:.3f} old to new, "
      f"{found['y_to_x']['hit@1']:.3f} new to old, of {len(rest)}")
