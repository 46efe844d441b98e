#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Image-text retrieval (the paper's Flickr30k and MSCOCO tables) on Flickr8k, official split:
fitted on train, chosen on dev, test read once for each row. The paper's figures are of other
images and features, so only the order of methods can be compared. Preset best is in compare.py."""
from common import COLUMNS, PAPER, SEEDS, SMOKE, best_of, directions, evaluate, fit, hits, main
from common import say, sgd_clip, table
from data import flickr8k

# i to t, t to i of R@1 and R@10, train time: Flickr30k, ResNet-50 and Sentence-BERT
UNICON, SGD_CLIP = (0.134, 0.188, 0.464, 0.567, 0.81), (0.043, 0.041, 0.221, 0.217, 45.0)
FIGURES = "i→t hit@1", "t→i hit@1", "i→t hit@10", "t→i hit@10", "time of SGD-CLIP / time of the fit"
ANGULAR = f"--preset fast --kernel angular --map nystrom --landmarks {20 if SMOKE else 2000}"


def methods(work, train, dev):
    """Name, description, model and time of every method, one after the other."""
    for name, about, options in (
        ("`fast`", "", "--preset fast"),
        ("`paper`", "", PAPER),
        ("`paper` centred", ", split .5, moment weights",
         f"{PAPER} --center on --split .5 --iterations 0 --batch full"),
        ("angular", ", 2000 landmarks, ridge .01", ANGULAR),
    ):
        model = fit(work, train, options)
        yield name, about, model, model.seconds
    ridges = {ridge: (f"{ANGULAR} --ridge {ridge}",) for ridge in (0.001, 0.003, 0.01, 0.03)}
    ridge, model, seconds = best_of(work, train, dev, ridges)
    yield "angular by dev", f", 2000 landmarks, ridge {ridge}", model, seconds
    for seed in range(min(SEEDS, 3)):
        model = fit(work, train, f"--seed {seed}", *dev.validation())
        yield f"`auto` {seed}", f": {model.metadata['auto_chosen']}", model, model.seconds
    rate, model, seconds = sgd_clip(work, train, dev)
    yield "SGD-CLIP linear", f", rate {rate} of three by dev", model, seconds


def body(work):
    train, dev, test = flickr8k(work)
    rows, keep = [], {}
    for name, about, model, seconds in methods(work, train, dev):
        found = evaluate(model, test)
        plain = {side: found[side]["plain"] for side in ("x_to_y", "y_to_x")}
        rows.append((name + about, *directions(found), *hits(found, 1, 10), *hits(plain, 1, 10),
                     seconds))
        keep[name] = *directions(found), seconds
        say(f"{name}: {seconds:.1f} s")
    sgd = keep["SGD-CLIP linear"]

    def column(values, head):
        return (*values[:4], head[4] / values[4])

    three = zip(FIGURES, column(UNICON, SGD_CLIP), column(keep["`paper`"], sgd),
                column(keep["`auto` 0"], sgd), (*SGD_CLIP[:4], None), (*sgd[:4], None))
    columns = ("i→t @1 | t→i @1 | i→t @10 | t→i @10 | mean @1 | mean @10 | plain @1 | plain @10 | "
               "fit, tuning included, s")
    return {
        "flickr8k": table(f"{COLUMNS} (`auto`) | paper, SGD-CLIP | our SGD-CLIP, linear", three),
        "flickr8k-methods": table(f"method | {columns}", rows),
    }


if __name__ == "__main__":
    main("flickr8k", body)
