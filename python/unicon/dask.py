# SPDX-License-Identifier: Apache-2.0
"""Fits on Dask collections: every partition is summed where it lies, and the sums are merged.

    import unicon.dask
    aligner = unicon.dask.fit(ddx, ddy, pairs=5, preset="fast")

Nothing but statistics travels: about 20 MB a partition for 512 + 512 numbers, or 10 with
sample_rows=0.
"""

from __future__ import annotations

from typing import Any, Optional

from ._parts_of import has_maps_to_share, maps_of, merge, part_of, split_options
from .aligner import Aligner
from .errors import ArgumentError, ShapeError
from .stats import Stats

AT_ONCE = 8  # parts that one task merges


def _rows(collection: Any, name: str) -> tuple[int, ...]:
    """Rows of the partitions of an array."""
    if collection.ndim != 2:
        raise ShapeError(f"{name} has {collection.ndim} dimensions; rows and columns are needed")
    return tuple(collection.chunks[0])


def _aligned(x: Any, y: Any, per_x: int) -> tuple[Any, Any]:
    """Arrays with whole rows in a block, and the partners of a block of x in the same one of y."""
    x, rows = x.rechunk({1: -1}), _rows(x, "ddx")
    wanted = tuple(per_x * n for n in rows)
    if sum(wanted) != y.shape[0]:
        raise ShapeError(f"ddx has {sum(rows)} rows, so ddy needs {sum(wanted)}, not {y.shape[0]}")
    return x, y.rechunk({0: wanted, 1: -1})


def _partitions(x: Any, y: Any, per_x: int) -> list[tuple[Any, Any]]:
    """Blocks of x and of y that belong together, delayed."""
    if hasattr(x, "chunks") and hasattr(y, "chunks"):
        x, y = _aligned(x, y, per_x)
        return list(zip(x.to_delayed()[:, 0], y.to_delayed()[:, 0]))
    if hasattr(x, "npartitions") and hasattr(y, "npartitions"):
        if x.npartitions != y.npartitions:
            raise ShapeError(f"ddx has {x.npartitions} partitions and ddy {y.npartitions}; rows that "
                             "belong together must lie in partitions of the same number")
        return list(zip(x.to_delayed(), y.to_delayed()))
    raise ArgumentError("ddx and ddy must be Dask arrays, or both data frames or columns (of "
                        "vectors) with as many partitions")


def stats(ddx: Any, ddy: Any, pairs: Optional[int] = None, **options: Any) -> Stats:
    """Statistics of two collections whose partitions belong together.

    `pairs`: None, row i with row i; 5, five rows of ddy for each row of ddx, in order. Arrays are
    cut alike by themselves; data frames (of Parquet files, one column for each number or one column
    of vectors) must have partitions that fit. With a kernel the first partition gives the
    landmarks. Options are those of Stats.
    """
    import dask

    per_x = 1 if pairs is None else pairs
    if not isinstance(per_x, int) or per_x < 1:
        raise ArgumentError(f"pairs is {pairs!r}; accepted: None or a number of y rows per x row")
    for_stats, _ = split_options(options)
    blocks = _partitions(ddx, ddy, per_x)
    maps = None
    if has_maps_to_share(for_stats):
        maps = dask.delayed(maps_of)(*blocks[0], for_stats)
    parts = [dask.delayed(part_of)(number, x, y, pairs, for_stats, maps)
             for number, (x, y) in enumerate(blocks)]
    while len(parts) > 1:
        parts = [dask.delayed(merge)(parts[at:at + AT_ONCE])
                 for at in range(0, len(parts), AT_ONCE)]
    return Stats.from_bytes(parts[0].compute())


def fit(ddx: Any, ddy: Any, pairs: Optional[int] = None, validation: Any = None,
        **options: Any) -> Aligner:
    """An Aligner fitted on two collections; `stats_` are their statistics, so that partial_fit and
    forget go on from there. `validation` as in Aligner.fit; options of Aligner and of Stats."""
    _, for_fit = split_options(options)
    aligner = Aligner(**for_fit)
    aligner.stats_ = stats(ddx, ddy, pairs, **options)
    return aligner.fit_from(aligner.stats_, validation)
