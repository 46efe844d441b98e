#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data efficiency: Flickr8k fitted on 200 images (1000 captions) up to all 6000. The paper has
66.45 % average R@10 from 200 images of MSCOCO; its figure for all images, of CLIP ViT-B/32
features, is 66.5 %."""
import numpy as np

import figure
from common import PAPER, SMOKE, evaluate, fit, hits, main, results_folder, table
from data import flickr8k, save_part

SIZES = (20, 60) if SMOKE else (200, 500, 1000, 2000, 6000)
PUBLISHED = {200: 0.6645}


def body(work):
    train, dev, test = flickr8k(work)
    x, y = np.load(train.x), np.load(train.y)
    captions = y.reshape(len(x), 5, -1)
    order = np.random.default_rng(0).permutation(len(x))
    methods = {"paper's setting": [PAPER], "`fast`": ["--preset fast"], "`auto`": dev.validation()}
    table_rows, curves = [], {name: [] for name in methods}
    for size in SIZES:
        rows = np.sort(order[:size])
        part = save_part(work, "few", x[rows], captions[rows].reshape(5 * size, -1), per_x=5)
        line = [size, PUBLISHED.get(size)]
        for name, options in methods.items():
            found = hits(evaluate(fit(work, part, *options), test), 1, 10)
            curves[name].append((size, found[1]))
            line += found
        table_rows.append(line)
    figure.lines(results_folder() / "efficiency.svg", curves, "training images",
                 "hit@10, mean of both directions")
    columns = " | ".join(f"{name}, hit@1 | hit@10" for name in methods)
    return {"efficiency": table(f"training images | paper, R@10 | {columns}", table_rows)}


if __name__ == "__main__":
    main("efficiency", body)
