# SPDX-License-Identifier: Apache-2.0
"""What pairs and models are worth: before a fit, row by row, and against class vectors."""

from __future__ import annotations

import ctypes
import math
from ctypes import c_double, c_int64
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional

import numpy as np

from ._call import Call, Progress
from ._library import (METRICS, SCOPE_CHECK, SCOPE_CONTEXT, SCOPE_EVAL, SCOPE_WEIGHTS, SIDES,
                       Metrics, View, lib, text)
from ._options import names_of
from ._pairs import Pairs, add_list, make_pairs, whole_numbers
from ._rows import Matrix
from ._view import Balance, count, open_view
from .errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from .model import Model


CHECK_SPECTRUM = 64  # UNICON_CHECK_SPECTRUM


class _CheckResult(ctypes.Structure):
    _fields_ = [("pairs", c_int64), ("rows_x", c_int64), ("rows_y", c_int64),
                ("spectrum", c_double * CHECK_SPECTRUM), ("spectrum_count", c_int64),
                ("noise", c_double), ("rank", c_int64), ("cosine", c_double), ("chance", c_double),
                ("p_value", c_double), ("closer", c_double), ("graded", c_int64),
                ("doubtful", c_int64), ("suspects", c_int64)]


class _ClassifyResult(ctypes.Structure):
    _fields_ = [("rows", c_int64), ("classes", c_int64), ("accuracy", c_double),
                ("top5", c_double), ("mean_class_accuracy", c_double), ("chance", c_double)]


_SUSPECT = np.dtype([("x", "i8"), ("y", "i8"), ("cosine", "f8"), ("closer", "f8")])


def check(data: Mapping[str, Any], suspects: int, progress: Progress,
          options: Mapping[str, Any]) -> dict[str, Any]:
    from .model import open_data

    found, result = np.zeros(max(suspects, 0), _SUSPECT), _CheckResult()
    with Call(options, SCOPE_CHECK, progress) as call:
        opened, keep = open_data(call, **data)
        with call.listening():
            call("check", ctypes.byref(opened), call.options, suspects,
                 found.ctypes.data if suspects else None, ctypes.byref(result))
        del keep
    numbers = ("pairs", "rows_x", "rows_y", "p_value", "cosine", "chance", "closer", "graded",
               "doubtful", "rank", "noise")
    return {**{name: getattr(result, name) for name in numbers},
            "spectrum": np.array(result.spectrum[:result.spectrum_count]),
            "suspects": found[:result.suspects]}


class Rivals(NamedTuple):
    """Two sets of rows that look for each other, and which of them belong together."""

    model: Optional[Model]
    X: Matrix
    Y: Matrix
    pairs: Pairs
    ignore: Any
    balance: Balance

    def open(self, call: Call, always: bool = False) -> tuple[View, View, ctypes.c_void_p]:
        """Both views and the pairs; `always`: with a balance, so that it can be asked."""
        balance = self.balance.open(call, self.model, always)
        x = open_view(call, "X", self.X, self.model, "x", balance)
        y = open_view(call, "Y", self.Y, self.model, "y", balance)
        made = make_pairs(call, count(x), count(y), self.pairs)
        add_list(call, made, "ignored", self.ignore)
        return x, y, made


def _direction(metrics: Metrics) -> dict[str, Any]:
    found: dict[str, Any] = {"queries": metrics.queries, "candidates": metrics.candidates}
    plain, chance, interval = {}, {}, {}
    for index, name in enumerate(METRICS):
        low, high = metrics.low[index], metrics.high[index]
        if math.isfinite(metrics.value[index]):
            found[name], plain[name] = metrics.value[index], metrics.plain[index]
        if math.isfinite(metrics.chance[index]):
            chance[name] = metrics.chance[index]
        if math.isfinite(low) and math.isfinite(high):
            interval[name] = (low, high)
    hubs = {"skewness": metrics.hub_skew, "never_found": metrics.hub_never,
            "plain_skewness": metrics.plain_hub_skew, "plain_never_found": metrics.plain_hub_never}
    hubs = {name: value for name, value in hubs.items() if math.isfinite(value)}
    found.update(chance=chance, plain=plain, hubs=hubs)
    if interval:
        found["ci"] = interval
    return found


