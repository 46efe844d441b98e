# SPDX-License-Identifier: Apache-2.0
"""Balanced scores against their definition in numpy, and the forms of embedded rows.

Biases agree to 2e-6 (docs/numerics.md); scores and products of float32 rows to 1e-5.
"""
import numpy as np
import pytest
from support import fast

import unicon
from unicon import _parts

HOW = ["softmax:10", "softmax:0.5", "csls:10", "csls:1000", "quadratic:10"]


def bias(tensors, how, side, v):
    """b(v) of unit rows of a side, in float64."""
    kind, _, strength = how.partition(":")
    v, strength = v.astype("f8"), float(strength or 0)
    if kind == "off":
        return np.zeros(len(v))
    if kind == "quadratic":
        c, w, q = np.split(tensors[side + ".bias"].astype("f8"), [1, 1 + v.shape[1]])
        return np.clip(c + v @ w + v**2 @ q, -1, 1)
    scores = v @ tensors["yx"["xy".index(side)] + ".bank"].astype("f8").T
    if kind == "csls":
        return np.sort(scores, axis=1)[:, -int(strength):].mean(1) / 2
    return np.log(np.exp(strength * scores).mean(1)) / strength


def tensors_of(model):
    return _parts.read_tensors(model.to_bytes())


@pytest.fixture(scope="module")
def data():
    """Rows of which some are near everything: a few common directions of both sides."""
    x, y, _ = unicon.synth("nonlinear", 700, noise=.4)
    return x, y


@pytest.fixture(scope="module", params=HOW)
def balanced(request, data):
    x, y = data
    return fast(rank=8, balance=request.param).fit(x[:500], y[:500]).model_


@pytest.fixture(scope="module")
def softmax(data):
    x, y = data
    return fast(rank=8, ridge=.01, balance="softmax:10").fit(x[:500], y[:500]).model_


def test_forms_are_those_of_the_definition(balanced, data):
    for side, rows in zip("xy", data):
        v = balanced.embed(rows[500:], side)
        b = bias(tensors_of(balanced), balanced.balance, side, v)
        assert (balanced.embed(rows[500:], side, "query") == np.c_[v, np.ones(200, "f4")]).all()
        index = balanced.embed(rows[500:], side, "index")
        assert index.shape == (200, 9) and (index[:, :8] == v).all()
        np.testing.assert_allclose(index[:, 8], -b, atol=2e-6)
        wide = balanced.embed(rows[500:], side, "index_cosine")
        assert (wide[:, :9] == index).all()
        np.testing.assert_allclose((wide.astype("f8")**2).sum(1), 2, atol=1e-5)
        queries = balanced.embed(rows[500:], side, "query_cosine")
        assert (queries == np.c_[v, np.ones(200, "f4"), np.zeros(200, "f4")]).all()
        raw = balanced.embed(rows[500:], side, form="raw")
        np.testing.assert_allclose(raw / np.linalg.norm(raw, axis=1, keepdims=True), v, atol=1e-6)


def test_search_ranks_by_the_products_of_the_forms(balanced, data):
    x, y = (rows[500:] for rows in data)
    for side, q, b in (("x", x, y), ("y", y, x)):
        other = "yx"["xy".index(side)]
        index = balanced.embed(b, other, "index")
        scores = balanced.embed(q, side, "query").astype("f8") @ index.T.astype("f8")
        order = np.argsort(-scores, axis=1, kind="stable")[:, :5]
        ids, found = balanced.search(q, b, 5, query_side=side)
        assert (ids == order).all()
        np.testing.assert_allclose(found, np.take_along_axis(scores, order, 1), atol=1e-6)
        unit = balanced.embed(b, other)
        for embedded in (unit, index):  # balanced here, and balanced before
            again, _ = balanced.search(q, embedded, 5, query_side=side, base_embedded=True)
            assert (again == ids).all()
        plain, cosine = balanced.search(q, b, 5, query_side=side, balance="off")
        cosines = balanced.embed(q, side).astype("f8") @ unit.T.astype("f8")
        assert (plain == np.argsort(-cosines, axis=1, kind="stable")[:, :5]).all()
        np.testing.assert_allclose(cosine, -np.sort(-cosines, axis=1)[:, :5], atol=1e-6)


