#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data/digits from the 8x8 handwritten digits of scikit-learn (needs numpy, scikit-learn).

The set is ordered by writer, so the rows are shuffled once with a fixed seed before the split. The
stream of numpy's RandomState is frozen, so the files come out the same everywhere.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

SEED = 0
TRAIN = 1297  # the other 500 are the test set
FOLDER = Path(__file__).resolve().parent.parent / "data" / "digits"


def main():
    digits = load_digits()
    order = np.random.RandomState(SEED).permutation(len(digits.data))
    pixels = digits.data.astype(np.uint8)[order]
    labels = digits.target[order]
    assert (pixels == digits.data[order]).all()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for part, rows in (("train", slice(None, TRAIN)), ("test", slice(TRAIN, None))):
        np.save(FOLDER / f"upper.{part}.npy", np.ascontiguousarray(pixels[rows, :32]))
        np.save(FOLDER / f"lower.{part}.npy", np.ascontiguousarray(pixels[rows, 32:]))
        np.savetxt(FOLDER / f"label.{part}.txt", labels[rows], fmt="%d")


if __name__ == "__main__":
    main()
