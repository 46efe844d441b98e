# SPDX-License-Identifier: Apache-2.0
import copy
import pickle

import numpy as np
import pytest
from support import fast

import unicon
from unicon import Stats


def cosines(model, x, y):
    return model.embed(x, "x") @ model.embed(y, "y").T


def sums(stats):
    """The tensors of a .stats file by name."""
    from safetensors.numpy import load

    return load(stats.to_bytes())


def test_parts_add_up(captions):
    x, y = captions
    whole = Stats().update(x, y, 5)
    parts = [Stats().update(x[a:b], y[5 * a:5 * b], 5) for a, b in ((0, 7), (7, 40), (40, 60))]
    total = sum(parts[::-1])
    assert total.info["rows_y"] == 300 and total.info["pairs"] == 300
    np.testing.assert_allclose(cosines(whole.fit(preset="fast"), x, y),
                               cosines(total.fit(preset="fast"), x, y), atol=1e-6)
    assert whole.info["maps"] == total.info["maps"]
    assert parts[0].info["rows_x"] == 7  # sums leave their parts alone


def test_sums_are_their_definition(captions):
    pytest.importorskip("safetensors")
    x, y = captions
    got = sums(Stats().update(x, y, 5))
    u, v = (rows / np.linalg.norm(rows.astype("f8"), axis=1, keepdims=True) for rows in (x, y))
    near = dict(rtol=0, atol=3e-6 * 60)  # rows are scaled to length 1 in float32
    np.testing.assert_allclose(np.tril(got["x.gram"]), np.tril(u.T @ u), **near)
    np.testing.assert_allclose(got["y.sum"], v.sum(0), **near)
    h = np.repeat(u, 5, axis=0).T @ v
    np.testing.assert_allclose(got["xy.cross"], h / 5, **near)
    np.testing.assert_allclose(got["yx.cross"], h, **near)


def test_revert_is_never_having_added(linear):
    x, y = linear
    stats = Stats(ledger=True).update(x[:300], y[:300]).update(x[300:], y[300:])
    certificate = stats.revert(x[300:], y[300:])
    assert certificate["removed"] == {"rows_x": 200, "rows_y": 200, "pairs": 200,
                                      "hash": certificate["removed"]["hash"]}
    assert certificate["checked_by"] == "ledger" and certificate["left"]["rows_x"] == 300
    assert 0 < certificate["trace"]["bound"] < 1e-10
    never = Stats(ledger=True).update(x[:300], y[:300])
    np.testing.assert_allclose(cosines(stats.fit(), x, y), cosines(never.fit(), x, y), atol=1e-6)
    with pytest.raises(unicon.DataError, match="never added"):
        stats.revert(x[300:], y[300:])
    assert stats.info["rows_x"] == 300
    both = never + Stats(ledger=True).update(x[300:], y[300:])
    assert (both - never).info["rows_x"] == 200


def test_pickles_copies_and_files(linear, tmp_path):
    x, y = linear
    stats = Stats(sample_rows=100).update(x, y)
    for other in (pickle.loads(pickle.dumps(stats)), copy.deepcopy(stats), stats.copy()):
        assert other.to_bytes() == stats.to_bytes()
        assert repr(other) == "Stats(rows_x=500, rows_y=500, pairs=500)"
    stats.save(tmp_path / "a.stats")
    assert Stats.load(tmp_path / "a.stats").to_bytes() == stats.to_bytes()
    assert pickle.loads(pickle.dumps(Stats(sample_rows=7)))._options == {"sample_rows": 7}
    with pytest.raises(unicon.FormatError, match="tensor"):
        Stats.from_bytes(stats.to_bytes()[:-9])


def test_kernels_share_their_landmarks(linear):
    x, y = linear
    maps = Stats.maps(x, y, kernel="rbf", landmarks=60)
    assert maps.info["rows_x"] == 0 and maps.info["features_x"] == 60
    total = sum((maps.empty().update(x[k::4], y[k::4]) for k in range(4)), maps)
    model = total.fit(preset="fast", rank=20)
    assert unicon.Model.from_bytes(model.to_bytes()).metadata["option.kernel"] == "rbf"
    again = Stats.from_model(model)
    assert again.info["kernel_x"] == "rbf"
    with pytest.raises(unicon.ShapeError, match="sums need the same maps"):
        total + Stats(kernel="rbf", landmarks=60, seed=1).update(x, y)


def test_partial_fit_and_forget(linear):
    x, y = linear
    aligner = fast(rank=8)
    with pytest.raises(unicon.ArgumentError, match="partial_fit"):
        aligner.forget(x, y)
    for start in range(0, 500, 100):
        aligner.partial_fit(x[start:start + 100], y[start:start + 100], refit=start == 400)
    assert aligner.stats_.info["rows_x"] == 500
    z = aligner.transform_x(x) @ aligner.transform_y(y).T
    # float32 products in a fit on rows; the usual balance does not touch cosines
    at_once = fast(rank=8, exponent=float(aligner.metadata_["option.exponent"])).fit(x, y)
    np.testing.assert_allclose(z, at_once.transform_x(x) @ at_once.transform_y(y).T, atol=1e-4)
    certificate = aligner.forget(x[:50], y[:50])
    assert certificate["rebuilt"][-1] == "banks" and certificate["sample"]["removed"] == 100
    never = fast(rank=8).partial_fit(x[50:], y[50:])
    np.testing.assert_allclose(cosines(aligner.model_, x, y), cosines(never.model_, x, y),
                               atol=1e-6)


