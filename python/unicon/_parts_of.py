# SPDX-License-Identifier: Apache-2.0
"""Statistics of parts on other processes: what the bindings of engines have in common."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional

import numpy as np

from ._library import SCOPE_CONTEXT, SCOPE_STATS
from ._options import TABLE, names_of
from .errors import DataError, UniconError, error_of
from .stats import Stats


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those of statistics and those of the fit; some are both. A part runs on one thread unless
    `threads` says otherwise: the engine runs parts side by side."""
    for_stats = {name: value for name, value in options.items()
                 if name in TABLE and TABLE[name].scope & (SCOPE_STATS | SCOPE_CONTEXT)}
    only_stats = {name for name in for_stats if not TABLE[name].scope & ~SCOPE_STATS}
    for_stats.setdefault("threads", 1)
    return for_stats, {name: value for name, value in options.items() if name not in only_stats}


def has_maps_to_share(options: Mapping[str, Any]) -> bool:
    """Do parts have to agree on landmarks or a width?"""
    return any(options.get(name, "linear") not in ("linear", "same", None)
               for name in ("kernel", "kernel_x", "kernel_y"))


def matrix(block: Any) -> np.ndarray:
    """Rows of a block: of an array, of a frame of numbers, of a column of vectors."""
    if hasattr(block, "to_numpy"):  # pandas, also of one column
        block = block.to_numpy()
    rows: np.ndarray = np.asarray(block)
    if rows.ndim == 2 and rows.shape[1] == 1 and rows.dtype == object:
        rows = rows[:, 0]
    if rows.dtype == object:
        if rows.size == 0:
            raise DataError("a part has no rows")
        rows = np.stack([np.asarray(row) for row in rows])
    return rows


def begin(options: Mapping[str, Any], maps: Optional[bytes]) -> Stats:
    """Empty statistics of a part. Maps that are shared settle the options about them; the others
    are those of the part."""
    if not maps:
        return Stats(**options)
    part = Stats.from_bytes(maps).empty()
    part._options = {name: value for name, value in options.items()
                     if name == "bad_rows" or name in names_of(SCOPE_CONTEXT)}
    return part


def part_of(number: int, x: Any, y: Any, pairs: Any, options: Mapping[str, Any],
            maps: Optional[bytes] = None) -> bytes:
    """The statistics of one part, as the bytes of their file."""
    try:
        return begin(options, maps).update(matrix(x), matrix(y), pairs).to_bytes()
    except UniconError as error:
        raise error_of(error.status, f"part {number}: {error}") from None


def maps_of(x: Any, y: Any, options: Mapping[str, Any]) -> bytes:
    """Maps from the rows of one part, for all."""
    return Stats.maps(matrix(x), matrix(y), **options).to_bytes()


def merge(parts: Iterable[bytes]) -> bytes:
    """The sum of statistics."""
    total: Optional[Stats] = None
    for content in parts:
        part = Stats.from_bytes(content)
        if total is None:
            total = part
        else:
            total += part
    if total is None:
        raise DataError("there are no parts to sum")
    return total.to_bytes()
