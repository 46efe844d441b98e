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

_MAPS = {"linear": {"weight"}, "exact": {"weight", "landmarks"},
         "nystrom": {"weight", "landmarks"}, "random": {"weight", "directions"}}
_OPTIONAL = {"mean", "phases"}
_DTYPES = {"F32": "<f4", "F16": "<f2"}
_ORDERS = {"arccos0": 0, "angular": 1, "arccos1": 1, "arccos2": 2}
_MATERN = {"matern12": 1.0, "laplace": 1.0, "matern32": math.sqrt(3), "matern52": math.sqrt(5)}


class Part(NamedTuple):
    """z = (features(rows) - mean) @ weight, then unit rows.

    Kernels of distances have one tensor more than the file, `center`, the mean of the landmarks,
    and `landmarks` without it: |x|^2 + |y|^2 - 2 x.y keeps its digits around the mean only.
    """

    map: str
    kernel: str
    width: float
    degree: int
    tensors: dict[str, np.ndarray]


class Balance(NamedTuple):
    """The biases of one side. softmax and csls have the tensor `bank`, embedded rows of the other
    side; quadratic has `bias_constant` and `bias_slope`, for the vector and its squares."""

    kind: str
    strength: float
    tensors: dict[str, np.ndarray]


class Side(NamedTuple):
    """One encoder: parts side by side, each times the root of its share; most models have one."""

    normalize: bool
    parts: list[Part]
    shares: list[float]
    balance: Balance

    def tensors(self) -> dict[str, np.ndarray]:
        """The tensors of all parts; those of a fused model get the part's number: weight_0."""
        found = {self.name(number, name): tensor for number, part in enumerate(self.parts)
                 for name, tensor in part.tensors.items()}
        return {**found, **self.balance.tensors}

    def name(self, number: int, name: str) -> str:
        return name if len(self.parts) == 1 else f"{name}_{number}"


def read_tensors(content: bytes) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file, as float32."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        if entry["dtype"] not in _DTYPES:
            raise UnsupportedError(f"tensor {name} of the model is {entry['dtype']}; only F32 and "
                                   "F16 can be exported")
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        numbers = np.frombuffer(content[begin:end], _DTYPES[entry["dtype"]])
        found[name] = numbers.reshape(entry["shape"]).astype("f4")
    return found


def sides_of(model: Model) -> dict[str, Side]:
    """Both encoders of a model; a layout that is not known here is refused."""
    tensors, metadata = read_tensors(model.to_bytes()), model.metadata
    tensors.pop("spectrum", None)
    count = int(metadata.get("parts", 1))
    prefixes = {side: [f"{side}."] if count == 1 else [f"{side}.{b}." for b in range(count)]
                for side in ("x", "y")}
    shares = [1.0] if count == 1 else [float(metadata[f"share.{b}"]) for b in range(count)]
    balance = {side: _balance(side, tensors, model.balance) for side in prefixes}
    found = {}
    for side, own in prefixes.items():
        parts = [_part(side, prefix, tensors, metadata) for prefix in own]
        found[side] = Side(metadata.get(side + ".normalize") == "on", parts, shares,
                           balance[side])
    if tensors:
        raise UnsupportedError(f"the model has a tensor {min(tensors)}, which this export does not "
                               "know")
    return found


def _balance(side: str, tensors: dict[str, np.ndarray], how: str) -> Balance:
    """Takes the tensor that the biases of a side are made from out of the list."""
    kind, _, strength = how.partition(":")
    bank = "yx"["xy".index(side)] + ".bank"
    name = {"softmax": bank, "csls": bank, "quadratic": side + ".bias"}.get(kind)
    if kind == "off":
        return Balance(kind, 0, {})
    if name not in tensors:
        raise UnsupportedError(f"the model balances scores by {how}, which this export does not "
                               "know")
    tensor = tensors.pop(name)
    if kind == "quadratic":
        return Balance(kind, float(strength),
                       {"bias_constant": tensor[:1], "bias_slope": tensor[1:, None]})
    return Balance(kind, float(strength), {"bank": tensor})


def _part(side: str, prefix: str, tensors: dict[str, np.ndarray],
          metadata: Mapping[str, str]) -> Part:
    """Takes the tensors of one part out of the list."""
    def noted(key: str, default: Any) -> Any:
        return metadata.get(prefix + key, metadata.get(f"{side}.{key}", default))

    kind = noted("map", "")
    names = {name[len(prefix):] for name in tensors if name.startswith(prefix)}
    needed = _MAPS.get(kind)
    if needed is None or not needed <= names <= needed | _OPTIONAL:
        raise UnsupportedError(f"side {side} of the model is a map \"{kind}\" of "
                               f"{', '.join(sorted(names))}, which this export does not know")
    own = {name: tensors.pop(prefix + name) for name in sorted(names)}
    kernel = noted("kernel", "linear")
    if "landmarks" in own and _of_distance(kernel):
        own["center"] = own["landmarks"].mean(axis=0, dtype="f8").astype("f4")
        own["landmarks"] = own["landmarks"] - own["center"]
    return Part(kind, kernel, float(noted("kernel_width", 1)), int(noted("kernel_degree", 1)), own)


