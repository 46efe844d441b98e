#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Table of experiments/landmarks.sh: landmarks.py FOLDER DATA.

FOLDER has METHOD.SEED.safetensors and METHOD.SEED.json (`unicon eval --json`); DATA the training
rows. The share of the trace that landmarks leave is 1 - mean |phi(x)|^2 over unit rows x, with
phi(x) = factor^T k(landmarks, x): the angular kernel has k(x, x) = 1.
"""

import json
import pathlib
import statistics
import sys

import numpy as np


def tensors(path):
    """The float32 tensors of a safetensors file by name."""
    raw = path.read_bytes()
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


def cell(values):
    """Mean and standard deviation over the seeds."""
    spread = statistics.stdev(values) if len(values) > 1 else 0
    return f"{statistics.mean(values):.4f} ± {spread:.4f}"


def main():
    folder, data = map(pathlib.Path, sys.argv[1:3])
    rows = {
        "x": np.load(data / "image.train.npy", mmap_mode="r"),
        "y": np.load(data / "text.train.npy", mmap_mode="r"),
    }
    columns = {
        "trace left, image": lambda t, e: trace_left(rows["x"], t["x.landmarks"], t["x.factor"]),
        "trace left, text": lambda t, e: trace_left(rows["y"], t["y.landmarks"], t["y.factor"]),
        "image to text, hit@1": lambda t, e: e["x_to_y"]["hit@1"],
        "hit@10": lambda t, e: e["x_to_y"]["hit@10"],
        "text to image, hit@1": lambda t, e: e["y_to_x"]["hit@1"],
        "hit@10 ": lambda t, e: e["y_to_x"]["hit@10"],
    }
    print("| landmarks | " + " | ".join(map(str.strip, columns)) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for method in ("uniform", "pivot"):
        found = {name: [] for name in columns}
        for path in sorted(folder.glob(f"{method}.*.safetensors")):
            model, metrics = tensors(path), json.loads(path.with_suffix(".json").read_text())
            for name, value in columns.items():
                found[name].append(value(model, metrics))
        print(f"| {method} | " + " | ".join(map(cell, found.values())) + " |")


if __name__ == "__main__":
    main()
