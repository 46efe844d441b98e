# SPDX-License-Identifier: Apache-2.0
"""Which rows belong together, in every form a caller may have it."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Optional

import numpy as np

from ._call import Call
from ._library import lib
from ._rows import is_path
from .errors import PairsError, UniconError

Pairs = Any
"""Which rows belong together:

None                  row i with row i
5, ("y_per_x", 5)     rows 5i .. 5i+4 of Y belong to row i of X
("x_per_y", 5)        the mirror image
array of m by 2       pairs (x row, y row), one a line; a list of pairs is one too
(i, j), (i, j, w)     a tuple of two index arrays, with weights or without
SciPy sparse matrix   n_x by n_y: the nonzeros, their values as weights
("labels", lx, ly)    rows with equal labels, integers or strings, or the paths of two files
("labels", l)         X and Y are one set of rows: equal labels, but no row with itself
path                  a file that the library reads: x_row TAB y_row [TAB weight], or npy
"""


class List:
    """Pairs as two index arrays, perhaps with weights and the shape they were made for."""

    def __init__(self, x: Any, y: Any, weight: Any = None, shape: Optional[tuple[int, int]] = None):
        self.x, self.y = _index(x), _index(y)
        self.weight = None if weight is None else _weights(weight)
        self.shape = shape
        if len(self.x) != len(self.y):
            raise PairsError(f"the pairs have {len(self.x)} rows of x, but {len(self.y)} of y")
        if self.weight is not None and len(self.weight) != len(self.x):
            raise PairsError(f"there are {len(self.weight)} weights, but {len(self.x)} pairs")


def _index(values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1:
        raise PairsError(f"the rows of the pairs have shape {array.shape}; one number for each "
                         "pair is needed")
    if array.dtype.kind not in "iu" and array.size > 0:
        raise PairsError(f"the pairs have values of type {array.dtype}; accepted: integers, the "
                         "numbers of rows")
    return whole_numbers(array, "the pairs have")


def whole_numbers(array: np.ndarray, what: str,
                  error: type[UniconError] = PairsError) -> np.ndarray:
    """As int64, which must hold them: a larger uint64 would turn negative."""
    if array.size > 0 and array.dtype.kind == "u" and int(array.max()) > np.iinfo(np.int64).max:
        raise error(f"{what} {array.max()}; accepted: numbers up to 2^63 - 1")
    return np.ascontiguousarray(array, dtype=np.int64)


def _weights(values: Any) -> np.ndarray:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise PairsError(f"weights has shape {array.shape}; one number for each pair is needed")
    return array


def _is_sparse(pairs: Any) -> bool:
    return hasattr(pairs, "tocsr") and hasattr(pairs, "nnz")


def _from_sparse(pairs: Any) -> List:
    entries = pairs.tocsr().tocoo()  # by way of csr, so that what is given twice is summed
    keep = entries.data != 0
    weight = None if entries.data.dtype.kind == "b" else entries.data[keep]
    return List(entries.row[keep], entries.col[keep], weight, pairs.shape)


def as_list(pairs: Any) -> List:
    if _is_sparse(pairs):
        return _from_sparse(pairs)
    if isinstance(pairs, tuple):
        if len(pairs) not in (2, 3):
            raise PairsError(f"the pairs are a tuple of {len(pairs)}; accepted: two index arrays, "
                             "and perhaps weights")
        return List(*pairs)
    array = np.asarray(pairs)
    if array.shape == (0,):
        return List([], [])
    if array.ndim != 2 or array.shape[1] != 2:
        raise PairsError(f"the pairs have shape {array.shape}; accepted: m by 2, a tuple of two "
                         "index arrays, a SciPy sparse matrix, a number of y rows per x row")
    return List(array[:, 0], array[:, 1])


def _word(pairs: Any) -> Optional[str]:
    if isinstance(pairs, tuple) and pairs and isinstance(pairs[0], str):
        return pairs[0]
    return None


def is_labels(pairs: Any) -> bool:
    return _word(pairs) == "labels"


def of_part(pairs: Pairs) -> Pairs:
    """Labels of a part of the rows, none of which has to be on both sides."""
    return ("labels_part", *pairs[1:]) if is_labels(pairs) and len(pairs) == 3 else pairs


def with_labels(pairs: Pairs, labels: Any) -> Pairs:
    """`labels` as one more way to say which rows belong together."""
    if labels is None:
        return pairs
    if pairs is not None:
        raise PairsError("pairs and labels both say which rows belong together; give one of them")
    if not isinstance(labels, (tuple, list)) or len(labels) not in (1, 2):
        raise PairsError("labels must be (labels of X, labels of Y), or (labels,) of one set of rows")
    return ("labels", *labels)


def _ruled(call: Call, n_x: int, n_y: int, function: str, *arguments: Any) -> ctypes.c_void_p:
    """Pairs by a rule. Where it does not fit the numbers of rows but another would, the error says
    which."""
    try:
        return call.make(function, lib.unicon_pairs_destroy, n_x, n_y, *arguments)
    except PairsError as error:
        few, many = sorted((n_x, n_y))
        if few == 0 or many % few or many == few:
            raise
        k = many // few
        hint = (f"pairs={k} if rows {k}i to {k}i+{k - 1} of Y belong to row i of X" if n_x == few
                else f"pairs=(\"x_per_y\", {k}) if rows {k}i to {k}i+{k - 1} of X belong to row i "
                     "of Y")
        raise PairsError(f"{error}: {hint}") from None


def _per_row(call: Call, n_x: int, n_y: int, k: Any, per: str) -> ctypes.c_void_p:
    return _ruled(call, n_x, n_y, "pairs_per_" + per, int(k))


def _numbered(labels: Any) -> np.ndarray:
    return np.ascontiguousarray(np.unique(labels, return_inverse=True)[1].reshape(-1),
                                dtype=np.int64)


def _text(label: Any) -> bytes:
    text = label if isinstance(label, bytes) else str(label).encode("utf-8", "surrogatepass")
    if b"\0" in text:
        raise PairsError(f"label {label!r} holds a NUL character, where a text ends for the library")
    return text


def _label_numbers(labels: np.ndarray) -> np.ndarray:
    """The numbers by which the library knows labels: integers themselves, texts as in files."""
    if labels.dtype.kind in "iub":
        return whole_numbers(labels, "the labels have")
    names, place = np.unique(labels, return_inverse=True)
    numbers = [lib.unicon_label_number(_text(name)) for name in names.tolist()]
    return np.array(numbers, dtype=np.int64)[place.reshape(-1)]


def _labels(call: Call, n_x: int, n_y: int, x: Any, y: Any, part: str = "") -> ctypes.c_void_p:
    destroy = lib.unicon_pairs_destroy
    if is_path(x) and is_path(y):
        return call.make("pairs_read_labels" + part, destroy, os.fsencode(x), os.fsencode(y), n_x,
                         n_y)
    x, y = np.asarray(x).reshape(-1), np.asarray(y).reshape(-1)
    if (x.dtype.kind in "iub") != (y.dtype.kind in "iub"):
        raise PairsError(f"the labels of x are {x.dtype}, those of y {y.dtype}; they are compared, "
                         "so both must be integers or both strings")
    first, second = _label_numbers(x), _label_numbers(y)
    return call.make("pairs_labels" + part, destroy, first.ctypes.data, len(first), second.ctypes.data,
                     len(second))


def _one_set(call: Call, n_x: int, n_y: int, labels: Any) -> ctypes.c_void_p:
    numbers = _numbered(np.asarray(labels).reshape(-1))
    if not n_x == n_y == len(numbers):
        raise PairsError(f"there are {len(numbers)} labels of one set, but X has {n_x} rows and Y "
                         f"has {n_y}; both are the same rows")
    return call.make("pairs_one_set", lib.unicon_pairs_destroy, numbers.ctypes.data, len(numbers))


def list_of(n_x: int, n_y: int, pairs: Any, weights: Any = None) -> List:
    """The pairs as a list, with weights; what is said by a rule is written out."""
    if pairs is None:
        found = List(np.arange(n_x), np.arange(n_x))
    elif isinstance(pairs, (int, np.integer)) or _word(pairs) == "y_per_x":
        rows = np.arange(n_y)
        found = List(rows // (n_y // n_x), rows)
    elif _word(pairs) == "x_per_y":
        rows = np.arange(n_x)
        found = List(rows, rows // (n_x // n_y))
    elif is_path(pairs) or _word(pairs):
        raise PairsError("a list of pairs is needed here, not labels or a file")
    else:
        found = as_list(pairs)
    if weights is None:
        return found
    if found.weight is not None:
        raise PairsError("weights are given twice: with the pairs and beside them")
    return List(found.x, found.y, weights, found.shape)


def _from_list(call: Call, n_x: int, n_y: int, pairs: List) -> ctypes.c_void_p:
    rows_x, rows_y = pairs.shape or (n_x, n_y)
    weight = None if pairs.weight is None else pairs.weight.ctypes.data
    return call.make("pairs_list", lib.unicon_pairs_destroy, rows_x, rows_y, pairs.x.ctypes.data,
                     pairs.y.ctypes.data, weight, len(pairs.x))


def make_pairs(call: Call, n_x: int, n_y: int, pairs: Pairs = None,
               weights: Any = None) -> ctypes.c_void_p:
    """Pairs of an n_x by n_y problem that live as long as the call."""
    if weights is not None:
        make_pairs(call, n_x, n_y, pairs)  # says whether the rule fits the rows
        return _from_list(call, n_x, n_y, list_of(n_x, n_y, pairs, weights))
    if pairs is None:
        return _ruled(call, n_x, n_y, "pairs_identity")
    if isinstance(pairs, (int, np.integer)) and not isinstance(pairs, bool):
        return _per_row(call, n_x, n_y, pairs, "x")
    if is_path(pairs):
        return call.make("pairs_read", lib.unicon_pairs_destroy, os.fsencode(pairs), n_x, n_y)
    word = _word(pairs)
    if word in ("y_per_x", "x_per_y") and len(pairs) == 2:
        return _per_row(call, n_x, n_y, pairs[1], word[-1])
    if word == "labels" and len(pairs) == 3:
        return _labels(call, n_x, n_y, pairs[1], pairs[2])
    if word == "labels_part":
        return _labels(call, n_x, n_y, pairs[1], pairs[2], "_part")
    if word == "labels" and len(pairs) == 2:
        return _one_set(call, n_x, n_y, pairs[1])
    if word is not None:
        raise PairsError(f"the pairs are {pairs!r:.100}; accepted: (\"y_per_x\", K), "
                         "(\"x_per_y\", K), (\"labels\", x labels, y labels), (\"labels\", labels of "
                         "one set)")
    return _from_list(call, n_x, n_y, as_list(pairs))


def add_list(call: Call, made: ctypes.c_void_p, which: str, pairs: Any) -> None:
    """Ignored pairs or the only negatives (`which`: ignored, negatives); weights, 0 to 1, are what
    they count as negatives."""
    if pairs is None:
        return
    if is_path(pairs):
        call("pairs_read_" + which, made, os.fsencode(pairs))
        return
    entries = as_list(pairs)
    weight = None if entries.weight is None else entries.weight.ctypes.data
    call("pairs_set_" + which, made, entries.x.ctypes.data, entries.y.ctypes.data, weight,
         len(entries.x))


def group_numbers(groups: Any, n_x: int) -> np.ndarray:
    """Groups of x rows, integers or strings, as numbers."""
    numbers = _numbered(np.asarray(groups).reshape(-1))
    if len(numbers) != n_x:
        raise PairsError(f"groups has {len(numbers)} entries, but X has {n_x} rows; one for each "
                         "row is needed")
    return numbers