def evaluate(rivals: Rivals, progress: Progress, options: Mapping[str, Any]) -> dict[str, Any]:
    to_y, to_x = Metrics(), Metrics()
    with Call(options, SCOPE_EVAL, progress) as call:
        x, y, made = rivals.open(call, always=True)
        with call.listening():
            call("evaluate", ctypes.byref(x), ctypes.byref(y), made, call.options,
                 ctypes.byref(to_y), ctypes.byref(to_x))
        about = {"balance": text(lib.unicon_balance_text(x.balance)),
                 "bank_x": lib.unicon_balance_rows(x.balance, SIDES["x"]),
                 "bank_y": lib.unicon_balance_rows(x.balance, SIDES["y"])}
    return {"pairs": to_y.pairs, "x_to_y": _direction(to_y), "y_to_x": _direction(to_x), **about}


def ranks(rivals: Rivals, progress: Progress,
          options: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    with Call(options, SCOPE_CONTEXT, progress) as call:
        x, y, made = rivals.open(call)
        to_y, to_x = np.empty(count(x), np.int64), np.empty(count(y), np.int64)
        with call.listening():
            call("ranks", ctypes.byref(x), ctypes.byref(y), made, to_y.ctypes.data,
                 to_x.ctypes.data)
    return to_y, to_x


def hubs(rivals: Rivals, progress: Progress, options: Mapping[str, Any]) -> dict[str, Any]:
    with Call(options, SCOPE_CONTEXT, progress) as call:
        x, y, made = rivals.open(call)
        found, plain = ([np.empty(count(view), np.int64) for view in (y, x)] for _ in range(2))
        with call.listening():
            call("hubs", ctypes.byref(x), ctypes.byref(y), made,
                 *((ctypes.c_void_p * 2)(*(array.ctypes.data for array in arrays))
                   for arrays in (found, plain)))
    ways = ("x_to_y", "y_to_x")
    return {**dict(zip(ways, found)), "plain": dict(zip(ways, plain))}


class Weights(NamedTuple):
    """Scores s and weights S = -dL/ds of all rows of X with all rows of Y, and the loss L."""

    scores: np.ndarray
    weights: np.ndarray
    loss: float


def weights(rivals: Rivals, negatives: Any, progress: Progress,
            options: Mapping[str, Any]) -> Weights:
    model, loss = rivals.model, c_double()
    known = model.metadata if model else {}
    found = {name: known["option." + name] for name in names_of(SCOPE_WEIGHTS)
             if "option." + name in known}
    with Call({**found, **options}, SCOPE_WEIGHTS, progress) as call:
        x, y, made = rivals.open(call)
        add_list(call, made, "negatives", negatives)
        s, S = (np.empty((count(x), count(y)), np.float32) for _ in range(2))
        with call.listening():
            call("weights", ctypes.byref(x), ctypes.byref(y), made, call.options, s.ctypes.data,
                 S.ctypes.data, ctypes.byref(loss))
    return Weights(s, S, loss.value)


def classify(model: Model, rows: Matrix, side: str, classes: Matrix, labels: Any,
             balance: Balance, confusion: bool, progress: Progress,
             options: Mapping[str, Any]) -> dict[str, Any]:
    label, result = np.asarray(labels).reshape(-1), _ClassifyResult()
    if label.dtype.kind not in "iu":
        raise ArgumentError(f"labels are {label.dtype}; accepted: for each row the number of its "
                            "class, which is a row of classes")
    label = whole_numbers(label, "labels has", ArgumentError)
    with Call(options, SCOPE_CONTEXT, progress) as call:
        view = open_view(call, "rows", rows, model, side)
        vectors = open_view(call, "classes", classes, model, "yx"["xy".index(side)],
                            balance.open(call, model))
        kinds = count(vectors)
        if len(label) != count(view):
            raise ShapeError(f"labels has {len(label)} entries, but there are {count(view)} rows")
        answer = np.empty(len(label), np.int64)
        matrix = np.empty((kinds, kinds), np.int64) if confusion else None
        with call.listening():
            call("classify", ctypes.byref(view), label.ctypes.data, ctypes.byref(vectors),
                 answer.ctypes.data, None if matrix is None else matrix.ctypes.data,
                 ctypes.byref(result))
    found: dict[str, Any] = {name: getattr(result, name) for name, _ in _ClassifyResult._fields_}
    found["answer"] = answer
    if matrix is not None:
        found["confusion"] = matrix
    return found
