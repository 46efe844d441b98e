# SPDX-License-Identifier: Apache-2.0
"""torch, ONNX and Embedding Atlas. Each is skipped with a message where its package is absent."""
import numpy as np
import pytest
from support import fast

import unicon

KERNELS = ["linear", "cosine", "angular", "arccos0", "arccos1", "arccos2", "expcos", "rbf",
           "matern12", "matern32", "matern52", "poly"]
MAPS = [dict(kernel="linear"), dict(kernel="linear", center="off", normalize="off"),
        *(dict(kernel=kernel, map="exact") for kernel in KERNELS[1:]),
        dict(kernel="angular", map="nystrom", landmarks=50),
        dict(kernel="rbf", batch=70),  # fused: a model for each batch
        dict(kernel="rbf", map="nystrom", landmarks=50, normalize="off"),
        *(dict(kernel=kernel, map="random", features=300)
          for kernel in ("arccos0", "arccos1", "arccos2", "rbf", "matern32"))]


def named(options):
    return "-".join(str(value) for value in options.values())


def agree(aligner, options, made, expected):
    """Linear maps to 1e-5; kernels to 1e-3 of the cosine. Random steps (arccos0) flip where a
    product is 0 to rounding, one in 300 features; the cosine still holds."""
    assert made.shape == expected.shape and made.dtype == np.float32
    if options["kernel"] == "linear":
        np.testing.assert_allclose(made, expected, atol=1e-5)
    cosine = (made.astype("f8") * expected).sum(axis=1)
    assert cosine.min() > 1 - 1e-3


@pytest.fixture(scope="module", params=MAPS, ids=named)
def fitted(request, linear):
    x, y = linear
    return fast(rank=6, **request.param).fit(x[:200], y[:200]), request.param


@pytest.mark.ecosystem
def test_torch(fitted, linear):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    aligner, options = fitted
    x, y = linear
    module = aligner.to_torch()
    with torch.no_grad():
        agree(aligner, options, module.x(torch.tensor(x)).numpy(), aligner.transform_x(x))
        agree(aligner, options, module.y(torch.tensor(y)).numpy(), aligner.transform_y(y))
        assert module(torch.tensor(x[:5]), torch.tensor(y[:7])).shape == (5, 7)


@pytest.mark.ecosystem
def test_torch_module_trains_and_moves(linear):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, y = linear
    aligner = fast(rank=6, kernel="angular", map="nystrom", landmarks=50).fit(x, y)
    assert not any(p.requires_grad for p in aligner.to_torch().parameters())
    module = aligner.to_torch(trainable=True)
    assert set(dict(module.named_parameters())) == {"x.weight", "y.weight"}
    loss = -module(torch.tensor(x), torch.tensor(y)).diagonal().mean()
    loss.backward()
    assert module.x.weight.grad.abs().sum() > 0
    assert module.double().x(torch.tensor(x)).dtype == torch.float64
    again = aligner.to_torch()
    again.load_state_dict(aligner.to_torch().state_dict())


