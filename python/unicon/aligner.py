# SPDX-License-Identifier: Apache-2.0
"""Aligner: the estimator with scikit-learn's manners. It works without scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Mapping, Optional

import numpy as np

from ._call import Call, Progress
from ._frames import as_frame, check_kind, wanted
from ._library import SCOPE_CONTEXT, SCOPE_EVAL, SCOPE_FIT, SCOPE_STATS
from ._options import TABLE, describe, from_text, names_of, signature, unknown
from ._pairs import Pairs
from ._result import Evaluation
from ._rows import Matrix
from ._split import Items, as_rows
from .errors import ArgumentError, OptionError, UniconError, error_of, not_fitted
from .model import Model, PathLike, fit_model
from .stats import Stats

_SCOPE = SCOPE_FIT | SCOPE_CONTEXT
_NAMES = names_of(_SCOPE)


_DATA = {"X", "Y", "pairs", "weights", "labels", "ignore", "negatives"}


def _as_data(validation: Any) -> Optional[Mapping[str, Any]]:
    """(X, Y), (X, Y, pairs) or a mapping with the names that fit has."""
    if validation is None:
        return None
    if isinstance(validation, (tuple, list)) and len(validation) in (2, 3):
        return dict(zip(("X", "Y", "pairs"), validation))
    if not isinstance(validation, Mapping) or not {"X", "Y"} <= set(validation) <= _DATA:
        raise ArgumentError("validation must be (X, Y), (X, Y, pairs), or a dict of X and Y with "
                            "pairs, weights, labels, ignore or negatives")
    return validation


class Aligner:
    # The docstring is completed below from the option table.
    """Aligns two sets of embeddings in one shared space.

    Rows of X and Y that belong together get a large cosine, others a small one. The default, preset
    auto, compares closed forms on held-out pairs, refines the best where that helps and fits it on
    everything; preset fast is the closed form alone. Every option is a keyword; None, the default
    of all, is "not given": then the preset's value holds, or else the default written here.

    Parameters
    ----------
    {options}

    Attributes
    ----------
    model_ : Model
        What was fitted; may be shared between threads.
    rank_ : int
        Dimensions of the shared space.
    spectrum_ : ndarray
        The singular values, largest first.
    metadata_ : dict
        What the model file says about itself: options in force, sizes, certificate.
    n_features_in_ : int
        Length of the rows of X.
    stats_ : Stats
        What partial_fit has added, and forget taken away; save and load them beside the model.

    Examples
    --------
    >>> import unicon
    >>> X, Y, _ = unicon.synth("linear", 600)
    >>> aligner = unicon.Aligner(preset="fast", rank=8).fit(X, Y)
    >>> aligner.transform_x(X).shape
    (600, 8)
    """

    def __init__(self, **options: Any):
        _refuse_unknown(options)
        for name in _NAMES:
            setattr(self, name, options.get(name))

    # ---- fitting ----

    def fit(self, X: Matrix, Y: Matrix, pairs: Pairs = None, weights: Any = None,
            groups: Any = None, validation: Any = None, *, labels: Any = None, ignore: Any = None,
            negatives: Any = None, progress: Progress = None) -> Aligner:
        """Fits on the rows of X and Y.

        Parameters
        ----------
        X, Y : array, tensor, memmap, table or path
            Rows of vectors. float16, float32, float64, int8, uint8 and bfloat16 are read where they
            are, whatever their strides; files are mapped, so they may be larger than memory. Tables
            of pyarrow, polars, pandas or DuckDB hold vectors as lists in one column or as columns
            of numbers. The two sides of unicon.paired have their pairs with them.
        pairs : optional
            Which rows belong together. None: row i with row i. 5: five rows of Y per row of X, in
            order; ("x_per_y", 5) the mirror image. (i, j) or (i, j, weights): index arrays. An
            array of m by 2, a SciPy sparse matrix of X rows by Y rows, or the path of a file.
        weights : array, optional
            A weight of at least 0 for each pair.
        groups : array, optional
            Numbers or strings, one per row of X: groups that a hold-out never splits.
        validation : (X, Y), (X, Y, pairs) or dict, optional
            Other rows that choose between candidates.
        labels : (x labels, y labels), optional
            Instead of pairs: rows with equal labels belong together.
        ignore, negatives : pairs, optional
            Pairs that count neither way; the only wrong pairs there are.
        progress : callable or True, optional
            Called with what is being done, the share of the fit that is done and the seconds
            left (None while not known); a true answer cancels. True: a tqdm bar.
        """
        X, Y, pairs = as_rows(X, Y, pairs)
        data = dict(X=X, Y=Y, pairs=pairs, weights=weights, groups=groups, labels=labels,
                    ignore=ignore, negatives=negatives)
        self.model_ = fit_model(self.get_params(), data, _as_data(validation), progress)
        self.__dict__.pop("stats_", None)  # they were of other rows
        self.n_features_in_ = self.model_.width_x
        return self

    def partial_fit(self, X: Matrix, Y: Matrix, pairs: Pairs = None, weights: Any = None, *,
                    labels: Any = None, validation: Any = None, refit: bool = True,
                    progress: Progress = None) -> Aligner:
        """Adds rows to the statistics `stats_` and fits from them: the model of all rows added so
        far, up to rounding, as often as you like. All partners of a row must come together, but
        rows with labels in any split.
        refit=False only adds; a later call, or fit_from(aligner.stats_), fits. What needs the rows
        themselves (iterations, refine, ...) cannot be asked for; a kernel takes its landmarks from
        the first rows. `validation` as in fit."""
        if "stats_" not in self.__dict__:
            self.stats_ = Stats(**self._given_for_stats())
        self.stats_.update(X, Y, pairs, weights, labels=labels, progress=progress)
        if refit:
            self._refit(validation, progress, "the rows were added: fit_from(aligner.stats_) fits "
                        "again without adding them twice")
        return self

    def forget(self, X: Matrix, Y: Matrix, pairs: Pairs = None, weights: Any = None, *,
               labels: Any = None, validation: Any = None, drop_landmarks: bool = False,
               refit: bool = True, progress: Progress = None) -> dict[str, Any]:
        """Takes rows that partial_fit has added out of `stats_`, fits again, and returns the
        certificate (Stats.revert) with "rebuilt": what was made anew without the rows. Copies of
        earlier models are yours to delete. Where no model can be fitted of what is left there is
        none, and the error has the certificate (`error.certificate`): the rows are gone."""
        if "stats_" not in self.__dict__:
            raise ArgumentError("there are no statistics to take rows from: rows can be forgotten "
                                "that were added by partial_fit")
        certificate = self.stats_.revert(X, Y, pairs, weights, labels=labels,
                                         drop_landmarks=drop_landmarks, progress=progress)
        certificate["rebuilt"] = ["statistics", "sample"]
        if refit:
            self.__dict__.pop("model_", None)  # it has seen the rows
            self._refit(validation, progress, "the rows were removed, as the certificate of this "
                        "error says, and there is no model now", certificate)
            certificate["rebuilt"] += ["choices", "model", "banks"]
        return certificate

    def _refit(self, validation: Any, progress: Progress, so_far: str,
               certificate: Optional[dict[str, Any]] = None) -> None:
        """Fits from the statistics, which have changed: an error says so."""
        try:
            self.fit_from(self.stats_, validation, progress=progress)
        except UniconError as error:
            told = error_of(error.status, f"{error}; {so_far}")
            told.certificate = certificate
            raise told from error
        except Exception as error:  # of what the caller gave, as validation rows
            error.certificate = certificate  # type: ignore[attr-defined]
            raise

    def fit_from(self, stats: Stats, validation: Any = None, *,
                 progress: Progress = None) -> Aligner:
        """Fits on what was added to statistics, made here or elsewhere."""
        given = {name: value for name, value in self.get_params().items() if value is not None}
        self.model_ = stats.fit(_as_data(validation), progress=progress, **given)
        self.n_features_in_ = self.model_.width_x
        return self

    def _given_for_stats(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _NAMES
                if TABLE[name].scope & (SCOPE_STATS | SCOPE_CONTEXT)}

    def fit_transform(self, X: Matrix, Y: Matrix, *arguments: Any,
                      **keywords: Any) -> tuple[np.ndarray, np.ndarray]:
        """fit, then both sides in the shared space."""
        self.fit(X, Y, *arguments, **keywords)
        return self.transform_x(X), self.transform_y(Y)

    # ---- use ----

    def transform_x(self, X: Matrix, form: str = "unit", **arguments: Any) -> Any:
        """Rows of X as unit vectors of the shared space (float32); `form` "query" and "index" are
        those for a vector index. The arguments are those of Model.embed."""
        return self._transform(X, "x", form, arguments)

    def transform_y(self, Y: Matrix, form: str = "unit", **arguments: Any) -> Any:
        """Rows of Y as unit vectors of the shared space (float32); see transform_x."""
        return self._transform(Y, "y", form, arguments)

    def transform(self, X: Matrix, Y: Matrix = None) -> Any:
        """transform_x(X), as pipelines want it; with Y a tuple of both sides."""
        if Y is None:
            return self.transform_x(X)
        return self.transform_x(X), self.transform_y(Y)

    def _transform(self, rows: Matrix, side: str, form: str, arguments: Mapping[str, Any]) -> Any:
        model, given = self._fitted(), rows.rows() if isinstance(rows, Items) else rows
        made = model.embed(given, side, form, **{**self._given(SCOPE_CONTEXT), **arguments})
        kind = wanted(self.__dict__.get("_sklearn_output_config", {}).get("transform"))
        if kind == "default":
            return made
        extra = made.shape[1] - model.rank  # an index form has columns more
        names = [*self.get_feature_names_out(), *("bias", "length")[:extra]]
        return as_frame(kind, made, names, given)

    def set_output(self, *, transform: Optional[str] = None) -> Aligner:
        """What transform, transform_x and transform_y give: "default" (arrays), "pandas" or
        "polars"; None leaves it as it is."""
        check_kind(transform)
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the dimensions of the shared space: aligner0, aligner1, ..."""
        return np.array([f"aligner{k}" for k in range(self._fitted().rank)], dtype=object)

    def search(self, queries: Matrix, base: Matrix, k: int = 10,
               **arguments: Any) -> tuple[np.ndarray, np.ndarray]:
        """The k rows of `base` with the largest balanced score for each query row: ids and scores.

        Queries are rows of X (`query_side` "y": of Y), the base is of the other side.
        `base_embedded` True: base holds vectors that transform_x or transform_y has made.
        balance="off" ranks by the cosine alone. The arguments are those of Model.search.
        """
        return self._fitted().search(queries, base, k,
                                     **{**self._given(SCOPE_CONTEXT), **arguments})

    def evaluate(self, X: Matrix, Y: Matrix, pairs: Pairs = None,
                 **arguments: Any) -> Evaluation:
        """Retrieval in both directions, as `unicon eval --json` prints it: {"pairs", "x_to_y",
        "y_to_x"}, the latter with hit@k (what papers call R@k), recall@k, mrr, map, ndcg@10 and
        ranks, "plain", the same without balance, and "hubs". ci=True adds 95 % intervals;
        bad_rows="drop", here or in the Aligner, leaves out rows that are all zero or not finite,
        with their pairs. print shows a table. The arguments are those of Model.evaluate."""
        X, Y, pairs = as_rows(X, Y, pairs)
        return self._fitted().evaluate(
            X, Y, pairs, **{**self._given(SCOPE_CONTEXT | SCOPE_EVAL), **arguments})

    def ranks(self, X: Matrix, Y: Matrix, pairs: Pairs = None,
              **arguments: Any) -> tuple[np.ndarray, np.ndarray]:
        """Rank of the first match of every row of X, and of every row of Y; see Model.ranks."""
        X, Y, pairs = as_rows(X, Y, pairs)
        return self._fitted().ranks(X, Y, pairs, **{**self._given(SCOPE_CONTEXT), **arguments})

    def hubs(self, X: Matrix, Y: Matrix, pairs: Pairs = None, **arguments: Any) -> dict[str, Any]:
        """How often each row is among the first ten of a query; see Model.hubs."""
        return self._fitted().hubs(X, Y, pairs, **{**self._given(SCOPE_CONTEXT), **arguments})

    def weights(self, X: Matrix, Y: Matrix, pairs: Pairs = None, **arguments: Any) -> Any:
        """Scores, weights S = -dL/ds and the loss; see Model.weights."""
        return self._fitted().weights(X, Y, pairs, **{**self._given(SCOPE_CONTEXT), **arguments})

    def classify(self, rows: Matrix, classes: Matrix, labels: Any,
                 **arguments: Any) -> dict[str, Any]:
        """Zero-shot classification by the nearest class vector; see Model.classify."""
        return self._fitted().classify(rows, classes, labels,
                                       **{**self._given(SCOPE_CONTEXT), **arguments})

    def probe(self, train: Matrix, train_labels: Any, test: Matrix, test_labels: Any,
              **arguments: Any) -> dict[str, Any]:
        """A linear classifier on embedded rows; see Model.probe."""
        return self._fitted().probe(train, train_labels, test, test_labels,
                                    **{**self._given(SCOPE_CONTEXT), **arguments})

    def report(self, path: Optional[PathLike], X: Matrix, Y: Matrix, pairs: Pairs = None,
               **arguments: Any) -> dict[str, Any]:
        """Writes a page that shows the model on these rows; see unicon.report."""
        X, Y, pairs = as_rows(X, Y, pairs)
        return self._fitted().report(path, X, Y, pairs, **arguments)

    def score(self, X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None) -> float:
        """One number for a search over settings: the mean of mrr in both directions."""
        found = self.evaluate(X, Y, pairs, labels=labels)
        return float(found["x_to_y"]["mrr"] + found["y_to_x"]["mrr"]) / 2

    # ---- files and other systems ----

    def save(self, path: PathLike) -> None:
        """Writes the model as one .safetensors file."""
        self._fitted().save(path)

    @classmethod
    def load(cls, path: PathLike) -> Aligner:
        """An Aligner with the model of a file, and with the options it was fitted with; what a
        preset chose from the data comes back as given."""
        model = Model.load(path)
        aligner = cls(**_options_of(model))
        aligner.model_ = model
        aligner.n_features_in_ = model.width_x
        return aligner

    @classmethod
    def from_pretrained(cls, name: PathLike, *, revision: Optional[str] = None,
                        token: Optional[str] = None) -> Aligner:
        """As load, from the Hugging Face Hub or from a folder of save_pretrained."""
        from .hub import fetch

        return cls.load(fetch(name, revision=revision, token=token))

    def save_pretrained(self, folder: PathLike, **card: Any) -> None:
        """Writes the model and its card into a folder; see unicon.hub."""
        self._fitted().save_pretrained(folder, **card)

    def push_to_hub(self, repo_id: str, **arguments: Any) -> str:
        """Uploads the model and its card to the Hugging Face Hub; see unicon.hub."""
        return self._fitted().push_to_hub(repo_id, **arguments)

    def to_sentence_transformers(self, path: PathLike, side: str,
                                 base: Optional[PathLike] = None) -> None:
        """Writes one side as modules of sentence-transformers; see unicon.export_st."""
        self._fitted().to_sentence_transformers(path, side, base)

    def to_torch(self, trainable: bool = False) -> Any:
        """An nn.Module that gives the same embeddings: `.x(rows)` and `.y(rows)`, and of each the
        forms `.query(rows)` and `.index(rows)`, whose products are balanced scores. `trainable`:
        the weights are parameters that ask for gradients."""
        return self._fitted().to_torch(trainable)

    def to_onnx(self, path: PathLike, side: str) -> None:
        """Writes the encoder of one side as an ONNX file: input "rows", outputs "embedding" and
        "index", which has the bias as one more column."""
        self._fitted().to_onnx(path, side)

    def to_atlas(self, path: PathLike, X: Matrix, Y: Matrix, pairs: Pairs = None,
                 **arguments: Any) -> None:
        """Writes the Parquet file that Embedding Atlas opens; see unicon.atlas.to_atlas."""
        self._fitted().to_atlas(path, X, Y, pairs, **arguments)

    # ---- parameters, scikit-learn ----

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All options; None where one is not given."""
        return {name: getattr(self, name) for name in _NAMES}

    def set_params(self, **options: Any) -> Aligner:
        """Sets options by name; None takes one back."""
        _refuse_unknown(options)
        for name, value in options.items():
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        target = TargetTags(required=True, one_d_labels=False, two_d_labels=True,
                            multi_output=True, single_output=False)
        return Tags(estimator_type=None, target_tags=target, input_tags=InputTags(),
                    transformer_tags=TransformerTags(preserves_dtype=["float32"]))

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn before 1.6
        return {"requires_y": True, "multioutput": True, "multioutput_only": True,
                "preserves_dtype": [np.float32]}

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def __repr__(self) -> str:
        given = {name: value for name, value in self.get_params().items() if value is not None}
        return "Aligner(" + ", ".join(f"{name}={value!r}" for name, value in given.items()) + ")"

    @property
    def rank_(self) -> int:
        """Dimensions of the shared space."""
        return self._fitted().rank

    @property
    def spectrum_(self) -> np.ndarray:
        """The singular values, largest first."""
        return self._fitted().spectrum

    @property
    def metadata_(self) -> dict[str, str]:
        """What the model file says about itself."""
        return self._fitted().metadata

    def _fitted(self) -> Model:
        if "model_" not in self.__dict__:
            raise not_fitted("Aligner")
        return self.model_

    def _given(self, scope: int) -> dict[str, Any]:
        """Options for a call with the model; `balance` was for the fit, the model has its own."""
        return {name: getattr(self, name) for name in _NAMES
                if TABLE[name].scope & scope and name != "balance"}


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    for name in options:
        if name in _NAMES:
            continue
        if name not in TABLE:
            raise unknown(name)
        raise OptionError(f"{name} is no option of a fit; accepted: " + ", ".join(_NAMES))


def _options_of(model: Model) -> dict[str, Any]:
    """What must be given to fit with the options of a model again: what the preset does not say."""
    noted = {key[len("option."):]: value for key, value in model.metadata.items()
             if key.startswith("option.")}
    noted = {name: value for name, value in noted.items()  # which file it was is not noted
             if name in _NAMES and (TABLE[name].kind, value) != ("text", "file")}
    options = {name: value for name, value in noted.items()
               if name == "preset" and value != TABLE["preset"].default}
    with Call(options, SCOPE_FIT) as call:
        options.update({name: from_text(name, value) for name, value in noted.items()
                        if value != call.value(name)})
    return options


setattr(Aligner.__init__, "__signature__", signature(_SCOPE))  # what scikit-learn and help() read
Aligner.__doc__ = inspect.cleandoc(Aligner.__doc__ or "").format(options=describe(_SCOPE))
