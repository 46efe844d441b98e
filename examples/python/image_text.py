# SPDX-License-Identifier: Apache-2.0
"""Images with five captions each. With UNICON_DATA set, Flickr8k's; otherwise made-up vectors."""

import os
from pathlib import Path

import numpy as np

import unicon

CAPTIONS = 5


def made_up(seed, images, rng=np.random.default_rng(0)):
    """Both sides are noisy linear views of one latent vector, and no row has its natural length."""
    z, _, _ = unicon.synth("linear", images, first=seed, dim_x=32, dim_y=32)
    to_x, to_y = (np.random.default_rng(k).standard_normal((32, width))
                  for k, width in ((1, 256), (2, 128)))
    x = z @ to_x + 12 * rng.standard_normal((images, 256))
    y = np.repeat(z, CAPTIONS, axis=0) @ to_y + 12 * rng.standard_normal((images * CAPTIONS, 128))
    return x.astype("f2"), y.astype("f2")


def load():
    root = os.environ.get("UNICON_DATA")
    folder = Path(root or ".") / "flickr8k-inceptionv3-use"
    if root and folder.is_dir():
        return {part: (folder / f"image.{part}.npy", folder / f"text.{part}.npy")
                for part in ("train", "dev", "test")}
    return {part: made_up(first, count)
            for part, first, count in (("train", 0, 1000), ("dev", 2000, 200), ("test", 3000, 200))}


data = load()

# Rows 5i .. 5i+4 of the captions belong to image i. The dev pairs choose the ridge.
best = None
for ridge in (.001, .01, .1):
    aligner = unicon.Aligner(preset="fast", ridge=ridge).fit(*data["train"], pairs=CAPTIONS)
    score = aligner.score(*data["dev"], pairs=CAPTIONS)
    print(f"ridge {ridge:<6} mrr {score:.3f}")
    if best is None or score > best[0]:
        best = score, aligner

found = best[1].evaluate(*data["test"], pairs=CAPTIONS)
for way, name in (("x_to_y", "image to text"), ("y_to_x", "text to image")):
    print(name, " ".join(f"{key} {found[way][key]:.3f}" for key in ("hit@1", "hit@5", "hit@10")))