@pytest.mark.ecosystem
def test_safetensors_of_torch(linear, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    load = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    aligner = fast(rank=6).fit(*linear)
    aligner.save(tmp_path / "model.safetensors")
    tensors = load.load_file(tmp_path / "model.safetensors")
    assert tensors["x.weight"].shape == (40, 6) and tensors["y.mean"].shape == (30,)


@pytest.mark.ecosystem
def test_onnx(fitted, linear, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    aligner, options = fitted
    for side, rows in zip("xy", linear):
        path = tmp_path / f"{side}.onnx"
        aligner.to_onnx(path, side)
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        made = session.run(["embedding"], {"rows": rows})[0]
        agree(aligner, options, made, getattr(aligner, "transform_" + side)(rows))
    with pytest.raises(unicon.ArgumentError, match="side is 'z'"):
        aligner.to_onnx(tmp_path / "z.onnx", "z")


@pytest.mark.parametrize("ridge, limit", [(1e-2, 2e-5), (3e-4, 1e-4)])
def test_folded_weights_keep_their_digits(ridge, limit):
    """The angular kernel in float64 with the tensors of the file (docs/numerics.md)."""
    from unicon import _parts

    x, y, _ = unicon.synth("nonlinear", 1500, noise=.2, dim_x=128, dim_y=96)
    options = dict(kernel="angular", map="nystrom", landmarks=500, ridge=ridge, balance="off")
    model = fast(**options, exponent=1).fit(x[:1000], y[:1000]).model_
    tensors = {name: tensor.astype("f8")
               for name, tensor in _parts.read_tensors(model.to_bytes()).items()}
    assert set(tensors) == {f"{side}.{name}" for side in "xy"
                            for name in ("landmarks", "mean", "weight")} | {"spectrum"}
    u = x[1000:] / np.linalg.norm(x[1000:].astype("f8"), axis=1, keepdims=True)
    c = np.clip(u @ tensors["x.landmarks"].T, -1, 1)  # landmarks have length 1 as well
    k = (np.sqrt(1 - c * c) + (np.pi - np.arccos(c)) * c) / np.pi
    z = (k - tensors["x.mean"]) @ tensors["x.weight"]
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    made = model.embed(x[1000:], "x")
    assert np.abs(made - z).max() < limit
    assert (made * z).sum(axis=1).min() > 1 - 1e-6


@pytest.fixture(scope="module", params=["rbf", "matern12", "matern32", "matern52"])
def far(request, linear):
    """A kernel of distances, fitted on rows at 1000 times their spread."""
    x, y = (rows + np.float32(1000) for rows in linear)
    options = dict(kernel=request.param, map="nystrom", landmarks=50, normalize="off")
    return fast(rank=6, **options).fit(x[:200], y[:200]), options, x, y


@pytest.mark.ecosystem
def test_torch_far_from_the_origin(far):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    aligner, options, x, y = far
    module = aligner.to_torch()
    with torch.no_grad():
        agree(aligner, options, module.x(torch.tensor(x)).numpy(), aligner.transform_x(x))
        agree(aligner, options, module.y(torch.tensor(y)).numpy(), aligner.transform_y(y))


@pytest.mark.ecosystem
def test_onnx_far_from_the_origin(far, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    aligner, options, x, _ = far
    aligner.to_onnx(tmp_path / "x.onnx", "x")
    session = runtime.InferenceSession(str(tmp_path / "x.onnx"),
                                       providers=["CPUExecutionProvider"])
    agree(aligner, options, session.run(["embedding"], {"rows": x})[0], aligner.transform_x(x))


def test_unknown_layouts_are_refused(linear, monkeypatch):
    from unicon import _parts

    model = fast(rank=4).fit(*linear).model_
    assert set(_parts.sides_of(model)) == {"x", "y"}
    known = _parts.read_tensors(model.to_bytes())
    for name in ("x.0.weight", "other.weight", "x.new"):
        more = {**known, name: np.zeros(1, "f4")}
        monkeypatch.setattr(_parts, "read_tensors", lambda content: dict(more))
        with pytest.raises(unicon.UnsupportedError, match="this export does not know"):
            _parts.sides_of(model)


def test_atlas(captions, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    x, y = captions
    aligner = fast(rank=6).fit(x, y, pairs=5)
    path = tmp_path / "atlas.parquet"
    aligner.to_atlas(path, x, y, 5, names=("image", "text"), neighbors=4,
                     columns={"caption": (None, [f"caption {j}" for j in range(300)])})
    table = parquet.read_table(path).to_pydict()
    z_x, z_y = aligner.transform_x(x), aligner.transform_y(y)
    z = np.concatenate([z_x, z_y])
    assert table["modality"] == ["image"] * 60 + ["text"] * 300
    assert table["row"][60:63] == [0, 1, 2] and table["caption"][59:61] == [None, "caption 0"]
    np.testing.assert_allclose(table["projection_x"], z[:, 0])
    for line in (0, 59, 60, 200):
        near = table["neighbors"][line]
        assert line not in near["ids"] and len(near["ids"]) == 4
        np.testing.assert_allclose(near["distances"], 1 - z[near["ids"]] @ z[line], atol=1e-5)
    rank = table["true_pair_rank"]
    order = np.argsort(-(z_x @ z_y.T), axis=1)
    for i in range(60):
        assert rank[i] == 1 + min(np.flatnonzero(order[i] // 5 == i))
    hits = aligner.evaluate(x, y, 5)
    assert np.mean([r == 1 for r in rank[:60]]) == pytest.approx(hits["x_to_y"]["hit@1"])
    assert np.mean([r == 1 for r in rank[60:]]) == pytest.approx(hits["y_to_x"]["hit@1"])
    aligner.to_atlas(path, x, y, labels=(np.arange(60) + 1, np.arange(300) // 5),
                     projection=np.zeros((360, 2)))
    table = parquet.read_table(path).to_pydict()
    assert table["true_pair_rank"][59] is None and table["true_pair_rank"][60:65] == [None] * 5
    assert None not in table["true_pair_rank"][:59]
    (tmp_path / "pairs.tsv").write_text("".join(f"{j // 5}\t{j}\n" for j in range(300)))
    aligner.to_atlas(path, x, y, tmp_path / "pairs.tsv")
    assert parquet.read_table(path).to_pydict()["true_pair_rank"] == rank
    aligner.to_atlas(path, x, y, 5, projection=np.zeros((360, 2)))
    table = parquet.read_table(path).to_pydict()
    assert set(table["projection_y"]) == {0}
    with pytest.raises(ValueError, match="NUL"):
        aligner.to_atlas("atlas.parquet\0", x, y, 5)
    with pytest.raises(unicon.ShapeError, match="projection has shape"):
        aligner.to_atlas(path, x, y, 5, projection=np.zeros((3, 2)))
