# SPDX-License-Identifier: Apache-2.0
"""A fitted model, and what can be done with it."""

from __future__ import annotations

import ctypes
import math
import os
import tempfile
from pathlib import Path
from typing import Any, Mapping, Optional, Union

import numpy as np

from . import _measure
from ._call import Call, Progress
from ._library import (METRICS, SCOPE_CONTEXT, SCOPE_EVAL, SCOPE_FIT, SCOPE_SYNTH, SIDES, Data,
                       Handle, Metrics, View, lib, text)
from ._pairs import Pairs, add_list, group_numbers, make_pairs
from ._rows import Matrix, open_rows
from .errors import ArgumentError, PairsError, ShapeError

PathLike = Union[str, "os.PathLike[str]"]
_OTHER_FORMATS = (".pt", ".pth", ".bin", ".npy", ".npz", ".pkl", ".onnx")


def _side(side: str) -> int:
    if side not in SIDES:
        raise ArgumentError(f"side is {side!r}; accepted: \"x\" or \"y\"")
    return SIDES[side]


def with_labels(pairs: Pairs, labels: Any) -> Pairs:
    """`labels` as one more way to say which rows belong together."""
    if labels is None:
        return pairs
    if pairs is not None:
        raise PairsError("pairs and labels both say which rows belong together; give one of them")
    if not isinstance(labels, (tuple, list)) or len(labels) != 2:
        raise PairsError("labels must be (labels of X, labels of Y)")
    return ("labels", labels[0], labels[1])


