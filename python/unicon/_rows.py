# SPDX-License-Identifier: Apache-2.0
"""Matrices for the library, without a copy wherever the library can read the memory as it is."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Optional

import numpy as np

from ._arrow import matrix_of, speaks_arrow
from ._call import Call
from ._dlpack import Layout, layout_of, lies_away
from ._files import parquet_parts, read_parquet
from ._library import SCOPE_CONTEXT, lib
from .errors import ArgumentError, DataError, ShapeError

Matrix = Any
"""Rows of vectors: a NumPy array or memmap, a torch tensor, an array of a GPU that speaks DLPack or
__cuda_array_interface__ (torch, CuPy, JAX), read where it is, a table or column that speaks Arrow
(pyarrow, polars, DuckDB, pandas) or makes one that does (Lance, Hugging Face datasets), anything with
__dlpack__ or __array__, a list of lists, the path of a file or folder that the library reads itself, or
of Parquet: FILE.parquet or FILE.parquet:COLUMN."""

# unicon_dtype
_codes = {"float16": 0, "bfloat16": 1, "float32": 2, "float64": 3, "int8": 4, "uint8": 5}


def is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def open_rows(call: Call, name: str, data: Matrix) -> ctypes.c_void_p:
    """Rows that live as long as the call; errors call the matrix `name`."""
    if data is None:
        raise ArgumentError(f"{name} is missing. Expected array-like (array or non-string "
                            "sequence), got None")
    if is_path(data):
        parquet = parquet_parts(data)
        if parquet is None:
            return call.make("rows_open", lib.unicon_rows_close, os.fsencode(data))
        name, data = os.fsdecode(data), read_parquet(*parquet)
    found = matrix_layout(name, data)
    if not found.is_host():
        return call.make("rows_wrap_memory", lib.unicon_rows_close, name.encode(),
                         ctypes.byref(found.memory()), keep=found.keep)
    return call.make("rows_wrap", lib.unicon_rows_close, name.encode(), found.pointer,
                     found.dtype, *found.shape, *found.strides, keep=found.keep)


def matrix_layout(name: str, data: Any) -> Layout:
    """Where a matrix lies; what has other dimensions is refused."""
    found = layout(name, data)
    if len(found.shape) != 2:
        raise ShapeError(_not_a_matrix(name, found.shape))
    return found


def _not_a_matrix(name: str, shape: tuple[int, ...]) -> str:
    sentence = f"{name} has shape {shape}, but a matrix of rows and columns is needed"
    if len(shape) == 1:
        sentence += (f". Reshape your data: {name}.reshape(1, -1) if it is one row, "
                     f"{name}.reshape(-1, 1) if it is one column")
    return sentence


def layout(name: str, data: Any) -> Layout:
    """Where an array lies, and how; one that the library cannot read is converted."""
    if not isinstance(data, np.ndarray) and lies_away(data):
        return layout_of(name, data)
    if type(data).__module__.partition(".")[0] == "torch" and hasattr(data, "data_ptr"):
        return _torch_layout(name, data)
    if not hasattr(data, "__array__") and hasattr(data, "__dlpack__"):
        return _shared_layout(name, data)
    array = _as_array(name, data)
    return Layout(array.ctypes.data, _codes[array.dtype.name], array.shape, array.strides, array)


def _torch_layout(name: str, tensor: Any) -> Layout:
    if str(tensor.layout) != "torch.strided":
        raise ArgumentError(f"{name} is a sparse tensor; a dense matrix is needed")
    tensor = tensor.detach()
    code = _codes.get(str(tensor.dtype).partition(".")[2])
    if code is None or tensor.is_neg():
        return layout(name, tensor.resolve_neg().numpy())
    size = tensor.element_size()
    strides = tuple(step * size for step in tensor.stride())
    # An empty tensor has no memory; the library then only says that it is empty.
    return Layout(tensor.data_ptr() or id(tensor), code, tuple(tensor.shape), strides, tensor)


def _shared_layout(name: str, data: Any) -> Layout:
    """Of an object that speaks DLPack alone; types that the library does not read are NumPy's to
    convert."""
    try:
        return layout_of(name, data)
    except DataError:
        return layout(name, np.from_dlpack(data))


def _as_table(data: Any) -> Any:
    """Data sets that do not speak Arrow themselves, but make a table that does: those of Hugging
    Face, Lance, LanceDB and pyarrow."""
    if speaks_arrow(data) or hasattr(data, "__array__"):
        return data
    if type(data).__module__.partition(".")[0] == "datasets" and hasattr(data, "with_format"):
        return data.with_format("arrow")[:]
    for name in ("to_table", "to_arrow"):
        if callable(getattr(data, name, None)):
            return getattr(data, name)()
    return data


def _is_plain_frame(data: Any) -> bool:
    """A frame of pandas whose columns are numbers: there missing values are NaN, of which the
    library says more."""
    return hasattr(data, "iloc") and hasattr(data, "dtypes") and \
        all(getattr(kind, "kind", "O") in "fiub" for kind in np.atleast_1d(data.dtypes))


def _as_array(name: str, data: Any) -> np.ndarray:
    data = _as_table(data)
    if isinstance(data, np.ndarray):
        array = data
    elif hasattr(data, "tocsr") and hasattr(data, "nnz"):
        raise ArgumentError(f"{name} is a sparse matrix; a dense matrix is needed")
    elif speaks_arrow(data) and not _is_plain_frame(data):
        array = matrix_of(name, data)
    elif not hasattr(data, "__array__") and hasattr(data, "__dlpack__"):
        array = np.from_dlpack(data)
    else:
        array = np.asarray(data)
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise DataError(f"{name} has masked values; fill them or leave those rows out")
    if array.dtype.name in _codes and array.dtype.isnative and array.flags.aligned:
        return array
    if array.dtype.kind not in "fiub":
        complain = ". Complex data not supported" if array.dtype.kind == "c" else ""
        raise DataError(f"{name} has values of type {array.dtype}{complain}; accepted: "
                        + ", ".join(_codes) + ", and other real numbers, which are converted")
    kind = "=f8" if array.dtype.kind == "f" and array.dtype.itemsize >= 8 else "=f4"
    return array.astype(kind)


def writable(name: str, data: Matrix) -> np.ndarray:
    """The rows as an array that np.save writes and the library reads again."""
    found = layout(name, data)
    if isinstance(found.keep, np.ndarray) and found.keep.dtype.kind in "fiu":
        return found.keep
    return read_rows(data)  # bfloat16


def take_rows(name: str, data: Matrix, numbers: np.ndarray) -> Any:
    """Some rows, as the kind of object they were where it can be indexed so."""
    if hasattr(data, "iloc"):
        return data.iloc[numbers]
    if isinstance(data, np.ndarray) or type(data).__module__.partition(".")[0] == "torch":
        return data[numbers]
    return read_rows(data)[numbers] if is_path(data) else _as_array(name, data)[numbers]


def read_rows(data: Matrix, first: int = 0, count: Optional[int] = None) -> np.ndarray:
    """Rows of anything that X and Y may be, also of a file, as a float32 array."""
    with Call({}, SCOPE_CONTEXT) as call:
        rows = open_rows(call, "the data", data)
        whole = int(lib.unicon_rows_count(rows))
        if count is None:
            count = max(0, whole - first)
        if first < 0 or count < 0 or first + count > whole:
            raise ArgumentError(f"rows {first} to {first + count} are wanted, but there are {whole}")
        out = np.empty((count, lib.unicon_rows_width(rows)), np.float32)
        if count > 0:
            call("rows_read", rows, first, count, out.ctypes.data)
    return out
