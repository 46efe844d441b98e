# SPDX-License-Identifier: Apache-2.0
"""One call into the library: a context of its own, the options, log, progress and Ctrl-C.

A context belongs to one thread, so each call makes one; rows, pairs and models are immutable and
may be shared. That is all there is to thread safety here.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import threading
import warnings
from typing import Any, Callable, Iterator, Mapping, Optional, Union

from ._library import (FOLDER, LOG_FUNCTION, PROGRESS_FUNCTION, SCOPE_CONTEXT, Handle, lib, text)
from ._options import TABLE, as_text, names_of, unknown
from .errors import ArgumentError, OptionError, UniconWarning, error_of, refuse_nul

Progress = Union[None, bool, Callable[[str, float, Optional[float]], Any]]
"""None: silent. True: a tqdm bar. A callable gets what is being done, the share of the whole call
that is done, and the seconds left, None while that is not known; a true answer cancels."""

_logger = logging.getLogger("unicon")
_no_progress = PROGRESS_FUNCTION()
_no_log = LOG_FUNCTION()


class _Bar:
    """A tqdm bar for the whole call."""

    def __init__(self, tqdm: Any):
        self._bar = tqdm(total=100, unit="%", leave=False)

    def __call__(self, label: str, done: float, left: Optional[float]) -> bool:
        self._bar.set_description(label, refresh=False)
        self._bar.n = round(100 * done)
        self._bar.refresh()
        return False

    def close(self) -> None:
        self._bar.close()


def listener_of(progress: Progress) -> Optional[Callable[[str, float, Optional[float]], Any]]:
    if progress is None or progress is False:
        return None
    if hasattr(progress, "format_meter"):  # the class tqdm itself, or one like it
        return _Bar(progress)
    if progress is not True:
        if not callable(progress):
            raise ArgumentError(f"progress is {progress!r}; accepted: None, True (a bar of tqdm) "
                                "or a function of a label, the share done and the seconds left")
        return progress
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ArgumentError("progress=True needs the package tqdm: pip install tqdm, or give a "
                            "function of a label, the share done and the seconds left") from None
    return _Bar(tqdm)


class Call:
    """`with Call(options, scope) as call:` sets the given options; `call(name, ...)` calls
    unicon_NAME and raises what went wrong; objects made inside end with the block."""

    def __init__(self, given: Mapping[str, Any], scope: int, progress: Progress = None):
        self._given = {name: value for name, value in given.items() if value is not None}
        self._scope = scope | SCOPE_CONTEXT
        self._progress = progress
        self._stack = contextlib.ExitStack()
        self._raised: Optional[BaseException] = None
        self._warnings: list[str] = []
        self.options: Optional[ctypes.c_void_p] = None

    def __enter__(self) -> Call:
        with contextlib.ExitStack() as stack:
            out = ctypes.c_void_p()
            status = lib.unicon_ctx_create(ctypes.byref(out))
            if status:
                raise error_of(status, "there is no memory for a context")
            self._ctx = out
            stack.callback(lib.unicon_ctx_destroy, out)
            if FOLDER:
                self("device_folder", os.fsencode(FOLDER))
            self.options = self.make("options_create", lib.unicon_options_destroy, stack=stack)
            for name, value in self._given.items():
                self._set(name, value)
            self._listener = listener_of(self._progress)
            close = getattr(self._listener, "close", None)
            if close:
                stack.callback(close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()
        self._listener = None
        for sentence in self._warnings:
            warnings.warn(sentence, UniconWarning, stacklevel=4)

    def _set(self, name: str, value: Any) -> None:
        option = TABLE.get(name)
        if not option:
            raise unknown(name)
        if not option.scope & self._scope:
            raise OptionError(f"{name} has no effect here; accepted: "
                              + ", ".join(names_of(self._scope)))
        self.set(name, value)

    def set(self, name: str, value: Any) -> None:
        """Sets an option, whatever its scope."""
        value, option = as_text(value), TABLE.get(name)
        refuse_nul(value, name)
        encoded = value.encode("utf-8", "surrogateescape")
        if option and option.scope & SCOPE_CONTEXT:
            self("ctx_set", name.encode(), encoded)
        else:
            self("options_set", self.options, name.encode(), encoded)

    def __call__(self, function: str, *arguments: Any) -> None:
        """Calls unicon_FUNCTION(ctx, ...). Text for C ends at a NUL, so none may be inside it."""
        for argument in arguments:
            if isinstance(argument, bytes):
                refuse_nul(argument)
        status = getattr(lib, "unicon_" + function)(self._ctx, *arguments)
        if self._raised is not None:
            raise self._raised
        if status:
            raise error_of(status, text(lib.unicon_ctx_error(self._ctx)))

    def make(self, function: str, destroy: Callable[[Any], Any], *arguments: Any, keep: Any = None,
             stack: Optional[contextlib.ExitStack] = None) -> ctypes.c_void_p:
        """Calls a function whose last argument receives a new object, which ends with the block."""
        out = ctypes.c_void_p()
        self(function, *arguments, ctypes.byref(out))
        (stack or self._stack).callback(Handle(out, destroy, keep)._end)
        return out

    def given(self, name: str) -> Any:
        """The value that the caller gave an option, or None."""
        return self._given.get(name)

    def value(self, name: str) -> str:
        """The value in force of an option."""
        return text(lib.unicon_options_get(self.options, name.encode()))

    def memory_peak(self) -> int:
        return int(lib.unicon_ctx_memory_peak(self._ctx))

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Log, progress and Ctrl-C are heard inside this block."""
        log, progress = LOG_FUNCTION(self._on_log), PROGRESS_FUNCTION(self._on_progress)
        lib.unicon_ctx_set_log(self._ctx, log, None)
        lib.unicon_ctx_set_progress(self._ctx, progress, None)
        restore = self._catch_interrupt()
        try:
            yield
        finally:
            restore()
            lib.unicon_ctx_set_log(self._ctx, _no_log, None)
            lib.unicon_ctx_set_progress(self._ctx, _no_progress, None)
        if self._raised is not None:  # it came after the last progress
            raise self._raised

    def _catch_interrupt(self) -> Callable[[], Any]:
        """While the library runs, what the handler of SIGINT raises is kept, the next progress call
        cancels, and then it is raised. An exception inside a ctypes callback would be lost."""
        if threading.current_thread() is not threading.main_thread():
            return lambda: None
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):
            return lambda: None

        def keep(number: int, frame: Any) -> None:
            try:
                handler(number, frame)
            except BaseException as error:  # noqa: BLE001: raised again after the call
                self._raised = error

        signal.signal(signal.SIGINT, keep)
        return lambda: signal.signal(signal.SIGINT, handler)

    def _on_log(self, _user: Any, level: int, sentence: bytes) -> None:
        if level == 0:
            self._warnings.append(text(sentence))
        else:
            _logger.log(logging.INFO if level == 1 else logging.DEBUG, "%s", text(sentence))

    def _on_progress(self, _user: Any, label: bytes, done: float, left: float) -> int:
        if self._raised is None and self._listener is not None:
            try:
                return bool(self._listener(text(label), done, left if left >= 0 else None))
            except BaseException as error:  # noqa: BLE001: raised again after the call
                self._raised = error
        return self._raised is not None
