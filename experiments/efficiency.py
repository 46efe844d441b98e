#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data efficiency: Flickr8k fitted on 200 images (1000 captions) up to all 6000. The paper has
66.45 % average R@10 from 200 images of MSCOCO, of CLIP ViT-B/32 features, which were trained to
be aligned; its figure for all images is 66.5 %."""

import numpy as np

import figure
from common import PAPER, SMOKE, both, evaluate, fit, main, results_folder, table
from data import flickr8k, save_part

SIZES = (20, 60) if SMOKE else (200, 500, 1000, 2000, 4000, 6000)


def body(work):
    train, dev, test = flickr8k(work)
    x, y = np.load(train.x), np.load(train.y)
    order = np.random.default_rng(0).permutation(len(x))
    methods = {"paper's setting": PAPER, "`fast`": ("--preset", "fast"), "`auto`": ()}
    found, curves = {}, {}
    for size in SIZES:
        rows = np.sort(order[:size])
        part = save_part(
            work, "few", x[rows], y.reshape(len(x), 5, -1)[rows].reshape(5 * size, -1), per_x=5
        )
        for name, options in methods.items():
            if name == "`auto`" and 1000 < size < len(x):
                continue
            result = evaluate(
                fit(work, part, *options, *(dev.validation() if name == "`auto`" else ())), test
            )
            found[size, name] = both(result, "hit@1"), both(result, "hit@10")
            curves.setdefault(name, []).append((size, both(result, "hit@10")))
    figure.lines(
        results_folder() / "efficiency.svg",
        curves,
        "training images",
        "hit@10, mean of both directions",
    )
    rows = [
        (
            size,
            {200: 0.6645, 6000: 0.665}.get(size),
            *(v for name in methods for v in found.get((size, name), (None,) * 2)),
        )
        for size in SIZES
    ]
    return {
        "efficiency": table(
            (
                "training images",
                "paper, R@10 (200 / all)",
                "paper's setting, hit@1",
                "hit@10",
                "`fast`, hit@1",
                "hit@10 ",
                "`auto`, hit@1",
                "hit@10  ",
            ),
            rows,
        )
    }


if __name__ == "__main__":
    main("efficiency", body)
