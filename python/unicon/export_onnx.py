# SPDX-License-Identifier: Apache-2.0
"""One side of a model as an ONNX file. Needs onnx."""

from __future__ import annotations

import os
from typing import Any, Union

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ._parts import embed, index, sides_of
from .errors import ArgumentError
from .model import Model, PathLike

OPSET = 17


class _Graph:
    """Collects nodes and constants; its methods are the operations of _parts.embed."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, name: str = "") -> _Value:
        name = name or f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return _Value(self, name)

    def node(self, kind: str, *inputs: Union[_Value, float], outputs: int = 1,
             **attributes: Any) -> _Value:
        """The first output; others go unused."""
        names = [item.name if isinstance(item, _Value) else
                 self.constant(np.float32(item)).name for item in inputs]
        name = f"t{len(self.nodes)}"
        made = [name, *(f"{name}_{number}" for number in range(1, outputs))]
        self.nodes.append(helper.make_node(kind, names, made, **attributes))
        return _Value(self, name)

    def matmul(self, a: _Value, b: _Value) -> _Value:
        return self.node("MatMul", a, b)

    def transpose(self, a: _Value) -> _Value:
        return self.node("Transpose", a, perm=[1, 0])

    def sum_squares(self, a: _Value) -> _Value:
        return self.node("ReduceSum", a * a, self.constant(np.array([1], np.int64)), keepdims=1)

    def sqrt(self, a: _Value) -> _Value:
        return self.node("Sqrt", a)

    def exp(self, a: _Value) -> _Value:
        return self.node("Exp", a)

    def log(self, a: _Value) -> _Value:
        return self.node("Log", a)

    def mean(self, a: _Value) -> _Value:
        return self.node("ReduceMean", a, axes=[1], keepdims=1)

    def maximum(self, a: _Value) -> _Value:
        return self.node("ReduceMax", a, axes=[1], keepdims=1)

    def top_mean(self, a: _Value, k: int) -> _Value:
        return self.mean(self.node("TopK", a, self.constant(np.array([k], np.int64)), outputs=2))

    def acos(self, a: _Value) -> _Value:
        return self.node("Acos", a)

    def cos(self, a: _Value) -> _Value:
        return self.node("Cos", a)

    def relu(self, a: _Value) -> _Value:
        return self.node("Relu", a)

    def concat(self, parts: list[_Value]) -> _Value:
        return self.node("Concat", *parts, axis=1)

    def step(self, a: _Value) -> _Value:
        return self.node("Cast", self.node("Greater", a, 0.0), to=TensorProto.FLOAT)

    def power(self, a: _Value, n: int) -> _Value:
        return self.node("Pow", a, float(n))

    def clip(self, a: _Value, low: float, high: float) -> _Value:
        return self.node("Clip", a, low, high)


class _Value:
    """A value of the graph, with arithmetic."""

    def __init__(self, graph: _Graph, name: str):
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> _Value:
        return self.graph.node("Add", self, other)

    def __radd__(self, other: Any) -> _Value:
        return self.graph.node("Add", other, self)

    def __sub__(self, other: Any) -> _Value:
        return self.graph.node("Sub", self, other)

    def __rsub__(self, other: Any) -> _Value:
        return self.graph.node("Sub", other, self)

    def __mul__(self, other: Any) -> _Value:
        return self.graph.node("Mul", self, other)

    def __rmul__(self, other: Any) -> _Value:
        return self.graph.node("Mul", other, self)

    def __truediv__(self, other: Any) -> _Value:
        return self.graph.node("Div", self, other)


def to_onnx(model: Model, path: PathLike, side: str) -> None:
    """Writes an ONNX file with input "rows" (n by width) and outputs "embedding" (n by rank: also
    queries, with 1 as one more number) and "index" (n by rank + 1, the last minus the bias)."""
    if side not in ("x", "y"):
        raise ArgumentError(f"side is {side!r}; accepted: \"x\" or \"y\"")
    part = sides_of(model)[side]
    graph = _Graph()
    tensors = {name: graph.constant(tensor, name) for name, tensor in part.tensors().items()}
    result = embed(part, tensors, graph, _Value(graph, "rows"))
    for name, value in (("embedding", result), ("index", index(part, tensors, graph, result))):
        graph.nodes.append(helper.make_node("Identity", [value.name], [name]))
    width = model.width_x if side == "x" else model.width_y
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", width])
    out = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", columns])
           for name, columns in (("embedding", model.rank), ("index", model.rank + 1))]
    made = helper.make_graph(graph.nodes, f"unicon_{side}", [rows], out, graph.constants)
    whole = helper.make_model(made, producer_name="unicon",
                              opset_imports=[helper.make_opsetid("", OPSET)])
    whole.ir_version = min(whole.ir_version, 8)  # what runtimes of this opset read
    helper.set_model_props(whole, {key: value for key, value in model.metadata.items()})
    onnx.checker.check_model(whole)
    onnx.save(whole, os.fspath(path))
