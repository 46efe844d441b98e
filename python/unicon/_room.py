# SPDX-License-Identifier: Apache-2.0
"""Embeddings that stay where they were made: on a device, shared with other libraries by DLPack."""

from __future__ import annotations

import ctypes
import importlib
import sys
from typing import Any, Optional

import numpy as np

from ._call import Call
from ._dlpack import CUDA, HOST, PINNED, layout_of, lies_away, to_capsule, writable_layout
from ._library import FORMS, SIDES, Handle, Memory, lib
from ._rows import Matrix, is_path, layout, matrix_layout, open_rows
from .errors import ArgumentError, UnsupportedError


class DeviceArray(Handle):
    """A float32 matrix in memory of a device: what `embed(..., out="device")` returns.

    torch.from_dlpack, cupy.from_dlpack, jax.dlpack.from_dlpack, and on the CPU numpy.from_dlpack, take
    it over without a copy; on an NVIDIA GPU it has __cuda_array_interface__ too. `numpy()` copies it
    to the host.
    """

    def __init__(self, call: Call, rows: int, cols: int):
        out = ctypes.c_void_p()
        call("room_create", rows, cols, ctypes.byref(out))
        super().__init__(out, lib.unicon_room_destroy)
        self._memory, self._device = Memory(), call.given("device")
        lib.unicon_room_memory(out, ctypes.byref(self._memory))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self._memory.rows), int(self._memory.cols)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32."""
        return np.dtype(np.float32)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        kind, number = self.__dlpack_device__()
        return f"DeviceArray(shape={self.shape}, kind={kind}, number={number})"

    def __dlpack_device__(self) -> tuple[int, int]:
        """Kind and number of the device, as DLPack counts them."""
        return int(self._memory.kind), int(self._memory.number)

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[tuple[int, int]] = None,
                   dl_device: Optional[tuple[int, int]] = None,
                   copy: Optional[bool] = None) -> Any:
        """A capsule of DLPack; the numbers are there for every stream."""
        if (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()) or copy:
            raise BufferError("a DeviceArray is shared as it is, where it is")
        return to_capsule(self._memory, self)

    def is_host(self) -> bool:
        """Can the host read it where it is?"""
        return self._memory.kind in (HOST, PINNED)

    def numpy(self) -> np.ndarray:
        """A copy on the host."""
        out = np.empty(self.shape, np.float32)
        with Call({"device": self._device}, 0) as call:
            call("rows_read", open_rows(call, "the array", self), 0, len(self), out.ctypes.data)
        return out

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __getattr__(self, name: str) -> Any:
        if name == "__cuda_array_interface__" and self._memory.kind == CUDA:
            return {"shape": self.shape, "typestr": "<f4", "data": (self._memory.data, False),
                    "strides": None, "version": 3, "stream": None}
        raise AttributeError(f"'DeviceArray' object has no attribute {name!r}")


def wants_room(rows: Matrix, out: Any) -> bool:
    """Is the result of embed to go elsewhere than into an array of numpy, or do the rows come from
    elsewhere?"""
    if isinstance(out, str):
        if out not in ("device", "like"):
            raise ArgumentError(f"out is {out!r}; accepted: None, \"device\", \"like\", or an array that "
                                "receives the result")
        return True
    if out is not None:
        return not isinstance(out, np.ndarray)
    return not is_path(rows) and lies_away(rows)


def embed(call: Call, model: Any, rows: Matrix, side: str, form: str, out: Any) -> Any:
    """unicon_embed_memory from and to wherever they are."""
    if form not in ("unit", "raw"):
        raise UnsupportedError(f"form \"{form}\" is made on the host; accepted on a device: \"unit\" and "
                               "\"raw\"")
    name, given = _input(rows, side)
    shape = (given.shape[0], model.rank)
    result: Any
    if out is None:
        result = np.empty(shape, np.float32)
        target = layout("out", result)
    elif isinstance(out, str):
        result = DeviceArray(call, *shape)
        target = layout_of("out", result)
    else:
        result, target = out, writable_layout("out", out, shape)
    with call.listening():
        call("embed_memory", model.pointer, SIDES[side], FORMS[form], name.encode(),
             ctypes.byref(given.memory()), ctypes.byref(target.memory()))
    return _like(rows, result) if isinstance(out, str) and out == "like" else result


def _input(rows: Matrix, side: str) -> tuple[str, Any]:
    name = side.upper()
    if is_path(rows):
        raise UnsupportedError("rows of a file are embedded on the host: read them with read_rows, or "
                               "leave out")
    return name, matrix_layout(name, rows)


def _like(rows: Any, made: DeviceArray) -> Any:
    """As an array of the library that the rows are of, if it is one that takes DLPack."""
    if isinstance(rows, np.ndarray):
        return np.from_dlpack(made) if made.is_host() else made.numpy()
    name = type(rows).__module__.partition(".")[0]
    library = importlib.import_module("jax.dlpack") if name == "jaxlib" else sys.modules.get(name)
    take = getattr(library, "from_dlpack", None)
    return take(made) if take else made