def _of_distance(kernel: str) -> bool:
    return kernel == "rbf" or kernel in _MATERN


def embed(side: Side, tensors: Mapping[str, Any], ops: Any, rows: Any) -> Any:
    """Unit embeddings of rows. `ops` gives matmul, transpose, sum_squares (of rows, kept as a
    column, as are the mean, maximum and top_mean of rows), sqrt, exp, log, acos, cos, relu, step,
    power, clip, concat; + - * / are the arrays' own."""
    if side.normalize:
        rows = rows / ops.sqrt(ops.sum_squares(rows))
    found = []
    for number, part in enumerate(side.parts):
        own = {name: tensors[side.name(number, name)] for name in part.tensors}
        found.append(_unit(ops, _embed_part(part, own, ops, rows)))
    if len(found) == 1:
        return found[0]
    return _unit(ops, ops.concat([math.sqrt(share) * z for share, z in zip(side.shares, found)]))


def index(side: Side, tensors: Mapping[str, Any], ops: Any, z: Any) -> Any:
    """Unit embeddings with minus their bias as one more column."""
    return ops.concat([z, 0 - _bias(side.balance, tensors, ops, z)])


def _bias(balance: Balance, tensors: Mapping[str, Any], ops: Any, z: Any) -> Any:
    if balance.kind == "off":
        return 0 * ops.sum_squares(z)
    if balance.kind == "quadratic":
        bias = ops.matmul(ops.concat([z, z * z]), tensors["bias_slope"]) + tensors["bias_constant"]
        return ops.clip(bias, -1, 1)
    scores = ops.matmul(z, ops.transpose(tensors["bank"]))
    if balance.kind == "csls":
        return 0.5 * ops.top_mean(scores, min(int(balance.strength), len(balance.tensors["bank"])))
    top = ops.maximum(scores)
    return top + ops.log(ops.mean(ops.exp(balance.strength * (scores - top)))) / balance.strength


def _unit(ops: Any, z: Any) -> Any:
    return z / ops.sqrt(ops.clip(ops.sum_squares(z), 1e-30, 1e30))


def _embed_part(part: Part, tensors: Mapping[str, Any], ops: Any, rows: Any) -> Any:
    features = rows
    if part.map in ("exact", "nystrom"):
        features = _kernel(part, tensors, ops, rows)
    elif part.map == "random":
        features = _directed(part, tensors, ops, rows)
    if "mean" in tensors:
        features = features - tensors["mean"]
    return ops.matmul(features, tensors["weight"])


def _directed(part: Part, tensors: Mapping[str, Any], ops: Any, rows: Any) -> Any:
    directions = tensors["directions"]
    scale = math.sqrt(2 / part.tensors["directions"].shape[0])
    products = ops.matmul(rows, ops.transpose(directions))
    order = _ORDERS.get(part.kernel)
    if order is None:
        return scale * ops.cos(products + tensors["phases"])
    if order == 0:
        return scale * ops.step(products)
    positive = ops.relu(products)
    return scale * positive if order == 1 else scale / math.sqrt(3) * (positive * positive)


def _kernel(part: Part, tensors: Mapping[str, Any], ops: Any, rows: Any) -> Any:
    landmarks = tensors["landmarks"]
    if "center" in tensors:
        rows = rows - tensors["center"]
    products = ops.matmul(rows, ops.transpose(landmarks))
    if part.kernel == "linear":
        return products
    if part.kernel == "poly":
        return ops.power((1 + products) / 2, part.degree)
    square_x, square_y = ops.sum_squares(rows), ops.transpose(ops.sum_squares(landmarks))
    if _of_distance(part.kernel):
        gap = ops.clip(square_x + square_y - 2 * products, 0, 1e30)
        if part.kernel == "rbf":
            return ops.exp(gap * (-0.5 / part.width**2))
        return _matern(part, ops, gap)
    lengths = ops.sqrt(square_x * square_y)
    cosine = ops.clip(products / ops.clip(lengths, 1e-30, 1e30), -1, 1)
    if part.kernel == "cosine":
        return cosine
    if part.kernel == "expcos":
        return ops.exp(cosine * (1 / part.width**2))
    if part.kernel in _ORDERS:
        return _arccos(_ORDERS[part.kernel], ops, cosine, lengths)
    raise UnsupportedError(f"kernel {part.kernel} is not known to this export")


def _matern(part: Part, ops: Any, gap: Any) -> Any:
    a = ops.sqrt(gap) * (_MATERN[part.kernel] / part.width)
    decay = ops.exp(0 - a)
    if part.kernel == "matern32":
        return (1 + a) * decay
    if part.kernel == "matern52":
        return (1 + a + a * a / 3) * decay
    return decay


def _arccos(order: int, ops: Any, cosine: Any, lengths: Any) -> Any:
    rest = math.pi - ops.acos(cosine)
    if order == 0:
        return rest / math.pi
    sine = ops.sqrt((1 - cosine) * (1 + cosine))
    if order == 1:
        return lengths * (sine + rest * cosine) / math.pi
    angle = 3 * sine * cosine + rest * (1 + 2 * cosine * cosine)
    return lengths * lengths * angle / (3 * math.pi)
