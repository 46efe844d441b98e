# SPDX-License-Identifier: Apache-2.0
"""What pairs and models are worth: before a fit, row by row, and against class vectors."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional

import numpy as np

from ._call import Call, Progress
from ._library import SCOPE_CONTEXT, SCOPE_EVAL, SCOPE_PROBE, SCOPE_WEIGHTS, View
from ._options import names_of
from ._pairs import Pairs, add_list, make_pairs, whole_numbers
from ._result import Evaluation, read_result
from ._rows import Matrix
from ._view import Balance, count, open_view
from .errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from .model import Model


def before_fit(function: str, scope: int, data: Mapping[str, Any], progress: Progress,
               options: Mapping[str, Any], *more: Any) -> dict[str, Any]:
    """unicon_check or unicon_plan."""
    from .model import open_data

    with Call(options, scope, progress) as call:
        opened, keep = open_data(call, **data)
        with call.listening():
            found = read_result(call, function, ctypes.byref(opened), call.options, *more)
        del keep
    return found


class Rivals(NamedTuple):
    """Two sets of rows that look for each other, and which of them belong together."""

    model: Optional[Model]
    X: Matrix
    Y: Matrix
    pairs: Pairs
    ignore: Any
    balance: Balance

    def open(self, call: Call) -> tuple[View, View, ctypes.c_void_p]:
        """Both views and the pairs."""
        balance = self.balance.open(call, self.model)
        x = open_view(call, "X", self.X, self.model, "x", balance)
        y = open_view(call, "Y", self.Y, self.model, "y", balance)
        made = make_pairs(call, count(x), count(y), self.pairs)
        add_list(call, made, "ignored", self.ignore)
        return x, y, made


def evaluate(rivals: Rivals, progress: Progress, options: Mapping[str, Any]) -> Evaluation:
    with Call(options, SCOPE_EVAL, progress) as call:
        x, y, made = rivals.open(call)
        with call.listening():
            return Evaluation(read_result(call, "evaluate", ctypes.byref(x), ctypes.byref(y), made,
                                          call.options))


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
    model, loss = rivals.model, ctypes.c_double()
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


def classify(model: Optional[Model], rows: Matrix, side: str, classes: Matrix, labels: Any,
             balance: Balance, progress: Progress, options: Mapping[str, Any]) -> dict[str, Any]:
    label = np.asarray(labels).reshape(-1)
    if label.dtype.kind not in "iu":
        raise ArgumentError(f"labels are {label.dtype}; accepted: for each row the number of its "
                            "class, which is a row of classes")
    label = whole_numbers(label, "labels has", ArgumentError)
    with Call(options, SCOPE_CONTEXT, progress) as call:
        view = open_view(call, "rows", rows, model, side)
        vectors = open_view(call, "classes", classes, model, "yx"["xy".index(side)],
                            balance.open(call, model))
        if len(label) != count(view):
            raise ShapeError(f"labels has {len(label)} entries, but there are {count(view)} rows")
        answer = np.empty(len(label), np.int64)
        with call.listening():
            found = read_result(call, "classify", ctypes.byref(view), label.ctypes.data,
                                ctypes.byref(vectors), answer.ctypes.data)
    return {**found, "answer": answer}


def probe(model: Optional[Model], side: str, train: Matrix, train_labels: Any, test: Matrix,
          test_labels: Any, progress: Progress, options: Mapping[str, Any]) -> dict[str, Any]:
    labels = [np.asarray(given).reshape(-1) for given in (train_labels, test_labels)]
    if (labels[0].dtype.kind in "iub") != (labels[1].dtype.kind in "iub"):
        raise ArgumentError(f"train_labels are {labels[0].dtype}, test_labels {labels[1].dtype}; "
                            "they are compared, so both must be integers or both strings")
    names, numbers = np.unique(np.concatenate(labels), return_inverse=True)
    numbers = np.ascontiguousarray(numbers.reshape(-1), np.int64)
    parts = numbers[:len(labels[0])].copy(), numbers[len(labels[0]):].copy()
    with Call(options, SCOPE_PROBE, progress) as call:
        views = (open_view(call, "train", train, model, side),
                 open_view(call, "test", test, model, side))
        for name, view, part in zip(("train", "test"), views, parts):
            if len(part) != count(view):
                raise ShapeError(f"{name}_labels has {len(part)} entries, but {name} has "
                                 f"{count(view)} rows")
        with call.listening():
            found = read_result(call, "probe", ctypes.byref(views[0]), parts[0].ctypes.data,
                                ctypes.byref(views[1]), parts[1].ctypes.data, call.options)
    return {**found, "labels": names[np.asarray(found["labels"], np.int64)]}
