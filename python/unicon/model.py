# SPDX-License-Identifier: Apache-2.0
"""A fitted model, and what can be done with it."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Mapping, Optional, Union

import numpy as np

from . import _measure
from ._call import Call, Progress
from ._library import (SCOPE_BALANCE, SCOPE_CHECK, SCOPE_CONTEXT, SCOPE_FIT, SCOPE_SYNTH, SIDES,
                       Data, Handle, lib, text)
from ._measure import Rivals
from ._pairs import Pairs, add_list, group_numbers, make_pairs, with_labels
from ._result import Evaluation
from ._room import embed as embed_there
from ._room import wants_room
from ._rows import Matrix, open_rows
from ._tool import report
from ._view import Balance, count, form_number, open_vectors, open_view, side_number
from .errors import ArgumentError, ShapeError, error_of

PathLike = Union[str, "os.PathLike[str]"]
_OTHER_FORMATS = (".pt", ".pth", ".bin", ".npy", ".npz", ".pkl", ".onnx")


class Model(Handle):
    """A fitted model: immutable, shared freely between threads, pickled as its file.

    Made by `Aligner.fit`, `Model.load`. Options of the methods: threads, max_mem, device.

    Scores are balanced as the model says: the score of a candidate is its cosine less a bias, which
    is large for rows that are near everything. `balance` says otherwise: "off", "softmax:BETA" or
    "csls:K"; `bank_x` and `bank_y`, embedded rows of each side, take the place of the rows that the
    model keeps to make biases from.
    """

    def __init__(self, pointer: ctypes.c_void_p):
        super().__init__(pointer, lib.unicon_model_destroy)
        self._room: dict[str, Any] = {}  # of embed_one, for each side and thread

    @classmethod
    def borrowed(cls, pointer: Any, owner: Any) -> Model:
        # a model that belongs to another object, which it keeps
        model = cls.__new__(cls)
        Handle.__init__(model, ctypes.c_void_p(pointer), lambda _: None, owner)
        model._room = {}
        return model

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
        size = ctypes.c_size_t()
        with Call({}, SCOPE_CONTEXT) as call:
            call("model_to_bytes", self.pointer, None, 0, ctypes.byref(size))
            content = ctypes.create_string_buffer(size.value)
            call("model_to_bytes", self.pointer, content, size, ctypes.byref(size))
        return content.raw

    @classmethod
    def from_bytes(cls, content: bytes) -> Model:
        """A model from the content of its file."""
        out, size = ctypes.c_void_p(), len(content)
        with Call({}, SCOPE_CONTEXT) as call:
            call("model_from_bytes", (ctypes.c_char * size).from_buffer_copy(content), size,
                 ctypes.byref(out))
        return cls(out)

    def __reduce__(self) -> tuple[Any, ...]:
        return Model.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"Model(rank={self.rank}, width_x={self.width_x}, width_y={self.width_y})"

    @property
    def id(self) -> str:
        """16 hexadecimal digits that differ between models, of every number and text inside."""
        out = ctypes.create_string_buffer(17)
        lib.unicon_model_id(self.pointer, out)
        return text(out.value)

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
        found: np.ndarray = np.ctypeslib.as_array(lib.unicon_model_spectrum(self.pointer),
                                                  (self.rank,))
        return np.array(found)

    @property
    def metadata(self) -> dict[str, str]:
        """Options in force, sizes, losses, certificate: all text, in file order."""
        key, value = ctypes.c_char_p(), ctypes.c_char_p()
        found: dict[str, str] = {}
        while lib.unicon_model_meta_at(self.pointer, len(found), ctypes.byref(key),
                                       ctypes.byref(value)):
            found[text(key.value)] = text(value.value)
        return found

    @property
    def balance(self) -> str:
        """How scores are balanced: off, softmax:BETA, csls:K or quadratic:BETA."""
        return text(lib.unicon_model_meta(self.pointer, b"balance")) or "off"

    def rebalance(self, X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None,
                  progress: Progress = None, **options: Any) -> Model:
        """A model that embeds as this one does and makes its biases from these rows: for rows of
        another domain, or with balance="quadratic:10" to keep no training rows.

        Without pairs any two sets of rows will do; with pairs those that have one. Options:
        balance (auto: that of the model, or softmax where it is off), balance_bank, seed, bad_rows.
        """
        out = ctypes.c_void_p()
        with Call(options, SCOPE_BALANCE, progress) as call:
            rows = [open_rows(call, name, given) for name, given in (("X", X), ("Y", Y))]
            belong = with_labels(pairs, labels)
            n_x, n_y = (int(lib.unicon_rows_count(side)) for side in rows)
            made = None if belong is None else make_pairs(call, n_x, n_y, belong)
            with call.listening():
                try:
                    call("model_rebalance", self.pointer, ctypes.byref(Data(*rows, made, None)),
                         call.options, ctypes.byref(out))
                finally:
                    model = Model(out)
        return model

    def embed(self, rows: Matrix, side: str, form: str = "unit", *, balance: Any = None,
              bank_x: Matrix = None, bank_y: Matrix = None, out: Any = None,
              progress: Progress = None, **options: Any) -> Any:
        """Rows of one side as vectors of the shared space, float32.

        `form`: "unit", rows of length 1; "raw", as they are. An index for inner products ranks as
        search does if it holds candidates of form "index", [v, -bias], and is asked with queries of
        form "query", [u, 1]; an index that knows the cosine alone if they are "index_cosine" and
        "query_cosine", one column wider, all of one length. Only the index forms read `balance`,
        `bank_x` and `bank_y`. `out`, a C-order float32 array of that shape (a memmap will do),
        receives the result.

        Rows on a GPU (torch, CuPy, JAX: anything with DLPack or __cuda_array_interface__) are read
        there. The result is an array of NumPy all the same, unless `out` is "device", which gives a
        DeviceArray where the embeddings were made, "like", which gives an array of the library that
        the rows are of, or an array on the GPU, which receives it. Forms "unit" and "raw" alone.
        """
        with Call(options, SCOPE_CONTEXT, progress) as call:
            number, name = form_number(form), side.upper() if side in SIDES else "rows"
            side_number(side)
            if wants_room(rows, out) and (out is not None or form in ("unit", "raw")):
                return embed_there(call, self, rows, side, form, out)
            how = Balance(balance, bank_x, bank_y).open(call, self)
            view = open_view(call, name, rows, self, side, how)
            shape = (count(view), lib.unicon_form_width(self.rank, number))
            result = _result(out, shape, np.float32)
            with call.listening():
                call("embed", ctypes.byref(view), 0, shape[0], number, result.ctypes.data)
        return result

    def embed_one(self, row: np.ndarray, side: str) -> np.ndarray:
        """One row as a unit vector, by the shortest way: for queries as they come."""
        row = np.ascontiguousarray(row, np.float32)
        width = lib.unicon_model_width(self.pointer, side_number(side))
        if row.shape != (width,):
            raise ShapeError(f"row has shape {row.shape}, but side {side} of the model takes "
                             f"({width},)")
        out, room = np.empty(self.rank, np.float32), self._room.get(side)
        if room is None:
            room = self._room[side] = threading.local()
        if not hasattr(room, "array"):
            count = lib.unicon_embed_one_room(self.pointer, SIDES[side])
            room.array = np.empty(max(1, count), np.float32)
        status = lib.unicon_embed_one(self.pointer, SIDES[side], row.ctypes.data,
                                      room.array.ctypes.data, out.ctypes.data)
        if status:
            raise error_of(status, "row is not finite or all zero")
        return out

    def search(self, queries: Matrix, base: Matrix, k: int = 10, *, query_side: str = "x",
               base_side: Optional[str] = None, base_embedded: bool = False, balance: Any = None,
               bank_x: Matrix = None, bank_y: Matrix = None, progress: Progress = None,
               **options: Any) -> tuple[np.ndarray, np.ndarray]:
        """The k rows of `base` with the largest balanced score for each query: ids and scores.

        Without `base_side` the base is of the other side than the queries. `base_embedded` True:
        base holds vectors that `embed` has made before, of form "unit" (rank columns) or "index"
        (one more).
        """
        side, how = base_side or "yx"[side_number(query_side)], Balance(balance, bank_x, bank_y)
        with Call(options, SCOPE_CONTEXT, progress) as call:
            q = open_view(call, "queries", queries, self, query_side)
            b = (open_vectors(call, base, self, self.rank, side, how) if base_embedded else
                 open_view(call, "base", base, self, side, how.open(call, self)))
            return _search(call, q, b, k)

    def evaluate(self, X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None,
                 ignore: Any = None, balance: Any = None, bank_x: Matrix = None,
                 bank_y: Matrix = None, progress: Progress = None,
                 **options: Any) -> Evaluation:
        """Retrieval in both directions: {"pairs", "balance", "x_to_y", "y_to_x"}, with hit@k (what
        papers call R@k), recall@k, mrr, map, ndcg@10 and ranks, in "plain" the same without
        balance; ci=True adds intervals, bad_rows="drop" leaves out rows that are all zero or not
        finite, with their pairs. "hubs" has the skewness of how often each candidate is among the
        first ten of a query, and the share never_found, both balanced and plain. print shows the
        table of `unicon eval`."""
        return _measure.evaluate(Rivals(self, X, Y, with_labels(pairs, labels), ignore,
                                        Balance(balance, bank_x, bank_y)), progress, options)

    def ranks(self, X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None,
              ignore: Any = None, balance: Any = None, bank_x: Matrix = None,
              bank_y: Matrix = None, progress: Progress = None,
              **options: Any) -> tuple[np.ndarray, np.ndarray]:
        """Rank of the first match of every row of X, and of every row of Y: 1 is best, 0 where a
        row has none; counted as evaluate does."""
        return _measure.ranks(Rivals(self, X, Y, with_labels(pairs, labels), ignore,
                                     Balance(balance, bank_x, bank_y)), progress, options)

    def hubs(self, X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None,
             ignore: Any = None, balance: Any = None, bank_x: Matrix = None,
             bank_y: Matrix = None, progress: Progress = None,
             **options: Any) -> dict[str, Any]:
        """How often each row is among the first ten of a query: {"x_to_y": of every row of Y with
        X as queries, "y_to_x": of every row of X, "plain": the same two without balance}."""
        return _measure.hubs(Rivals(self, X, Y, with_labels(pairs, labels), ignore,
                                    Balance(balance, bank_x, bank_y)), progress, options)

    def weights(self, X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None,
                ignore: Any = None, negatives: Any = None, progress: Progress = None,
                **options: Any) -> _measure.Weights:
        """Scores s, weights S = -dL/ds (positive where a pair should come closer) and the loss L:
        whole matrices, for a look at a few thousand rows. The loss is that of the fit unless
        options (loss, temperature, ...) say otherwise; scores are plain."""
        return _measure.weights(Rivals(self, X, Y, with_labels(pairs, labels), ignore, Balance()),
                                negatives, progress, options)

    def classify(self, rows: Matrix, classes: Matrix, labels: Any, *, side: str = "x",
                 balance: Any = None, bank_x: Matrix = None, bank_y: Matrix = None,
                 progress: Progress = None, **options: Any) -> dict[str, Any]:
        """Zero-shot classification: each row is given the row of `classes` with the largest score;
        classes are of the other side (embedded prompts, say).

        `labels` holds the right one for each row. Returns accuracy, top5, mean_class_accuracy,
        chance, the answer for each row and, up to 4096 classes, the confusion matrix: entry (a, b)
        counts rows of class a that were given b. Answers without labels: search(rows, classes, 1).
        """
        side_number(side)
        return _measure.classify(self, rows, side, classes, labels,
                                 Balance(balance, bank_x, bank_y), progress, options)

    def probe(self, train: Matrix, train_labels: Any, test: Matrix, test_labels: Any, *,
              side: str = "x", progress: Progress = None, **options: Any) -> dict[str, Any]:
        """A linear probe: logistic regression on the embedded rows of `train`, tried on `test`.

        Labels, one for each row, are integers or strings. Returns accuracy, train_accuracy, chance
        (of always saying the most frequent label), loss, gradient, iterations, unseen (test rows
        with a label that no training row has), labels and, up to 4096 of them, the confusion
        matrix: entry (a, b) counts test rows of labels[a] that were given labels[b]. Option:
        probe_ridge.
        """
        side_number(side)
        return _measure.probe(self, side, train, train_labels, test, test_labels, progress, options)

    def report(self, path: Optional[PathLike], X: Matrix, Y: Matrix, pairs: Pairs = None,
               **arguments: Any) -> dict[str, Any]:
        """Writes a page that shows the model on these rows; see unicon.report."""
        return report(self, path, X, Y, pairs, **arguments)

    def to_torch(self, trainable: bool = False) -> Any:
        """An nn.Module with the encoders `.x` and `.y`; see unicon.export_torch."""
        from .export_torch import to_torch

        return to_torch(self, trainable)

    def to_onnx(self, path: PathLike, side: str) -> None:
        """Writes the encoder of one side as ONNX; see unicon.export_onnx."""
        from .export_onnx import to_onnx

        to_onnx(self, path, side)

    def to_sentence_transformers(self, path: PathLike, side: str,
                                 base: Optional[PathLike] = None) -> None:
        """Writes one side, a linear map, as modules of sentence-transformers, behind those of
        `base` if that is given; see unicon.export_st."""
        from .export_st import to_sentence_transformers

        to_sentence_transformers(self, path, side, base)

    def card(self, **arguments: Any) -> str:
        """The model card for the Hugging Face Hub, made from the model; see unicon.hub."""
        from .hub import model_card

        return model_card(self, **arguments)

    def save_pretrained(self, folder: PathLike, **card: Any) -> None:
        """Writes FOLDER/model.safetensors and the card FOLDER/README.md; see unicon.hub."""
        from .hub import save_pretrained

        save_pretrained(self, folder, **card)

    def push_to_hub(self, repo_id: str, **arguments: Any) -> str:
        """Uploads the model and its card to the Hugging Face Hub; see unicon.hub."""
        from .hub import push_to_hub

        return push_to_hub(self, repo_id, **arguments)

    @classmethod
    def from_pretrained(cls, name: PathLike, *, revision: Optional[str] = None,
                        token: Optional[str] = None) -> Model:
        """A model from the Hub, by the name of its repository, or from a folder of
        save_pretrained."""
        from .hub import fetch

        return cls.load(fetch(name, revision=revision, token=token))

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


def _search(call: Call, queries: Any, base: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise ArgumentError(f"k is {k!r}; accepted: a whole number of at least 1")
    shape = (count(queries), k)
    ids, scores = np.empty(shape, np.int64), np.empty(shape, np.float32)
    with call.listening():
        call("search", ctypes.byref(queries), ctypes.byref(base), k, ids.ctypes.data,
             scores.ctypes.data)
    return ids, scores


def search(queries: Matrix, base: Matrix, k: int = 10, *, balance: Any = None,
           bank_x: Matrix = None, bank_y: Matrix = None, progress: Progress = None,
           **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Model.search for two sets of vectors of one shared space: queries of side x, base of side y.

    With banks, which are rows of the two sides, scores are balanced (softmax:10 if `balance` says
    nothing else). A base with one column more than the queries ends in its biases: form "index".
    """
    with Call(options, SCOPE_CONTEXT, progress) as call:
        q = open_view(call, "queries", queries, None, "x")
        rank = lib.unicon_rows_width(q.rows)
        return _search(call, q, open_vectors(call, base, None, rank, "y",
                                             Balance(balance, bank_x, bank_y)), k)


