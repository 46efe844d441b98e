#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transfer without refitting (the paper: fitted on MSCOCO, tested on Flickr30k). Flickr8k is cut
in two halves by topic: 20 clusters of the captions (k-means), every image in the cluster of most
of its captions. Fitted on one half and tested on the other; beside it fitted on the half that is
tested. ESC-50: fitted on 40 classes and tested on clips of the other 10; beside it fitted on all
50. The same test rows in both columns."""

import numpy as np

from common import PAPER, SMOKE, Skip, both, evaluate, fit, main, say, table
from data import esc50, flickr8k, save_part
from esc50 import fold_part

ANGULAR = ("--preset", "fast", "--kernel", "angular")


def nearest(rows, centres):
    return (rows @ centres.T - (centres**2).sum(1) / 2).argmax(1)


def k_means(rows, k, rounds=20):
    """Lloyd's rounds from rows drawn at random, as centres."""
    centres = rows[np.random.default_rng(0).choice(len(rows), k, replace=False)]
    for _ in range(rounds):
        label = nearest(rows, centres)
        centres = np.stack(
            [rows[label == c].mean(0) if (label == c).any() else centres[c] for c in range(k)]
        )
    return centres


def majority(label, k):
    """The commonest label of each image's five captions."""
    return np.stack([np.bincount(five, minlength=k) for five in label.reshape(-1, 5)]).argmax(1)


def halves(parts, k):
    """For every part the half (0 or 1) of each image; clusters are dealt out by size, so that
    halves are alike."""
    texts = [np.load(part.y).astype("f4") for part in parts]
    texts = [t / np.linalg.norm(t, axis=1, keepdims=True) for t in texts]
    centres = k_means(texts[0], k)
    clusters = [majority(nearest(t, centres), k) for t in texts]
    by_size = np.argsort(-np.bincount(clusters[0], minlength=k), kind="stable")
    half = np.empty(k, int)
    half[by_size] = np.array([0, 1, 1, 0] * k)[:k]
    return [half[c] for c in clusters]


def flickr_transfer(work):
    parts = flickr8k(work)
    half = halves(parts, 6 if SMOKE else 20)
    cut = {}
    for part, name, side in zip(parts, ("train", "dev", "test"), half):
        x, y = np.load(part.x), np.load(part.y)
        for h in (0, 1):
            rows = side == h
            cut[name, h] = save_part(work, f"{name}.{h}", x[rows], y[np.repeat(rows, 5)], per_x=5)
    rows = []
    for name, options in (
        ("paper's setting", PAPER),
        ("`fast`", ("--preset", "fast")),
        ("angular", ANGULAR),
        ("`auto`", ()),
    ):
        found = []
        for other in (1, 0):
            for h in (0, 1):
                source = h ^ other
                chooser = cut["dev", source].validation() if name == "`auto`" else ()
                result = evaluate(
                    fit(work, cut["train", source], *options, *chooser), cut["test", h]
                )
                found.append((both(result, "hit@1"), both(result, "hit@10")))
        away, home = np.mean(found[:2], 0), np.mean(found[2:], 0)
        rows.append((name, *away, *home, away[1] / home[1]))
    return table(
        ("method", "other half, hit@1", "hit@10", "same half, hit@1", "hit@10 ", "kept of hit@10"),
        [
            ("paper, MSCOCO to Flickr30k, RN-50 + SBERT", None, 0.307, 0.161, 0.515, 0.307 / 0.515),
            *rows,
        ],
    )


def esc_transfer(work):
    data = esc50()
    fold, kind, found = data[3], data[4], {}
    for k in range(1, 6):
        for group in range(1 if SMOKE else 5):
            unseen = kind % 5 == group
            test = fold_part(work, "test", data, np.where((fold == k) & unseen)[0])
            away = fold_part(work, "away", data, np.where((fold != k) & ~unseen)[0])
            home = fold_part(work, "home", data, np.where(fold != k)[0])
            for name, options in (
                ("paper's setting", PAPER),
                ("`fast`", ("--preset", "fast")),
                ("angular", ANGULAR),
            ):
                results = [evaluate(fit(work, part, *options), test) for part in (away, home)]
                found.setdefault(name, []).append(
                    [both(r, f"hit@{n}") for r in results for n in (1, 10)]
                    + [results[0]["y_to_x"]["chance"]["hit@10"]]
                )
    rows = []
    for name, values in found.items():
        away1, away10, home1, home10, chance = np.mean(values, 0)
        rows.append((name, away1, away10, home1, home10, away10 / home10, chance))
    return table(
        (
            "method",
            "10 unseen classes, hit@1",
            "hit@10",
            "all classes seen, hit@1",
            "hit@10 ",
            "kept of hit@10",
            "chance, title→audio hit@10",
        ),
        rows,
    )


def body(work):
    tables = {}
    for name, run in (("transfer-flickr8k", flickr_transfer), ("transfer-esc50", esc_transfer)):
        try:
            tables[name] = run(work)
        except Skip as why:
            say(f"{name} skipped: {why}")
    return tables


if __name__ == "__main__":
    main("transfer", body)
