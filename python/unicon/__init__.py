# SPDX-License-Identifier: Apache-2.0
"""unicon: contrastive alignment of two sets of embeddings by closed forms.

The default, preset auto, chooses between closed forms on held-out pairs and refines the best where
that helps; preset fast is the closed form alone.

    import unicon
    aligner = unicon.Aligner().fit(images, texts, pairs=5)   # five texts per image
    aligner.evaluate(test_images, test_texts, pairs=5)
    aligner.transform_x(new_images)
    aligner.save("model.safetensors")

A thin layer over the C library: options, defaults, bounds and error sentences are the library's.
"""

from __future__ import annotations

from ._call import Progress
from ._files import Folder, clip_retrieval, open_folder
from ._library import lib as _lib
from ._library import text as _text
from ._options import TABLE as _TABLE
from ._options import Option, presets
from ._pairs import Pairs
from ._devices import devices
from ._result import Evaluation
from ._room import DeviceArray
from ._rows import Matrix, read_rows
from ._split import Items, Paired, Part, Split, paired, split
from ._tool import command, compare, report
from .aligner import Aligner
from .errors import (ArgumentError, CancelledError, DataError, DeviceError, FileError, FormatError,
                     MemoryLimitError, NotFittedError, NumericError, OptionError, PairsError,
                     ShapeError, UniconError, UniconWarning, UnsupportedError)
from .migration import Migration
from .model import Model, check, classify, evaluate, plan, probe, search, synth, weights
from .stats import Stats

__version__ = _text(_lib.unicon_version())


def build_info() -> str:
    """What runs underneath: BLAS with its kernel, and the SIMD level in use."""
    return _text(_lib.unicon_build_info())


def options() -> list[Option]:
    """The option table of the library."""
    return list(_TABLE.values())


__all__ = [
    "Aligner", "ArgumentError", "CancelledError", "DataError", "DeviceArray", "DeviceError", "Evaluation", "FileError", "Folder", "FormatError",
    "Items", "Matrix", "MemoryLimitError", "Migration", "Model", "NotFittedError", "NumericError",
    "Option", "OptionError", "Paired", "Pairs", "PairsError", "Part", "Progress", "ShapeError",
    "Split", "Stats", "UniconError", "UniconWarning", "UnsupportedError", "build_info", "check",
    "classify", "clip_retrieval", "command", "compare", "devices", "evaluate", "open_folder", "options", "paired", "plan",
    "presets", "probe", "read_rows", "report", "search", "split", "synth", "weights",
]