def evaluate(X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None, ignore: Any = None,
             balance: Any = None, bank_x: Matrix = None, bank_y: Matrix = None,
             progress: Progress = None, **options: Any) -> Evaluation:
    """Model.evaluate for two sets of vectors of one shared space. With banks, which are other rows
    of the two sides, scores are balanced (softmax:10 if `balance` says nothing else)."""
    return _measure.evaluate(Rivals(None, X, Y, with_labels(pairs, labels), ignore,
                                    Balance(balance, bank_x, bank_y)), progress, options)


def weights(X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None, ignore: Any = None,
            negatives: Any = None, progress: Progress = None, **options: Any) -> _measure.Weights:
    """Model.weights for two sets of vectors of one shared space; the loss is clip unless options say
    otherwise."""
    return _measure.weights(Rivals(None, X, Y, with_labels(pairs, labels), ignore, Balance()),
                            negatives, progress, options)


def classify(rows: Matrix, classes: Matrix, labels: Any, *, balance: Any = None,
             bank_x: Matrix = None, bank_y: Matrix = None, progress: Progress = None,
             **options: Any) -> dict[str, Any]:
    """Model.classify for vectors of one shared space: rows of side x, classes of side y."""
    return _measure.classify(None, rows, "x", classes, labels, Balance(balance, bank_x, bank_y),
                             progress, options)


