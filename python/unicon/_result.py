# SPDX-License-Identifier: Apache-2.0
"""Named results of the library as dictionaries, of the shape that the command prints as JSON."""

from __future__ import annotations

import ctypes
from typing import Any, Iterator

import numpy as np

from ._call import Call
from ._library import lib, text

_INTEGER, _REAL, _TEXT, _INTEGERS = 1, 2, 3, 4  # unicon_kind


class Evaluation(dict[str, Any]):
    """What evaluate has found: a dictionary that print and notebooks show as a table."""

    def __str__(self) -> str:
        ways = {name: self[key] for name, key in (("x to y", "x_to_y"), ("y to x", "y_to_x"))}
        titles = ["balanced", "plain"] if self.get("balance", "off") != "off" else ["found"]
        titles += ["chance"] + (["95 % interval"] if "ci" in self["x_to_y"] else [])
        head = ["", *(way if k == 0 else "" for way in ways for k in range(len(titles)))]
        lines = [head, ["", *titles, *titles]]
        for metric, value in self["x_to_y"].items():
            if isinstance(value, float):
                lines.append([metric, *(cell for way in ways.values()
                                        for cell in _cells(way, metric, titles))])
        for metric in ("queries", "candidates"):
            lines.append([metric, *(str(way[metric]) if k == 0 else "" for way in ways.values()
                                    for k in range(len(titles)))])
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join((line[0].ljust(widths[0]) + "".join(
            "  " + cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))).rstrip()
            for line in lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def _cells(way: dict[str, Any], metric: str, titles: list[str]) -> Iterator[str]:
    """A metric in one direction, in the columns that there are."""
    form = "{:.1f}" if metric == "median_rank" else "{:.2f}" if metric == "mean_rank" else "{:.3f}"
    for title in titles:
        of = {"plain": way.get("plain"), "chance": way.get("chance"),
              "95 % interval": way.get("ci")}.get(title, way)
        found = (of or {}).get(metric)
        if found is None:
            yield ""
        elif title == "95 % interval":
            yield " to ".join(form.format(end) for end in found)
        else:
            yield form.format(found)


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
