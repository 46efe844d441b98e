# SPDX-License-Identifier: Apache-2.0
import json
import pickle
import subprocess

import numpy as np
import pytest
from support import fast

import unicon


def test_ranks_are_those_of_a_sort(linear):
    x, y = linear
    aligner = fast().fit(x[:300], y[:300])
    scores = aligner.transform_x(x[300:]) @ aligner.transform_y(y[300:]).T
    to_y, to_x = aligner.ranks(x[300:], y[300:])
    true = np.diagonal(scores)
    assert np.abs(to_y - (scores >= true[:, None] - 1e-7).sum(1)).max() <= 1  # near ties
    assert np.abs(to_x - (scores >= true[None] - 1e-7).sum(0)).max() <= 1
    found = aligner.evaluate(x[300:], y[300:])
    assert found["x_to_y"]["mrr"] == pytest.approx(np.mean(1 / to_y))
    assert found["y_to_x"]["hit@10"] == pytest.approx(np.mean(to_x <= 10))


def test_rows_without_a_match_have_rank_0(linear):
    x, y = linear
    to_y, to_x = fast().fit(x, y).ranks(x[:5], y[:4], pairs=([0, 1, 2, 3], [0, 1, 2, 3]))
    assert to_y[4] == 0 and (to_y[:4] > 0).all() and (to_x > 0).all()


def test_classify_is_the_nearest_class():
    x, y, label = unicon.synth("linear", 600)
    aligner = fast().fit(x[:500], y[:500])
    classes = np.stack([y[:500][label[:500] == k].mean(0) for k in range(3)])
    found = aligner.classify(x[500:], classes, label[500:])
    nearest = (aligner.transform_x(x[500:]) @ aligner.transform_y(classes).T).argmax(1)
    assert (found["answer"] == nearest).all()
    assert found["accuracy"] == np.mean(nearest == label[500:]) > 0.9
    assert found["confusion"].sum() == 100 and np.trace(found["confusion"]) == 100 * found["accuracy"]
    assert found["rows"] == 100 and found["classes"] == 3 and found["chance"] == pytest.approx(1 / 3)
    other = aligner.classify(y[500:], x[:3], label[500:], side="y")
    assert other["answer"].shape == (100,) and other["confusion"].shape == (3, 3)


def test_classify_and_weights_of_vectors(linear):
    x, y = linear
    model = fast(balance="off").fit(x, y).model_
    u, v, labels = model.embed(x[:50], "x"), model.embed(y[:50], "y"), np.arange(50)
    own, theirs = unicon.classify(u, v, labels), model.classify(x[:50], y[:50], labels)
    assert (own["answer"] == theirs["answer"]).all() and own["accuracy"] == theirs["accuracy"]
    found = unicon.weights(u, v, temperature=.2)
    np.testing.assert_allclose(found.scores, u @ v.T, atol=1e-6)
    s = found.scores.astype("f8") / .2
    soft = [np.exp(s - s.max(axis, keepdims=True)) for axis in (0, 1)]
    soft = [part / part.sum(axis, keepdims=True) for axis, part in enumerate(soft)]
    np.testing.assert_allclose(found.weights, (np.eye(50) - sum(soft) / 2) / 50, atol=1e-6)
    loss = -np.mean([np.log(np.diagonal(part)).mean() for part in soft]) * .2
    assert found.loss == pytest.approx(loss, rel=1e-5)


def test_classify_refuses_labels_that_do_not_fit(linear):
    x, y = linear
    aligner = fast().fit(x, y)
    with pytest.raises(unicon.ShapeError, match="labels has 4 entries, but there are 5 rows"):
        aligner.classify(x[:5], y[:2], [0, 1, 0, 1])
    with pytest.raises(unicon.ArgumentError, match="number of its class"):
        aligner.classify(x[:2], y[:2], ["cat", "dog"])
    with pytest.raises(unicon.ArgumentError, match="labels has 9223372036854775808; accepted"):
        aligner.classify(x[:2], y[:2], np.array([0, 2**63], "u8"))
    with pytest.raises(unicon.UniconError, match="7"):
        aligner.classify(x[:2], y[:2], [0, 7])


