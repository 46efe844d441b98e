#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The paper's two synthetic models (section 4.1): accuracy and time beside SGD-CLIP, and S(gamma)
before the first and after each of three steps (its figure 2). Both readings of "matching
accuracy": the partner itself is the nearest (hit@1), or a row of the same cluster is."""
import numpy as np

import figure
from common import COLUMNS, PAPER_SYNTHETIC, SEEDS, both, embed, evaluate, fit, main
from common import results_folder, sgd_clip, table
from data import synthetic

KERNEL = {"linear": "linear", "nonlinear": "angular"}
# accuracy and seconds of UniCon and of SGD-CLIP
PUBLISHED = {"linear": ((1.00, 0.02), (1.00, 0.32)), "nonlinear": ((0.86, 0.04), (0.84, 0.65))}


def clip_weights(cosines):
    """S = -dL/ds of the clip loss at temperature 1 for one-to-one pairs: with p the softmax of s
    over a row or a column, S = (I - (p_rows + p_columns) / 2) / n."""
    power, n = np.exp(cosines), len(cosines)
    softmax = power / power.sum(1, keepdims=True) + power / power.sum(0)
    return (np.eye(n) - softmax / 2) / n


def same_cluster(zx, zy, label):
    """Share of rows whose nearest row of the other side is of their cluster, both directions."""
    cosines = zx @ zy.T
    return np.mean([label[cosines.argmax(axis)] == label for axis in (0, 1)])


def heat_maps(work, train, label, each=40):
    """S at the paper's setting, drawn for 3 x 40 training pairs sorted by cluster; how much each
    step changes the weights of the negatives."""
    rows = np.concatenate([np.where(label == k)[0][:each] for k in range(3)])
    weights = [clip_weights(np.zeros((len(label), len(label))))]
    for iterations in range(3):
        options = f"{PAPER_SYNTHETIC} --kernel angular --iterations {iterations}"
        zx, zy = embed(work, fit(work, train, options), train)
        weights.append(clip_weights(zx @ zy.T))
    panels = [s[np.ix_(rows, rows)] for s in weights]
    path = results_folder() / "synthetic-s.png"
    figure.signed_panels(path, panels, scale=2.5 * abs(weights[0][0, 1]))
    negatives = [s - np.diag(np.diag(s)) for s in weights]
    return [np.linalg.norm(b - a) / np.linalg.norm(a) for a, b in zip(negatives, negatives[1:])]


def methods(work, kind, train, dev):
    """Name, model and time, tuning included."""
    for name, options in (
        ("paper's setting", (f"{PAPER_SYNTHETIC} --kernel {KERNEL[kind]}",)),
        ("`fast`", ("--preset fast",)),
        ("`fast`, angular", ("--preset fast --kernel angular",)),
        ("`auto`", dev.validation()),
    ):
        model = fit(work, train, *options)
        yield name, model, model.seconds
    _, model, seconds = sgd_clip(work, train, dev, epochs=400, batch=200, rates=(0.003, 0.01, 0.03))
    yield "SGD-CLIP linear", model, seconds


def three(kind, mean):
    """The rows of one model: paper, the paper's setting, best."""
    (ours, seconds), (sgd, sgd_seconds) = PUBLISHED[kind]
    paper, best, head = (mean[kind, n] for n in ("paper's setting", "`auto`", "SGD-CLIP linear"))
    speed = [sgd_seconds / seconds, head[2] / paper[2], head[2] / best[2]]
    return [
        (f"{kind}: accuracy; ours hit@1", ours, paper[0], best[0]),
        (f"{kind}: accuracy; ours same cluster", ours, paper[1], best[1]),
        (f"{kind}: SGD-CLIP; ours hit@1, linear head", sgd, head[0], None),
        (f"{kind}: SGD-CLIP; ours same cluster", sgd, head[1], None),
        (f"{kind}: time of SGD-CLIP / time of the fit", *speed),
    ]


def body(work):
    found, changes = {}, []
    for kind in KERNEL:
        for seed in range(SEEDS):
            (train, dev, test), (label, test_label) = synthetic(work, kind, seed)
            for name, model, seconds in methods(work, kind, train, dev):
                cluster = same_cluster(*embed(work, model, test), test_label)
                row = both(evaluate(model, test), "hit@1"), cluster, seconds
                found.setdefault((kind, name), []).append(row)
            if seed == 0 and kind == "nonlinear":
                changes = heat_maps(work, train, label)
    mean = {key: np.mean(values, 0) for key, values in found.items()}
    columns = "model | method | hit@1 | same cluster | fit, tuning included, s"
    steps = [(f"after step {t + 1}", change) for t, change in enumerate(changes)]
    return {
        "synthetic": table(COLUMNS, [row for kind in KERNEL for row in three(kind, mean)]),
        "synthetic-methods": table(columns, [(*key, *values) for key, values in mean.items()]),
        "synthetic-s": table("S | relative change of its negatives", steps),
    }


if __name__ == "__main__":
    main("synthetic", body)
