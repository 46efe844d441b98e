#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Image-image alignment (the paper's section 4.2 and figure 3), on Fashion-MNIST in place of
CIFAR-10: two augmentations of an image are a pair, one encoder serves both views, and a linear
probe tells the classes from the 128 numbers of the embedding. Rows are raw pixels, or 1024
random convolution features in place of the frozen ResNet-18. The probe on the rows themselves
stands beside it."""
import json

import numpy as np

import figure
from common import COLUMNS, PAPER, SMOKE, both, evaluate, fit, main, results_folder, table
from common import sgd_clip, unicon
from data import fashion, save_part

LABELS = "T-shirt trouser pullover dress coat sandal shirt sneaker bag boot".split()
RANK = f"--rank {8 if SMOKE else 128}"
METHODS = {
    "paper's setting, angular kernel": f"{PAPER} --kernel angular --map nystrom",
    "whitened, linear": "--preset fast",
    "whitened, angular kernel": "--preset fast --kernel angular",
}


def augment(images, rng):
    """A crop of 22 to 28 pixels at a random place, stretched back to 28 (nearest pixel), a flip
    for half of them, contrast .7 to 1.3 and noise .05."""
    n = len(images)
    size = rng.integers(22, 29, n)[:, None]
    grid = (np.arange(28) * size) // 28
    down, right = (grid + np.floor(rng.random((n, 1)) * (29 - size)).astype(int) for _ in range(2))
    right = np.where(rng.random((n, 1)) < 0.5, right, right[:, ::-1])
    out = images[np.arange(n)[:, None, None], down[:, :, None], right[:, None, :]]
    out = out * rng.uniform(0.7, 1.3, (n, 1, 1)) + 0.05 * rng.normal(size=out.shape)
    return np.clip(out, 0, None).astype("f4")


def pixels(images):
    return images.reshape(len(images), 28 * 28)


def convolutions(images, filters=64, size=7):
    """ReLU of 64 random filters of 7 by 7 pixels, averaged over a 4 by 4 grid: 1024 numbers.
    Nothing is learned."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(size * size, filters)).astype("f4")
    weights -= weights.mean(0)
    weights /= np.linalg.norm(weights, axis=0)
    out = np.empty((len(images), 16 * filters), "f4")
    for first in range(0, len(images), 1000):
        block = np.pad(images[first : first + 1000], ((0, 0), (1, 1), (1, 1)))
        patches = np.lib.stride_tricks.sliding_window_view(block, (size, size), (1, 2))
        answer = np.maximum(patches.reshape(-1, size * size) @ weights, 0)
        cells = answer.reshape(len(block), 4, 6, 4, 6, filters).mean((2, 4))
        out[first : first + 1000] = cells.reshape(len(block), -1)
    return out


class Views:
    """Two views of the training images as pairs, of 2000 others as dev and of the test images for
    retrieval; and the images as they are for the probe, with a sixth of them as its dev."""

    def __init__(self, work, train, test, features=pixels):
        rng = np.random.default_rng(0)
        (images, labels), (held, held_labels) = fashion("train"), fashion("t10k")
        rows, others = np.split(rng.permutation(len(images))[: train + 2000], [train])
        other, images, self.labels = images[others], images[rows], labels[rows]
        held, held_labels = held[:test], held_labels[:test]
        self.train, self.dev, self.test = (
            save_part(work, name, *(features(augment(views, rng)) for _ in range(2)))
            for name, views in (("views", images), ("other", other), ("held", held)))
        self.work, cut = work, len(rows) * 5 // 6
        plain = features(images)
        for name, x, y in (
            ("train", plain, self.labels),
            ("test", features(held), held_labels),
            ("fit", plain[:cut], self.labels[:cut]),
            ("dev", plain[cut:], self.labels[cut:]),
        ):
            np.save(f"{work}/probe.{name}.npy", x)
            np.save(f"{work}/label.{name}.npy", y)


def probe(model, views, ridges=(1e-4, 1e-5, 1e-6)):
    """Linear probe of the embedded images, or of the rows without a model: its ridge by dev,
    then trained on all training images and tested once. Accuracy and confusion matrix."""

    def run(train, test, ridge):
        who = ("--no-model",) if model is None else (model.path, "--side x")
        rows, labels = (f"{views.work}/{kind}" for kind in ("probe", "label"))
        return json.loads(unicon(
            "probe", *who, f"{rows}.{train}.npy", "--train-labels", f"{labels}.{train}.npy",
            "--test", f"{rows}.{test}.npy", "--test-labels", f"{labels}.{test}.npy",
            f"--json --quiet --probe-ridge {ridge}"))

    if len(ridges) > 1:
        ridges = [max(ridges, key=lambda ridge: run("fit", "dev", ridge)["accuracy"])]
    return run("train", "test", ridges[0])


def methods(work, views):
    """Name, model and time, tuning included."""
    encoder = f"--shared-encoder {RANK}"
    for name, options in METHODS.items():
        model = fit(work, views.train, options, encoder)
        yield name, model, model.seconds
    _, model, seconds = sgd_clip(work, views.train, views.dev, encoder, epochs=20)
    yield "SGD-CLIP linear", model, seconds


def body(work):
    rows, keep = [], {}
    for name, features in (("pixels", pixels), ("random convolutions", convolutions)):
        views = Views(work, 80 if SMOKE else 12000, 10000, features)
        rows.append((name, "none: probe on the rows", None, probe(None, views)["accuracy"], None))
        for method, model, seconds in methods(work, views):
            hit, found = both(evaluate(model, views.test), "hit@1"), probe(model, views)
            keep[name, method] = found["accuracy"], seconds, found["confusion"]
            rows.append((name, method, hit, found["accuracy"], seconds))
    paper, best, sgd = (keep["random convolutions", name] for name in (
        "paper's setting, angular kernel", "whitened, angular kernel", "SGD-CLIP linear"))
    figure.confusion(results_folder() / "unimodal-paper.svg", paper[2], LABELS)
    figure.confusion(results_folder() / "unimodal-best.svg", best[2], LABELS)
    three = [
        ("probe accuracy", 0.6182, paper[0], best[0]),
        ("probe accuracy, SGD-CLIP", 0.6221, sgd[0], None),
        ("time of SGD-CLIP / time of the fit", 41.98 / 23.38, sgd[1] / paper[1], sgd[1] / best[1]),
    ]
    columns = "rows | method | view to view hit@1 | probe accuracy | fit, tuning included, s"
    return {"unimodal": table(COLUMNS, three), "unimodal-methods": table(columns, rows)}


if __name__ == "__main__":
    main("unimodal", body)
