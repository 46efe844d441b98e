# SPDX-License-Identifier: Apache-2.0
import inspect
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support import fast

import unicon
from unicon import Aligner


def test_every_fit_and_context_option_is_a_keyword():
    names = [option.name for option in unicon.options() if option.scope & 3]
    parameters = inspect.signature(Aligner).parameters
    assert list(parameters) == names
    assert all(parameter.default is None for parameter in parameters.values())
    assert list(fast().get_params()) == names
    for name in names:
        assert f"\n{name} : " in Aligner.__doc__
        assert not hasattr(Aligner, name)  # no method is hidden by an option


def test_docstring_holds_the_help_of_the_table():
    flat = " ".join(Aligner.__doc__.split())
    for option in unicon.options():
        if option.scope & 3:
            assert " ".join(option.help.split()) in flat


def test_docstring_example():
    import doctest

    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder(recurse=False).find(Aligner, "Aligner"):
        runner.run(test)
    assert runner.failures == 0 and runner.tries > 0


def test_fit_gives_unit_rows_that_find_their_partners(linear):
    x, y = linear
    aligner = fast(rank=8)
    assert aligner.fit(x, y) is aligner
    z_x, z_y = aligner.transform_x(x), aligner.transform_y(y)
    assert z_x.shape == z_y.shape == (500, 8) and z_x.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(z_x, axis=1), 1, atol=1e-5)
    assert aligner.rank_ == 8 and aligner.n_features_in_ == 40
    assert (np.diff(aligner.spectrum_) <= 0).all()
    assert aligner.metadata_["option.rank"] == "8"
    found = aligner.evaluate(x, y)
    hit = (np.argmax(z_x @ z_y.T, axis=1) == np.arange(500)).mean()
    assert found["x_to_y"]["hit@1"] == pytest.approx(hit, abs=1 / 500)
    assert found["x_to_y"]["hit@1"] > .5
    assert "ci" not in found["x_to_y"] and "ci" in aligner.evaluate(x, y, ci=True)["x_to_y"]
    mean = (found["x_to_y"]["mrr"] + found["y_to_x"]["mrr"]) / 2
    assert aligner.score(x, y) == mean


def test_fit_transform_and_transform(linear):
    x, y = linear
    aligner = fast(rank=4)
    z_x, z_y = aligner.fit_transform(x, y)
    assert (aligner.transform(x) == z_x).all()
    both = aligner.transform(x, y)
    assert (both[0] == z_x).all() and (both[1] == z_y).all()
    raw = aligner.transform_x(x, "raw")
    np.testing.assert_allclose(raw / np.linalg.norm(raw, axis=1, keepdims=True), z_x, atol=1e-6)
    out = np.zeros_like(z_x)
    assert aligner.transform_x(x, out=out) is out and (out == z_x).all()
    with pytest.raises(unicon.ShapeError, match="out is float32 of shape"):
        aligner.transform_x(x, out=out[:3])


def test_search_agrees_with_the_cosines(linear):
    x, y = linear
    aligner = fast(rank=8).fit(x, y)
    z_x, z_y = aligner.transform_x(x), aligner.transform_y(y)
    ids, scores = aligner.search(x[:20], y, k=5)
    cosines = z_x[:20].astype("f8") @ z_y.T.astype("f8")
    assert (ids == np.argsort(-cosines, axis=1, kind="stable")[:, :5]).all()
    np.testing.assert_allclose(scores, -np.sort(-cosines, axis=1)[:, :5], atol=1e-5)
    again, _ = aligner.search(x[:20], z_y, k=5, base_embedded=True)
    assert (again == ids).all()
    back, _ = aligner.search(y[:20], x, k=1, query_side="y")
    assert (back[:, 0] == np.argmax(z_y[:20] @ z_x.T, axis=1)).all()
    plain, _ = unicon.search(z_x[:20], z_y, k=5)
    assert (plain == ids).all()
    own = unicon.evaluate(z_x, z_y)["x_to_y"]["mrr"]
    assert own == pytest.approx(aligner.evaluate(x, y)["x_to_y"]["mrr"], abs=1e-6)


def test_save_load_and_pickle(linear, tmp_path, saved):
    x, y = linear
    aligner = fast(rank=8, kernel="rbf", ridge=.05, iterations=1, seed=3).fit(x, y)
    aligner.save(tmp_path / "model.safetensors")
    loaded = Aligner.load(tmp_path / "model.safetensors")
    assert loaded.get_params() == aligner.get_params()
    assert saved(loaded) == saved(aligner)
    assert saved(pickle.loads(pickle.dumps(aligner))) == saved(aligner)
    assert aligner.model_.to_bytes() == saved(aligner)
    with pytest.raises(unicon.FormatError, match="the bytes"):
        unicon.Model.from_bytes(saved(aligner)[:-1])
    assert (loaded.transform_x(x) == aligner.transform_x(x)).all()
    assert saved(loaded.fit(x, y)) == saved(aligner)
    safetensors = pytest.importorskip("safetensors.numpy")
    tensors = safetensors.load_file(tmp_path / "model.safetensors")
    assert tensors["x.weight"].shape[1] == 8 and (tensors["spectrum"] == aligner.spectrum_).all()


def test_load_keeps_a_preset(linear, tmp_path):
    x, y = linear
    given = fast(preset="paper", rank=4, batch=100)
    given.fit(x, y).save(tmp_path / "model.safetensors")
    assert Aligner.load(tmp_path / "model.safetensors").get_params() == given.get_params()


