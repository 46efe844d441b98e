#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Audio-text retrieval (the paper's Clotho table, appendix) on ESC-50: five folds, clips and the
distinct titles of the test fold. SGD-CLIP chooses step length and epochs on one of the training
folds and is then fitted on all four; `auto` does the like by itself."""

import numpy as np

from common import PAPER, SGD, directions, evaluate, fit, main, sgd_clip, table
from data import esc50, save_part

NAMES = ("hit@1", "hit@5", "hit@10")
# a2t, t2a of R@1, R@5, R@10
CLOTHO = {
    "none": (0.0010, 0.0000, 0.0048, 0.0029, 0.0096, 0.0096),
    "UniCon": (0.0335, 0.0249, 0.1311, 0.1110, 0.1943, 0.1789),
    "SGD": (0.0373, 0.0278, 0.1244, 0.1139, 0.1923, 0.2077),
}


def fold_part(work, name, data, clips):
    """The clips and the titles they have, as a part."""
    audio, text, pairs, _, _ = data
    mine = pairs[np.isin(pairs[:, 0], clips)]
    titles, column = np.unique(mine[:, 1], return_inverse=True)
    return save_part(
        work,
        name,
        audio[clips],
        text[titles],
        np.stack([np.searchsorted(clips, mine[:, 0]), column], 1),
    )


def body(work):
    data = esc50()
    fold, found = data[3], {}
    for k in range(1, 6):
        rest, dev_fold = np.where(fold != k)[0], k % 5 + 1
        train, test = fold_part(work, "train", data, rest), fold_part(
            work, "test", data, np.where(fold == k)[0]
        )
        fewer = fold_part(work, "fewer", data, np.where((fold != k) & (fold != dev_fold))[0])
        dev = fold_part(work, "dev", data, np.where(fold == dev_fold)[0])
        models = {
            "paper's setting": fit(work, train, *PAPER),
            "`fast`": fit(work, train, "--preset", "fast", name="fast"),
            "`auto`": fit(work, train, name="auto"),
        }
        rate, head, total = sgd_clip(work, fewer, dev, batch=200, epochs=100)
        epochs = max(1, int(head.metadata["refine_best_epoch"]))
        models["SGD-CLIP linear"] = fit(
            work,
            train,
            *SGD,
            "--refine",
            epochs,
            "--refine-batch",
            200,
            "--refine-rate",
            rate,
            name="sgd",
        )
        for name, model in models.items():
            seconds = model.seconds + (total if name.startswith("SGD") else 0)
            found.setdefault(name, []).append((*directions(evaluate(model, test), NAMES), seconds))
    mean = {name: np.mean(values, 0) for name, values in found.items()}
    figures = [f"{side} hit@{k}" for k in (1, 5, 10) for side in ("audio→title", "title→audio")]
    three = [
        (
            name,
            CLOTHO["UniCon"][i],
            mean["paper's setting"][i],
            mean["`auto`"][i],
            CLOTHO["SGD"][i],
            mean["SGD-CLIP linear"][i],
        )
        for i, name in enumerate(figures)
    ]
    return {
        "esc50": table(
            (
                "figure",
                "paper",
                "ours, paper's setting",
                "ours, best (`auto`)",
                "paper, SGD-CLIP",
                "our SGD-CLIP, linear",
            ),
            three,
        ),
        "esc50-methods": table(
            ("method", *figures, "fit, tuning included, s"), [(n, *v) for n, v in mean.items()]
        ),
    }


if __name__ == "__main__":
    main("esc50", body)
