# SPDX-License-Identifier: Apache-2.0
"""Kernels, where a linear map is not enough: the two halves of handwritten digits."""

from pathlib import Path

import unicon

data = Path(__file__).resolve().parents[2] / "data" / "digits"
train = data / "upper.train.npy", data / "lower.train.npy"
test = data / "upper.test.npy", data / "lower.test.npy"

SETTINGS = [
    dict(kernel="linear"),
    dict(kernel="angular"),                                       # every training row a landmark
    dict(kernel="angular", map="nystrom", landmarks=400),         # or some of them
    dict(kernel="angular", map="nystrom", landmarks=400, landmark_method="pivot"),
    dict(kernel="rbf"),
    dict(kernel="rbf", map="random", features=1000),              # or random features
    dict(kernel_x="rbf", kernel_y="linear"),                      # each side its own
]

for setting in SETTINGS:
    aligner = unicon.Aligner(preset="fast", **setting).fit(*train)
    found = aligner.evaluate(*test)["x_to_y"]
    size = len(aligner.model_.to_bytes()) / 1024
    print(f"hit@1 {found['hit@1']:.3f}  hit@10 {found['hit@10']:.3f}  {size:6.0f} kB  {setting}")
