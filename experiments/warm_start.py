#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Epochs that SGD-CLIP needs from our closed form, against a random start, to reach the best
held-out score of the random start: the hybrid that the paper leaves to future work. Same engine,
same step lengths, plain metric, mean of three seeds. Dev alone is read."""
import numpy as np

from common import SEEDS, SGD, SMOKE, Skip, fit, main, say, table
from data import flickr8k, synthetic


def epochs(work, train, dev, batch, limit):
    """Epochs to the random start's best score: from the random start, and from our model."""
    start, needs = fit(work, train, "--preset fast", name="start"), []
    for seed in range(min(SEEDS, 3)):
        engine = (f"{SGD} --refine {3 if SMOKE else limit} --refine-rate .03 "
                  f"--refine-batch {batch} --seed {seed}")
        random, ours = (
            [float(v) for v in fit(work, train, engine, *dev.validation(), *how)
             .metadata["refine_score_log"].split()]
            for how in ((), ("--start", start.path)))
        goal = max(random)
        reached = next((epoch for epoch, v in enumerate(ours) if v >= goal), None)
        if reached is None:  # stopped early or at the limit: count all the epochs it might have had
            say(f"seed {seed}: our start never reaches {goal:.4f}")
            reached = limit
        needs.append((random.index(goal), reached))
    return np.mean(needs, 0)


def body(work):
    rows = []
    for kind in "linear", "nonlinear":
        (train, dev, _), _ = synthetic(work, kind, 0)
        rows.append((f"synthetic {kind}", *epochs(work, train, dev, 200, 100)))
    try:
        train, dev, _ = flickr8k(work)
        rows.append(("Flickr8k", *epochs(work, train, dev, 1000, 40)))
    except Skip as why:
        say(f"Flickr8k skipped: {why}")
    columns = "data | epochs, random start | epochs, our start | ratio"
    return {"warm-start": table(columns, [(*r, r[2] / r[1] if r[1] else None) for r in rows])}


if __name__ == "__main__":
    main("warm_start", body)
