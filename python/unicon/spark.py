# SPDX-License-Identifier: Apache-2.0
"""Fits on a Spark data frame with a column of vectors for each side: every partition is summed where
it lies (mapInPandas), and the sums are merged in a tree (treeReduce).

    import unicon.spark
    aligner = unicon.spark.fit(frame, "image", "text", preset="fast")
"""

from __future__ import annotations

from typing import Any, Iterator

from ._parts_of import has_maps_to_share, maps_of, merge, part_of, split_options
from .aligner import Aligner
from .errors import DataError
from .stats import Stats

MAP_ROWS = 10000  # that landmarks of a kernel are drawn from


def stats(frame: Any, x: str, y: str, **options: Any) -> Stats:
    """Statistics of a data frame: columns x and y hold vectors (arrays of numbers), and each row is a
    pair. With a kernel the first rows give the landmarks. Options are those of Stats."""
    for_stats, _ = split_options(options)
    pairs, maps = frame.select(x, y), None
    if has_maps_to_share(for_stats):
        first = pairs.limit(MAP_ROWS).toPandas()
        maps = maps_of(first[x], first[y], for_stats)

    def sums(frames: Iterator[Any]) -> Iterator[Any]:
        import pandas

        parts = [part_of(number, rows[x], rows[y], None, for_stats, maps)
                 for number, rows in enumerate(frames) if len(rows)]
        if parts:
            yield pandas.DataFrame({"part": [merge(parts)]})

    summed = pairs.mapInPandas(sums, "part binary").rdd.map(lambda row: bytes(row[0]))
    if summed.isEmpty():
        raise DataError("the data frame has no rows")
    return Stats.from_bytes(summed.treeReduce(lambda a, b: merge([a, b])))


def fit(frame: Any, x: str, y: str, validation: Any = None, **options: Any) -> Aligner:
    """An Aligner fitted on a data frame; `stats_` are its statistics. `validation` as in
    Aligner.fit; options of Aligner and of Stats."""
    _, for_fit = split_options(options)
    aligner = Aligner(**for_fit)
    aligner.stats_ = stats(frame, x, y, **options)
    return aligner.fit_from(aligner.stats_, validation)
