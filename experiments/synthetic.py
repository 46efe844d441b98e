#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The paper's two synthetic models (section 4.1): accuracy and time beside SGD-CLIP, and
S(gamma) before the first and after each of three steps (its figure 2). Both readings of
"matching accuracy": the partner itself is the nearest (hit@1), or a row of the same cluster is."""

import numpy as np

import figure
from common import (
    COLUMNS,
    PAPER,
    SEEDS,
    both,
    embed,
    evaluate,
    fit,
    main,
    results_folder,
    sgd_clip,
    table,
)
from data import synthetic

KERNEL = {"linear": "linear", "nonlinear": "angular"}
PUBLISHED = {"linear": ((1.00, 0.02), (1.00, 0.32)), "nonlinear": ((0.86, 0.04), (0.84, 0.65))}


def clip_weights(zx, zy, temperature):
    """S = -dL/ds of the clip loss for one-to-one pairs: (docs/method.md) with p = softmax of s /
    T over a row or a column, S = (I - (p_rows + p_columns) / 2) / n."""
    power = np.exp((zx @ zy.T) / temperature)
    return (
        np.eye(len(zx)) - (power / power.sum(1, keepdims=True) + power / power.sum(0)) / 2
    ) / len(zx)


def same_cluster(zx, zy, label):
    cosines = zx @ zy.T
    return (
        np.mean(label[cosines.argmax(1)] == label) + np.mean(label[cosines.argmax(0)] == label)
    ) / 2


def heat_maps(work, train, label, each=40):
    """S of a batch of 3 x 40 training pairs, sorted by cluster, at the paper's setting."""
    rows = np.concatenate([np.where(label == k)[0][:each] for k in range(3)])
    flat = np.ones((len(label), 1)) / np.sqrt(len(label))
    panels, changes, before = [], [], None
    for step in range(4):
        z = (
            (flat, flat)
            if step == 0
            else embed(
                work,
                fit(
                    work,
                    train,
                    *PAPER,
                    "--batch",
                    "full",
                    "--rank",
                    10,
                    "--kernel",
                    "angular",
                    "--iterations",
                    step - 1,
                ),
                train,
            )
        )
        s = clip_weights(
            z[0] / np.linalg.norm(z[0], axis=1, keepdims=True),
            z[1] / np.linalg.norm(z[1], axis=1, keepdims=True),
            1.0,
        )
        off = s - np.diag(np.diag(s))
        if before is not None:
            changes.append(np.linalg.norm(off - before) / np.linalg.norm(before))
        before = off
        panels.append(s[np.ix_(rows, rows)])
    scale = 2.5 * np.abs(panels[0][0, 1])
    figure.signed_panels(
        results_folder() / "synthetic-s.png", panels, scale, pixels=1 if each < 40 else 2
    )
    return changes


def three(kind, mean):
    """The rows of one model: paper, the paper's setting, best."""
    (ours, seconds), (sgd, sgd_seconds) = PUBLISHED[kind]
    paper, best, head = (
        mean[kind, name] for name in ("paper's setting", "`auto`", "SGD-CLIP linear")
    )
    yield f"{kind}: accuracy; ours hit@1", ours, paper[0], best[0]
    yield f"{kind}: accuracy; ours same cluster", ours, paper[1], best[1]
    yield f"{kind}: SGD-CLIP, accuracy; ours hit@1, linear head", sgd, head[0], None
    yield f"{kind}: SGD-CLIP, accuracy; ours same cluster", sgd, head[1], None
    yield f"{kind}: time of SGD-CLIP / time of the fit", sgd_seconds / seconds, head[2] / paper[
        2
    ], head[2] / best[2]


def body(work):
    found = {}
    for kind, kernel in KERNEL.items():
        for seed in range(SEEDS):
            (train, dev, test), labels = synthetic(work, kind, seed)
            models = {
                "paper's setting": fit(
                    work, train, *PAPER, "--batch", "full", "--rank", 10, "--kernel", kernel
                ),
                "`fast`": fit(work, train, "--preset", "fast", name="fast"),
                "`fast`, angular": fit(
                    work, train, "--preset", "fast", "--kernel", "angular", name="angular"
                ),
                "`auto`": fit(work, train, *dev.validation(), name="auto"),
            }
            rate, sgd, seconds = sgd_clip(
                work, train, dev, epochs=400, batch=200, rates=(0.003, 0.01, 0.03)
            )
            models["SGD-CLIP linear"] = sgd
            for name, model in models.items():
                hit = both(evaluate(model, test), "hit@1")
                time = seconds if name.startswith("SGD") else model.seconds
                found.setdefault((kind, name), []).append(
                    (hit, same_cluster(*embed(work, model, test), labels[1]), time)
                )
            if seed == 0 and kind == "nonlinear":
                changes = heat_maps(work, train, labels[0])
    mean = {key: np.mean(values, 0) for key, values in found.items()}
    columns = ("model", "method", "hit@1", "same cluster", "fit, tuning included, s")
    steps = [(f"after step {t + 1}", change) for t, change in enumerate(changes)]
    return {
        "synthetic": table(COLUMNS, [row for kind in KERNEL for row in three(kind, mean)]),
        "synthetic-methods": table(columns, [(*key, *values) for key, values in mean.items()]),
        "synthetic-s": table(("S", "relative change of its negatives"), steps),
    }


if __name__ == "__main__":
    main("synthetic", body)
