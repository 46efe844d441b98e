# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from support import fast

import unicon

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils import estimator_checks  # noqa: E402

# python/README.md lists these with the same reasons.
ONE_COLUMN = "gives Y as a vector of targets; Y is a matrix here"
OWN_SENTENCE = "wants scikit-learn's wording; the sentence is the library's"
EXPECTED = {
    "check_transformer_data_not_an_array": ONE_COLUMN,
    "check_transformer_general": ONE_COLUMN,
    "check_transformer_preserve_dtypes": ONE_COLUMN,
    "check_n_features_in_after_fitting": OWN_SENTENCE,
    "check_estimators_empty_data_messages": OWN_SENTENCE,
    "check_fit2d_1sample": OWN_SENTENCE,
    "check_dtype_object": "object arrays are refused, even if they hold numbers",
}


def test_clone():
    aligner = fast(rank=8, kernel="rbf", max_mem="1G")
    copy = clone(aligner)
    assert copy is not aligner and copy.get_params() == aligner.get_params()
    assert repr(copy) == "Aligner(preset='fast', rank=8, kernel='rbf', max_mem='1G')"


def test_grid_search(linear):
    x, y = linear
    search = GridSearchCV(fast(rank=8), {"ridge": [.001, .1], "metric": ["none", "whiten"]}, cv=3)
    with pytest.warns(unicon.UniconWarning, match="ridge has no effect without a metric"):
        search.fit(x, y)
    assert search.best_params_["metric"] == "whiten"
    assert search.best_estimator_.transform_x(x).shape == (500, 8)
    assert search.score(x, y) > .5
    assert len(cross_val_score(fast(rank=8), x, y, cv=4)) == 4


def test_grid_search_with_five_rows_each(captions):
    x, y = captions
    items = unicon.paired(x, y, pairs=5)
    search = GridSearchCV(fast(rank=8), {"ridge": [1e-4, 1.]}, cv=3).fit(items.x, items.y)
    folds = [np.arange(60)[20 * k:20 * k + 20] for k in range(3)]
    for k, ridge in enumerate((1e-4, 1.)):
        by_hand = []
        for test in folds:
            train = np.setdiff1d(np.arange(60), test)
            rows = [(5 * part[:, None] + np.arange(5)).reshape(-1) for part in (train, test)]
            aligner = fast(rank=8, ridge=ridge).fit(x[train], y[rows[0]], pairs=5)
            by_hand.append(aligner.score(x[test], y[rows[1]], pairs=5))
        assert search.cv_results_["mean_test_score"][k] == pytest.approx(np.mean(by_hand))
    assert search.best_estimator_.transform_x(x).shape == (60, 8)


def test_groups_stay_together(linear):
    groups = np.arange(500) // 10
    items = unicon.paired(*linear, groups=groups)
    assert len(items.x) == 50
    assert len(cross_val_score(fast(rank=8), items.x, items.y, cv=5)) == 5


def test_set_output(linear):
    pandas = pytest.importorskip("pandas")
    from sklearn import config_context

    x, y = linear
    aligner = fast(rank=3, balance="softmax:5").fit(x, y)
    assert aligner.get_feature_names_out().tolist() == ["aligner0", "aligner1", "aligner2"]
    plain = aligner.transform(x)
    assert aligner.set_output(transform="pandas") is aligner
    frame = aligner.transform(pandas.DataFrame(x, index=np.arange(500) + 7))
    assert (frame.to_numpy() == plain).all() and frame.index[0] == 7
    assert list(frame.columns) == ["aligner0", "aligner1", "aligner2"]
    assert list(aligner.transform_y(y, "index").columns)[-1] == "bias"
    assert list(aligner.transform_y(y, "index_cosine").columns)[-2:] == ["bias", "length"]
    assert isinstance(clone(aligner).fit(x, y).transform(x), pandas.DataFrame)
    assert isinstance(aligner.set_output(transform="default").transform(x), np.ndarray)
    with pytest.raises(unicon.ArgumentError, match="accepted: default, pandas, polars"):
        aligner.set_output(transform="excel")
    line = make_pipeline(StandardScaler(), fast(rank=3)).set_output(transform="pandas").fit(x, y)
    assert list(line.transform(x).columns) == list(line.get_feature_names_out()) == [
        "aligner0", "aligner1", "aligner2"]
    with config_context(transform_output="pandas"):
        assert isinstance(fast(rank=3).fit(x, y).transform(x), pandas.DataFrame)


def test_polars_output(linear):
    polars = pytest.importorskip("polars")
    found = fast(rank=3).fit(*linear).set_output(transform="polars").transform_x(linear[0])
    assert isinstance(found, polars.DataFrame) and found.columns[2] == "aligner2"


def test_pipeline(linear):
    x, y = linear
    line = make_pipeline(StandardScaler(), fast(rank=8)).fit(x, y)
    assert line.transform(x).shape == (500, 8)
    assert 0 < line.score(x, y) <= 1
    line.set_params(aligner__rank=4).fit(x, y)
    assert line[-1].rank_ == 4


def test_not_fitted_is_their_error_too(linear):
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    for use in (lambda a: a.transform_x(linear[0]), check_is_fitted):
        with pytest.raises(NotFittedError):
            use(fast())
    check_is_fitted(fast(rank=4).fit(*linear))


def _checks():
    """Their checks, with rows that need not have a direction: their Y has rows of 0."""
    estimator = fast(normalize="off")
    if hasattr(estimator_checks, "estimator_checks_generator"):
        found = list(estimator_checks.estimator_checks_generator(estimator, legacy=True))
    else:
        found = list(estimator_checks.check_estimator(estimator, generate_only=True))
    return [check for _, check in found], estimator


def _name(check):
    return getattr(check, "func", check).__name__


CHECKS, ESTIMATOR = _checks()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", CHECKS, ids=_name)
def test_their_checks(check):
    reason = EXPECTED.get(_name(check))
    if reason:
        with pytest.raises((AssertionError, ValueError)):
            check(clone(ESTIMATOR))
        pytest.skip(reason)
    check(clone(ESTIMATOR))


def test_the_readme_lists_what_does_not_apply():
    from conftest import ROOT

    readme = (ROOT / "python" / "README.md").read_text()
    for name, reason in EXPECTED.items():
        assert f"`{name}`" in readme
        assert reason in " ".join(readme.split())
    assert len(CHECKS) > 30
