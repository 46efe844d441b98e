#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Image-text retrieval (the paper's Flickr30k and MSCOCO tables) on Flickr8k, official split:
fitted on train, chosen on dev, test read once for each row. The paper's figures are of other
images and features, so only the order of methods can be compared."""

from common import (
    PAPER,
    SEEDS,
    SMOKE,
    best_of,
    both,
    directions,
    evaluate,
    fit,
    main,
    say,
    sgd_clip,
    table,
)
from data import flickr8k

# i to t, t to i of R@1 and R@10, train time: Flickr30k, ResNet-50 and Sentence-BERT
UNICON, SGD_CLIP = (0.134, 0.188, 0.464, 0.567, 0.81), (0.043, 0.041, 0.221, 0.217, 45.0)
ANGULAR = (
    "--preset",
    "fast",
    "--kernel",
    "angular",
    "--map",
    "nystrom",
    "--landmarks",
    20 if SMOKE else 2000,
)
BUDGET = 90


def methods(work, train, dev):
    """Name, model and time of every method, one after the other."""
    for name, options in (
        ("`fast`", ("--preset", "fast")),
        ("`paper`", PAPER),
        (
            "`paper`, centred, split .5, moment weights",
            (*PAPER, "--center", "on", "--split", ".5", "--iterations", 0, "--batch", "full"),
        ),
        ("angular, 2000 landmarks, ridge .01", ANGULAR),
    ):
        model = fit(work, train, *options)
        yield name, model, model.seconds
    ridge, model, seconds = best_of(
        work, train, dev, {r: (*ANGULAR, "--ridge", r) for r in (0.001, 0.003, 0.01, 0.03)}
    )
    yield f"angular, 2000 landmarks, ridge {ridge} by dev", model, seconds
    for seed in range(min(SEEDS, 3)):
        model = fit(work, train, "--seed", seed, *dev.validation())
        yield f"`auto`, seed {seed}: {model.metadata['auto_chosen']}", model, model.seconds
    model = fit(work, train, "--preset", "best", "--budget", BUDGET, *dev.validation())
    yield f"`best`, `--budget {BUDGET}`: {model.metadata['auto_chosen']}", model, model.seconds
    rate, model, seconds = sgd_clip(work, train, dev)
    yield f"SGD-CLIP linear, rate {rate} of three by dev", model, seconds


def body(work):
    train, dev, test = flickr8k(work)
    rows, keep = [], {}
    for name, model, seconds in methods(work, train, dev):
        found = evaluate(model, test)
        rows.append(
            (name, *directions(found), both(found, "hit@1"), both(found, "hit@10"), seconds)
        )
        keep.setdefault(name.split(",")[0], (*directions(found), seconds))
        say(f"{name}: {both(found, 'hit@1'):.3f}, {seconds:.1f} s")
    figures = (
        "i→t hit@1",
        "t→i hit@1",
        "i→t hit@10",
        "t→i hit@10",
        "time of SGD-CLIP / time of the fit",
    )
    paper, best, sgd = keep["`paper`"], keep["`auto`"], keep["SGD-CLIP linear"]
    share = lambda values, head: (*values[:4], head[4] / values[4])
    three = zip(
        figures,
        share(UNICON, SGD_CLIP),
        share(paper, sgd),
        share(best, sgd),
        (*SGD_CLIP[:4], None),
        (*sgd[:4], None),
    )
    return {
        "flickr8k": table(
            (
                "figure",
                "paper, UniCon",
                "ours, paper's setting",
                "ours, best (`auto`, seed 0)",
                "paper, SGD-CLIP",
                "our SGD-CLIP, linear",
            ),
            three,
        ),
        "flickr8k-methods": table(
            (
                "method",
                "i→t @1",
                "t→i @1",
                "i→t @10",
                "t→i @10",
                "mean @1",
                "mean @10",
                "fit, tuning included, s",
            ),
            rows,
        ),
    }


if __name__ == "__main__":
    main("flickr8k", body)
