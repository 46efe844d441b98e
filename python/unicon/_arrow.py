# SPDX-License-Identifier: Apache-2.0
"""Rows from whatever speaks Arrow: tables of pyarrow, polars, DuckDB, Lance, datasets.

The Arrow PyCapsule interface (`__arrow_c_stream__`, `__arrow_c_array__`) hands over C structures,
which are read here by ctypes, so that no package is needed. A column of lists of numbers is a
matrix, and so are columns of numbers side by side. Lists of one length in one piece are read where
they are; anything else is copied once.
"""

from __future__ import annotations

import ctypes
import weakref
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from typing import Any, NamedTuple, Optional

import numpy as np

from .errors import DataError, FormatError, ShapeError


class _Schema(Structure):
    pass


class _Array(Structure):
    pass


class _Stream(Structure):
    pass


_Schema._fields_ = [
    ("format", c_char_p), ("name", c_char_p), ("metadata", c_void_p), ("flags", c_int64),
    ("n_children", c_int64), ("children", POINTER(POINTER(_Schema))),
    ("dictionary", POINTER(_Schema)), ("release", CFUNCTYPE(None, POINTER(_Schema))),
    ("private_data", c_void_p)]
_Array._fields_ = [
    ("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
    ("n_children", c_int64), ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(_Array))), ("dictionary", POINTER(_Array)),
    ("release", CFUNCTYPE(None, POINTER(_Array))), ("private_data", c_void_p)]
_Stream._fields_ = [
    ("get_schema", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Schema))),
    ("get_next", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Array))),
    ("get_last_error", CFUNCTYPE(c_char_p, POINTER(_Stream))),
    ("release", CFUNCTYPE(None, POINTER(_Stream))), ("private_data", c_void_p)]

_NUMBERS = {b"c": "i1", b"C": "u1", b"s": "i2", b"S": "u2", b"i": "i4", b"I": "u4", b"l": "i8",
            b"L": "u8", b"e": "f2", b"f": "f4", b"g": "f8"}
_KINDS = {b"u": "text", b"U": "text", b"vu": "text", b"z": "bytes", b"Z": "bytes", b"vz": "bytes",
          b"b": "bits", b"n": "nothing", b"+s": "structs", b"+m": "maps", b"+vl": "list views",
          b"+vL": "list views"}
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = c_void_p, [ctypes.py_object, c_char_p]


class _Lease:
    """An Arrow array that is given back when nobody reads it any more."""

    def __init__(self, array: _Array):
        self.array = array
        weakref.finalize(self, _give_back, array)


def _give_back(array: _Array) -> None:
    if array.release:
        array.release(ctypes.byref(array))


class _Memory:
    """A piece of an Arrow array for NumPy, which keeps the lease."""

    def __init__(self, lease: _Lease, address: int, dtype: str, count: int):
        self._lease = lease
        self.__array_interface__ = {"data": (address, True), "typestr": "<" + dtype,
                                    "shape": (count,), "version": 3}


class _Column(NamedTuple):
    """What one column is: numbers, or lists of them."""

    name: str
    dtype: str
    list_of: Optional[bytes]  # b"+l", b"+L" or b"+w"; None: numbers
    width: int  # of b"+w"


def speaks_arrow(data: Any) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def matrix_of(name: str, data: Any) -> np.ndarray:
    """The numbers of a table or column as a matrix."""
    if hasattr(data, "__arrow_c_stream__"):
        columns, pieces = _read_stream(name, data.__arrow_c_stream__())
    else:
        columns, pieces = _read_array(name, data.__arrow_c_array__())
    return _matrix(name, columns, pieces)


def _matrix(name: str, columns: list[_Column],
            pieces: list[tuple[_Lease, list[_Array]]]) -> np.ndarray:
    parts = [_piece(name, columns, lease, arrays) for lease, arrays in pieces
             if arrays[0].length > 0]
    if not parts:
        return np.empty((0, columns[0].width if columns[0].list_of else len(columns)), np.float32)
    widths = {part.shape[1] for part in parts}
    if len(widths) > 1:
        raise ShapeError(f"{name} has lists of {min(widths)} and of {max(widths)} numbers; rows of "
                         "one length are needed")
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


# ---- reading the structures ----------------------------------------------------------------


def _read_stream(name: str, capsule: Any) -> tuple[list[_Column], list[tuple[_Lease, list[_Array]]]]:
    stream = ctypes.cast(_pointer_of(capsule, b"arrow_array_stream"), POINTER(_Stream)).contents
    try:
        schema = _Schema()
        _ask(name, stream, stream.get_schema, schema)
        try:
            columns, is_table = _columns(name, schema)
        finally:
            schema.release(ctypes.byref(schema))
        pieces: list[tuple[_Lease, list[_Array]]] = []
        while True:
            array = _Array()
            _ask(name, stream, stream.get_next, array)
            if not array.release:
                return columns, pieces
            pieces.append(_take(array, is_table))
    finally:
        stream.release(ctypes.byref(stream))


def _ask(name: str, stream: _Stream, function: Any, out: Structure) -> None:
    if function(ctypes.byref(stream), ctypes.byref(out)):
        sentence = stream.get_last_error(ctypes.byref(stream)) or b"no reason given"
        raise FormatError(f"{name}: its Arrow stream failed: {sentence.decode('utf-8', 'replace')}")