def test_evaluate_leaves_out_bad_rows(linear):
    x, y = (rows.copy() for rows in linear)
    aligner = fast(rank=6, bad_rows="drop").fit(x[:400], y[:400])
    x[402], y[403, 1] = 0, np.nan
    left = np.setdiff1d(np.arange(400, 500), [402, 403])
    with pytest.warns(unicon.UniconWarning, match="1 of 100 rows dropped"):
        found = aligner.evaluate(x[400:], y[400:])
    x_left, y_left = np.delete(x[400:], 2, 0), np.delete(y[400:], 3, 0)
    places = (np.searchsorted(np.delete(np.arange(400, 500), 2), left),
              np.searchsorted(np.delete(np.arange(400, 500), 3), left))
    assert found.pop("dropped") == {"x": 1, "y": 1} and found["pairs"] == 98
    again = aligner.evaluate(x_left, y_left, places)
    assert again.pop("dropped") == {"x": 0, "y": 0} and found == again
    with pytest.raises(unicon.DataError, match="row 2 is all zero"):
        aligner.evaluate(x[400:], y[400:], bad_rows="error")


def test_check_finds_pairs_and_the_wrong_ones(linear):
    x, y = (rows.copy() for rows in linear)
    y[[3, 70]] = y[[70, 3]]
    found = unicon.check(x, y, suspects=30)
    assert found["p_value"] < 0.01 and found["closer"] > 0.9 and found["pairs"] == 500
    assert found["rank"] >= 5 and (np.diff(found["spectrum"]) <= 0).all()
    assert {3, 70} & set(found["suspects"]["x"]) and len(found["suspects"]["y"]) <= 30
    assert (np.diff(found["suspects"]["closer"]) >= 0).all()
    none = unicon.check(x, np.random.default_rng(0).permutation(y), suspects=0)
    assert none["p_value"] > 0.01 and none["suspects"]["x"] == []


def test_check_agrees_with_the_command(linear, command, tmp_path):
    import json
    import subprocess

    for name, rows in zip("xy", linear):
        np.save(tmp_path / f"{name}.npy", rows)
    printed = json.loads(subprocess.run([command, "check", "x.npy", "y.npy", "--json"], check=True,
                                        cwd=tmp_path, capture_output=True).stdout)
    found = unicon.check(*linear)
    assert found["p_value"] == pytest.approx(printed["p_value"]) and found["rank"] == printed["rank"]
    np.testing.assert_allclose(found["spectrum"], printed["spectrum"], rtol=1e-9)
    assert found.keys() == printed.keys() and found["verdict"] == printed["verdict"]
    assert found["suspects"]["x"] == printed["suspects"]["x"]


def test_plan_is_that_of_the_command(linear, command, tmp_path):
    import json
    import subprocess

    for name, rows in zip("xy", linear):
        np.save(tmp_path / f"{name}.npy", rows)
    printed = json.loads(subprocess.run([command, "plan", "x.npy", "y.npy", "--kernel", "rbf",
                                         "--json"], check=True, cwd=tmp_path,
                                        capture_output=True).stdout)
    found = unicon.plan(*linear, kernel="rbf")
    for measured in (printed, found):  # the time is measured anew
        assert measured.pop("seconds") > 0
        assert measured["statistics"].pop("seconds") > 0
    assert found.pop("flops") == pytest.approx(printed.pop("flops")) and found == printed
    with pytest.raises(unicon.OptionError, match="no effect here"):
        unicon.plan(*linear, ci=True)


