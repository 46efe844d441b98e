# SPDX-License-Identifier: Apache-2.0
"""The data of the experiments, and small made-up rows that stand in for them with --smoke."""
import gzip
import os
import pathlib

import numpy as np

from common import SMOKE, Part, Skip, unicon

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")


# Training, validation and test pairs of the four generators: those of the authors' code as there.
SIZES = {"linear": (600, 400, 400), "nonlinear": (600, 400, 400), "linear-released": (600, 100, 100),
         "nonlinear-released": (1000, 100, 100)}


def synthetic(work, kind, seed, *options):
    """Train, dev and test of a generator of `unicon synth`, whose defaults are its constants (`unicon
    synth --help` has them), and the clusters of the training and the test pairs."""
    folder = pathlib.Path(work) / f"{kind}.{seed}"
    train, val, test = (80, 30, 30) if SMOKE else SIZES[kind]
    unicon("synth", kind, "-q", "-o", folder, "--seed", seed, "--train", train, "--val", val,
           "--test", test, *options)
    parts = [
        Part(str(folder / f"x.{s}.npy"), str(folder / f"y.{s}.npy")) for s in ("train", "val", "test")
    ]
    return parts, [np.load(folder / f"label.{s}.npy") for s in ("train", "test")]


def save_part(work, name, x, y, pairs=None, per_x=None):
    """Writes arrays as a part: one to one, `per_x` rows of y for each of x, or a list of pairs."""
    np.save(f"{work}/x.{name}.npy", x)
    np.save(f"{work}/y.{name}.npy", y)
    words = ("--y-per-x", str(per_x)) if per_x else ()
    if pairs is not None:
        np.savetxt(f"{work}/{name}.tsv", pairs, fmt="%d", delimiter="\t")
        words = ("--pairs", f"{work}/{name}.tsv")
    return Part(f"{work}/x.{name}.npy", f"{work}/y.{name}.npy", words)


def seen(rng, latent, width):
    """Rows that show `latent` through a fixed map and noise: stands in for features in --smoke."""
    weights = np.random.default_rng(width).normal(size=(latent.shape[1], width))
    return (latent @ weights + 0.3 * rng.normal(size=(len(latent), width))).astype("f4")


def data_folder(name, probe):
    folder = pathlib.Path(os.environ.get("UNICON_DATA") or "/nowhere") / name
    if not (folder / probe).exists():
        raise Skip(f"no {name} under UNICON_DATA")
    return folder


def flickr8k(work):
    """Train, dev and test of Flickr8k, five captions per image."""
    if SMOKE:
        rng, parts = np.random.default_rng(0), []
        for name, n in (("train", 60), ("dev", 30), ("test", 30)):
            z = rng.normal(size=(n, 12))
            parts.append(
                save_part(work, name, seen(rng, z, 24), seen(rng, np.repeat(z, 5, 0), 16), per_x=5)
            )
        return parts
    folder = data_folder("flickr8k-inceptionv3-use", "image.train.npy")
    return [
        Part(str(folder / f"image.{s}.npy"), str(folder / f"text.{s}.npy"), ("--y-per-x", "5"))
        for s in ("train", "dev", "test")
    ]


def esc50():
    """Audio rows, title rows, pairs (m by 2), fold and class of every clip."""
    if SMOKE:
        rng = np.random.default_rng(0)
        z, rows = rng.normal(size=(50, 8)), np.arange(100)
        return (
            seen(rng, np.tile(z, (2, 1)), 16),
            seen(rng, z, 12),
            np.stack([rows, rows % 50], 1),
            rows // 10 % 5 + 1,
            rows % 10,
        )
    folder = data_folder("esc50", "audio.npy")
    pairs = np.array(
        [line.split()[:2] for line in open(folder / "pairs.tsv") if line[0].isdigit()], int
    )
    about = [
        f
        for f in (line.rstrip("\n").split("\t") for line in open(folder / "audio.tsv"))
        if f[1].isdigit()
    ]
    names = sorted({f[2] for f in about})
    return (
        np.load(folder / "audio.npy"),
        np.load(folder / "text.npy"),
        pairs,
        np.array([int(f[1]) for f in about]),
        np.array([names.index(f[2]) for f in about]),
    )


def fashion(part):
    """Images (n by 28 by 28, 0 to 1) and labels of Fashion-MNIST: part is train or t10k."""
    if SMOKE:
        rng = np.random.default_rng(part == "train")
        label = np.arange(100) % 10
        base = np.random.default_rng(9).random((10, 28, 28))
        return np.clip(base[label] + 0.1 * rng.normal(size=(100, 28, 28)), 0, 1).astype("f4"), label
    if not (FASHION / "train-images-idx3-ubyte.gz").exists():
        raise Skip(
            "no Fashion-MNIST: scripts/setup.sh --experiments installs dataset-fashion-mnist"
        )
    images, labels = (
        np.frombuffer(gzip.open(FASHION / f"{part}-{kind}-ubyte.gz").read(), "u1", offset=offset)
        for kind, offset in (("images-idx3", 16), ("labels-idx1", 8))
    )
    return images.reshape(-1, 28, 28).astype("f4") / 255, labels.astype("i8")
