# SPDX-License-Identifier: Apache-2.0
"""A model as a torch module. Needs torch."""

from __future__ import annotations

import torch
from torch import nn

from ._parts import Side, embed, index, sides_of
from .model import Model


class _Ops:
    matmul = staticmethod(torch.matmul)
    sqrt = staticmethod(torch.sqrt)
    exp = staticmethod(torch.exp)
    log = staticmethod(torch.log)
    acos = staticmethod(torch.acos)
    cos = staticmethod(torch.cos)
    relu = staticmethod(torch.relu)
    power = staticmethod(torch.pow)
    clip = staticmethod(torch.clamp)

    @staticmethod
    def transpose(a: torch.Tensor) -> torch.Tensor:
        return a.transpose(0, 1)

    @staticmethod
    def sum_squares(a: torch.Tensor) -> torch.Tensor:
        return (a * a).sum(dim=1, keepdim=True)

    @staticmethod
    def mean(a: torch.Tensor) -> torch.Tensor:
        return a.mean(dim=1, keepdim=True)

    @staticmethod
    def maximum(a: torch.Tensor) -> torch.Tensor:
        return a.amax(dim=1, keepdim=True)

    @staticmethod
    def top_mean(a: torch.Tensor, k: int) -> torch.Tensor:
        return a.topk(k, dim=1).values.mean(dim=1, keepdim=True)

    @staticmethod
    def concat(parts: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat(parts, dim=1)

    @staticmethod
    def step(a: torch.Tensor) -> torch.Tensor:
        return (a > 0).to(a.dtype)


class Encoder(nn.Module):
    """One side: rows (n by width) to unit vectors of the shared space (n by rank).

    `query` and `index` have a column more, 1 and minus the bias: products of the one with the other
    are balanced scores. `weight` is a parameter (`weight_0` and so on in a fused model), the rest
    are buffers.
    """

    def __init__(self, side: Side, trainable: bool = False):
        super().__init__()
        self._side = side
        self._names = list(side.tensors())
        for name, tensor in side.tensors().items():
            if name.startswith("weight"):
                weight = nn.Parameter(torch.tensor(tensor), requires_grad=trainable)
                self.register_parameter(name, weight)
            else:
                self.register_buffer(name, torch.tensor(tensor))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        dtype = next(self.parameters()).dtype
        return embed(self._side, self._tensors(), _Ops, rows.to(dtype))

    def query(self, rows: torch.Tensor) -> torch.Tensor:
        z = self(rows)
        return torch.cat([z, torch.ones_like(z[:, :1])], dim=1)

    def index(self, rows: torch.Tensor) -> torch.Tensor:
        return index(self._side, self._tensors(), _Ops, self(rows))

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {name: getattr(self, name) for name in self._names}


class TwoEncoders(nn.Module):
    """Encoders `.x` and `.y`; forward gives the cosines of all rows of x with all of y."""

    def __init__(self, x: Encoder, y: Encoder):
        super().__init__()
        self.x, self.y = x, y

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.x(x) @ self.y(y).T


def to_torch(model: Model, trainable: bool = False) -> TwoEncoders:
    """A module that reproduces the embeddings of a model."""
    sides = sides_of(model)
    return TwoEncoders(Encoder(sides["x"], trainable), Encoder(sides["y"], trainable))
