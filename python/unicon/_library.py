# SPDX-License-Identifier: Apache-2.0
"""The C library through ctypes: prototypes of its headers, and handles that free.

ctypes releases the GIL during every call.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import weakref
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int64,
                    c_size_t, c_uint, c_uint64, c_void_p)
from pathlib import Path
from typing import Any, Callable, Iterator

LOG_FUNCTION = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
PROGRESS_FUNCTION = CFUNCTYPE(c_int, c_void_p, c_char_p, c_double, c_double)

SCOPE_CONTEXT, SCOPE_FIT, SCOPE_EVAL, SCOPE_SYNTH = 1, 2, 4, 8
SCOPE_PROBE, SCOPE_CHECK, SCOPE_COMPARE, SCOPE_REPORT = 16, 32, 64, 128
SCOPE_BALANCE, SCOPE_WEIGHTS, SCOPE_MIGRATE, SCOPE_MOVE = 512, 1024, 2048, 4096
SCOPE_STATS = 8192
SIDES = {"x": 0, "y": 1}
FORMS = {"raw": 0, "unit": 1, "query": 2, "index": 3, "query_cosine": 4, "index_cosine": 5}


class OptionInfo(Structure):
    _fields_ = [("name", c_char_p), ("kind", c_char_p), ("default_value", c_char_p),
                ("words", c_char_p), ("metavar", c_char_p), ("group", c_char_p),
                ("help", c_char_p), ("low", c_double), ("high", c_double), ("scope", c_uint)]


class _Sized(Structure):
    """A struct whose first member is its size, so that the library may know more members."""

    def __init__(self, *members: Any):
        super().__init__(ctypes.sizeof(self), *members)


class Data(_Sized):
    _fields_ = [("size", c_size_t), ("x", c_void_p), ("y", c_void_p), ("pairs", c_void_p),
                ("groups", c_void_p)]


class View(_Sized):
    _fields_ = [("size", c_size_t), ("rows", c_void_p), ("model", c_void_p),
                ("balance", c_void_p), ("side", c_int), ("form", c_int)]


class MigrationData(_Sized):
    _fields_ = [("size", c_size_t), ("old_rows", c_void_p), ("new_rows", c_void_p), ("queries_old", c_void_p),
                ("queries_new", c_void_p), ("judgements", c_void_p)]


class Memory(_Sized):
    """unicon_memory."""

    _fields_ = [("size", c_size_t), ("data", c_void_p), ("rows", c_int64), ("cols", c_int64),
                ("row_stride", c_int64), ("col_stride", c_int64), ("stream", c_uint64),
                ("dtype", c_int), ("kind", c_int), ("number", c_int), ("reserved", c_int)]


class Device(Structure):
    """unicon_device."""

    _fields_ = [("name", c_char * 24), ("text", c_char * 256), ("usable", c_int), ("chosen", c_int)]


def _open() -> ctypes.CDLL:
    path = os.environ.get("UNICON_LIBRARY") or Path(__file__).with_name("libunicon.so")
    if not os.path.exists(path):
        raise ImportError(f"the C library is not there: {path}. Install the package with "
                          "`pip install .`, or set UNICON_LIBRARY to a libunicon.so")
    with _fast_kernels():
        return ctypes.CDLL(os.fspath(path))


@contextlib.contextmanager
def _fast_kernels() -> Iterator[None]:
    """OpenBLAS chooses its kernels when it is loaded, and takes processors that are newer than itself
    for old ones. Where there is AVX-512 it is told so, unless OPENBLAS_CORETYPE says something."""
    needed = {"avx512f", "avx512dq", "avx512bw", "avx512vl"}
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    tell = needed <= flags and "OPENBLAS_CORETYPE" not in os.environ
    if tell:
        os.environ["OPENBLAS_CORETYPE"] = "SKYLAKEX"
    try:
        yield
    finally:
        if tell:
            del os.environ["OPENBLAS_CORETYPE"]


def _plugins() -> str:
    """The folder in which plugins of devices are looked for first: that of UNICON_DEVICES, or of a
    wheel with one, which is not imported. "": beside the library."""
    if "UNICON_DEVICES" in os.environ:
        return os.environ["UNICON_DEVICES"]
    for name in ("unicon_cuda13", "unicon_cuda12"):
        found = importlib.util.find_spec(name)
        if found and found.submodule_search_locations:
            return str(found.submodule_search_locations[0])
    return ""


lib = _open()
FOLDER = _plugins()

_out = POINTER(c_void_p)
_text_out = POINTER(c_char_p)
_handle = c_void_p
# Functions that return a status; the context comes first.
_status_functions: dict[str, list[Any]] = {
    "ctx_set": [c_char_p, c_char_p],
    "options_create": [_out],
    "options_set": [_handle, c_char_p, c_char_p],
    "rows_open": [c_char_p, _out],
    "rows_read": [_handle, c_int64, c_int64, c_void_p],
    "rows_wrap_memory": [c_char_p, POINTER(Memory), _out],
    "embed_memory": [_handle, c_int, c_int, c_char_p, POINTER(Memory), POINTER(Memory)],
    "room_create": [c_int64, c_int64, _out],
    "memory_kind": [POINTER(c_int)],
    "device_folder": [c_char_p],
    "devices": [POINTER(Device), c_size_t, POINTER(c_size_t)],
    "rows_wrap": [c_char_p, c_void_p, c_int, c_int64, c_int64, c_int64, c_int64, _out],
    "pairs_identity": [c_int64, c_int64, _out],
    "pairs_per_x": [c_int64, c_int64, c_int64, _out],
    "pairs_per_y": [c_int64, c_int64, c_int64, _out],
    "pairs_list": [c_int64, c_int64, c_void_p, c_void_p, c_void_p, c_int64, _out],
    "pairs_labels": [c_void_p, c_int64, c_void_p, c_int64, _out],
    "pairs_labels_part": [c_void_p, c_int64, c_void_p, c_int64, _out],
    "pairs_one_set": [c_void_p, c_int64, _out],
    "pairs_read": [c_char_p, c_int64, c_int64, _out],
    "pairs_read_labels": [c_char_p, c_char_p, c_int64, c_int64, _out],
    "pairs_read_labels_part": [c_char_p, c_char_p, c_int64, c_int64, _out],
    "pairs_set_ignored": [_handle, c_void_p, c_void_p, c_void_p, c_int64],
    "pairs_set_negatives": [_handle, c_void_p, c_void_p, c_void_p, c_int64],
    "pairs_read_ignored": [_handle, c_char_p],
    "pairs_read_negatives": [_handle, c_char_p],
    "fit": [POINTER(Data), POINTER(Data), _handle, _out],
    "model_save": [_handle, c_char_p],
    "model_load": [c_char_p, _out],
    "model_to_bytes": [_handle, c_void_p, c_size_t, POINTER(c_size_t)],
    "model_from_bytes": [c_void_p, c_size_t, _out],
    "model_rebalance": [_handle, POINTER(Data), _handle, _out],
    "balance_create": [_handle, _handle, _handle, _handle, _out],
    "embed": [POINTER(View), c_int64, c_int64, c_int, c_void_p],
    "search": [POINTER(View), POINTER(View), c_int64, c_void_p, c_void_p],
    "evaluate": [POINTER(View), POINTER(View), _handle, _handle, _out],
    "migrate": [POINTER(MigrationData), _handle, _out],
    "model_calibrate": [_handle, c_int, c_int64, c_void_p],
    "model_check_rows": [_handle, c_int, _handle],
    "rewrite": [POINTER(View), c_int64, c_int64, c_int, c_int, c_char_p, _handle,
                POINTER(c_int64)],
    "vectors_check": [c_char_p],
    "vectors_match": [c_char_p, _handle, POINTER(c_int)],
    "stats_create": [POINTER(Data), _handle, _out],
    "stats_create_like": [_handle, _out],
    "stats_create_from_model": [_handle, _handle, _out],
    "stats_add": [_handle, POINTER(Data), _handle],
    "stats_remove": [_handle, POINTER(Data), _handle, _out],
    "stats_merge": [_handle, _handle],
    "stats_subtract": [_handle, _handle, _out],
    "stats_decay": [_handle, c_double],
    "stats_save": [_handle, c_char_p],
    "stats_load": [c_char_p, _out],
    "stats_to_bytes": [_handle, c_void_p, c_size_t, POINTER(c_size_t)],
    "stats_from_bytes": [c_void_p, c_size_t, _out],
    "stats_describe": [_handle, _out],
    "stats_plan": [_handle, _handle, _out],
    "stats_fit": [_handle, POINTER(Data), _handle, _out],
    "ranks": [POINTER(View), POINTER(View), _handle, c_void_p, c_void_p],
    "hubs": [POINTER(View), POINTER(View), _handle, _out, _out],
    "weights": [POINTER(View), POINTER(View), _handle, _handle, c_void_p, c_void_p, c_void_p],
    "classify": [POINTER(View), c_void_p, POINTER(View), c_void_p, _out],
    "probe": [POINTER(View), c_void_p, POINTER(View), c_void_p, _handle, _out],
    "split_make": [POINTER(Data), c_double, _handle, _out],
    "check": [POINTER(Data), _handle, c_int64, _out],
    "plan": [POINTER(Data), _handle, _out],
    "synth": [c_char_p, _handle, c_int64, c_int64, c_int64, c_int64, c_void_p, c_void_p, c_void_p],
}
_other_functions: dict[str, tuple[Any, list[Any]]] = {
    "version": (c_char_p, []),
    "build_info": (c_char_p, []),
    "status_name": (c_char_p, [c_int]),
    "ctx_create": (c_int, [_out]),
    "ctx_destroy": (None, [_handle]),
    "room_memory": (None, [_handle, POINTER(Memory)]),
    "room_destroy": (None, [_handle]),
    "ctx_error": (c_char_p, [_handle]),
    "ctx_memory_peak": (c_uint64, [_handle]),
    "ctx_set_log": (None, [_handle, LOG_FUNCTION, c_void_p]),
    "ctx_set_progress": (None, [_handle, PROGRESS_FUNCTION, c_void_p]),
    "option_count": (c_size_t, []),
    "option_at": (POINTER(OptionInfo), [c_size_t]),
    "options_get": (c_char_p, [_handle, c_char_p]),
    "options_destroy": (None, [_handle]),
    "preset_at": (c_int, [c_char_p, c_size_t, _text_out, _text_out]),
    "rows_close": (None, [_handle]),
    "rows_count": (c_int64, [_handle]),
    "rows_width": (c_int64, [_handle]),
    "pairs_destroy": (None, [_handle]),
    "pairs_count": (c_int64, [_handle]),
    "label_number": (c_int64, [c_char_p]),
    "split_destroy": (None, [_handle]),
    "split_part": (POINTER(Data), [_handle, c_int]),
    "split_rows": (POINTER(c_int64), [_handle, c_int, c_int]),
    "balance_destroy": (None, [_handle]),
    "balance_text": (c_char_p, [_handle]),
    "balance_rows": (c_int64, [_handle, c_int]),
    "form_width": (c_int64, [c_int64, c_int]),
    "synth_width": (c_int64, [c_char_p, _handle, c_int]),
    "model_destroy": (None, [_handle]),
    "model_rank": (c_int64, [_handle]),
    "model_width": (c_int64, [_handle, c_int]),
    "model_spectrum": (POINTER(c_float), [_handle]),
    "model_meta": (c_char_p, [_handle, c_char_p]),
    "model_meta_at": (c_int, [_handle, c_size_t, _text_out, _text_out]),
    "result_destroy": (None, [_handle]),
    "result_name": (c_char_p, [_handle, c_size_t]),
    "result_kind": (c_int, [_handle, c_char_p]),
    "result_number": (c_int, [_handle, c_char_p, POINTER(c_double)]),
    "result_text": (c_char_p, [_handle, c_char_p]),
    "result_integers": (POINTER(c_int64), [_handle, c_char_p, POINTER(c_int64), POINTER(c_int64)]),
    "result_reals": (POINTER(c_double), [_handle, c_char_p, POINTER(c_int64), POINTER(c_int64)]),
    "model_id": (None, [_handle, c_char_p]),
    "embed_one_room": (c_int64, [_handle, c_int]),
    "embed_one": (c_int, [_handle, c_int, c_void_p, c_void_p, c_void_p]),
    "stats_destroy": (None, [_handle]),
    "migration_destroy": (None, [_handle]),
    "migration_model": (c_void_p, [_handle]),
    "migration_json": (c_char_p, [_handle]),
}


def _declare() -> None:
    for name, arguments in _status_functions.items():
        function = getattr(lib, "unicon_" + name)
        function.restype = c_int
        function.argtypes = [_handle, *arguments]
    for name, (result, arguments) in _other_functions.items():
        function = getattr(lib, "unicon_" + name)
        function.restype = result
        function.argtypes = arguments


_declare()


def text(value: bytes | None) -> str:
    """Text of the library."""
    return (value or b"").decode("utf-8", "replace")


class Handle:
    """Owns one object of the library and frees it once; keeps alive what the object borrows."""

    def __init__(self, pointer: c_void_p, destroy: Callable[[c_void_p], None], keep: Any = None):
        self.pointer = pointer
        self._keep = keep
        self._free = weakref.finalize(self, destroy, pointer)

    def _end(self) -> None:
        self._free()
        self._keep = None
