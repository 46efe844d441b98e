#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Image-image alignment (the paper's section 4.2 and figure 3): two augmentations of an image are a
pair, and a linear probe tells the ten classes from the embedding. CIFAR-10 with EfficientNet-Lite0
features (cifar_features.py; UNICON_CIFAR10 names their folder), where the paper has a frozen
ResNet-18; without them Fashion-MNIST with 1024 random convolution features, in which nothing is
learned. The authors have not released this experiment; "their setting" is the guess of their
interface: kernel 1 - theta/pi, rank 128, batches of 300, two steps from s = 0.

Rank 128; ours with one encoder for both views. MLP head: 512 units, AdamW, rate .001 to 0 over 20
epochs, batches of 200, temperature .1, decay .01, epoch by dev."""
import json
import os
import pathlib

import numpy as np

import figure
import reference
from common import COLUMNS, KERNEL, PAPER, SMOKE, both, evaluate, fit, main, results_folder, say
from common import sgd_clip, table, unicon
from data import fashion, save_part

FASHION = "T-shirt trouser pullover dress coat sandal shirt sneaker bag boot".split()
RANK = f"--rank {8 if SMOKE else 128}"
THEIRS = "their setting, 1 − θ/π"
SGD = "SGD-CLIP linear, tuned"


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


def convolutions(images, filters=64, size=7):
    """ReLU of 64 random filters of 7 by 7 pixels, averaged over a 4 by 4 grid: 1024 numbers."""
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


def cifar(folder):
    """{part: (view a, view b, plain, label)} and the names of the classes."""
    parts = {part: [np.load(folder / f"{kind}.{part}.npy") for kind in ("a", "b", "plain", "label")]
             for part in ("train", "dev", "test")}
    return parts, (folder / "classes.txt").read_text().split()


def fashion_parts():
    rng, parts = np.random.default_rng(0), {}
    (images, labels), (held, held_labels) = fashion("train"), fashion("t10k")
    order = rng.permutation(len(images))
    train, dev, test = (60, 20, 40) if SMOKE else (4000, 500, 1000)
    for name, rows, pictures, classes in (
        ("train", order[:train], images, labels),
        ("dev", order[train : train + dev], images, labels),
        ("test", np.arange(min(test, len(held))), held, held_labels),
    ):
        views = [convolutions(augment(pictures[rows], rng)) for _ in range(2)]
        parts[name] = [*views, convolutions(pictures[rows]), classes[rows]]
    return parts, FASHION


class Views:
    """Two views of the training, dev and test images as pairs, and the images as they are for the
    probe: files probe.PART.npy and label.PART.npy in the working folder."""

    def __init__(self, work):
        folder = os.environ.get("UNICON_CIFAR10")
        real = bool(folder) and not SMOKE
        parts, self.classes = cifar(pathlib.Path(folder)) if real else fashion_parts()
        self.name = "CIFAR-10, EfficientNet" if real else "Fashion-MNIST, random convolutions"
        self.work, self.arrays = work, parts
        for name, (a, b, plain, label) in parts.items():
            setattr(self, name, save_part(work, f"views.{name}", a, b))
            np.save(f"{work}/probe.{name}.npy", plain)
            np.save(f"{work}/label.{name}.npy", label.astype("i8"))


def probe(model, views, ridges=(1e-3, 1e-4, 1e-5), rows="probe"):
    """Linear probe of the embedded images, or of rows without a model: trained on train, its ridge
    by dev, tested once. Accuracy and confusion matrix."""

    def run(test, ridge):
        who = ("--no-model",) if model is None else (model.path, "--side x")
        at, label = (f"{views.work}/{kind}" for kind in (rows, "label"))
        return json.loads(unicon(
            "probe", *who, f"{at}.train.npy", "--train-labels", f"{label}.train.npy", "--test",
            f"{at}.{test}.npy", "--test-labels", f"{label}.{test}.npy",
            f"--json --quiet --probe-ridge {ridge}"))

    ridge = max(ridges, key=lambda r: run("dev", r)["accuracy"]) if len(ridges) > 1 else ridges[0]
    return run("test", ridge)


def mlp(views):
    """View to view hit@1 on test, and the probe on what the x head makes of the images."""
    x, y, *_ = (z.astype("f4") for z in views.arrays["train"])
    scale = np.sqrt((x**2).mean())
    dev, test = ([z.astype("f4") / scale for z in views.arrays[p][:2]] for p in ("dev", "test"))
    best = [-1, None]

    def watch(_, heads):
        score = reference.accuracy(reference.cosines(heads[0](dev[0]), heads[1](dev[1])))
        if score > best[0]:
            kept = {p: heads[0](views.arrays[p][2].astype("f4") / scale) for p in views.arrays}
            s = reference.cosines(heads[0](test[0]), heads[1](test[1]))
            best[:] = score, (kept, (reference.accuracy(s) + reference.accuracy(s.T)) / 2)

    reference.train_heads(x / scale, y / scale, np.arange(len(y)), "mlp", 8 if SMOKE else 128, 1e-3,
                          200, 2 if SMOKE else 20, decay=0.01, temperature=0.1, cosine=True,
                          hidden=512, watch=watch)
    for part, rows in best[1][0].items():
        np.save(f"{views.work}/mlp.{part}.npy", rows.astype("f4"))
    return best[1][1]


def places(model, views):
    """t-SNE of both views of the test images, as the report has it, and their classes."""
    found = json.loads(unicon("report", model.path, *views.test.words(), "-q", "--json", "--labels",
                              f"{views.work}/label.test.npy"))["view"]
    points = found["points"]
    label = np.load(f"{views.work}/label.test.npy")
    return (np.array([(p["at_x"], p["at_y"]) for p in points]),
            np.array([label[p["name"]] for p in points]))


def methods(work, views):
    """Name, model and time, tuning included."""
    batch = 30 if SMOKE else 300
    for name, options, how in (
        (THEIRS, f"{KERNEL} --kernel arccos0 --iterations 1 --batch {batch}",
         views.dev.validation()),
        ("`paper`", PAPER, ()),
        ("whitened, linear", "--preset fast --shared-encoder", ()),
        ("whitened, angular kernel", "--preset fast --shared-encoder --kernel angular", ()),
    ):
        model = fit(work, views.train, options, RANK, *how, name=f"model{len(name)}")
        yield name, model, model.seconds
    _, model, seconds = sgd_clip(work, views.train, views.dev, f"--shared-encoder {RANK}", epochs=20)
    yield SGD, model, seconds


def body(work):
    views = Views(work)
    rows, keep = [(views.name, "none: probe on the rows", None, probe(None, views)["accuracy"], None)], {}
    for method, model, seconds in methods(work, views):
        found = probe(model, views)
        keep[method] = found["accuracy"], found["confusion"], model
        rows.append((views.name, method, both(evaluate(model, views.test), "hit@1"),
                     found["accuracy"], seconds))
        say(method)
    hit = mlp(views)
    rows.append((views.name, "MLP heads", hit, probe(None, views, rows="mlp")["accuracy"], None))
    for name, method in (("unicon", THEIRS), ("sgd", SGD)):
        figure.confusion(results_folder() / f"unimodal-{name}.svg", keep[method][1], views.classes)
        figure.points(results_folder() / f"unimodal-tsne-{name}.svg", *places(keep[method][2], views),
                      views.classes)
    three = [
        ("probe accuracy, UniCon", 0.6182, None, keep[THEIRS][0], keep["whitened, angular kernel"][0]),
        ("probe accuracy, SGD-CLIP", 0.6221, None, keep[SGD][0], None),
    ]
    columns = "rows | method | view to view hit@1 | probe accuracy | fit, tuning included, s"
    return {"unimodal": table(COLUMNS, three), "unimodal-methods": table(columns, rows)}


if __name__ == "__main__":
    main("unimodal", body)
