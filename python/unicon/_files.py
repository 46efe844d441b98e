# SPDX-License-Identifier: Apache-2.0
"""Files that Python reads for the library (Parquet), and folders of embeddings as a whole."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from ._arrow import matrix_of
from .errors import ArgumentError, FileError, FormatError, ShapeError

PathLike = Union[str, "os.PathLike[str]"]

_PARQUET = (".parquet", ".pq")


def parquet_parts(path: Any) -> Optional[tuple[list[Path], Optional[str]]]:
    """The Parquet files that FILE.parquet, FILE.parquet:COLUMN, FOLDER or FOLDER:COLUMN means, and
    the column; None for any other path."""
    name, column = os.fsdecode(path), None
    if not Path(name).exists() and ":" in name:
        name, column = name.rsplit(":", 1)
    whole = Path(name)
    if name.lower().endswith(_PARQUET) and not whole.is_dir():
        return [whole], column
    if whole.is_dir():
        files = _numbered(whole, _PARQUET)
        if files and not _numbered(whole, (".npy",)):
            return files, column
    return None


def _numbered(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The files of a folder in the order of their numbers: 10 comes after 9."""
    found = [path for path in folder.iterdir() if path.name.lower().endswith(suffixes)]
    return sorted(found, key=lambda path: [int(part) if part.isdigit() else part for part in
                                           re.split(r"(\d+)", path.name)])


def _pyarrow(why: str) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise FormatError(f"{why}: Parquet is read by the package pyarrow: pip install pyarrow"
                          ) from None
    if not hasattr(pyarrow.Table, "__arrow_c_stream__"):
        raise FormatError(f"{why}: Parquet is read by pyarrow 14 or newer, and this is "
                          f"{pyarrow.__version__}")
    return pyarrow.parquet


def read_parquet(files: list[Path], column: Optional[str]) -> np.ndarray:
    """The vectors of Parquet files: a column of lists, or all columns where all are numbers."""
    parquet = _pyarrow(str(files[0]))
    parts = []
    for file in files:
        if not file.exists():
            raise FileError(f"{file}: there is no such file")
        try:
            opened = parquet.ParquetFile(file)
        except Exception as error:  # pyarrow has errors of its own kinds
            raise FormatError(f"{file}: {error}") from None
        with opened:
            chosen = _vectors_of(file, opened.schema_arrow, column)
            table = opened.read(columns=[chosen] if chosen else None)
        parts.append(matrix_of(str(file), table))
    widths = {part.shape[1] for part in parts}
    if len(widths) > 1:
        raise ShapeError(f"{files[0].parent}: its files have rows of {min(widths)} and of "
                         f"{max(widths)} numbers")
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _vectors_of(file: Path, schema: Any, column: Optional[str]) -> str:
    """The name of the column with the vectors; "" where all columns are numbers."""
    names: list[str] = list(schema.names)
    if column is not None:
        if column not in names:
            raise FormatError(f"{file}: there is no column {column}; it has {', '.join(names)}")
        return column
    types = {name: str(schema.field(name).type) for name in names}
    lists = [name for name in names
             if re.search(r"list<\w+: (u?int|float|double|halffloat)", types[name])]
    if len(lists) == 1:
        return lists[0]
    if not lists and all(re.match(r"u?int|float|double|half", kind) for kind in types.values()):
        return ""
    what = ", ".join(f"{name} ({kind})" for name, kind in types.items())
    raise FormatError(f"{file}: say which column holds the vectors, as {file}:COLUMN; it has {what}")


# ---- folders ----------------------------------------------------------------------------------


def clip_retrieval(folder: PathLike) -> tuple[Path, Path]:
    """Image and text folders of a clip-retrieval run, to be given as X and Y.

    clip-retrieval writes `img_emb/img_emb_0.npy ...` and `text_emb/text_emb_0.npy ...`, row i of
    the one belonging to row i of the other. The library maps the files and reads them in pieces.
    `open_folder` also reads what lies beside them.
    """
    root = Path(folder)
    image, caption = root / "img_emb", root / "text_emb"
    for part in (image, caption):
        if not part.is_dir():
            raise FileError(f"{root} is no folder of clip-retrieval: it has no {part.name}")
    return image, caption


class Folder(NamedTuple):
    """A folder of embeddings: what to give as X and Y (None: not there), how many rows, and the
    Parquet files that describe them, row by row."""

    x: Optional[str]
    y: Optional[str]
    rows: int
    files: list[Path]

    def metadata(self, columns: Optional[list[str]] = None) -> Any:
        """The descriptions as one table of pyarrow: captions, URLs, keys. Row i is that of row i of
        x and y."""
        if not self.files:
            raise FileError("this folder has no Parquet files beside the embeddings")
        parquet = _pyarrow(str(self.files[0]))
        import pyarrow

        return pyarrow.concat_tables([parquet.read_table(file, columns=columns)
                                      for file in self.files], promote_options="default")


def open_folder(folder: PathLike, x: str = "img_emb", y: str = "text_emb",
                metadata: str = "metadata") -> Folder:
    """What clip-retrieval and embedding-reader leave in a folder, as a whole.

        run = unicon.open_folder("laion")
        aligner.fit(run.x, run.y)
        run.metadata(["caption"])[7]

    Either it has folders of numbered `.npy` files, named `x` and `y`, with a folder `metadata` of
    Parquet files; or it has Parquet files of which the columns `x` and `y` are the vectors. Row i
    of the one belongs to row i of the other, which is checked file by file.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FileError(f"{root}: there is no such folder")
    tables = _numbered(root, _PARQUET)
    if tables:
        return _folder_of_tables(root, tables, x, y)
    sides = [root / name for name in (x, y)]
    counts = {side.name: [_rows_in(file) for file in _numbered(side, (".npy",))]
              for side in sides if side.is_dir()}
    if not counts:
        raise FileError(f"{root} has no folders {x} and {y} of .npy files, and no Parquet files")
    files = _numbered(root / metadata, _PARQUET) if (root / metadata).is_dir() else []
    if files:
        parquet = _pyarrow(str(files[0]))
        counts[metadata] = [parquet.read_metadata(file).num_rows for file in files]
    there = [str(side) if side.is_dir() else None for side in sides]
    return Folder(there[0], there[1], _same_counts(root, counts), files)


def _rows_in(file: Path) -> int:
    try:
        return len(np.load(file, mmap_mode="r"))
    except (ValueError, OSError) as error:
        raise FormatError(f"{file}: {error}") from None


def _same_counts(root: Path, counts: dict[str, list[int]]) -> int:
    """The number of rows, which every folder must have in the same pieces."""
    (first, expected), *others = counts.items()
    for name, rows in others:
        if len(rows) != len(expected):
            raise ShapeError(f"{root}: {first} has {len(expected)} files, but {name} has {len(rows)}")
        for k, (a, b) in enumerate(zip(expected, rows)):
            if a != b:
                raise ShapeError(f"{root}: file {k} of {first} has {a} rows, but that of {name} has "
                                 f"{b}")
    return sum(expected)


def _folder_of_tables(root: Path, tables: list[Path], x: str, y: str) -> Folder:
    parquet = _pyarrow(str(tables[0]))
    names = parquet.read_schema(tables[0]).names
    found = [f"{root}:{column}" if column in names else None for column in (x, y)]
    if found == [None, None]:
        raise ArgumentError(f"{root}: its tables have no column {x} or {y}; say which columns hold "
                            f"the vectors: they have {', '.join(names)}")
    rows = sum(parquet.read_metadata(file).num_rows for file in tables)
    return Folder(found[0], found[1], rows, tables)
