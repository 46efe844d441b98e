#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Image-text retrieval (the paper's Flickr30k and MSCOCO tables) on Flickr8k, official split:
fitted on train, chosen on dev, test read once for each row. The paper's figures are of other
images and features (and of first captions, 3179 by 3179), so only the order of methods can be
compared with them. Preset best is in compare.py.

Their SGD-CLIP for Flickr30k: one linear layer a side, rank 128, Adam with rate 1e-4, batches of
128, 50 epochs, temperature 1, first captions, rows as they are, best epoch by dev R@1. One caption:
the first of each image, in training alone."""
import json
import time

import numpy as np

import reference
from common import COLUMNS, PAPER, SMOKE, directions, evaluate, fit, hits, main, say, sgd_clip
from common import table, unicon
from data import flickr8k, save_part

# i to t, t to i of R@1 and R@10, of Flickr30k with ResNet-50: UniCon and SGD-CLIP, paper and code
UNICON = ((0.134, 0.188, 0.464, 0.567), (0.134, 0.187, 0.464, 0.567))
SGD_CLIP = ((0.043, 0.041, 0.221, 0.217), (0.090, 0.094, 0.364, 0.383))
FIGURES = "i→t hit@1", "t→i hit@1", "i→t hit@10", "t→i hit@10"
ANGULAR = f"--preset fast --kernel angular --map nystrom --landmarks {20 if SMOKE else 2000}"


def rows_of(part):
    return [np.load(path).astype("f4") for path in (part.x, part.y)]


def first_captions(work, train):
    x, y = rows_of(train)
    return save_part(work, "first", x, y[::5])


def as_model(work, name, f, test):
    """Factors made outside as rows that are in one space already: what eval says of them."""
    x, y = rows_of(test)
    part = save_part(work, name, (x @ f[0]).astype("f4"), (y @ f[1]).astype("f4"), per_x=5)
    return json.loads(unicon("eval", "--no-model", *part.words(), "-q", "--json"))


def same_in_numpy(work, first, test):
    """Their steps from their description; float64, one caption."""
    begin = time.perf_counter()
    f = reference.linear(*rows_of(first), 8 if SMOKE else 128, 2, nu=2.0, power=0)
    seconds = time.perf_counter() - begin
    return as_model(work, "numpy", f, test), seconds


def their_sgd(work, first, dev, test):
    (x, y), (dx, dy) = rows_of(first), rows_of(dev)
    dy = dy[::5]
    best, begin = [-1, None], time.perf_counter()

    def watch(_, heads):
        s = reference.cosines(heads[0](dx), heads[1](dy))
        score = reference.accuracy(s) + reference.accuracy(s.T)
        if score > best[0]:
            best[:] = score, [head.layers[0].w[0].copy() for head in heads]

    reference.train_heads(x, y, np.arange(len(y)), "linear", 8 if SMOKE else 128, 1e-4, 128,
                          2 if SMOKE else 50, watch=watch)
    return as_model(work, "sgd", best[1], test), time.perf_counter() - begin


def methods(work, train, dev, test):
    """Name, what eval says on test and time of every method, one after the other."""
    first = first_captions(work, train)
    for name, part, options in (
        ("`paper`, one caption", first, PAPER),
        ("`paper`", train, PAPER),
        ("`paper-printed`", train, "--preset paper-printed"),
        ("`fast`, one caption", first, "--preset fast"),
        ("`fast`", train, "--preset fast"),
        ("angular, 2000 landmarks", train, ANGULAR),
    ):
        model = fit(work, part, options)
        yield name, evaluate(model, test), model.seconds
    yield "the steps of `paper` in NumPy, one caption", *same_in_numpy(work, first, test)
    yield "SGD-CLIP as they train it, one caption", *their_sgd(work, first, dev, test)
    for seed in range(1 if SMOKE else 3):
        model = fit(work, train, f"--seed {seed}", *dev.validation())
        about = model.metadata["auto_chosen"]
        yield f"`auto` {seed}: {about}", evaluate(model, test), model.seconds
    rate, model, seconds = sgd_clip(work, train, dev)
    yield f"SGD-CLIP tuned, rate {rate} of three by dev", evaluate(model, test), seconds


def body(work):
    train, dev, test = flickr8k(work)
    rows, keep = [], {}
    for name, found, seconds in methods(work, train, dev, test):
        plain = {side: found[side]["plain"] for side in ("x_to_y", "y_to_x")}
        rows.append((name, *directions(found), *hits(found, 1, 10), *hits(plain, 1, 10), seconds))
        keep[name.split(":")[0].split(",")[0] + (", one" if "one caption" in name else "")] = found
        say(f"{name}: {seconds:.1f} s")
    ours, theirs, tuned = (directions(keep[n]) for n in (
        "`paper`", "SGD-CLIP as they train it, one", "SGD-CLIP tuned"))
    auto = directions(keep["`auto` 0"])
    three = [(f"UniCon, {n}", *v) for n, *v in zip(FIGURES, *UNICON, ours, auto)]
    three += [(f"SGD-CLIP, {n}", *v) for n, *v in zip(FIGURES, *SGD_CLIP, theirs, tuned)]
    columns = ("i→t @1 | t→i @1 | i→t @10 | t→i @10 | mean @1 | mean @10 | plain @1 | plain @10 | "
               "fit, tuning included, s")
    return {
        "flickr8k": table(COLUMNS, three),
        "flickr8k-methods": table(f"method | {columns}", rows),
    }


if __name__ == "__main__":
    main("flickr8k", body)
