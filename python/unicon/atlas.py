# SPDX-License-Identifier: Apache-2.0
"""A Parquet file for Embedding Atlas. Needs pyarrow.

    embedding-atlas atlas.parquet --x projection_x --y projection_y --neighbors neighbors

One line for each row of X, then one for each row of Y:

projection_x, projection_y  the first two coordinates of the unit embedding (the directions with the
                            largest singular values), or what `projection` gives
neighbors                   the nearest lines of both sides: ids and distances (1 - cosine)
modality, row               which side, and the row in it
true_pair_rank              the place of the first true match among the rows of the other side, from
                            1, by balanced scores as evaluate counts; empty if there is none
"""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ._pairs import Pairs
from ._rows import Matrix
from .errors import ShapeError, refuse_nul
from .model import Model, PathLike, search


def to_atlas(model: Model, path: PathLike, X: Matrix, Y: Matrix, pairs: Pairs = None, *,
             labels: Any = None, names: tuple[str, str] = ("x", "y"), neighbors: int = 10,
             projection: Optional[np.ndarray] = None,
             columns: Optional[Mapping[str, tuple[Any, Any]]] = None) -> None:
    """Writes the file.

    `names` are what the column modality says of the two sides. `columns` adds columns, each with
    its values for the rows of X and for those of Y: {"caption": (None, captions)}.
    `projection`, n_x + n_y by 2, takes the place of the first two coordinates.
    """
    refuse_nul(os.fsencode(path))
    z_x, z_y = model.embed(X, "x"), model.embed(Y, "y")
    z = np.concatenate([z_x, z_y])
    flat = z[:, :2] if projection is None else np.asarray(projection, np.float32)
    if flat.shape != (len(z), 2) and projection is not None:
        raise ShapeError(f"projection has shape {flat.shape}, but ({len(z)}, 2) is needed")
    second = flat[:, 1] if flat.shape[1] > 1 else np.zeros(len(z), np.float32)
    rank = np.concatenate(model.ranks(X, Y, pairs, labels=labels))
    table = {
        "projection_x": pa.array(flat[:, 0]),
        "projection_y": pa.array(second),
        "neighbors": _neighbors(z, neighbors),
        "modality": pa.array([names[0]] * len(z_x) + [names[1]] * len(z_y)),
        "row": pa.array(np.concatenate([np.arange(len(z_x)), np.arange(len(z_y))])),
        "true_pair_rank": pa.array(rank, mask=rank == 0),
    }
    for name, (of_x, of_y) in (columns or {}).items():
        table[name] = pa.array([*(of_x if of_x is not None else [None] * len(z_x)),
                                *(of_y if of_y is not None else [None] * len(z_y))])
    pq.write_table(pa.table(table), os.fspath(path))


def _neighbors(z: np.ndarray, count: int) -> pa.Array:
    k = min(count + 1, len(z))
    ids, scores = search(z, z, k)
    own = ids == np.arange(len(z))[:, None]
    own[~own.any(axis=1), -1] = True  # many equal rows: the last one goes
    ids, scores = ids[~own].reshape(len(z), k - 1), scores[~own].reshape(len(z), k - 1)
    offsets = np.arange(len(z) + 1, dtype=np.int32) * (k - 1)
    return pa.StructArray.from_arrays(
        [pa.ListArray.from_arrays(offsets, pa.array(ids.ravel())),
         pa.ListArray.from_arrays(offsets, pa.array((1 - scores).ravel()))], ["ids", "distances"])