class Model(Handle):
    """A fitted model: immutable, shared freely between threads, pickled as its file.

    Made by `Aligner.fit`, `Model.load`. Options of the methods: threads, max_mem.
    """

    def __init__(self, pointer: ctypes.c_void_p):
        super().__init__(pointer, lib.unicon_model_destroy)

    @classmethod
    def load(cls, path: PathLike) -> Model:
        """Reads a model file."""
        out = ctypes.c_void_p()
        with Call({}, SCOPE_CONTEXT) as call:
            call("model_load", os.fsencode(path), ctypes.byref(out))
        return cls(out)

    def save(self, path: PathLike) -> None:
        """Writes one .safetensors file; an older file stays whole until the new one is. A name
        that promises another format, such as model.pt, is an error."""
        if os.fsdecode(path).endswith(_OTHER_FORMATS):
            raise ArgumentError(f"{os.fsdecode(path)}: a model is written in the format "
                                "safetensors; call it so")
        with Call({}, SCOPE_CONTEXT) as call:
            call("model_save", self.pointer, os.fsencode(path))

    def to_bytes(self) -> bytes:
        """The content of the model file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.safetensors"
            self.save(path)
            return path.read_bytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> Model:
        """A model from the content of its file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.safetensors"
            path.write_bytes(content)
            return cls.load(path)

    def __reduce__(self) -> tuple:
        return Model.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"Model(rank={self.rank}, width_x={self.width_x}, width_y={self.width_y})"

    @property
    def rank(self) -> int:
        """Dimensions of the shared space."""
        return int(lib.unicon_model_rank(self.pointer))

    @property
    def width_x(self) -> int:
        """Length of the rows of x."""
        return int(lib.unicon_model_width(self.pointer, SIDES["x"]))

    @property
    def width_y(self) -> int:
        """Length of the rows of y."""
        return int(lib.unicon_model_width(self.pointer, SIDES["y"]))

    @property
    def spectrum(self) -> np.ndarray:
        """The singular values, largest first."""
        return np.ctypeslib.as_array(lib.unicon_model_spectrum(self.pointer), (self.rank,)).copy()

    @property
    def metadata(self) -> dict[str, str]:
        """Options in force, sizes, losses, certificate: all text, in file order."""
        key, value = ctypes.c_char_p(), ctypes.c_char_p()
        found: dict[str, str] = {}
        while lib.unicon_model_meta_at(self.pointer, len(found), ctypes.byref(key),
                                       ctypes.byref(value)):
            found[text(key.value)] = text(value.value)
        return found

    def embed(self, rows: Matrix, side: str, *, unit: bool = True,
              out: Optional[np.ndarray] = None, progress: Progress = None,
              **options: Any) -> np.ndarray:
        """Rows of one side as vectors of the shared space, float32, rank columns.

        `unit` False leaves the lengths as they are. `out`, a C-order float32 array of that shape
        (a memmap will do), receives the result.
        """
        with Call(options, SCOPE_CONTEXT, progress) as call:
            name = side.upper() if side in SIDES else "rows"
            opened = open_rows(call, name, rows)
            count = lib.unicon_rows_count(opened)
            view = View(opened, self.pointer, _side(side))
            result = _result(out, (count, self.rank), np.float32)
            with call.listening():
                call("embed", ctypes.byref(view), 0, count, int(unit), result.ctypes.data)
        return result

    def search(self, queries: Matrix, base: Matrix, k: int = 10, *, query_side: str = "x",
               base_side: Optional[str] = None, base_embedded: bool = False,
               progress: Progress = None, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        """The k rows of `base` with the largest cosine for each query: ids and scores.

        Without `base_side` the base is of the other side than the queries. `base_embedded` True:
        base holds vectors that `embed` has made before.
        """
        other = "xy"[1 - _side(query_side)]
        base_model = None if base_embedded else self
        return _search((queries, self, query_side), (base, base_model, base_side or other), k,
                       progress, options)

    def evaluate(self, X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None,
                 ignore: Any = None, progress: Progress = None, **options: Any) -> dict[str, Any]:
        """Retrieval in both directions: {"pairs", "x_to_y", "y_to_x"}, the latter with hit@k (what
        papers call R@k), recall@k, mrr, map, ndcg@10 and ranks; ci=True adds intervals,
        bad_rows="drop" leaves out rows that are all zero or not finite, with their pairs."""
        return _evaluate(self, X, Y, with_labels(pairs, labels), ignore, progress, options)

    def ranks(self, X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None,
              ignore: Any = None, progress: Progress = None,
              **options: Any) -> tuple[np.ndarray, np.ndarray]:
        """Rank of the first match of every row of X, and of every row of Y: 1 is best, 0 where a
        row has none; counted as evaluate does."""
        return _measure.ranks(self, X, Y, with_labels(pairs, labels), ignore, progress, options)

    def classify(self, rows: Matrix, classes: Matrix, labels: Any, *, side: str = "x",
                 confusion: bool = True, progress: Progress = None,
                 **options: Any) -> dict[str, Any]:
        """Zero-shot classification: each row is given the nearest row of `classes`, which are of
        the other side (embedded prompts, say).

        `labels` holds the right one for each row. Returns accuracy, top5, mean_class_accuracy,
        chance, the answer for each row and the confusion matrix (unless False): entry (a, b) counts
        rows of class a that were given b. Answers without labels: search(rows, classes, 1).
        """
        return _measure.classify(self, rows, _side(side), classes, labels, confusion, progress,
                                 options)

    def to_torch(self, trainable: bool = False) -> Any:
        """An nn.Module with the encoders `.x` and `.y`; see unicon.export_torch."""
        from .export_torch import to_torch

        return to_torch(self, trainable)

    def to_onnx(self, path: PathLike, side: str) -> None:
        """Writes the encoder of one side as ONNX; see unicon.export_onnx."""
        from .export_onnx import to_onnx

        to_onnx(self, path, side)

    def to_atlas(self, path: PathLike, X: Matrix, Y: Matrix, pairs: Pairs = None,
                 **arguments: Any) -> None:
        """Writes a Parquet file for Embedding Atlas; see unicon.atlas."""
        from .atlas import to_atlas

        to_atlas(self, path, X, Y, pairs, **arguments)


def _result(out: Optional[np.ndarray], shape: tuple[int, int], dtype: Any) -> np.ndarray:
    if out is None:
        return np.empty(shape, dtype)
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous \
            or not out.flags.writeable:
        raise ShapeError(f"out is {out.dtype} of shape {out.shape}; a writeable C-order "
                         f"{np.dtype(dtype)} array of shape {shape} is needed")
    return out


def fit_model(options: Mapping[str, Any], data: Mapping[str, Any],
              validation: Optional[Mapping[str, Any]], progress: Progress) -> Model:
    """unicon_fit. `data` and `validation` hold X, Y, pairs and so on."""
    out = ctypes.c_void_p()
    with Call(options, SCOPE_FIT, progress) as call:
        train, keep = open_data(call, **data)
        held_out, keep_too = open_data(call, **validation) if validation else (None, None)
        with call.listening():
            try:
                call("fit", ctypes.byref(train), held_out and ctypes.byref(held_out),
                     call.options, ctypes.byref(out))
            finally:
                model = Model(out)  # so that it is freed if an interrupt came after all
        del keep, keep_too
    return model


def open_data(call: Call, X: Matrix, Y: Matrix, pairs: Pairs = None, weights: Any = None,
               groups: Any = None, labels: Any = None, ignore: Any = None,
               negatives: Any = None) -> tuple[Data, Any]:
    x, y = open_rows(call, "X", X), open_rows(call, "Y", Y)
    n_x, n_y = lib.unicon_rows_count(x), lib.unicon_rows_count(y)
    made = make_pairs(call, n_x, n_y, with_labels(pairs, labels), weights)
    add_list(call, made, "ignored", ignore)
    add_list(call, made, "negatives", negatives)
    numbers = None if groups is None else group_numbers(groups, n_x)
    return Data(x, y, made, None if numbers is None else numbers.ctypes.data), numbers


def _view(call: Call, name: str, rows: Matrix, model: Optional[Model], side: str) -> View:
    return View(open_rows(call, name, rows), model and model.pointer, _side(side))


def _search(queries: tuple, base: tuple, k: int, progress: Progress,
            options: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    with Call(options, SCOPE_CONTEXT, progress) as call:
        q, b = _view(call, "queries", *queries), _view(call, "base", *base)
        count = lib.unicon_rows_count(q.rows)
        if not isinstance(k, (int, np.integer)) or k < 1:
            raise ArgumentError(f"k is {k!r}; accepted: a whole number of at least 1")
        ids, scores = np.empty((count, k), np.int64), np.empty((count, k), np.float32)
        with call.listening():
            call("search", ctypes.byref(q), ctypes.byref(b), k, ids.ctypes.data,
                 scores.ctypes.data)
    return ids, scores


def _direction(metrics: Metrics) -> dict[str, Any]:
    found: dict[str, Any] = {"queries": metrics.queries, "candidates": metrics.candidates}
    chance, interval = {}, {}
    for index, name in enumerate(METRICS):
        low, high = metrics.low[index], metrics.high[index]
        if math.isfinite(metrics.value[index]):
            found[name] = metrics.value[index]
        if math.isfinite(metrics.chance[index]):
            chance[name] = metrics.chance[index]
        if math.isfinite(low) and math.isfinite(high):
            interval[name] = (low, high)
    found["chance"] = chance
    if interval:
        found["ci"] = interval
    return found


def _evaluate(model: Optional[Model], X: Matrix, Y: Matrix, pairs: Pairs, ignore: Any,
              progress: Progress, options: Mapping[str, Any]) -> dict[str, Any]:
    to_y, to_x = Metrics(), Metrics()
    with Call(options, SCOPE_EVAL, progress) as call:
        x, y = _view(call, "X", X, model, "x"), _view(call, "Y", Y, model, "y")
        made = make_pairs(call, lib.unicon_rows_count(x.rows), lib.unicon_rows_count(y.rows), pairs)
        add_list(call, made, "ignored", ignore)
        with call.listening():
            call("evaluate", ctypes.byref(x), ctypes.byref(y), made, call.options,
                 ctypes.byref(to_y), ctypes.byref(to_x))
    return {"pairs": to_y.pairs, "x_to_y": _direction(to_y), "y_to_x": _direction(to_x)}


def search(queries: Matrix, base: Matrix, k: int = 10, *, progress: Progress = None,
           **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Model.search for two sets of vectors of one shared space."""
    return _search((queries, None, "x"), (base, None, "y"), k, progress, options)


def evaluate(X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None, ignore: Any = None,
             progress: Progress = None, **options: Any) -> dict[str, Any]:
    """Model.evaluate for two sets of vectors of one shared space."""
    return _evaluate(None, X, Y, with_labels(pairs, labels), ignore, progress, options)


def check(X: Matrix, Y: Matrix, pairs: Pairs = None, *, weights: Any = None, labels: Any = None,
          groups: Any = None, ignore: Any = None, suspects: int = 20, progress: Progress = None,
          **options: Any) -> dict[str, Any]:
    """Before a fit: is there anything to align, in how many dimensions, and which pairs look wrong?

    p_value: how often shuffled pairs are as close as these, held out. closer: mean share of other
    rows that are farther than the partner, .5 is chance. rank: canonical correlations (spectrum)
    above the largest of shuffled pairs (noise). suspects: the worst pairs as a structured array
    with x, y, cosine and closer, worst first; with labels single rows, the other being -1.
    """
    data = dict(X=X, Y=Y, pairs=pairs, weights=weights, labels=labels, groups=groups,
                ignore=ignore)
    return _measure.check(data, suspects, progress, options)


def synth(kind: str, count: int, first: int = 0,
          **options: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples of the paper's synthetic models, kind linear or nonlinear: x, y and label.

    Sample first + i depends on the seed and its number alone, so a test set is another range.
    """
    with Call(options, SCOPE_SYNTH) as call:
        if count < 0:
            raise ArgumentError(f"count is {count}; accepted: a whole number of at least 0")
        x = np.empty((count, int(call.value("dim_x"))), np.float32)
        y = np.empty((count, int(call.value("dim_y"))), np.float32)
        label = np.empty(count, np.int64)
        call("synth", kind.encode(), call.options, first, count, x.ctypes.data, y.ctypes.data,
             label.ctypes.data)
    return x, y, label
