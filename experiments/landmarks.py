#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Features of the angular kernel on Flickr8k dev (test is not read), in `--preset fast`: landmarks
drawn uniformly against landmarks by randomly pivoted Cholesky, 500 of them, mean and standard
deviation of three seeds; and random features against landmarks at equal number."""
import numpy as np

from common import SMOKE, directions, evaluate, fit, hits, main, table
from data import flickr8k

ANGULAR = "--preset fast --kernel angular"
SEEDS = range(1 if SMOKE else 3)


def landmark_methods(work, train, dev):
    rows = []
    fixed = f"{ANGULAR} --map nystrom --landmarks {20 if SMOKE else 500}"
    for method in "uniform", "pivot":
        found = [directions(evaluate(fit(work, train, fixed, f"--landmark-method {method} --seed {s}"),
                                     dev)) for s in SEEDS]
        rows.append((f"{method}, mean", *np.mean(found, 0)))
        rows.append((f"{method}, deviation", *np.std(found, 0, ddof=min(1, len(SEEDS) - 1))))
    return table("landmarks | i→t hit@1 | t→i hit@1 | i→t hit@10 | t→i hit@10", rows)


def random_features(work, train, dev):
    rows = []
    for count in (20,) if SMOKE else (500, 1000, 2000):
        line = [count]
        for options in (f"--map random --features {count}", f"--map nystrom --landmarks {count}"):
            model = fit(work, train, f"{ANGULAR} {options}")
            line += [*hits(evaluate(model, dev), 1, 10), model.seconds]
        rows.append(line)
    model = fit(work, train, "--preset fast")
    rows.append(("linear", *(None,) * 3, *hits(evaluate(model, dev), 1, 10), model.seconds))
    columns = " | ".join(f"{name}, hit@1 | hit@10 | fit, s" for name in (
        "random features", "landmarks"))
    return table(f"features | {columns}", rows)


def body(work):
    train, dev, _ = flickr8k(work)
    return {"landmarks": landmark_methods(work, train, dev),
            "random-features": random_features(work, train, dev)}


if __name__ == "__main__":
    main("landmarks", body)
