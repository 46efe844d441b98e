# SPDX-License-Identifier: Apache-2.0
"""Sounds and their titles, several sounds per title, in folds. With UNICON_DATA set, ESC-50's."""

import os
from pathlib import Path

import numpy as np

import unicon


def load():
    """Audio rows, text rows, pairs (audio row, text row), fold of each audio row."""
    root = os.environ.get("UNICON_DATA")
    folder = Path(root or ".") / "esc50"
    if root and folder.is_dir():
        pairs = np.loadtxt(folder / "pairs.tsv", dtype=np.int64, delimiter="\t", skiprows=1)
        with open(folder / "audio.tsv", encoding="utf-8") as lines:
            header = next(lines).rstrip("\n").split("\t")
            fold = [int(line.rstrip("\n").split("\t")[header.index("fold")]) for line in lines]
        return np.load(folder / "audio.npy"), np.load(folder / "text.npy"), pairs, np.array(fold)
    rng = np.random.default_rng(0)
    audio, text, _ = unicon.synth("linear", 600, dim_x=96, dim_y=64)
    title = rng.integers(0, 400, 600)
    audio = audio + audio[title]  # a sound is near its title's
    return audio, text, np.stack([np.arange(600), title], axis=1), rng.integers(1, 6, 600)


def part(audio, text, pairs, rows):
    """The chosen sounds, the titles they have, and the pairs among them, counted from 0."""
    kept = pairs[rows[pairs[:, 0]]]
    sounds, i = np.unique(kept[:, 0], return_inverse=True)
    titles, j = np.unique(kept[:, 1], return_inverse=True)
    return audio[sounds], text[titles], (i.reshape(-1), j.reshape(-1))


audio, text, pairs, fold = load()
for kernel in ("linear", "angular"):
    hits = []
    for held_out in range(1, 6):
        x, y, train = part(audio, text, pairs, fold != held_out)
        aligner = unicon.Aligner(preset="fast", kernel=kernel).fit(x, y, train)
        x, y, test = part(audio, text, pairs, fold == held_out)
        found = aligner.evaluate(x, y, test)["y_to_x"]
        hits.append([found[name] for name in ("hit@1", "hit@5", "hit@10")])
    print(f"{kernel:8} title to audio hit@1/5/10", np.mean(hits, axis=0).round(3))
