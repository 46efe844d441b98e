# SPDX-License-Identifier: Apache-2.0
"""What pairs and models are worth: before a fit, row by row, and against class vectors."""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_int64
from typing import TYPE_CHECKING, Any, Mapping, Optional

import numpy as np

from ._call import Call, Progress
from ._library import SCOPE_CHECK, SCOPE_CONTEXT, View, lib
from ._pairs import Pairs, add_list, make_pairs, whole_numbers
from ._rows import Matrix, open_rows
from .errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from .model import Model


CHECK_SPECTRUM = 64  # UNICON_CHECK_SPECTRUM


class _CheckResult(ctypes.Structure):
    _fields_ = [("pairs", c_int64), ("rows_x", c_int64), ("rows_y", c_int64),
                ("spectrum", c_double * CHECK_SPECTRUM), ("spectrum_count", c_int64), ("noise", c_double),
                ("rank", c_int64), ("cosine", c_double), ("chance", c_double),
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


def ranks(model: Optional[Model], X: Matrix, Y: Matrix, pairs: Pairs, ignore: Any,
          progress: Progress, options: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    with Call(options, SCOPE_CONTEXT, progress) as call:
        x, y = (View(open_rows(call, name, rows), model and model.pointer, side)
                for side, (name, rows) in enumerate((("X", X), ("Y", Y))))
        n_x, n_y = lib.unicon_rows_count(x.rows), lib.unicon_rows_count(y.rows)
        made = make_pairs(call, n_x, n_y, pairs)
        add_list(call, made, "ignored", ignore)
        to_y, to_x = np.empty(n_x, np.int64), np.empty(n_y, np.int64)
        with call.listening():
            call("ranks", ctypes.byref(x), ctypes.byref(y), made, to_y.ctypes.data,
                 to_x.ctypes.data)
    return to_y, to_x


def classify(model: Model, rows: Matrix, side: int, classes: Matrix, labels: Any,
             confusion: bool, progress: Progress, options: Mapping[str, Any]) -> dict[str, Any]:
    label, result = np.asarray(labels).reshape(-1), _ClassifyResult()
    if label.dtype.kind not in "iu":
        raise ArgumentError(f"labels are {label.dtype}; accepted: for each row the number of its "
                            "class, which is a row of classes")
    label = whole_numbers(label, "labels has", ArgumentError)
    with Call(options, SCOPE_CONTEXT, progress) as call:
        view = View(open_rows(call, "rows", rows), model.pointer, side)
        vectors = View(open_rows(call, "classes", classes), model.pointer, 1 - side)
        count, kinds = lib.unicon_rows_count(view.rows), lib.unicon_rows_count(vectors.rows)
        if len(label) != count:
            raise ShapeError(f"labels has {len(label)} entries, but there are {count} rows")
        answer = np.empty(count, np.int64)
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
