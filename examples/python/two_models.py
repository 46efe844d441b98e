# SPDX-License-Identifier: Apache-2.0
"""What the examples of migration share: the same items by two models, as two encoders of one text
would see them. Run on its own it says what it makes."""

import numpy as np


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("f4")


def two_models(items=3000, queries=200, seed=0):
    """Items and queries by an old model of 64 numbers and a new one of 96 that tells more apart."""
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(150, 24))
    meaning = topics[rng.integers(0, 150, items + queries)] + .7 * rng.normal(size=(items + queries, 24))
    old = np.tanh(meaning[:, :16] @ rng.normal(size=(16, 64)) / 6) + .05 * rng.normal(size=(items + queries, 64))
    new = np.tanh(meaning @ rng.normal(size=(24, 96)) / 6) + .1
    old, new = unit(old + .1), unit(new)
    return old[:items], new[:items], old[items:], new[items:]


def overlap(found, truth):
    """Share of the right ten that are among the ten found."""
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, truth)])


if __name__ == "__main__":
    old, new, queries_old, queries_new = two_models()
    print(f"{len(old)} items: old {old.shape}, new {new.shape}; {len(queries_new)} queries")
