# SPDX-License-Identifier: Apache-2.0
"""Named results of the library as dictionaries, of the shape that the command prints as JSON."""

from __future__ import annotations

import ctypes
from typing import Any, Iterator

import numpy as np

from ._call import Call
from ._library import lib, text

_INTEGER, _REAL, _TEXT, _INTEGERS = 1, 2, 3, 4  # unicon_kind


def read_result(call: Call, function: str, *arguments: Any) -> dict[str, Any]:
    """Calls a function whose last argument receives a result. A matrix is a NumPy array."""
    result = call.make(function, lib.unicon_result_destroy, *arguments)
    found: dict[str, Any] = {}
    for name in _names(result):
        *folders, last = text(name).split(".")
        place = found
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = _value(result, name)
    return found


def _names(result: ctypes.c_void_p) -> Iterator[bytes]:
    index = 0
    while name := lib.unicon_result_name(result, index):
        yield name
        index += 1


def _value(result: ctypes.c_void_p, name: bytes) -> Any:
    kind = lib.unicon_result_kind(result, name)
    if kind == _TEXT:
        return text(lib.unicon_result_text(result, name))
    if kind in (_INTEGER, _REAL):
        number = ctypes.c_double()
        lib.unicon_result_number(result, name, ctypes.byref(number))
        return int(number.value) if kind == _INTEGER else number.value
    rows, width = ctypes.c_int64(), ctypes.c_int64()
    read = lib.unicon_result_integers if kind == _INTEGERS else lib.unicon_result_reals
    values = read(result, name, ctypes.byref(rows), ctypes.byref(width))
    if width.value == 0:
        return values[:rows.value]
    return np.ctypeslib.as_array(values, (rows.value, width.value)).copy()