def test_validation_and_words(linear):
    x, y = linear
    stats = Stats().update(x[:400], y[:400])
    model = stats.fit((x[400:], y[400:]))
    assert model.metadata["auto_held_x"] == "100" and model.metadata["from"] == "statistics"
    with pytest.raises(unicon.OptionError, match="needs the rows"):
        stats.fit(refine=3)
    assert stats.plan(preset="fast")["memory"] > 1e5 and stats.plan()["device"] == "cpu"
    with pytest.raises(unicon.OptionError, match="no option of statistics"):
        Stats(rank=3)
    with pytest.raises(unicon.OptionError, match="kernel of x is rbf"):
        stats.fit(kernel="rbf")
    with pytest.raises(unicon.UnsupportedError, match="one set of rows"):
        Stats().update(x, x, ("labels", np.arange(500) % 7))
    with pytest.raises(unicon.ArgumentError, match="call update first"):
        Stats().fit()
    with pytest.raises(unicon.ArgumentError, match="at most 1"):
        stats.decay(2)
    stats.decay(.5).update(x[400:], y[400:])
    assert stats.info["rows_x"] == 300 and stats.info["decayed"] == 1
    with pytest.raises(unicon.UnsupportedError, match="decayed"):
        stats.revert(x[:10], y[:10])


def test_a_failed_update_changes_nothing(linear):
    x, y = linear
    bad = x[:50].copy()
    bad[7, 3] = np.nan
    stats = Stats().update(x[50:], y[50:])
    before = stats.to_bytes()
    with pytest.raises(unicon.DataError, match="row 7, column 3"):
        stats.update(bad, y[:50])
    assert stats.to_bytes() == before
    fresh = Stats()
    with pytest.raises(unicon.DataError):
        fresh.update(bad, y[:50])
    assert repr(fresh) == "Stats()"


def test_docstring_example():
    import doctest

    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder(recurse=False).find(Stats, "Stats"):
        runner.run(test)
    assert runner.failures == 0 and runner.tries > 0


def test_labels_add_up_in_any_split(captions, tmp_path):
    """Parts of x and of y that have no label in common, labels as texts, bytes, files or numbers."""
    x, y = captions
    rows = np.arange(300)
    words = np.array(["cat", "dog", "7", "été", "a b"])
    label_x, label_y = words[np.arange(60) % 5], words[rows // 60]
    whole = Stats(sample_rows=200).update(x, y, labels=(label_x, label_y))
    assert whole.info["classes"] == 5 and whole.info["pairs"] == 5 * 12 * 60
    parts = [Stats(sample_rows=200).update(x[a:b], y[c:d], labels=(label_x[a:b], label_y[c:d]))
             for a, b, c, d in ((0, 7, 200, 300), (7, 8, 0, 3), (8, 60, 3, 200))]
    total = sum(parts[::-1])
    np.testing.assert_allclose(cosines(whole.fit(preset="fast"), x, y),
                               cosines(total.fit(preset="fast"), x, y), atol=1e-6)
    for name, labels in (("x", label_x), ("y", label_y)):
        (tmp_path / name).write_text("\n".join(labels) + "\n")
    for same in ((tmp_path / "x", tmp_path / "y"),
                 (label_x.astype(object), np.char.encode(label_y, "utf-8"))):
        again = Stats(sample_rows=200).update(x, y, labels=same)
        assert again.to_bytes() == whole.to_bytes()
    aligner = fast().partial_fit(x, y, labels=(np.arange(60) % 5, rows // 60))
    certificate = aligner.forget(x[:20], y[:10], labels=(np.arange(20) % 5, rows[:10] // 60))
    assert certificate["left"]["pairs"] == 8 * 50 + 4 * 8 * 60
    rest = Stats().update(x[20:], y[10:], labels=(np.arange(20, 60) % 5, rows[10:] // 60))
    np.testing.assert_allclose(cosines(aligner.model_, x, y),
                               cosines(fast().fit_from(rest).model_, x, y), atol=1e-6)
    with pytest.raises(unicon.DataError, match="with label 0 cannot be removed"):
        aligner.forget(x[:30], y[:60], labels=(np.full(30, 3), rows[:60] // 60))
    with pytest.raises(unicon.PairsError, match="NUL"):
        Stats().update(x, y, labels=(np.array(["a\0b", "c"] * 30), np.array(["c"] * len(y))))
    with pytest.raises(unicon.ShapeError, match="made with class labels"):
        whole.update(x, y, 5)


def test_maps_come_from_rows_that_can_be_used(linear):
    x, y = (rows.copy() for rows in linear)
    x[3, 2], y[7] = np.nan, 0
    with pytest.warns(unicon.UniconWarning, match="1 of 500 rows dropped"):
        stats = Stats(kernel="rbf", landmarks=40, bad_rows="drop").update(x, y)
    assert stats.info["rows_x"] == 498
    with pytest.raises(unicon.DataError, match="row 3, column 2"):
        Stats(kernel="rbf", landmarks=40).update(x, y)


def test_labels_beyond_int64_are_refused(linear):
    x, y = (rows[:4] for rows in linear)
    labels = np.array([1, 2, 2**64 - 1, 3], dtype=np.uint64)  # would be -1 of the other side
    with pytest.raises(unicon.PairsError, match="18446744073709551615; accepted: numbers up to"):
        Stats().update(x, y, labels=(labels, np.array([1, 2, -1, 3])))