def test_weights_are_minus_the_slope_of_the_loss(linear):
    x, y = linear
    aligner = fast(rank=6, loss="clip", temperature=1, iterations=1).fit(x[:100], y[:100])
    s, S, loss = aligner.weights(x[100:130], y[100:130])
    e = np.exp(s.astype("f8"))
    softmax = (e / e.sum(1, keepdims=True) + e / e.sum(0)) / 2
    np.testing.assert_allclose(S, (np.eye(30) - softmax) / 30, atol=1e-7)
    log = (np.log(e.sum(1)) + np.log(e.sum(0))) / 2 - np.diagonal(s)
    assert loss == pytest.approx(log.mean(), rel=1e-6)
    one_way = aligner.weights(x[100:130], y[100:130], loss="triplet", margin=0.5, direction="x")
    active = (s - np.diagonal(s)[:, None] + 0.5 > 0) & ~np.eye(30, dtype=bool)
    np.testing.assert_allclose(one_way.weights, (np.diag(active.sum(1)) - active) / 30, atol=1e-6)
    half = (np.r_[0:30], (np.r_[0:30] + 1) % 30, np.full(30, 0.5))
    halved = aligner.weights(x[100:130], y[100:130], ignore=half).weights
    assert (halved[half[0], half[1]] > S[half[0], half[1]]).all()


def test_one_set_of_rows_leaves_out_the_rows_themselves():
    x, _, label = unicon.synth("linear", 300)
    aligner = fast(rank=5, shared_encoder=True).fit(x[:200], x[:200], labels=(label[:200],))
    z = aligner.transform_x(x[200:])
    found = aligner.evaluate(x[200:], x[200:], labels=(label[200:],), balance="off")
    scores = z @ z.T - 2 * np.eye(100)
    assert found["x_to_y"]["hit@1"] == np.mean(label[200:][scores.argmax(1)] == label[200:])
    with pytest.raises(unicon.PairsError, match="there are 200 labels of one set, but X has 200"):
        fast().fit(x[:200], x[:199], labels=(label[:200],))


def test_synth_has_the_generators_of_the_authors_code():
    x, y, label = unicon.synth("linear-released", 31)
    assert x.shape == (31, 40) and y.shape == (31, 30)
    assert (label == np.arange(31) // 11).all()  # clusters one after the other
    part, _, _ = unicon.synth("linear-released", 10, first=5, rows=31)
    assert (part == x[5:15]).all()
    other, _, _ = unicon.synth("linear-released", 31, part=1, spread=0, noise=0)
    assert len(np.unique(other, axis=0)) == 3
    x, y, _ = unicon.synth("nonlinear-released", 20)
    assert y.shape == (20, 39) and (np.abs(x) > 1).any()  # noise outside the tanh
    with pytest.raises(unicon.ArgumentError, match="say how many rows the part has, at least 15"):
        unicon.synth("linear-released", 10, first=5, rows=12)


@pytest.mark.parametrize("balance", ["softmax:10", "off"])
def test_an_evaluation_prints_the_table_of_the_command(linear, tmp_path, balance):
    x, y = linear
    aligner = fast(rank=8, balance=balance).fit(x[:300], y[:300])
    found = aligner.evaluate(x[300:], y[300:])
    assert isinstance(found, dict) and json.loads(json.dumps(found)) == found
    assert type(pickle.loads(pickle.dumps(found))) is unicon.Evaluation
    aligner.save(tmp_path / "m.safetensors")
    for name, rows in (("x", x), ("y", y)):
        np.save(tmp_path / f"{name}.npy", rows[300:])
    done = subprocess.run([unicon.command(), "eval", "m.safetensors", "x.npy", "y.npy"], cwd=tmp_path,
                          capture_output=True, text=True, check=True)
    theirs = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line[:1].strip()}
    ours = {line.split()[0]: line.split() for line in str(found).splitlines() if line[:1].strip()}
    metrics = [name for name, value in found["x_to_y"].items() if isinstance(value, float)]
    assert {"hit@1", "mrr", "median_rank"} <= set(metrics) and set(metrics) < set(ours)
    for name in [*metrics, "queries", "candidates"]:
        assert ours[name] == theirs[name]
    assert len(ours["hit@1"]) == (7 if balance != "off" else 5)
    low, high = aligner.evaluate(x[300:], y[300:], ci=True)["x_to_y"]["ci"]["hit@1"]
    assert f"{low:.3f} to {high:.3f}" in str(aligner.evaluate(x[300:], y[300:], ci=True))
