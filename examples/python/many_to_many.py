# SPDX-License-Identifier: Apache-2.0
"""Pairs that are no plain list of rows: many-to-many, weighted, sparse, by label."""

import numpy as np

import unicon

x, y, label = unicon.synth("linear", 600, clusters=20)
train, test = slice(0, 400), slice(400, 600)

# A row of x belongs to its own row of y and, less surely, to the one before.
i = np.concatenate([np.arange(400), np.arange(1, 400)])
j = np.concatenate([np.arange(400), np.arange(0, 399)])
weights = np.where(i == j, 1.0, 0.2)

aligner = unicon.Aligner(preset="fast", rank=10)
aligner.fit(x[train], y[train], pairs=(i, j), weights=weights)
print(f"weighted index arrays: mrr {aligner.score(x[test], y[test]):.3f}")

try:
    from scipy import sparse

    matrix = sparse.coo_matrix((weights, (i, j)), shape=(400, 400))
    same = unicon.Aligner(preset="fast", rank=10).fit(x[train], y[train], pairs=matrix)
    assert (same.transform_x(x) == aligner.transform_x(x)).all()
    print("a sparse matrix says the same")
except ImportError:
    print("SciPy is not installed: no sparse matrix")

# Rows that may well belong together though nobody wrote it down count neither way.
doubtful = np.stack([np.arange(398), np.arange(2, 400)], axis=1)
careful = unicon.Aligner(preset="fast", rank=10, iterations=1, temperature=.3)
careful.fit(x[train], y[train], pairs=(i, j, weights), ignore=doubtful)
print(f"with an ignore list:   mrr {careful.score(x[test], y[test]):.3f}")

# Classes: every row of x with every row of y of the same class. No list is ever made.
names = np.array([f"class {c}" for c in label])
by_class = unicon.Aligner(preset="fast", rank=10)
by_class.fit(x[train], y[train], labels=(names[train], names[train]))
found = by_class.evaluate(x[test], y[test], labels=(names[test], names[test]))["x_to_y"]
print(f"classes: map {found['map']:.3f}, the right class first {found['hit@1']:.3f}")