def test_values_are_texts_numbers_and_truth(linear, saved):
    x, y = linear
    one = fast(rank=8, metric=.5, center=False, max_mem=1 << 30, threads=1).fit(x, y)
    two = fast(rank="8", metric="0.5", center="off", max_mem="1G", threads="1").fit(x, y)
    three = fast(rank=np.int64(8), metric=np.float64(.5), center=np.bool_(False)).fit(x, y)
    assert saved(one) == saved(two)
    assert one.metadata_["option.center"] == three.metadata_["option.center"] == "off"


def test_weights_groups_validation_ignore_negatives(linear, saved):
    x, y = linear
    plain = saved(fast(rank=8).fit(x, y))
    assert saved(fast(rank=8).fit(x, y, weights=np.ones(500))) == plain
    assert saved(fast(rank=8).fit(x, y, weights=np.arange(500))) != plain
    fixed = dict(rank=8, ridge=.01, exponent=1, balance="off")  # nothing to choose, so nothing to hold out
    assert (saved(fast(**fixed).fit(x, y, groups=["a", "b"] * 250))
            == saved(fast(**fixed).fit(x, y)))
    steps = dict(rank=8, iterations=1, temperature=.3)
    base = saved(fast(**steps).fit(x, y))
    assert saved(fast(**steps).fit(x, y, ignore=[(0, 1), (1, 0)])) != base
    assert saved(fast(**steps).fit(x, y, negatives=(np.arange(499), np.arange(1, 500)))) != base
    with pytest.raises(unicon.PairsError, match="groups has 3 entries, but X has 500 rows"):
        fast().fit(x, y, groups=[1, 2, 3])


def test_validation_forms(linear):
    import warnings

    x, y = linear
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", unicon.UniconWarning)  # a preset may make no choice
        fast(rank=8).fit(x[:400], y[:400], validation=(x[400:], y[400:]))
        fast(rank=8).fit(x[:400], y[:400], validation=(x[400:], y[400:], 1))
        fast(rank=8).fit(x[:400], y[:400], validation=dict(X=x[400:], Y=y[400:]))
    with pytest.raises(unicon.ArgumentError, match="validation must be"):
        fast().fit(x, y, validation=x)


def test_an_idle_option_is_a_warning(linear):
    with pytest.warns(unicon.UniconWarning, match="no effect"):
        fast(rank=8, iterations=0, loss="clip").fit(*linear)


def test_threads_share_a_model(linear):
    x, y = linear
    aligner = fast(rank=8, kernel="angular", threads=1).fit(x, y)
    expected, ids = aligner.transform_x(x), aligner.search(x, y)[0]

    def work(number):
        if number % 3 == 0:
            return (aligner.search(x, y)[0] == ids).all()
        if number % 3 == 1:
            with pytest.raises(unicon.ShapeError):
                aligner.transform_x(y)
        return (aligner.transform_x(x) == expected).all()

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(60)))


def test_import_is_light():
    code = ("import sys, unicon; "
            "print([m for m in ('scipy', 'sklearn', 'torch', 'onnx', 'pyarrow', 'tqdm', 'pandas')"
            " if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version_and_table():
    assert unicon.__version__.count(".") == 2
    assert "BLAS" in unicon.build_info()
    assert unicon.presets()["auto"]["ridge"] == "chosen"
    assert re.search(r"ridge : float or A,B or \{auto\}, default chosen by auto", Aligner.__doc__)
    assert "split : float, default 0.5" in Aligner.__doc__
    assert set(unicon.presets()) == set(
        next(option for option in unicon.options() if option.name == "preset").words)


def test_synth_is_a_range_of_numbers():
    x, y, label = unicon.synth("nonlinear", 50, dim_x=17, seed=2)
    part, _, _ = unicon.synth("nonlinear", 20, first=30, dim_x=17, seed=2)
    assert x.shape == (50, 17) and label.shape == (50,) and (part == x[30:]).all()
    with pytest.raises(unicon.OptionError, match="rank has no effect here"):
        unicon.synth("linear", 5, rank=3)


def test_rows_are_forgotten_also_where_nothing_is_left_to_fit(linear):
    x, y = (rows[:100] for rows in linear)
    aligner = unicon.Aligner(preset="fast").partial_fit(x, y)
    with pytest.raises(unicon.DataError, match="the rows were removed") as failed:
        aligner.forget(x, y)
    certificate = failed.value.certificate
    assert certificate["removed"]["rows_x"] == 100 and certificate["left"]["rows_x"] == 0
    assert certificate["rebuilt"] == ["statistics", "sample"]
    with pytest.raises(unicon.NotFittedError):
        aligner.transform_x(x)  # the model had seen them
    assert aligner.partial_fit(x, y).stats_.info["rows_x"] == 100
    with pytest.raises(unicon.DataError, match="never added|cannot be removed") as failed:
        aligner.forget(linear[0], linear[1])
    assert failed.value.certificate is None and aligner.transform_x(x).shape[0] == 100


def test_a_fit_that_fails_says_that_its_rows_were_added(linear):
    x, y = linear
    with pytest.raises(unicon.DataError, match=r"the rows were added: fit_from\(aligner.stats_\)"):
        (aligner := unicon.Aligner(preset="fast")).partial_fit(x[:1], y[:1])
    assert aligner.partial_fit(x[1:], y[1:]).stats_.info["rows_x"] == 500
