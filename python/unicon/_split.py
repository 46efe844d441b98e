# SPDX-License-Identifier: Apache-2.0
"""Rows cut in two, so that what belongs together stays together; and the same for scikit-learn."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from ._call import Call, Progress
from ._library import SCOPE_FIT, SIDES, Data, lib
from ._pairs import List, Pairs, group_numbers, is_labels, list_of, make_pairs, with_labels
from ._rows import Matrix, is_path, open_rows, take_rows
from .errors import ArgumentError, PairsError, ShapeError


class Part(NamedTuple):
    """Some rows of X and of Y, by their numbers, and the pairs among them, numbered anew."""

    x: np.ndarray
    y: np.ndarray
    pairs: Pairs
    groups: Optional[np.ndarray] = None

    def of(self, X: Matrix, Y: Matrix) -> tuple[Any, Any, Pairs]:
        """The rows themselves and the pairs, as fit and evaluate take them."""
        return take_rows("X", X, self.x), take_rows("Y", Y, self.y), self.pairs


class Split(NamedTuple):
    """Two parts; together they are the whole."""

    train: Part
    test: Part


def split(X: Matrix, Y: Matrix, pairs: Pairs = None, fraction: float = .2, *, labels: Any = None,
          groups: Any = None, seed: Optional[int] = None, bad_rows: Optional[str] = None,
          normalize: Any = None, progress: Progress = None) -> Split:
    """Holds out about `fraction` of the pairs, as a fit and `unicon compare` do.

        train, test = unicon.split(X, Y, pairs=5)
        aligner = unicon.Aligner().fit(*train.of(X, Y))
        aligner.evaluate(*test.of(X, Y))

    What belongs together stays together: rows of one group, or without groups rows that are
    connected by pairs; with class labels single rows are drawn. `train.x` and `train.y` are row
    numbers, good for ids, texts and labels as well.
    """
    _refuse_files(pairs, labels)
    belong = with_labels(pairs, labels)
    options = dict(seed=seed, bad_rows=bad_rows, normalize=normalize)
    with Call(options, SCOPE_FIT, progress) as call:
        x, y = open_rows(call, "X", X), open_rows(call, "Y", Y)
        n_x, n_y = lib.unicon_rows_count(x), lib.unicon_rows_count(y)
        made = make_pairs(call, n_x, n_y, belong)
        numbers = None if groups is None else group_numbers(groups, n_x)
        data = Data(x, y, made, None if numbers is None else numbers.ctypes.data)
        with call.listening():
            cut = call.make("split_make", lib.unicon_split_destroy, ctypes.byref(data),
                            ctypes.c_double(fraction), call.options)
        rows = [[_rows_of(cut, part, side) for side in ("x", "y")] for part in (0, 1)]
    return Split(*(_part(x_rows, y_rows, n_x, n_y, belong, numbers) for x_rows, y_rows in rows))


def _refuse_files(pairs: Pairs, labels: Any) -> None:
    given = [pairs, *(labels if isinstance(labels, (tuple, list)) else ()),
             *(pairs[1:] if is_labels(pairs) else ())]
    if any(is_path(item) for item in given):
        raise PairsError("a split needs pairs or labels as arrays, not as a file: read it with "
                         "np.loadtxt(path, int) or np.load(path)")


def _rows_of(cut: ctypes.c_void_p, part: int, side: str) -> np.ndarray:
    data = lib.unicon_split_part(cut, part).contents
    rows = data.x if side == "x" else data.y
    count = lib.unicon_rows_count(rows) if rows else 0
    if count == 0:
        return np.empty(0, np.int64)
    found: np.ndarray = np.ctypeslib.as_array(lib.unicon_split_rows(cut, part, SIDES[side]), (count,))
    return np.array(found)


def _part(x: np.ndarray, y: np.ndarray, n_x: int, n_y: int, pairs: Pairs,
          groups: Optional[np.ndarray]) -> Part:
    return Part(x, y, _among(x, y, n_x, n_y, pairs), None if groups is None else groups[x])


def _among(x: np.ndarray, y: np.ndarray, n_x: int, n_y: int, pairs: Pairs) -> Pairs:
    """The pairs among some rows."""
    if is_labels(pairs):
        return ("labels", *(np.asarray(side).reshape(-1)[rows]
                            for side, rows in zip(pairs[1:], (x, y))))
    whole = list_of(n_x, n_y, pairs)
    new_x, new_y = np.full(n_x, -1, np.int64), np.full(n_y, -1, np.int64)
    new_x[x], new_y[y] = np.arange(len(x)), np.arange(len(y))
    i, j = new_x[whole.x], new_y[whole.y]
    keep = (i >= 0) & (j >= 0)
    if pairs is None and len(x) == len(y) and (i[keep] == j[keep]).all() and keep.sum() == len(x):
        return None
    return (i[keep], j[keep]) if whole.weight is None else (i[keep], j[keep], whole.weight[keep])


# ---- scikit-learn -----------------------------------------------------------------------------


class _Whole(NamedTuple):
    rows: dict[str, Any]
    item: dict[str, np.ndarray]  # of each row of a side; -1: of none
    pairs: List
    items: int


class Items:
    """One side of `paired`: as many items as the other side has, each with all its rows.

    scikit-learn may cut it by rows as it cuts a matrix.
    """

    def __init__(self, whole: _Whole, side: str, index: np.ndarray):
        self._whole, self._side, self._index = whole, side, index
        self.shape = (len(index),)
        self.ndim = 1

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return f"<{len(self)} items with {len(self.numbers())} rows of {self._side}>"

    def __getitem__(self, key: Union[slice, np.ndarray, list[int]]) -> Items:
        if isinstance(key, (int, np.integer)):
            raise ArgumentError("items are taken by a slice or by an array of numbers")
        return Items(self._whole, self._side, self._index[key])

    def numbers(self) -> np.ndarray:
        """The numbers of its rows in the whole, ascending."""
        wanted = np.zeros(self._whole.items + 1, bool)
        wanted[self._index] = True
        return np.flatnonzero(wanted[self._whole.item[self._side]])

    def rows(self) -> Any:
        """Its rows."""
        return take_rows(self._side.upper(), self._whole.rows[self._side], self.numbers())

    def with_partner(self, other: Any) -> Part:
        """Its rows, those of the other side, and the pairs among them."""
        if not isinstance(other, Items) or other._whole is not self._whole \
                or (self._side, other._side) != ("x", "y"):
            raise ArgumentError("both sides of unicon.paired belong together: give its x as X and "
                                "its y as Y")
        if not np.array_equal(np.unique(self._index), np.unique(other._index)):
            raise ShapeError(f"X has {len(self)} items and Y has {len(other)}, which are not the "
                             "same ones")
        x, y, whole = self.numbers(), other.numbers(), self._whole.pairs
        assert whole.shape is not None
        weighted = (whole.x, whole.y) if whole.weight is None else (whole.x, whole.y, whole.weight)
        return Part(x, y, _among(x, y, *whole.shape, weighted))


class Paired(NamedTuple):
    """Two sides with equally many items."""

    x: Items
    y: Items


def paired(X: Matrix, Y: Matrix, pairs: Pairs = None, *, weights: Any = None,
           groups: Any = None) -> Paired:
    """Rows of X and Y as items, for tools that cut X and Y by the same numbers.

        items = unicon.paired(X, Y, pairs=5)      # an item: a row of X with its five rows of Y
        GridSearchCV(unicon.Aligner(preset="fast"), grid, cv=5).fit(items.x, items.y)

    An item is what must stay together: rows connected by pairs, or by `groups`, one number or
    string for each row of X. fit, evaluate, score and ranks of an Aligner take items in the place
    of X and Y, and know their pairs. Rows without a pair are left out. X and Y are arrays, tensors
    or frames.
    """
    if is_labels(pairs) or is_path(pairs):
        raise PairsError("paired needs pairs as a number or as arrays, not labels or a file")
    with Call({}, SCOPE_FIT) as call:  # what the library would refuse is refused here
        n_x, n_y = (int(lib.unicon_rows_count(open_rows(call, name, rows)))
                    for name, rows in (("X", X), ("Y", Y)))
        make_pairs(call, n_x, n_y, pairs, weights)
    whole = list_of(n_x, n_y, pairs, weights)
    numbers = None if groups is None else group_numbers(groups, n_x)
    item_x, item_y, count = _components(n_x, n_y, whole, numbers)
    listed = List(whole.x, whole.y, whole.weight, (n_x, n_y))
    made = _Whole({"x": X, "y": Y}, {"x": item_x, "y": item_y}, listed, count)
    return Paired(*(Items(made, side, np.arange(count)) for side in ("x", "y")))


def _components(n_x: int, n_y: int, pairs: List,
                groups: Optional[np.ndarray]) -> tuple[np.ndarray, np.ndarray, int]:
    """Which connected component each row is in, -1 for rows without a pair, and how many: labels
    sink to the least of the neighbours until nothing changes."""
    x, y = np.arange(n_x), np.full(n_y, n_x)
    while True:
        before = x.copy()
        np.minimum.at(y, pairs.y, x[pairs.x])
        np.minimum.at(x, pairs.x, y[pairs.y])
        if groups is not None:
            least = np.full(int(groups.max()) + 1, n_x)
            np.minimum.at(least, groups, x)
            x = least[groups]
        x = x[x]  # the least of the least: long chains take few rounds
        if (x == before).all():
            break
    used_x, used_y = np.zeros(n_x, bool), np.zeros(n_y, bool)
    used_x[pairs.x], used_y[pairs.y] = True, True
    names, first = np.unique(x[used_x], return_inverse=True)
    item_x, item_y = np.full(n_x, -1), np.full(n_y, -1)
    item_x[used_x] = first.reshape(-1)
    item_y[used_y] = np.searchsorted(names, y[used_y])
    return item_x, item_y, len(names)


def as_rows(X: Matrix, Y: Matrix, pairs: Pairs = None) -> tuple[Matrix, Matrix, Pairs]:
    """Items of `paired` as rows with their pairs; anything else as it is."""
    if not isinstance(X, Items) and not isinstance(Y, Items):
        return X, Y, pairs
    if not isinstance(X, Items):
        raise ArgumentError("Y is a side of unicon.paired, but X is not")
    if pairs is not None:
        raise PairsError("items of unicon.paired have their pairs with them; give none beside")
    part = X.with_partner(Y)
    return X.rows(), Y.rows(), part.pairs

