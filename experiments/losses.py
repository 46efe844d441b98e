#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Losses other than clip. Triplet on the nonlinear synthetic model, where the paper has 90 %;
SigLIP on Flickr8k, where the paper has a table (its data are not named there) beside SGD with the
same loss; other losses of the family beside them. Best: whitened, 2 safe iterations and 3 epochs
of refine with that loss, the best of them on dev returned; angular kernel on the synthetic set."""
import numpy as np

from common import COLUMNS, PAPER, PAPER_SYNTHETIC, SEEDS, Skip, both, directions, evaluate, fit
from common import main, say, sgd_clip, table
from data import flickr8k, synthetic

LOSSES = ("clip", "infonce", "supcon", "triplet", "siglip")
BEST = "--preset fast --iterations 2 --refine 3"
# i to t, t to i of R@1, R@5, R@10
SIGLIP = (0.3340, 0.2862, 0.5816, 0.5334, 0.6852, 0.6394)
SGD_SIGLIP = (0.2852, 0.2816, 0.5610, 0.5538, 0.6924, 0.6704)
NAMES = [f"{side} hit@{k}" for k in (1, 5, 10) for side in ("i→t", "t→i")]


def synthetic_losses(work):
    found = {loss: [] for loss in LOSSES}
    for seed in range(SEEDS):
        (train, dev, test), _ = synthetic(work, "nonlinear", seed)
        for loss in LOSSES:
            paper = fit(work, train, f"{PAPER_SYNTHETIC} --kernel angular --loss {loss}")
            best = fit(work, train, f"{BEST} --kernel angular --loss {loss}", *dev.validation(),
                       name="best")
            found[loss].append([both(evaluate(model, test), "hit@1") for model in (paper, best)])
    published = {"clip": 0.86, "triplet": 0.90}
    return table(COLUMNS, [(f"{loss}, hit@1", published.get(loss), *np.mean(values, 0))
                           for loss, values in found.items()])


def flickr_losses(work):
    train, dev, test = flickr8k(work)
    found = {}

    def add(loss, method, model):
        found[loss, method] = directions(evaluate(model, test), ("hit@1", "hit@5", "hit@10"))

    for loss in LOSSES:
        add(loss, "paper's setting", fit(work, train, f"{PAPER} --loss {loss}"))
        add(loss, "best", fit(work, train, f"{BEST} --loss {loss}", *dev.validation()))
    add("siglip", "SGD linear", sgd_clip(work, train, dev, "--loss siglip")[1])
    mine = [found["siglip", name] for name in ("paper's setting", "best", "SGD linear")]
    three = zip(NAMES, SIGLIP, mine[0], mine[1], SGD_SIGLIP, mine[2])
    return {
        "losses-siglip": table(f"{COLUMNS} | paper, SGD-SigLIP | our SGD-SigLIP, linear", three),
        "losses-flickr8k": table(" | ".join(("loss", "method", *NAMES)),
                                 [(*key, *values) for key, values in found.items()]),
    }


def body(work):
    tables = {"losses-synthetic": synthetic_losses(work)}
    try:
        tables.update(flickr_losses(work))
    except Skip as why:
        say(f"Flickr8k skipped: {why}")
    return tables


if __name__ == "__main__":
    main("losses", body)
