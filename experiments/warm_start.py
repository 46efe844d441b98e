#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Epochs that SGD-CLIP needs from our closed form, against a random start, to reach the best
held-out score of the random start: the paper's hybrid of spectral and SGD steps, which it leaves
to future work. Same engine, same step lengths, plain metric, mean of three seeds. Dev alone is
read."""

import numpy as np

from common import SEEDS, SGD, SMOKE, Skip, fit, main, say, table
from data import flickr8k, synthetic


def epochs(work, train, dev, batch, limit):
    """Epochs to the random start's best score: from the random start, and from our model."""
    needs = []
    for seed in range(min(SEEDS, 3)):
        engine = (
            *SGD,
            "--refine-patience",
            8,
            "--refine",
            3 if SMOKE else limit,
            "--refine-batch",
            batch,
            "--refine-rate",
            0.03,
            "--seed",
            seed,
            *dev.validation(),
        )
        start = fit(work, train, "--preset", "fast", name="start")
        log = [
            [float(v) for v in fit(work, train, *engine, *how).metadata["refine_score_log"].split()]
            for how in ((), ("--start", start.path))
        ]
        goal = max(log[0])
        needs.append(
            (log[0].index(goal), next((e for e, v in enumerate(log[1]) if v >= goal), len(log[1])))
        )
    return np.mean(needs, 0)


def body(work):
    rows = []
    for kind in "linear", "nonlinear":
        train, dev, _ = synthetic(work, kind, 0)[0]
        rows.append((f"synthetic {kind}", *epochs(work, train, dev, 200, 100)))
    try:
        train, dev, _ = flickr8k(work)
        rows.append(("Flickr8k", *epochs(work, train, dev, 1000, 40)))
    except Skip as why:
        say(f"Flickr8k skipped: {why}")
    rows = [(*row, row[2] / row[1] if row[1] else None) for row in rows]
    return {
        "warm-start": table(("data", "epochs, random start", "epochs, our start", "ratio"), rows)
    }


if __name__ == "__main__":
    main("warm_start", body)