def _read_array(name: str, capsules: Any) -> tuple[list[_Column], list[tuple[_Lease, list[_Array]]]]:
    schema_capsule, array_capsule = capsules
    schema = ctypes.cast(_pointer_of(schema_capsule, b"arrow_schema"), POINTER(_Schema)).contents
    columns, is_table = _columns(name, schema)
    given = ctypes.cast(_pointer_of(array_capsule, b"arrow_array"), POINTER(_Array)).contents
    array = _Array()
    ctypes.memmove(ctypes.byref(array), ctypes.byref(given), ctypes.sizeof(array))
    ctypes.memset(ctypes.byref(given, _Array.release.offset), 0, ctypes.sizeof(c_void_p))  # moved
    return columns, [_take(array, is_table)]


def _take(array: _Array, is_table: bool) -> tuple[_Lease, list[_Array]]:
    """The columns of an array. A table is a struct, whose offset holds for its columns too."""
    lease = _Lease(array)
    if not is_table:
        return lease, [array]
    columns = []
    for k in range(array.n_children):
        child = array.children[k].contents
        own = _Array()
        ctypes.memmove(ctypes.byref(own), ctypes.byref(child), ctypes.sizeof(own))
        own.offset, own.length = child.offset + array.offset, array.length
        columns.append(own)
    return lease, columns


# ---- what the columns are --------------------------------------------------------------------


def _columns(name: str, schema: _Schema) -> tuple[list[_Column], bool]:
    if schema.format != b"+s":
        return [_column(name, name, schema)], False
    children = [schema.children[k].contents for k in range(schema.n_children)]
    if not children:
        raise ShapeError(f"{name} is a table without columns")
    names = [(child.name or b"").decode("utf-8", "replace") for child in children]
    columns = [_column(name, own, child) for own, child in zip(names, children)]
    lists = [column.name for column in columns if column.list_of]
    if lists and len(columns) > 1:
        raise ShapeError(f"{name} is a table of the columns {', '.join(names)}, of which "
                         f"{', '.join(lists)} holds vectors; give that column alone")
    return columns, True


def _column(table: str, name: str, schema: _Schema) -> _Column:
    form = schema.format
    if not schema.dictionary:
        if form in _NUMBERS:
            return _Column(name, _NUMBERS[form], None, 1)
        if form in (b"+l", b"+L") or form.startswith(b"+w:"):
            inner = schema.children[0].contents
            if inner.format in _NUMBERS and not inner.dictionary:
                width = int(form[3:]) if form.startswith(b"+w:") else 0
                return _Column(name, _NUMBERS[inner.format], form[:2], width)
    what = "a dictionary" if schema.dictionary else _KINDS.get(form) or f"Arrow type {form.decode()}"
    whose = f"column {name} of {table}" if name != table else table
    raise DataError(f"{whose} is {what}; accepted: numbers, and lists of numbers, of which each "
                    "is a row. Choose the columns that hold the vectors")


# ---- their numbers ---------------------------------------------------------------------------


def _piece(name: str, columns: list[_Column], lease: _Lease, arrays: list[_Array]) -> np.ndarray:
    if columns[0].list_of:
        return _lists(name, columns[0], lease, arrays[0])
    found = [_numbers(f"column {column.name} of {name}", lease, array, column.dtype)
             for column, array in zip(columns, arrays)]
    if len(found) == 1:
        return found[0].reshape(-1, 1)
    return np.stack(found, axis=1)


def _refuse_nulls(whose: str, lease: _Lease, array: _Array, first: int, count: int) -> None:
    """An array without a bitmap has no nulls, nor has one that says so."""
    if array.n_buffers == 0 or not array.buffers[0] or array.null_count == 0 or count == 0:
        return
    start = array.offset + first
    size = (start + count + 7) // 8
    bits = np.asarray(_Memory(lease, array.buffers[0], "u1", size))
    there = np.unpackbits(bits, bitorder="little")[start:start + count]
    if not there.all():
        row = int(np.argmin(there))
        raise DataError(f"{whose} has {int(count - there.sum())} nulls, the first at place {row}; "
                        "fill them or leave those rows out")


def _numbers(whose: str, lease: _Lease, array: _Array, dtype: str, first: int = 0,
             count: Optional[int] = None) -> np.ndarray:
    count = array.length - first if count is None else count
    _refuse_nulls(whose, lease, array, first, count)
    if count == 0:
        return np.empty(0, dtype)
    size = np.dtype(dtype).itemsize
    address = array.buffers[1] + (array.offset + first) * size
    return np.asarray(_Memory(lease, address, dtype, count))


def _lists(name: str, column: _Column, lease: _Lease, array: _Array) -> np.ndarray:
    whose = name if column.name == name else f"column {column.name} of {name}"
    _refuse_nulls(whose, lease, array, 0, array.length)
    inner = array.children[0].contents
    if column.list_of == b"+w":
        first, width = array.offset * column.width, column.width
    else:
        offsets = np.asarray(_Memory(
            lease, array.buffers[1] + array.offset * (4 if column.list_of == b"+l" else 8),
            "i4" if column.list_of == b"+l" else "i8", array.length + 1))
        lengths = np.diff(offsets)
        first, width = int(offsets[0]), int(lengths[0])
        if (lengths != width).any():
            row = int(np.argmax(lengths != width))
            raise ShapeError(f"{whose} has lists of {width} and, in row {row}, of {lengths[row]} "
                             "numbers; rows of one length are needed")
    if width == 0:
        raise ShapeError(f"{whose} has empty lists; rows of numbers are needed")
    if first < 0 or width < 0 or first + array.length * width > inner.length:
        raise FormatError(f"{whose} has lists beyond its {inner.length} numbers")
    numbers = _numbers(f"a row of {whose}", lease, inner, column.dtype, first,
                       array.length * width)
    return numbers.reshape(array.length, width)
