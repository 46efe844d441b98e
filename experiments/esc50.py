#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Audio-text retrieval (the paper's Clotho table, appendix) on ESC-50: five folds, clips and the
distinct titles of the test fold. SGD-CLIP chooses step length and epochs on one of the training
folds and is then fitted on all four; `auto` does the like by itself."""
import numpy as np

from common import COLUMNS, PAPER, SGD, directions, evaluate, fit, main, sgd_clip, table
from data import esc50, save_part

NAMES = [f"{side} hit@{k}" for k in (1, 5, 10) for side in ("audio→title", "title→audio")]
# The same figures on Clotho, of UniCon and of SGD-CLIP.
CLOTHO = (0.0335, 0.0249, 0.1311, 0.1110, 0.1943, 0.1789)
SGD_CLOTHO = (0.0373, 0.0278, 0.1244, 0.1139, 0.1923, 0.2077)


def fold_part(work, name, data, chosen):
    """The chosen clips (a mask) and the titles they have, as a part."""
    audio, text, pairs, _, _ = data
    mine = pairs[chosen[pairs[:, 0]]]
    titles, column = np.unique(mine[:, 1], return_inverse=True)
    row = np.cumsum(chosen)[mine[:, 0]] - 1
    return save_part(work, name, audio[chosen], text[titles], np.stack([row, column], 1))


def methods(work, data, k):
    """Name, model and time of every method, fitted without fold k."""
    fold, dev_fold = data[3], k % 5 + 1
    train = fold_part(work, "train", data, fold != k)
    for name, options in (("paper's setting", PAPER), ("`fast`", "--preset fast"),
                          ("`auto`", "--preset auto")):
        model = fit(work, train, options)
        yield name, model, model.seconds
    fewer = fold_part(work, "fewer", data, (fold != k) & (fold != dev_fold))
    dev = fold_part(work, "dev", data, fold == dev_fold)
    rate, head, seconds = sgd_clip(work, fewer, dev, batch=200, epochs=100)
    epochs = max(1, int(head.metadata["refine_best_epoch"]))
    model = fit(work, train, SGD, f"--refine {epochs} --refine-batch 200 --refine-rate {rate}")
    yield "SGD-CLIP linear", model, seconds + model.seconds


def body(work):
    data, found = esc50(), {}
    for k in range(1, 6):
        test = fold_part(work, "test", data, data[3] == k)
        for name, model, seconds in methods(work, data, k):
            row = directions(evaluate(model, test), ("hit@1", "hit@5", "hit@10")) + [seconds]
            found.setdefault(name, []).append(row)
    mean = {name: np.mean(values, 0) for name, values in found.items()}
    three = zip(NAMES, CLOTHO, [None] * len(NAMES), mean["paper's setting"], mean["`auto`"],
                SGD_CLOTHO, mean["SGD-CLIP linear"])
    return {
        "esc50": table(f"{COLUMNS} (`auto`) | paper, SGD-CLIP | our SGD-CLIP, linear", three),
        "esc50-methods": table(" | ".join(("method", *NAMES, "fit, tuning included, s")),
                               [(name, *values) for name, values in mean.items()]),
    }


if __name__ == "__main__":
    main("esc50", body)
