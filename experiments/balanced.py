#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Balanced scores on Flickr8k, official split: what they are worth for our presets and for the
baselines from few pairs to many, which bank and strength they want, and what becomes of hubs.
Choices are made on dev; bank and strength curves are of dev; test is read once for each figure.

    experiments/balanced.py [--smoke]
"""
import json

from common import SMOKE, Part, evaluate, fit, hits, main, np, results_folder, say, score, table
from common import unicon
from data import flickr8k
import figure

SIZES = (20, 60) if SMOKE else (200, 500, 1000, 2000, 6000)
BANKS = (16, 32) if SMOKE else (250, 500, 1000, 2000, 4000, 8000)
STRENGTHS = (5, 10) if SMOKE else (2.5, 5, 10, 15, 20, 30, 50)
METHODS = ("fast", "sgd_linear") if SMOKE else ("fast", "auto", "sgd_linear")
BUDGET = 1 if SMOKE else 60


def few(work, train, size):
    """The first images of a random order, with their captions: larger sets have the smaller ones."""
    x, y = np.load(train.x), np.load(train.y)
    pick = np.sort(np.random.default_rng(0).permutation(len(x))[:size])
    captions = (pick[:, None] * 5 + np.arange(5)).ravel()
    part = Part(f"{work}/few.x.npy", f"{work}/few.y.npy", ("--y-per-x", "5"))
    np.save(part.x, x[pick])
    np.save(part.y, y[captions])
    return part


def few_pairs(work, train, dev, test):
    """hit@1 and hit@10 of every method, plain and balanced, for each number of images."""
    rows, curves = [], {}
    for size in SIZES:
        part = few(work, train, size)
        words = (*part.words(), *dev.validation(), "--test-x", test.x, "--test-y", test.y)
        found = json.loads(unicon("compare", *words, "--only", ",".join(METHODS), "--budget",
                                  BUDGET, "--json", "-q"))
        for row in found["rows"]:
            for how in ("plain", "balanced"):
                at_1, at_10 = hits(row[how], 1, 10)
                rows.append((size, f"`{row['name']}`", how, at_1, at_10, row["fit_seconds"]))
                curves.setdefault(f"{row['name']}, {how}", []).append((size, at_10))
        say(f"{size} images")
    if not SMOKE:
        shown = ("auto, balanced", "fast, balanced", "sgd_linear, balanced", "sgd_linear, plain")
        figure.lines(results_folder() / "few-pairs.svg", {name: curves[name] for name in shown},
                     "images with five captions each", "hit@10, mean of both directions")
    return rows


def curves(work, train, dev):
    """Dev score by size of the bank and by strength, of the linear closed form."""
    model = fit(work, train, "--preset fast --balance softmax:10")
    path, renewed = f"{work}/renewed.safetensors", []
    for count in BANKS:
        unicon("balance", model.path, *train.words(), "-q", "-o", path, f"--balance-bank {count}")
        found = json.loads(unicon("eval", path, *dev.words(), "-q", "--json"))
        renewed.append((count, *hits(found, 1, 10), score(found)))
    strengths = []
    for how in ("off", *(f"softmax:{b}" for b in STRENGTHS), "csls:10", "csls:50"):
        words = ("eval", model.path, *dev.words(), "-q", "--json", "--balance", how)
        found = json.loads(unicon(*words))
        strengths.append((how, *hits(found, 1, 10), score(found)))
    free = f"{work}/free.safetensors"
    unicon("balance", model.path, *train.words(), "-q", "-o", free, "--balance quadratic:10")
    found = json.loads(unicon("eval", free, *dev.words(), "-q", "--json"))
    strengths.append(("quadratic:10, no bank", *hits(found, 1, 10), score(found)))
    return renewed, strengths


def hubs(work, train, dev, test):
    """Skewness of the 10-occurrence and share never found, before and after."""
    rows = []
    for name, options in (("`fast`", ("--preset fast",)), ("`auto`", dev.validation())):
        found = evaluate(fit(work, train, *options), test)
        for side, words in (("x_to_y", "captions"), ("y_to_x", "images")):
            h = found[side]["hubs"]
            rows.append((name, words, h["plain_skewness"], h["skewness"], h["plain_never_found"],
                         h["never_found"]))
    return rows


def body(work):
    train, dev, test = flickr8k(work)
    renewed, strengths = curves(work, train, dev)
    return {
        "few-pairs": table("images | method | scores | hit@1 | hit@10 | fit, all settings tried, s",
                           few_pairs(work, train, dev, test)),
        "banks": table("rows of a bank | hit@1 | hit@10 | dev score", renewed),
        "strengths": table("balance | hit@1 | hit@10 | dev score", strengths),
        "hubness": table("method | found among | skewness, plain | balanced | never found, plain | "
                         "balanced", hubs(work, train, dev, test)),
    }


if __name__ == "__main__":
    main("balanced", body)
