# SPDX-License-Identifier: Apache-2.0
"""Results as frames of pandas or polars, as scikit-learn's set_output asks."""

from __future__ import annotations

import sys
from typing import Any, Optional

import numpy as np

from .errors import ArgumentError

KINDS = ("default", "pandas", "polars")


def wanted(own: Optional[str]) -> str:
    """What an estimator was told, or else scikit-learn as a whole."""
    if own is None and "sklearn" in sys.modules:
        import sklearn

        own = sklearn.get_config().get("transform_output", "default")
    return own or "default"


def check_kind(kind: Any) -> None:
    if kind is not None and kind not in KINDS:
        raise ArgumentError(f"transform is {kind!r}; accepted: " + ", ".join(KINDS))


def as_frame(kind: str, rows: np.ndarray, names: list[str], like: Any) -> Any:
    """The rows in the wanted form; a frame of pandas keeps the index of what it was made from."""
    if kind == "pandas":
        import pandas

        return pandas.DataFrame(rows, columns=names, index=getattr(like, "index", None)
                                if hasattr(like, "iloc") else None)
    if kind == "polars":
        import polars

        return polars.DataFrame(rows, schema=names, orient="row")
    return rows