def probe(train: Matrix, train_labels: Any, test: Matrix, test_labels: Any, *,
          progress: Progress = None, **options: Any) -> dict[str, Any]:
    """Model.probe for vectors as they are, scaled to length 1."""
    return _measure.probe(None, "x", train, train_labels, test, test_labels, progress, options)


def check(X: Matrix, Y: Matrix, pairs: Pairs = None, *, weights: Any = None, labels: Any = None,
          groups: Any = None, ignore: Any = None, suspects: int = 20, progress: Progress = None,
          **options: Any) -> dict[str, Any]:
    """Before a fit: is there anything to align, in how many dimensions, and which pairs look wrong?

    p_value: how often shuffled pairs are as close as these, held out. closer: mean share of other
    rows that are farther than the partner, .5 is chance. rank: canonical correlations (spectrum)
    above the largest of shuffled pairs (noise). suspects: the worst pairs as lists x, y, cosine
    and closer, worst first; with labels single rows, the other being -1. verdict: a sentence.
    """
    data = dict(X=X, Y=Y, pairs=pairs, weights=weights, labels=labels, groups=groups,
                ignore=ignore)
    return _measure.before_fit("check", SCOPE_CHECK, data, progress, options, suspects)


def plan(X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None,
         progress: Progress = None, **options: Any) -> dict[str, Any]:
    """What Aligner(**options).fit will take: memory (bytes), seconds on the CPU, flops, how often the
    rows are read, what statistics of the same rows would take, and a sentence of advice. Memory is
    an upper bound, time good to about a factor of 2."""
    return _measure.before_fit("plan", SCOPE_FIT, dict(X=X, Y=Y, pairs=pairs, labels=labels),
                               progress, options)


def synth(kind: str, count: int, first: int = 0, *, part: int = 0, rows: Optional[int] = None,
          **options: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples of synthetic models: x, y and label. linear and nonlinear are those of the paper's
    text, linear-released and nonlinear-released those of its authors' code.

    A sample depends on the seed, the part and its number alone, so a test set is another part or
    another range. linear-released has `rows` (if not given first + count) samples in a part, in the
    order of their clusters.
    """
    with Call(options, SCOPE_SYNTH) as call:
        if count < 0:
            raise ArgumentError(f"count is {count}; accepted: a whole number of at least 0")
        x, y = (np.empty((count, max(1, lib.unicon_synth_width(kind.encode(), call.options, side))),
                         np.float32) for side in (SIDES["x"], SIDES["y"]))
        label = np.empty(count, np.int64)
        call("synth", kind.encode(), call.options, part, first + count if rows is None else rows,
             first, count, x.ctypes.data, y.ctypes.data, label.ctypes.data)
    return x, y, label
