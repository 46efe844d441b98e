#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Landmarks drawn uniformly against landmarks by randomly pivoted Cholesky, at equal number:
what they leave of the kernel's trace on the training rows, and retrieval on Flickr8k dev (test
is not read); mean and standard deviation of five seeds.

The share of the trace that landmarks leave is 1 - mean |phi(x)|^2 over unit rows x, with
phi(x) = factor^T k(landmarks, x): the angular kernel has k(x, x) = 1."""
import json
import pathlib

import numpy as np

from common import SEEDS, SMOKE, directions, evaluate, fit, main, table
from data import flickr8k


def tensors(path):
    """The float32 tensors of a safetensors file by name."""
    raw = pathlib.Path(path).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    about = json.loads(raw[8 : 8 + size])
    body = memoryview(raw)[8 + size :]
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
        for name, entry in about.items()
        if name != "__metadata__"
    }


def angular(c):
    """The arc-cosine kernel of order 1 on the sphere."""
    c = np.clip(c, -1, 1)
    theta = np.arccos(c)
    return (np.sin(theta) + (np.pi - theta) * c) / np.pi


def trace_left(rows, landmarks, factor):
    """1 - mean |phi(x)|^2, in blocks of rows."""
    total = 0.0
    for first in range(0, len(rows), 2000):
        x = rows[first : first + 2000].astype(np.float64)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        phi = angular(x @ landmarks.T.astype(np.float64)) @ factor.astype(np.float64)
        total += float((phi * phi).sum())
    return 1 - total / len(rows)


def body(work):
    train, dev, _ = flickr8k(work)
    sides = {side: np.load(path, mmap_mode="r") for side, path in (("x", train.x), ("y", train.y))}
    fixed = f"--preset fast --kernel angular --map nystrom --landmarks {20 if SMOKE else 500}"
    rows = []
    for method in "uniform", "pivot":
        found = []
        for seed in range(SEEDS):
            model = fit(work, train, fixed, f"--landmark-method {method} --seed {seed}")
            t = tensors(model.path)
            left = [trace_left(matrix, t[f"{side}.landmarks"], t[f"{side}.factor"])
                    for side, matrix in sides.items()]
            found.append(left + directions(evaluate(model, dev)))
        rows.append((f"{method}, mean", *np.mean(found, 0)))
        rows.append((f"{method}, deviation", *np.std(found, 0, ddof=min(1, SEEDS - 1))))
    columns = "trace left, image | text | i→t hit@1 | t→i hit@1 | i→t hit@10 | t→i hit@10"
    return {"landmarks": table(f"landmarks | {columns}", rows)}


if __name__ == "__main__":
    main("landmarks", body)
