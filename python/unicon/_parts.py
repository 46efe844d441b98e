# SPDX-License-Identifier: Apache-2.0
"""What is inside a model file, for export: the tensors of each side, and the map written once for
every array library.

docs/model-format.md lists the tensors; the formulas are those of the library's kernels.
"""

from __future__ import annotations

import json
import math
from typing import Any, Mapping, NamedTuple

import numpy as np

from .errors import UnsupportedError
from .model import Model

_MAPS = {"linear": {"weight"}, "exact": {"weight", "landmarks", "factor"},
         "nystrom": {"weight", "landmarks", "factor"}, "random": {"weight", "directions"}}
_OPTIONAL = {"mean", "phases"}
_ORDERS = {"arccos0": 0, "angular": 1, "arccos1": 1, "arccos2": 2}
_MATERN = {"matern12": 1.0, "laplace": 1.0, "matern32": math.sqrt(3), "matern52": math.sqrt(5)}


class Side(NamedTuple):
    """One encoder: z = (features(rows) - mean) @ weight, then unit rows."""

    map: str
    kernel: str
    width: float
    degree: int
    normalize: bool
    tensors: dict[str, np.ndarray]


def read_tensors(content: bytes) -> dict[str, np.ndarray]:
    """The float32 tensors of a safetensors file."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            raise UnsupportedError(f"tensor {name} of the model is {entry['dtype']}; only F32 can "
                                   "be exported")
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        found[name] = np.frombuffer(content[begin:end], "<f4").reshape(entry["shape"])
    return found


def sides_of(model: Model) -> dict[str, Side]:
    """Both encoders of a model; a layout that is not known here is refused."""
    tensors, metadata = read_tensors(model.to_bytes()), model.metadata
    tensors.pop("spectrum", None)
    parts: dict[str, dict[str, np.ndarray]] = {"x": {}, "y": {}}
    for name, tensor in tensors.items():
        side, _, part = name.partition(".")
        if side not in parts:
            raise UnsupportedError(f"the model has a tensor {name}, which this export does not know")
        parts[side][part] = tensor
    found = {}
    for side, own in parts.items():
        kind = metadata.get(side + ".map", "")
        needed = _MAPS.get(kind)
        if needed is None or not needed <= own.keys() <= needed | _OPTIONAL:
            raise UnsupportedError(f"side {side} of the model is a map \"{kind}\" of "
                                   f"{', '.join(sorted(own))}, which this export does not know")
        found[side] = Side(kind, metadata.get(side + ".kernel", "linear"),
                           float(metadata.get(side + ".kernel_width", 1)),
                           int(metadata.get(side + ".kernel_degree", 1)),
                           metadata.get(side + ".normalize") == "on", own)
    return found


def embed(side: Side, tensors: Mapping[str, Any], ops: Any, rows: Any) -> Any:
    """Unit embeddings of rows. `ops` gives matmul, transpose, sum_squares (of rows, kept as a
    column), sqrt, exp, acos, cos, relu, step, power, clip; + - * / are the arrays' own."""
    if side.normalize:
        rows = rows / ops.sqrt(ops.sum_squares(rows))
    features = rows
    if side.map in ("exact", "nystrom"):
        features = ops.matmul(_kernel(side, tensors, ops, rows), tensors["factor"])
    elif side.map == "random":
        features = _random(side, tensors, ops, rows)
    if "mean" in tensors:
        features = features - tensors["mean"]
    z = ops.matmul(features, tensors["weight"])
    return z / ops.sqrt(ops.clip(ops.sum_squares(z), 1e-30, 1e30))


def _random(side: Side, tensors: Mapping[str, Any], ops: Any, rows: Any) -> Any:
    directions = tensors["directions"]
    scale = math.sqrt(2 / side.tensors["directions"].shape[0])
    products = ops.matmul(rows, ops.transpose(directions))
    order = _ORDERS.get(side.kernel)
    if order is None:
        return scale * ops.cos(products + tensors["phases"])
    if order == 0:
        return scale * ops.step(products)
    positive = ops.relu(products)
    return scale * positive if order == 1 else scale / math.sqrt(3) * (positive * positive)


def _kernel(side: Side, tensors: Mapping[str, Any], ops: Any, rows: Any) -> Any:
    landmarks = tensors["landmarks"]
    products = ops.matmul(rows, ops.transpose(landmarks))
    if side.kernel == "linear":
        return products
    if side.kernel == "poly":
        return ops.power((1 + products) / 2, side.degree)
    square_x, square_y = ops.sum_squares(rows), ops.transpose(ops.sum_squares(landmarks))
    if side.kernel == "rbf" or side.kernel in _MATERN:
        gap = ops.clip(square_x + square_y - 2 * products, 0, 1e30)
        if side.kernel == "rbf":
            return ops.exp(gap * (-0.5 / side.width**2))
        return _matern(side, ops, gap)
    lengths = ops.sqrt(square_x * square_y)
    cosine = ops.clip(products / ops.clip(lengths, 1e-30, 1e30), -1, 1)
    if side.kernel == "cosine":
        return cosine
    if side.kernel == "expcos":
        return ops.exp(cosine * (1 / side.width**2))
    if side.kernel in _ORDERS:
        return _arccos(_ORDERS[side.kernel], ops, cosine, lengths)
    raise UnsupportedError(f"kernel {side.kernel} is not known to this export")


def _matern(side: Side, ops: Any, gap: Any) -> Any:
    a = ops.sqrt(gap) * (_MATERN[side.kernel] / side.width)
    decay = ops.exp(0 - a)
    if side.kernel == "matern32":
        return (1 + a) * decay
    if side.kernel == "matern52":
        return (1 + a + a * a / 3) * decay
    return decay


def _arccos(order: int, ops: Any, cosine: Any, lengths: Any) -> Any:
    rest = math.pi - ops.acos(cosine)
    if order == 0:
        return rest / math.pi
    sine = ops.sqrt((1 - cosine) * (1 + cosine))
    if order == 1:
        return lengths * (sine + rest * cosine) / math.pi
    return lengths * lengths * (3 * sine * cosine + rest * (1 + 2 * cosine * cosine)) / (3 * math.pi)
