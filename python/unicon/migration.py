# SPDX-License-Identifier: Apache-2.0
"""Another embedding model, the same index."""

from __future__ import annotations

import ctypes
import inspect
import json
import os
from pathlib import Path
from typing import Any, Optional

import numpy as np

from ._call import Call, Progress
from ._library import (FORMS, SCOPE_CONTEXT, SCOPE_MIGRATE, SCOPE_MOVE, SIDES, Handle,
                       MigrationData, View, lib, text)
from ._options import describe
from ._pairs import Pairs, make_pairs
from ._rows import Matrix, is_path, open_rows
from .errors import ArgumentError, DataError, NotFittedError
from .model import Model, PathLike

_SPACES = {"old-to-new": "new", "new-to-old": "old", "shared": "shared"}
_DTYPES = {"f4": 2, "f2": 0}  # of unicon_dtype


class Migration:
    """An index holds vectors of an old model, and queries will come from a new one.

        migration = unicon.Migration().fit(old, new)      # the same items by both models
        migration.decision["sentence"]                    # what to deploy, what is lost, or: do not
        migration.rewrite("index.npy", "index.new.npy")   # in pieces, and again after a stop
        ids, scores = migration.search(queries_new, "index.new.npy")

    Parameters
    ----------
    {options}
    """

    def __init__(self, **options: Any):
        self.options = options
        self._model: Optional[Model] = None
        self._decision: Optional[dict[str, Any]] = None

    def __repr__(self) -> str:
        return f"Migration(into={self.space!r})" if self._model else "Migration()"

    def fit(self, old: Matrix, new: Matrix, *, queries_old: Matrix = None,
            queries_new: Matrix = None, judgements: Pairs = None,
            progress: Progress = None) -> Migration:
        """Tries how old and new vectors can meet, and keeps the best way.

        Row i of `old` and row i of `new` are the same item. `queries_new` (and `queries_old`, row
        by row the same) are what people ask with; without, items ask for each other. `judgements`
        are pairs of a query row and an item row, with grades as weights; without, the right answers
        are the ten nearest items by the new model.
        """
        out = ctypes.c_void_p()
        with Call(self.options, SCOPE_MIGRATE, progress) as call:
            data = MigrationData(open_rows(call, "old", old), open_rows(call, "new", new))
            if queries_old is not None:
                data.queries_old = open_rows(call, "queries_old", queries_old)
            if queries_new is not None:
                data.queries_new = open_rows(call, "queries_new", queries_new)
            if judgements is not None:
                if queries_new is None:
                    raise ArgumentError("judgements are about queries: give queries_new as well")
                data.judgements = make_pairs(call, lib.unicon_rows_count(data.queries_new),
                                             lib.unicon_rows_count(data.new_rows), judgements)
            with call.listening():
                try:
                    call("migrate", ctypes.byref(data), call.options, ctypes.byref(out))
                finally:
                    made = Handle(out, lib.unicon_migration_destroy)
        self._decision = json.loads(text(lib.unicon_migration_json(made.pointer)))
        self._model = Model.borrowed(lib.unicon_migration_model(made.pointer), made)
        return self

    @classmethod
    def load(cls, path: PathLike) -> Migration:
        """From a model file, or from the folder that `save` or `unicon migrate` has written."""
        folder, decision = Path(path), None
        if folder.is_dir():
            decision = json.loads((folder / "decision.json").read_text())
            path = folder / "model.safetensors"
        migration = cls()
        migration._model, migration._decision = Model.load(path), decision
        if "direction" not in migration._model.metadata:
            raise DataError(f"{os.fsdecode(path)} was not made by a migration: it has no direction")
        return migration

    def save(self, folder: PathLike) -> None:
        """Writes FOLDER/model.safetensors and FOLDER/decision.json."""
        path = Path(folder)
        path.mkdir(exist_ok=True)
        self.model.save(path / "model.safetensors")
        if self._decision is not None:
            (path / "decision.json").write_text(json.dumps(self._decision, indent=1) + "\n")

    @property
    def model(self) -> Model:
        """The model; side x is the old one, side y the new one."""
        if self._model is None:
            raise NotFittedError("this Migration is not fitted yet: call fit(old, new), or load")
        return self._model

    @property
    def decision(self) -> dict[str, Any]:
        """Verdict, sentence, ways beside each other, all that was tried: docs/migration.md."""
        if self.model and self._decision is None:
            raise NotFittedError("the file of a model alone has no decision; load the folder")
        assert self._decision is not None
        return self._decision

    @property
    def verdict(self) -> str:
        """rewrite, bridge, shared or keep."""
        return self.model.metadata["verdict"]

    @property
    def space(self) -> str:
        """Where old and new vectors meet: old, new or shared."""
        return _SPACES[self.model.metadata["direction"]]

    def _side(self, side: Optional[str]) -> str:
        """The side that moves, unless another is given."""
        if side in ("old", "new"):
            return "x" if side == "old" else "y"
        if side is not None:
            raise ArgumentError(f"of is {side!r}; accepted: \"old\" or \"new\"")
        if self.space == "shared":
            raise ArgumentError("say which model the rows are of: of=\"old\" or of=\"new\"")
        return "y" if self.space == "old" else "x"

    def _refuse_moved(self, call: Call, rows: Matrix) -> None:
        known = ctypes.c_int()
        if not is_path(rows):
            return
        call("vectors_match", os.fsencode(rows), self.model.pointer, ctypes.byref(known))
        if known.value:
            raise DataError(f"{os.fsdecode(rows)} lies in the {self.space} space already, as its "
                            "sidecar says")

    def _check(self, call: Call, name: str, rows: Matrix, side: str, trust: bool) -> None:
        if trust:
            return
        opened = open_rows(call, name, rows)
        with call.listening():
            call("model_check_rows", self.model.pointer, SIDES[side], opened)

    def embed(self, rows: Matrix, of: Optional[str] = None, *, form: str = "unit",
              trust: bool = False, progress: Progress = None, **options: Any) -> np.ndarray:
        """Rows as vectors of the space where old and new meet. `of`: "old" or "new", the model
        they come from; left out, the one whose vectors move. Rows that do not look like those of
        the migration are an error unless `trust`."""
        side = self._side(of)
        with Call(options, SCOPE_CONTEXT, progress) as call:
            self._refuse_moved(call, rows)
            self._check(call, of or "rows", rows, side, trust)
        made: np.ndarray = self.model.embed(rows, side, form, progress=progress, **options)
        return made

    def embed_one(self, row: np.ndarray, of: Optional[str] = None) -> np.ndarray:
        """One query, by the shortest way."""
        return self.model.embed_one(row, self._side(of))

    def rewrite(self, index: Matrix, out: PathLike, *, dtype: str = "f4", trust: bool = False,
                progress: Progress = None, **options: Any) -> int:
        """Writes an index of old vectors as vectors of the new (or shared) space: OUT.npy, with
        OUT.npy.json beside it. A rewrite that was stopped goes on from OUT.npy.part; one that is
        finished is checked. Returns how many rows were there already."""
        if self.space == "old":
            raise ArgumentError("new queries are mapped into the old index, which stays as it is: "
                                "there is nothing to rewrite")
        if dtype not in _DTYPES:
            raise ArgumentError(f"dtype is {dtype!r}; accepted: " + ", ".join(_DTYPES))
        form = "unit" if self.model.balance == "off" else "index"
        there, path = ctypes.c_int64(), os.fsencode(out)
        with Call({**options, "trust": trust}, SCOPE_MOVE, progress) as call:
            self._refuse_moved(call, index)
            rows = open_rows(call, "index", index)
            view, count = View(rows, self.model.pointer, None, SIDES["x"]), lib.unicon_rows_count(rows)
            with call.listening():
                call("rewrite", ctypes.byref(view), 0, count, FORMS[form], _DTYPES[dtype], path,
                     call.options, ctypes.byref(there))
                if there.value == count:
                    call("vectors_check", path)
        return there.value

    def check(self, path: PathLike) -> None:
        """Raises FormatError unless a rewritten file has the rows and bytes that were written, and
        DataError unless it is of this model."""
        known = ctypes.c_int()
        with Call({}, SCOPE_CONTEXT) as call:
            call("vectors_match", os.fsencode(path), self.model.pointer, ctypes.byref(known))
            call("vectors_check", os.fsencode(path))

    def search(self, queries: Matrix, base: Matrix, k: int = 10, *, moved: Optional[bool] = None,
               calibrate: Optional[str] = None, trust: bool = False, progress: Progress = None,
               **options: Any) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest rows of `base` for queries of the new model: ids and scores.

        `moved`: whether base holds vectors that `rewrite` or `embed` has made (left out: yes,
        unless the old index stays as it is). `calibrate`: "old" or "new", scores as that model
        would have them. Rows that do not look like those of the migration are an error unless
        `trust`.
        """
        moved = self.space != "old" if moved is None else moved
        with Call({}, SCOPE_CONTEXT) as call:
            if is_path(base) and moved:
                known = ctypes.c_int()
                call("vectors_match", os.fsencode(base), self.model.pointer, ctypes.byref(known))
            elif not moved:
                self._refuse_moved(call, base)
                self._check(call, "base", base, "x", trust)
            self._check(call, "queries", queries, "y", trust)
        ids, scores = self.model.search(queries, base, k, query_side="y", base_side="x",
                                        base_embedded=moved, progress=progress, **options)
        return ids, scores if calibrate is None else self.calibrate(scores, calibrate)

    def calibrate(self, scores: Any, to: str = "new") -> np.ndarray:
        """Scores as the old or the new model would have them on the whole; the order stays."""
        if to not in ("old", "new"):
            raise ArgumentError(f"to is {to!r}; accepted: \"old\" or \"new\"")
        out = np.array(scores, np.float32, order="C")
        with Call({}, SCOPE_CONTEXT) as call:
            call("model_calibrate", self.model.pointer, int(to == "new"), out.size,
                 out.ctypes.data)
        return out


Migration.__doc__ = inspect.cleandoc(Migration.__doc__ or "").format(options=describe(SCOPE_MIGRATE))
