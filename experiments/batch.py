#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The paper's sensitivity study: batch sizes (100 to 6000 images of Flickr8k, to 20 000 on
Fashion-MNIST), how batches are aggregated, and random against balanced batches. The paper
reports "nearly identical" metrics for all sizes and 1 to 2 % between strategies.

`--batch` draws its batches at random. For batches of a given make-up the negatives of each row
are listed instead (`--negatives`): those of its own batch. The moment step then still sees all
rows."""

import numpy as np

import figure
from common import PAPER, SMOKE, Skip, both, embed, evaluate, fit, main, results_folder, say, table
from data import flickr8k
from unimodal import Views, probe

SIZES = (20, 60) if SMOKE else (100, 200, 500, 1000, 2000, 6000)
IMAGE_SIZES = (20, 80) if SMOKE else (200, 500, 2000, 5000, 20000)
WHITENED = ("--preset", "fast", "--iterations", 2)
RANK = ("--rank", 8 if SMOKE else 128)


def sizes(work, train, test):
    rows, curves = [], {}
    for size in SIZES:
        found = [
            evaluate(fit(work, train, *options, "--batch", size), test)
            for options in (PAPER, WHITENED)
        ]
        rows.append((size, *(v for f in found for v in (both(f, "hit@1"), both(f, "hit@10")))))
        for name, f in zip(("paper's setting", "whitened, 2 iterations"), found):
            curves.setdefault(name, []).append((size, both(f, "hit@10")))
    figure.lines(
        results_folder() / "batch-sizes.svg",
        curves,
        "images per batch",
        "hit@10, mean of both directions",
    )
    return table(
        ("images per batch", "paper's setting, hit@1", "hit@10", "whitened, hit@1", "hit@10 "), rows
    )


def vote(work, train, test, size):
    """Top-1 of per-batch kernel models: of their fused embedding, and by majority vote with ties
    going to the larger sum of cosines. The fused vector holds those of the parts one after the
    other."""
    model = fit(
        work,
        train,
        "--preset",
        "fast",
        "--kernel",
        "angular",
        "--map",
        "exact",
        "--batch",
        size,
        *RANK,
    )
    zx, zy = embed(work, model, test)
    parts, hits = int(model.metadata["parts"]), []
    width = zx.shape[1] // parts
    truth = np.arange(len(zy)) // (len(zy) // len(zx))
    for a, b, right in ((zx, zy, lambda q, j: truth[j] == q), (zy, zx, lambda q, j: truth[q] == j)):
        total, ballots = a @ b.T, np.zeros((len(a), len(b)), "f4")
        fused = total.argmax(1)
        for k in range(parts):
            part = slice(k * width, (k + 1) * width)
            ballots[np.arange(len(a)), (a[:, part] @ b[:, part].T).argmax(1)] += 1
        voted = (ballots + 0.4 * total / np.abs(total).max()).argmax(1)
        hits.append([np.mean(right(np.arange(len(a)), j)) for j in (fused, voted)])
    return parts, np.array(hits)


def aggregation(work, train, dev, test, size):
    rows = []
    for how in ("uniform", "accuracy", "softmax", "robust"):
        found = [
            evaluate(
                fit(work, train, *options, "--batch", size, "--aggregate", how, *dev.validation()),
                test,
            )
            for options in (PAPER, WHITENED)
        ]
        rows.append(
            (f"`{how}`", *(v for f in found for v in (both(f, "hit@1"), both(f, "hit@10"))))
        )
    parts, hits = vote(work, train, test, size)
    for name, values in zip(("fused", "majority vote"), hits.T):
        rows.append((f"{parts} angular kernel models, {name}", None, None, values.mean(), None))
    return table(
        ("aggregation", "paper's setting, hit@1", "hit@10", "whitened, hit@1", "hit@10 "), rows
    )


def batches(work, labels, size, balanced, rng):
    """A file of negatives: rows of the same batch, batches of equal numbers of each class or at
    random."""
    order = rng.permutation(len(labels))
    if balanced:
        place = np.empty(len(labels))
        for k in np.unique(labels):
            mine = order[labels[order] == k]
            place[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
        order = np.argsort(place)
    path = f"{work}/negatives.npy"
    blocks = []
    for first in range(0, len(order), size):
        batch = order[first : first + size]
        pairs = np.stack(np.meshgrid(batch, batch, indexing="ij"), -1).reshape(-1, 2)
        blocks.append(pairs[pairs[:, 0] != pairs[:, 1]])
    np.save(path, np.vstack(blocks))
    return path


def balance(work):
    views, rows = Views(work, 80 if SMOKE else 6000, 10000), []
    for size in ((20,) if SMOKE else (50, 200)):
        for name in "random", "balanced":
            negatives = batches(
                work, views.labels, size, name == "balanced", np.random.default_rng(size)
            )
            found = [
                (
                    both(evaluate(model, views.test), "hit@1"),
                    probe(model, views, (1e-5,))["accuracy"],
                )
                for model in (
                    fit(
                        work,
                        views.train,
                        *options,
                        "--batch",
                        "full",
                        "--shared-encoder",
                        *RANK,
                        "--negatives",
                        negatives,
                    )
                    for options in (PAPER, WHITENED)
                )
            ]
            rows.append((size, name, *found[0], *found[1]))
    return table(
        (
            "images per batch",
            "batches",
            "paper's setting, view to view hit@1",
            "probe accuracy",
            "whitened, view to view hit@1",
            "probe accuracy ",
        ),
        rows,
    )


def image_sizes(work):
    views, rows = Views(work, 80 if SMOKE else 20000, 10000), []
    for size in IMAGE_SIZES:
        found = []
        for options in (PAPER, WHITENED):
            model = fit(work, views.train, *options, "--shared-encoder", "--batch", size, *RANK)
            found += [
                both(evaluate(model, views.test), "hit@1"),
                probe(model, views, (1e-5,))["accuracy"],
            ]
        rows.append((size, *found))
    return table(
        (
            "images per batch",
            "paper's setting, view to view hit@1",
            "probe accuracy",
            "whitened, view to view hit@1",
            "probe accuracy ",
        ),
        rows,
    )


def body(work):
    tables = {}
    try:
        train, dev, test = flickr8k(work)
        tables["batch-sizes"] = sizes(work, train, test)
        tables["batch-aggregation"] = aggregation(work, train, dev, test, 20 if SMOKE else 500)
    except Skip as why:
        say(f"Flickr8k skipped: {why}")
    try:
        tables["batch-image-sizes"] = image_sizes(work)
        tables["batch-balance"] = balance(work)
    except Skip as why:
        say(f"Fashion-MNIST skipped: {why}")
    return tables


if __name__ == "__main__":
    main("batch", body)