def test_evaluate_ranks_and_hubs(balanced, data):
    x, y = (rows[500:] for rows in data)
    found, off = balanced.evaluate(x, y), balanced.evaluate(x, y, balance="off")
    hubs = balanced.hubs(x, y)
    ranks = dict(zip(("x_to_y", "y_to_x"), balanced.ranks(x, y)))
    for way, q, b in (("x_to_y", "x", "y"), ("y_to_x", "y", "x")):
        rows = dict(x=x, y=y)
        scores = {"found": balanced.embed(rows[q], q, "query").astype("f8")
                  @ balanced.embed(rows[b], b, "index").T.astype("f8"),
                  "plain": balanced.embed(rows[q], q).astype("f8")
                  @ balanced.embed(rows[b], b).T.astype("f8")}
        place = {name: (s >= np.diagonal(s)[:, None]).sum(1) for name, s in scores.items()}
        assert (ranks[way] == place["found"]).all()
        assert found[way]["mrr"] == pytest.approx((1 / place["found"]).mean())
        assert found[way]["plain"]["mrr"] == pytest.approx((1 / place["plain"]).mean())
        for name, counted, prefix in (("found", hubs[way], ""),
                                      ("plain", hubs["plain"][way], "plain_")):
            first = np.argsort(-scores[name], axis=1, kind="stable")[:, :10]
            n = np.bincount(first.ravel(), minlength=200)
            assert (counted == n).all()
            deviation = n - n.mean()
            skew = (deviation**3).mean() / (deviation**2).mean()**1.5
            assert found[way]["hubs"][prefix + "skewness"] == pytest.approx(skew, rel=1e-6)
            assert found[way]["hubs"][prefix + "never_found"] == (n == 0).mean()
        assert off[way]["plain"]["mrr"] == off[way]["mrr"] == found[way]["plain"]["mrr"]
        assert off[way]["hubs"]["skewness"] == found[way]["hubs"]["plain_skewness"]


def test_balance_makes_fewer_hubs(softmax, data):
    x, y = (rows[500:] for rows in data)
    found = softmax.evaluate(x, y)
    for way in ("x_to_y", "y_to_x"):
        assert found[way]["hubs"]["skewness"] < found[way]["hubs"]["plain_skewness"]


def test_banks_of_the_caller(softmax, data):
    x, y = data
    z_x, z_y = softmax.embed(x, "x"), softmax.embed(y, "y")
    banks = dict(bank_x=z_x[:300], bank_y=z_y[:300])
    own = {"x.bank": z_x[:300].astype("f2"), "y.bank": z_y[:300].astype("f2")}
    for how in ("softmax:4", "csls:7"):
        index = softmax.embed(y[500:], "y", "index", balance=how, **banks)
        np.testing.assert_allclose(index[:, -1], -bias(own, how, "y", z_y[500:]), atol=2e-6)
        ids, _ = softmax.search(x[500:], y[500:], 5, balance=how, **banks)
        assert (unicon.search(z_x[500:], z_y[500:], 5, balance=how, **banks)[0] == ids).all()
        assert (unicon.search(z_x[500:], index, 5)[0] == ids).all()
        found = softmax.evaluate(x[500:], y[500:], balance=how, **banks)
        apart = unicon.evaluate(z_x[500:], z_y[500:], balance=how, **banks)
        assert apart["x_to_y"]["mrr"] == pytest.approx(found["x_to_y"]["mrr"], rel=1e-9)
    usual = unicon.search(z_x[500:], z_y[500:], 5, **banks)[0]
    assert (usual == unicon.search(z_x[500:], z_y[500:], 5, balance="softmax:10", **banks)[0]).all()
    one = softmax.embed(y[500:], "y", "index", bank_x=z_x[:300])  # the other bank is the model's
    assert (one == softmax.embed(y[500:], "y", "index", **banks)).all()


def test_classify_balances_the_classes(softmax, data):
    x, y = data
    classes, label = y[500:520], np.arange(20)
    rows = x[500:520]
    scores = softmax.embed(rows, "x", "query") @ softmax.embed(classes, "y", "index").T
    assert (softmax.classify(rows, classes, label)["answer"] == scores.argmax(1)).all()
    plain = softmax.embed(rows, "x") @ softmax.embed(classes, "y").T
    found = softmax.classify(rows, classes, label, balance="off")
    assert (found["answer"] == plain.argmax(1)).all()
    back = softmax.classify(classes, rows, label, side="y")["answer"]
    scores = softmax.embed(classes, "y", "query") @ softmax.embed(rows, "x", "index").T
    assert (back == scores.argmax(1)).all()


def test_rebalance(softmax, data):
    x, y = data
    again = softmax.rebalance(x[:500], y[:500], pairs=1)
    assert again.balance == "softmax:10"
    assert (again.embed(y, "y", "index") == softmax.embed(y, "y", "index")).all()
    other = softmax.rebalance(x[500:], y[550:], balance="csls:10", balance_bank=64, seed=3)
    tensors = tensors_of(other)
    assert other.balance == "csls:10" and tensors["x.bank"].shape == (64, 8)
    assert (other.embed(x, "x") == softmax.embed(x, "x")).all()
    rows = {tuple(row) for row in softmax.embed(x[500:], "x").astype("f2").astype("f4")}
    assert {tuple(row) for row in tensors["x.bank"]} <= rows
    without = softmax.rebalance(x[:500], y[:500], balance="quadratic:10")
    assert {"x.bias", "y.bias"} <= set(tensors_of(without)) and "x.bank" not in tensors_of(without)
    assert len(without.to_bytes()) < len(softmax.to_bytes())
    off = softmax.rebalance(x[:500], y[:500], balance="off")
    assert off.balance == "off" and (off.embed(y, "y", "index")[:, -1] == 0).all()
    assert "spectrum" in tensors_of(off) and "x.bank" not in tensors_of(off)
    assert off.rebalance(x[:500], y[:500]).balance == "softmax:5"  # few rows: a weak hand
    bad = x[:500].copy()
    bad[3] = np.nan
    with pytest.raises(unicon.DataError, match="row 3"):
        softmax.rebalance(bad, y[:500])
    assert softmax.rebalance(bad, y[:500], bad_rows="drop").balance == "softmax:10"
    with pytest.raises(unicon.OptionError, match="ridge has no effect here"):
        softmax.rebalance(x, y, ridge=1)


