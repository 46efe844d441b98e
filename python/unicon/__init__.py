# SPDX-License-Identifier: Apache-2.0
"""unicon: contrastive alignment of two sets of embeddings by closed forms.

The default, preset auto, chooses between closed forms on held-out pairs and refines the best where
that helps; preset fast is one closed form alone.

    import unicon
    aligner = unicon.Aligner().fit(images, texts, pairs=5)   # five texts per image
    aligner.evaluate(test_images, test_texts, pairs=5)
    aligner.transform_x(new_images)
    aligner.save("model.safetensors")

A thin layer over the C library: options, defaults, bounds and error sentences are the library's.
"""

from __future__ import annotations

from ._call import Progress
from ._library import lib as _lib
from ._library import text as _text
from ._options import TABLE as _TABLE
from ._options import Option, presets
from ._pairs import Pairs
from ._rows import Matrix, clip_retrieval
from .aligner import Aligner
from .errors import (ArgumentError, CancelledError, DataError, DeviceError, FileError, FormatError,
                     MemoryLimitError, NotFittedError, NumericError, OptionError, PairsError,
                     ShapeError, UniconError, UniconWarning, UnsupportedError)
from .migration import Migration
from .model import Model, check, evaluate, plan, search, synth

__version__ = _text(_lib.unicon_version())


def build_info() -> str:
    """What runs underneath: BLAS with its kernel, and the SIMD level in use."""
    return _text(_lib.unicon_build_info())


def options() -> list[Option]:
    """The option table of the library."""
    return list(_TABLE.values())


__all__ = [
    "Aligner", "ArgumentError", "CancelledError", "DataError", "DeviceError", "FileError",
    "FormatError", "Matrix", "MemoryLimitError", "Migration", "Model", "NotFittedError",
    "NumericError", "Option", "OptionError", "Pairs", "PairsError", "Progress", "ShapeError",
    "UniconError", "UniconWarning", "UnsupportedError", "build_info", "check", "clip_retrieval",
    "evaluate", "options", "plan", "presets", "search", "synth",
]
