# SPDX-License-Identifier: Apache-2.0
"""Statistics: sums of rows and pairs that can be added to, taken from and merged."""

from __future__ import annotations

import ctypes
import inspect
import os
from typing import Any, Mapping, Optional

from ._call import Call, Progress
from ._library import SCOPE_CONTEXT, SCOPE_FIT, SCOPE_STATS, Data, Handle, lib
from ._options import describe, names_of
from ._pairs import Pairs, of_part, with_labels
from ._result import read_result
from ._rows import Matrix, open_rows
from .errors import ArgumentError, OptionError
from .model import Model, PathLike, open_data

_OPTIONS = names_of(SCOPE_STATS | SCOPE_CONTEXT)


class Stats:
    # The docstring is completed below from the option table.
    """All that the closed form needs of rows and pairs, as sums.

    Statistics of parts, made anywhere, add up to those of the whole: `a + b`, `sum(parts)`. Rows
    that were added can be taken away again (`revert`), which gives a certificate. Pickles and files
    (`save`, `load`) carry them between processes and machines. `fit`, or `Aligner.fit_from`, makes
    the model.

    With the linear kernel nothing has to be agreed on. With another one all parts need the same
    landmarks (or random directions): `Stats.maps(X, Y, kernel="rbf")` chooses them once, and
    `maps.empty()` begins a part.

    All partners of a row must come in one `update`, but rows with labels (`("labels", lx, ly)`, the
    same integers or texts everywhere) add up in any split. Ignored pairs are not taken. An object
    is used by one thread at a time.

    Parameters
    ----------
{options}

    Examples
    --------
    >>> import unicon
    >>> X, Y, _ = unicon.synth("linear", 600)
    >>> parts = [unicon.Stats().update(X[i:i + 200], Y[i:i + 200]) for i in (0, 200, 400)]
    >>> model = sum(parts).fit(preset="fast", rank=8)
    >>> model.embed(X, "x").shape
    (600, 8)
    """

    def __init__(self, **options: Any):
        for name in options:
            if name not in _OPTIONS:
                raise OptionError(f"{name} is no option of statistics; accepted: "
                                  + ", ".join(_OPTIONS))
        self._options = {name: value for name, value in options.items() if value is not None}
        self._handle: Optional[Handle] = None

    # ---- making ----

    @classmethod
    def _of(cls, pointer: ctypes.c_void_p, options: Mapping[str, Any]) -> Stats:
        made = cls.__new__(cls)
        made._options = dict(options)
        made._handle = Handle(pointer, lib.unicon_stats_destroy)
        return made

    @classmethod
    def maps(cls, X: Matrix, Y: Matrix, **options: Any) -> Stats:
        """Empty statistics with the maps that these rows give; the rows are not added."""
        made = cls(**options)
        with Call(made._options, SCOPE_STATS) as call:
            made._create(call, Data(open_rows(call, "X", X), open_rows(call, "Y", Y), None, None))
        return made

    @classmethod
    def from_model(cls, model: Model, **options: Any) -> Stats:
        """Empty statistics with the maps of a model."""
        made = cls(**options)
        with Call(made._options, SCOPE_STATS) as call:
            out = ctypes.c_void_p()
            call("stats_create_from_model", model.pointer, call.options, ctypes.byref(out))
            made._handle = Handle(out, lib.unicon_stats_destroy)
        return made

    def empty(self) -> Stats:
        """Empty statistics with the maps of these, which can be merged with them."""
        if self._handle is None:
            return Stats(**self._options)
        out = ctypes.c_void_p()
        with Call(self._context(), SCOPE_CONTEXT) as call:
            call("stats_create_like", self.pointer, ctypes.byref(out))
        return Stats._of(out, self._options)

    def _create(self, call: Call, data: Any) -> None:
        out = ctypes.c_void_p()
        call("stats_create", ctypes.byref(data), call.options, ctypes.byref(out))
        self._handle = Handle(out, lib.unicon_stats_destroy)

    def _context(self) -> dict[str, Any]:
        return {name: value for name, value in self._options.items()
                if name in names_of(SCOPE_CONTEXT)}

    @property
    def pointer(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise ArgumentError("these statistics are empty, and without maps: call update first")
        return self._handle.pointer

    # ---- adding and taking away ----

    def update(self, X: Matrix, Y: Matrix, pairs: Pairs = None, weights: Any = None, *,
               labels: Any = None, progress: Progress = None) -> Stats:
        """Adds rows and their pairs, as `Aligner.fit` takes them. The first rows decide the maps,
        unless these are there. A failure changes nothing."""
        with Call(self._options, SCOPE_STATS, progress) as call:
            data, keep = open_data(call, X, Y, of_part(with_labels(pairs, labels)), weights)
            fresh = self._handle is None
            if fresh:
                self._create(call, data)
            try:
                with call.listening():
                    call("stats_add", self.pointer, ctypes.byref(data), call.options)
            except BaseException:
                if fresh:
                    self._handle = None
                raise
            del keep
        return self

    def revert(self, X: Matrix, Y: Matrix, pairs: Pairs = None, weights: Any = None, *,
               labels: Any = None, drop_landmarks: bool = False,
               progress: Progress = None) -> dict[str, Any]:
        """Takes rows and pairs away that were added before, and returns the certificate: what was
        removed, how that was checked, a bound of what rounding leaves of it, and what else has seen
        the rows (docs/many-machines.md)."""
        options = {**self._options, "drop_landmarks": drop_landmarks}
        with Call(options, SCOPE_STATS, progress) as call:
            data, keep = open_data(call, X, Y, of_part(with_labels(pairs, labels)), weights)
            with call.listening():
                certificate = read_result(call, "stats_remove", self.pointer, ctypes.byref(data),
                                          call.options)
            del keep
        return certificate

    def decay(self, keep: float) -> Stats:
        """Lets what was added so far count `keep` times as much, for data that drift. Nothing can
        be taken away afterwards."""
        with Call(self._context(), SCOPE_CONTEXT) as call:
            call("stats_decay", self.pointer, float(keep))
        return self

    # ---- sums ----

    def copy(self) -> Stats:
        """The same statistics, on their own."""
        return self.empty() if self._handle is None else _restore(self._options, self.to_bytes())

    def __iadd__(self, other: Stats) -> Stats:
        if not isinstance(other, Stats):
            return NotImplemented
        if other._handle is None:
            return self
        if self._handle is None:
            self._handle = other.copy()._handle
            return self
        with Call(self._context(), SCOPE_CONTEXT) as call:
            call("stats_merge", self.pointer, other.pointer)
        return self

    def __add__(self, other: Stats) -> Stats:
        if not isinstance(other, Stats):
            return NotImplemented
        total = self.copy()
        total += other
        return total

    def __radd__(self, other: Any) -> Stats:
        return self.copy() if isinstance(other, int) and other == 0 else NotImplemented

    def __isub__(self, other: Stats) -> Stats:
        if not isinstance(other, Stats):
            return NotImplemented
        with Call(self._context(), SCOPE_CONTEXT) as call:
            read_result(call, "stats_subtract", self.pointer, other.pointer)
        return self

    def __sub__(self, other: Stats) -> Stats:
        if not isinstance(other, Stats):
            return NotImplemented
        rest = self.copy()
        rest -= other
        return rest

    # ---- looking ----

    @property
    def info(self) -> dict[str, Any]:
        """Rows, pairs, maps, sample: as `unicon info --json` prints it."""
        with Call(self._context(), SCOPE_CONTEXT) as call:
            return read_result(call, "stats_describe", self.pointer)

    def __repr__(self) -> str:
        if self._handle is None:
            return "Stats()"
        about = self.info
        return (f"Stats(rows_x={about['rows_x']:g}, rows_y={about['rows_y']:g}, "
                f"pairs={about['pairs']:g})")

    # ---- files ----

    def save(self, path: PathLike) -> None:
        """Writes one .stats file, whole or not at all."""
        with Call(self._context(), SCOPE_CONTEXT) as call:
            call("stats_save", self.pointer, os.fsencode(path))

    @classmethod
    def load(cls, path: PathLike, **options: Any) -> Stats:
        """Reads a file. Options: threads, max_mem."""
        out = ctypes.c_void_p()
        with Call(options, SCOPE_CONTEXT) as call:
            call("stats_load", os.fsencode(path), ctypes.byref(out))
        return cls._of(out, options)

    def to_bytes(self) -> bytes:
        """The content of the file."""
        size = ctypes.c_size_t()
        with Call(self._context(), SCOPE_CONTEXT) as call:
            call("stats_to_bytes", self.pointer, None, 0, ctypes.byref(size))
            content = ctypes.create_string_buffer(size.value)
            call("stats_to_bytes", self.pointer, content, size, ctypes.byref(size))
        return content.raw

    @classmethod
    def from_bytes(cls, content: bytes) -> Stats:
        """Statistics from the content of their file."""
        out, size = ctypes.c_void_p(), len(content)
        with Call({}, SCOPE_CONTEXT) as call:
            call("stats_from_bytes", (ctypes.c_char * size).from_buffer_copy(content), size,
                 ctypes.byref(out))
        return cls._of(out, {})

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._options, None if self._handle is None else self.to_bytes())

    # ---- a model ----

    def plan(self, **options: Any) -> dict[str, Any]:
        """What fit(**options) will take: memory (bytes), seconds, flops, a sentence of advice."""
        with Call({**self._context(), **options}, SCOPE_FIT) as call:
            return read_result(call, "stats_plan", self.pointer, call.options)

    def fit(self, validation: Any = None, *, progress: Progress = None, **options: Any) -> Model:
        """The model of what was added. Options are those of Aligner, without what needs the rows
        (iterations, refine, batch, start). `validation`: (X, Y) or (X, Y, pairs), or a dict as in
        Aligner.fit, to choose on; left out, rows of the sample are taken out of the sums for it."""
        out = ctypes.c_void_p()
        with Call({**self._context(), **options}, SCOPE_FIT, progress) as call:
            held, keep = open_data(call, **validation) if isinstance(validation, Mapping) else \
                open_data(call, *validation) if validation is not None else (None, None)
            with call.listening():
                try:
                    call("stats_fit", self.pointer, held and ctypes.byref(held), call.options,
                         ctypes.byref(out))
                finally:
                    model = Model(out)
            del keep
        return model


def _restore(options: Mapping[str, Any], content: Optional[bytes]) -> Stats:
    if content is None:
        return Stats(**options)
    made = Stats.from_bytes(content)
    made._options = dict(options)
    return made


Stats.__doc__ = inspect.cleandoc(Stats.__doc__ or "").format(
    options=describe(SCOPE_STATS, chosen=False))
