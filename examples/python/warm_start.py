# SPDX-License-Identifier: Apache-2.0
"""SGD on the contrastive loss, from our solution and from a random start. Needs torch."""

import sys
from pathlib import Path

try:
    import torch
except ImportError:
    print("skipped: torch is not installed")
    sys.exit()

import numpy as np

import unicon

torch.manual_seed(0)
torch.set_num_threads(1)  # the matrices are small
data = Path(__file__).resolve().parents[2] / "data" / "digits"
x, y, test_x, test_y = (torch.tensor(np.load(data / f"{half}.{part}.npy")).float()
                        for part in ("train", "test") for half in ("upper", "lower"))
aligner = unicon.Aligner(preset="fast", kernel="rbf", map="random", features=300, rank=64).fit(x, y)


def hit_at_1(module):
    with torch.no_grad():
        return unicon.evaluate(module.x(test_x), module.y(test_y))["x_to_y"]["hit@1"]


def train_on(module, epochs=8, batch=250, temperature=.1):
    optimiser = torch.optim.Adam(module.parameters(), lr=1e-3)
    for epoch in range(epochs + 1):
        if epoch % 4 == 0:
            print(f"  after {epoch:2} epochs hit@1 {hit_at_1(module):.3f}")
        for rows in torch.randperm(len(x)).split(batch) if epoch < epochs else ():
            cosines = module(x[rows], y[rows]) / temperature
            target = torch.arange(len(rows))
            loss = (torch.nn.functional.cross_entropy(cosines, target)
                    + torch.nn.functional.cross_entropy(cosines.T, target)) / 2
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


print("from our solution")
module = aligner.to_torch(trainable=True)
with torch.no_grad():  # the scale of the weights is free; this one suits the step size
    for encoder in (module.x, module.y):
        encoder.weight /= encoder.weight.std() * 10
train_on(module)

print("from a random start")
module = aligner.to_torch(trainable=True)
with torch.no_grad():
    for encoder in (module.x, module.y):
        encoder.weight.normal_(std=.1)
train_on(module)
