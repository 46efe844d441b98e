# SPDX-License-Identifier: Apache-2.0
"""The library's statuses as exceptions. The text is the library's own sentence.

Every class is a UniconError with the status as `.status`, and also the built-in exception a Python
user would expect.
"""

from __future__ import annotations

import sys
from typing import Any, Optional


class UniconError(Exception):
    """Anything that went wrong in the library."""

    status: int = -1
    certificate: Optional[dict[str, Any]] = None
    """Of Aligner.forget, where the rows were removed, but no model could be fitted any more."""


class UniconWarning(UserWarning):
    """Something the library thinks you should know: an option without effect, a fallback."""


class ArgumentError(UniconError, ValueError):
    """A meaningless argument of a call."""

    status = 1


class OptionError(UniconError, ValueError):
    """An unknown option, or a value out of its bounds."""

    status = 2


class ShapeError(UniconError, ValueError):
    """Matrices that do not fit each other or the model."""

    status = 3


class DataError(UniconError, ValueError):
    """Values that cannot be used: not finite, all-zero rows, too few."""

    status = 4


class PairsError(UniconError, ValueError):
    """A pair out of range, listed twice, or positive and ignored."""

    status = 5


class MemoryLimitError(UniconError, MemoryError):
    """Out of memory, or the limit max_mem is too low."""

    status = 10


class FileError(UniconError, OSError):
    """A file cannot be opened, read, written or renamed."""

    status = 20


class FormatError(UniconError, ValueError):
    """A file is not what its name or header says."""

    status = 21


class NumericError(UniconError, ArithmeticError):
    """A factorisation failed for good."""

    status = 30


class CancelledError(UniconError):
    """The progress callback asked to stop."""

    status = 40


class UnsupportedError(UniconError, NotImplementedError):
    """A combination that is not built."""

    status = 50


class DeviceError(UniconError, RuntimeError):
    """A device is absent, unusable, or failed."""

    status = 60


class NotFittedError(ArgumentError, AttributeError):
    """A method that needs a model was called before fit or load."""


_classes = {
    cls.status: cls
    for cls in (ArgumentError, OptionError, ShapeError, DataError, PairsError, MemoryLimitError,
                FileError, FormatError, NumericError, CancelledError, UnsupportedError,
                DeviceError)
}


def error_of(status: int, sentence: str) -> UniconError:
    """The exception of a status."""
    cls = _classes.get(status)
    if cls:
        return cls(sentence)
    error = UniconError(sentence)
    error.status = status
    return error


def refuse_nul(text: str | bytes, name: str = "the name or path") -> None:
    """C would take the text up to the NUL and leave out the rest without a word."""
    if "\0" in text if isinstance(text, str) else b"\0" in text:
        raise ArgumentError(f"{name} is {text!r}; accepted: text without NUL characters")


def not_fitted(name: str) -> NotFittedError:
    """Also scikit-learn's NotFittedError, where scikit-learn is in use."""
    sentence = f"this {name} has no model yet: call fit, or {name}.load"
    if "sklearn" not in sys.modules:
        return NotFittedError(sentence)
    from sklearn.exceptions import NotFittedError as TheirError

    both: type[NotFittedError] = type("NotFittedError", (NotFittedError, TheirError), {})
    return both(sentence)