def test_what_is_said_and_refused(softmax, data):
    x, y = data
    z = softmax.embed(y, "y", "index")
    assert "balance=" not in repr(softmax) and softmax.metadata["balance"] == softmax.balance
    with pytest.raises(unicon.ArgumentError, match="form is 'short'; accepted: raw, unit, query"):
        softmax.embed(x, "x", "short")
    with pytest.raises(unicon.OptionError, match="balance is \"softmax\"; accepted"):
        softmax.search(x, y, balance="softmax")
    with pytest.raises(unicon.OptionError, match="quadratic is made with a model"):
        softmax.search(x, y, balance="quadratic:10")
    with pytest.raises(unicon.ArgumentError, match="base has 9 columns, the last of them"):
        softmax.search(x, z, base_embedded=True, balance="off")
    with pytest.raises(unicon.ShapeError, match="bank_x has rows of 5 numbers"):
        softmax.search(x, y, bank_x=z[:, :5])
    with pytest.raises(unicon.DataError, match="bank_y has 3 rows; a bank needs at least 16"):
        softmax.search(x, y, bank_y=z[:3])
    with pytest.raises(unicon.DataError, match="no bank of x rows"):
        unicon.search(z[:, :8], z[:, :8], balance="softmax:10")
    with pytest.raises(unicon.OptionError, match="bad_rows has no effect here"):
        softmax.search(x, y, bad_rows="drop")


def test_the_aligner_fits_and_the_model_is_used(data, tmp_path):
    x, y = data
    aligner = fast(rank=6, ridge=.01, balance="csls:10", exponent=1, balance_bank=100).fit(x[:500], y[:500])
    assert aligner.model_.balance == "csls:10"
    assert len(tensors_of(aligner.model_)["y.bank"]) == 100
    aligner.save(tmp_path / "model.safetensors")
    loaded = unicon.Aligner.load(tmp_path / "model.safetensors")
    assert loaded.balance == "csls:10" and loaded.get_params() == aligner.get_params()
    aligner.set_params(balance="quadratic:3")  # of the next fit: the model is what it was
    assert (aligner.transform_y(y, "index") == loaded.transform_y(y, form="index")).all()
    assert aligner.evaluate(x[500:], y[500:]) == loaded.evaluate(x[500:], y[500:])
    assert (aligner.hubs(x[500:], y[500:])["x_to_y"]
            == loaded.model_.hubs(x[500:], y[500:])["x_to_y"]).all()
    off, _ = loaded.search(x[500:], y[500:], balance="off")
    assert (off == unicon.search(loaded.transform_x(x[500:]), loaded.transform_y(y[500:]))[0]).all()


@pytest.mark.ecosystem
def test_torch_has_the_forms(balanced, data):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    module = balanced.to_torch()
    for side, rows in zip("xy", data):
        encoder, given = getattr(module, side), torch.tensor(rows)
        with torch.no_grad():
            for form in ("query", "index"):
                np.testing.assert_allclose(getattr(encoder, form)(given).numpy(),
                                           balanced.embed(rows, side, form), atol=1e-5)


@pytest.mark.ecosystem
def test_onnx_has_the_index_rows(balanced, data, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    for side, rows in zip("xy", data):
        balanced.to_onnx(tmp_path / "side.onnx", side)
        session = runtime.InferenceSession(str(tmp_path / "side.onnx"),
                                           providers=["CPUExecutionProvider"])
        embedding, index = session.run(["embedding", "index"], {"rows": rows})
        np.testing.assert_allclose(embedding, balanced.embed(rows, side), atol=1e-5)
        np.testing.assert_allclose(index, balanced.embed(rows, side, "index"), atol=1e-5)


@pytest.mark.ecosystem
def test_exports_of_plain_and_fused_models(data):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, y = data
    for options in (dict(balance="off"), dict(kernel="rbf", batch=200, balance="softmax:10")):
        model = fast(rank=6, **options).fit(x[:500], y[:500]).model_
        with torch.no_grad():
            made = model.to_torch().y.index(torch.tensor(y[500:])).numpy()
        np.testing.assert_allclose(made, model.embed(y[500:], "y", "index"), atol=1e-5)
