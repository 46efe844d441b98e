# SPDX-License-Identifier: Apache-2.0
"""A new embedding model comes, but the index holds vectors of the old one.

Some items embedded by both models are enough to find out how old vectors and new queries can meet,
what is lost, and whether it is worth it. docs/migration.md is the guide.
"""

import tempfile
from pathlib import Path

import numpy as np
from two_models import overlap, two_models

import unicon

old, new, queries_old, queries_new = two_models()
both = np.random.default_rng(1).choice(len(old), 1000, replace=False)  # embedded by both models

migration = unicon.Migration(index_rows=len(old)).fit(old[both], new[both])
print(migration.decision["sentence"])
for row in migration.decision["ways"]:
    print(f"  {row['way']:8} overlap@10 {row['overlap@10']['value']:.3f} among {row['items']}, {row['how']}")

# The truth, which one wants to do without: everything embedded by the new model.
truth, _ = unicon.search(queries_new, new, k=10)
kept, _ = unicon.search(queries_old, old, k=10)

with tempfile.TemporaryDirectory() as folder:
    np.save(f"{folder}/index.npy", old)
    rewriting = migration if migration.space == "new" else unicon.Migration(into="new").fit(old[both], new[both])
    rewriting.rewrite(f"{folder}/index.npy", f"{folder}/index.new.npy")  # in pieces, again after a stop
    rewriting.check(f"{folder}/index.new.npy")
    found, scores = rewriting.search(queries_new, f"{folder}/index.new.npy", k=10)
    print(f"of the ten nearest by the new model the old one finds {overlap(kept, truth):.3f}, "
          f"new queries in the rewritten index {overlap(found, truth):.3f}")

    # Thresholds keep their meaning: scores as the new model would have them.
    exact, unseen = np.take_along_axis(queries_new @ new.T, found, 1), ~np.isin(found, both)
    print(f"the mean score of items that the map has not seen is off by {(scores - exact)[unseen].mean():+.3f}, "
          f"calibrated by {(rewriting.calibrate(scores) - exact)[unseen].mean():+.3f}")

    # Vectors of another space are refused, not ranked.
    try:
        rewriting.rewrite(Path(folder) / "index.new.npy", Path(folder) / "twice.npy")
    except unicon.DataError as error:
        print("refused:", str(error).replace(folder, "..."))
