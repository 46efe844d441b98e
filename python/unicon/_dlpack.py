# SPDX-License-Identifier: Apache-2.0
"""Memory that array libraries share: DLPack and __cuda_array_interface__, in and out, by ctypes."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import (CFUNCTYPE, POINTER, PYFUNCTYPE, Structure, c_char_p, c_int, c_int32, c_int64, c_uint8,
                    c_uint16, c_uint32, c_uint64, c_void_p, py_object)
from typing import Any, NamedTuple, Optional

from ._library import Memory
from .errors import ArgumentError, DataError, ShapeError

NOWHERE, HOST, CUDA, PINNED, MANAGED = 0, 1, 2, 3, 13  # DLPack's kinds of memory; 0 is none
_REFUSALS = (BufferError, RuntimeError, ValueError)
_LEGACY_STREAM = 1
# unicon_dtype by DLPack's code and bits, and by the typestr of __cuda_array_interface__.
_by_code = {(2, 16): 0, (4, 16): 1, (2, 32): 2, (2, 64): 3, (0, 8): 4, (1, 8): 5}
_by_typestr = {"<f2": 0, "<f4": 2, "<f8": 3, "|i1": 4, "|u1": 5}
_sizes = (2, 2, 4, 8, 1, 1)
_ACCEPTED = "float16, bfloat16, float32, float64, int8, uint8"


class Layout(NamedTuple):
    """A matrix somewhere in memory, as the library wants it."""

    pointer: int
    dtype: int  # unicon_dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    keep: Any
    kind: int = HOST
    number: int = 0
    stream: int = 0

    def is_host(self) -> bool:
        return self.kind in (HOST, PINNED)

    def memory(self) -> Memory:
        return Memory(self.pointer, *self.shape, *self.strides, self.stream, self.dtype, self.kind,
                      self.number, 0)


# ---- the structs of DLPack -----------------------------------------------------------------------


class _Tensor(Structure):
    _fields_ = [("data", c_void_p), ("kind", c_int32), ("number", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Managed(Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _Versioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("tensor", _Tensor)]


_DELETER = CFUNCTYPE(None, c_void_p)
_STRUCTS = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}
_USED = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}
_is_valid = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_of = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_set_name = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
_new_capsule = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New",
                                                                    ctypes.pythonapi))
# The same of a capsule that is going away, of which no reference may be taken.
_dying_is_valid = PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_dying_pointer = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer",
                                                           ctypes.pythonapi))

# ---- in --------------------------------------------------------------------------------------------


class _Borrowed:
    """A tensor that was taken out of a capsule: given back when nobody has it any more."""

    def __init__(self, address: int, deleter: Optional[int]):
        self._free = weakref.finalize(self, _give_back, address, deleter)


def _give_back(address: int, deleter: Optional[int]) -> None:
    if deleter:
        _DELETER(deleter)(address)


def _refuse(name: str, what: str) -> DataError:
    return DataError(f"{name} has values of type {what}; accepted in memory of a device: {_ACCEPTED}")


def place_of(data: Any) -> Optional[tuple[int, int]]:
    """Kind and number of the device that an array says it lies on; None if it does not say, NOWHERE if
    it is none that DLPack knows. Arrow arrays do not say: DLPack has no word for lists of numbers."""
    if hasattr(data, "__arrow_c_array__") or hasattr(data, "__arrow_c_stream__"):
        return None
    if callable(getattr(data, "__dlpack_device__", None)) and hasattr(data, "__dlpack__"):
        try:
            kind, number = (int(part) for part in data.__dlpack_device__())
        except _REFUSALS:
            return NOWHERE, 0
        return (CUDA if kind == MANAGED else kind), number
    if hasattr(data, "__cuda_array_interface__"):
        return CUDA, 0
    return None


def lies_away(data: Any) -> bool:
    """Does it say that it lies where the host cannot read it?"""
    place = place_of(data)
    return place is not None and place[0] not in (HOST, PINNED)


def layout_of(name: str, data: Any) -> Layout:
    """The memory of an object with __dlpack__ or __cuda_array_interface__."""
    if type(data).__module__.partition(".")[0] == "torch" and hasattr(data, "resolve_neg"):
        if str(data.layout) != "torch.strided":
            raise ArgumentError(f"{name} is a sparse tensor; a dense matrix is needed")
        data = data.detach().resolve_neg()
    if hasattr(data, "__dlpack__"):
        return _from_capsule(name, data)
    return _from_cuda_interface(name, data.__cuda_array_interface__)


def _from_capsule(name: str, data: Any) -> Layout:
    place = place_of(data) or (HOST, 0)
    if place[0] == NOWHERE:
        raise ArgumentError(f"{name} is on {getattr(data, 'device', 'a device')}, which cannot be read: "
                            "pass a copy on the CPU")
    try:  # on a GPU the rows must be there for the default stream
        capsule = data.__dlpack__(stream=_LEGACY_STREAM) if place[0] == CUDA else data.__dlpack__()
    except _REFUSALS as error:
        raise ArgumentError(f"{name} cannot be shared by DLPack: {error}") from error
    label = next((label for label in _STRUCTS if _is_valid(capsule, label)), None)
    if label is None:
        raise ArgumentError(f"{name}.__dlpack__() gives no capsule of DLPack that is unused")
    address = _pointer_of(capsule, label)
    managed = ctypes.cast(address, POINTER(_STRUCTS[label])).contents
    if label == b"dltensor_versioned" and managed.major != 1:
        raise ArgumentError(f"{name}.__dlpack__() speaks DLPack {managed.major}.{managed.minor}; "
                            "accepted: 1.x and earlier")
    _set_name(capsule, _USED[label])
    keep = _Borrowed(address, managed.deleter)
    tensor = managed.tensor
    dtype = _by_code.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise _refuse(name, f"code {tensor.code} with {tensor.bits} bits (DLPack)")
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    steps = tuple(tensor.strides[k] for k in range(tensor.ndim)) if tensor.strides else None
    stream = _LEGACY_STREAM if place[0] == CUDA else 0
    return Layout((tensor.data or 0) + tensor.byte_offset, dtype, shape,
                  _bytes(shape, steps, _sizes[dtype]), keep, place[0], tensor.number, stream)


def _bytes(shape: tuple[int, ...], steps: Optional[tuple[int, ...]], size: int) -> tuple[int, ...]:
    """Strides in bytes, from elements; None: C order."""
    if steps is None:
        steps = tuple(1 if k == len(shape) - 1 else _product(shape[k + 1:])
                      for k in range(len(shape)))
    return tuple(step * size for step in steps)


def _product(numbers: tuple[int, ...]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def _from_cuda_interface(name: str, said: Any) -> Layout:
    missing = {"shape", "typestr", "data", "version"} - set(said)
    if missing:
        raise ArgumentError(f"{name}.__cuda_array_interface__ has no {min(missing)}")
    dtype, shape, stream = _by_typestr.get(said["typestr"]), tuple(said["shape"]), said.get("stream")
    if dtype is None:
        raise _refuse(name, repr(said["typestr"]))
    if said.get("mask") is not None:
        raise DataError(f"{name} has masked values; fill them or leave those rows out")
    if stream == 0 or not (stream is None or isinstance(stream, int)):
        raise ArgumentError(f"{name}.__cuda_array_interface__ has stream {stream!r}; accepted: None, "
                            "1 and 2 for the default streams, or a CUDA stream")
    strides = said.get("strides")
    return Layout(int(said["data"][0]), dtype, shape,
                  tuple(strides) if strides else _bytes(shape, None, _sizes[dtype]), said, CUDA, 0,
                  stream or 0)


def writable_layout(name: str, data: Any, shape: tuple[int, int]) -> Layout:
    """Of a float32 matrix of that shape that may be written."""
    layout = layout_of(name, data)
    if layout.shape != shape or layout.dtype != 2:
        raise ShapeError(f"{name} has shape {layout.shape}; a float32 matrix of shape {shape} is needed")
    if hasattr(data, "__cuda_array_interface__") and data.__cuda_array_interface__["data"][1]:
        raise ArgumentError(f"{name} is read-only")
    return layout


# ---- out -------------------------------------------------------------------------------------------

_lent: dict[int, Any] = {}  # what tensors that others hold stand on, by their addresses


def _forget(address: int) -> None:
    _lent.pop(address, None)


def _drop(capsule: int) -> None:
    """A capsule goes away: one that nobody took the tensor from gives it back."""
    if _dying_is_valid(capsule, b"dltensor"):
        _lent.pop(_dying_pointer(capsule, b"dltensor"), None)


_delete, _drop_capsule = _DELETER(_forget), _DELETER(_drop)
_NAME = ctypes.create_string_buffer(b"dltensor")  # as long as any capsule
for _function in (_delete, _drop_capsule):  # and these, which others may call when we are gone
    ctypes.pythonapi.Py_IncRef(py_object(_function))


def to_capsule(memory: Memory, owner: Any) -> Any:
    """A float32 matrix as a capsule of DLPack; `owner` lives as long as the tensor does."""
    shape = (c_int64 * 2)(memory.rows, memory.cols)
    strides = (c_int64 * 2)(memory.row_stride // 4, memory.col_stride // 4)
    managed = _Managed(_Tensor(memory.data, memory.kind, memory.number, 2, 2, 32, 1, shape, strides, 0),
                       None, ctypes.cast(_delete, c_void_p))
    address = ctypes.addressof(managed)
    _lent[address] = (managed, shape, strides, owner)
    try:
        return _new_capsule(address, ctypes.cast(_NAME, c_char_p),
                            ctypes.cast(_drop_capsule, c_void_p))
    except BaseException:
        _lent.pop(address, None)
        raise
