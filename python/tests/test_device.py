# SPDX-License-Identifier: Apache-2.0
"""Rows and results in memory of devices. The soft device stands for a GPU: told by UNICON_SOFT_KIND that
its memory is CUDA's, it reads what says that it lies there, and nothing else may."""
import ctypes
import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import fast

import unicon
from unicon import _dlpack

FOLDER = os.environ.get("UNICON_SOFT_FOLDER")
needs_soft = pytest.mark.skipif(
    not FOLDER or os.environ.get("UNICON_DEVICES") != FOLDER or os.environ.get("UNICON_SOFT_KIND") != "2",
    reason="the soft device is not there: run as test_the_soft_device does")
inside = pytest.mark.skipif(os.environ.get("UNICON_SOFT_KIND") == "2", reason="is what runs this")


@inside
def test_the_soft_device():
    """The tests below, where the soft device is a GPU."""
    if not FOLDER:
        pytest.skip("set UNICON_SOFT_FOLDER to the folder of libunicon_soft.so")
    environment = {**os.environ, "UNICON_DEVICES": FOLDER, "UNICON_SOFT_KIND": "2"}
    run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
                         env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert " passed" in run.stdout and "failed" not in run.stdout


class Capsule:
    """An array on a "GPU", by DLPack alone; counts what is taken and given back."""

    taken = given = 0

    def __init__(self, array, number=0, versioned=False):
        self.array, self.number, self.versioned, self.streams = array, number, versioned, []

    def __dlpack_device__(self):
        return _dlpack.CUDA, self.number

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        kind, count = self.array.dtype.kind, self.array.ndim
        shape = (ctypes.c_int64 * count)(*self.array.shape)
        strides = (ctypes.c_int64 * count)(*(s // self.array.itemsize for s in self.array.strides))
        tensor = _dlpack._Tensor(self.array.ctypes.data - 16, _dlpack.CUDA, self.number, count,
                                 {"i": 0, "u": 1, "f": 2, "c": 5}[kind], 8 * self.array.itemsize, 1, shape,
                                 strides, 16)
        deleter = ctypes.cast(_give_back, ctypes.c_void_p)
        if self.versioned:
            managed, name = _dlpack._Versioned(1, 0, None, deleter, 0, tensor), VERSIONED
        else:
            managed, name = _dlpack._Managed(tensor, None, deleter), LEGACY
        HELD[ctypes.addressof(managed)] = (managed, shape, strides, self.array)
        Capsule.taken += 1
        return _dlpack._new_capsule(ctypes.addressof(managed), ctypes.cast(name, ctypes.c_char_p), None)


HELD = {}
LEGACY = ctypes.create_string_buffer(b"dltensor")
VERSIONED = ctypes.create_string_buffer(b"dltensor_versioned")


@_dlpack._DELETER
def _give_back(address):
    Capsule.given += 1
    del HELD[address]


class Interface:
    """An array on a "GPU", by __cuda_array_interface__."""

    def __init__(self, array, **said):
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "version": 3, "stream": None,
            "data": (array.ctypes.data, False), "strides": array.strides, **said}


@needs_soft
@pytest.mark.parametrize("wrap", [Capsule, lambda a: Capsule(a, versioned=True), Interface])
@pytest.mark.parametrize("change", [lambda a: a, np.asfortranarray, lambda a: a[::-1],
                                    lambda a: a.astype("f8"), lambda a: a.astype("f2")])
def test_rows_are_read_where_they_are(linear, saved, wrap, change):
    x, y = (change(a) for a in linear)
    plain = saved(fast(rank=8, device="soft").fit(x.astype("f4"), y.astype("f4")))
    before = Capsule.taken - Capsule.given
    assert saved(fast(rank=8, device="soft").fit(wrap(x), wrap(y))) == plain
    gc.collect()
    assert Capsule.taken - Capsule.given == before, "a tensor was not given back"


@needs_soft
def test_the_default_stream_is_asked_for(linear):
    x = Capsule(linear[0])
    fast(rank=8, device="soft").fit(x, linear[1])
    assert set(x.streams) == {1}


@needs_soft
@pytest.mark.parametrize("kernel", ["linear", "angular"])
def test_embeddings_stay_there(linear, kernel):
    x, y = linear
    aligner = fast(rank=8, kernel=kernel, device="soft").fit(x, y)
    want = aligner.transform_x(x)
    made = aligner.transform_x(Capsule(x), out="device")
    assert isinstance(made, unicon.DeviceArray)
    assert made.shape == want.shape and made.dtype == np.float32 and len(made) == len(x)
    assert made.__dlpack_device__() == (2, 0)
    np.testing.assert_allclose(made.numpy(), want, atol=1e-6)
    np.testing.assert_allclose(np.asarray(made), want, atol=1e-6)
    # and can be used there: searched in, embedded from
    ids, _ = unicon.search(made, made, 1, device="soft")
    assert (ids[:, 0] == np.arange(len(x))).all()
    # on the host by default
    back = aligner.transform_x(Interface(x))
    assert isinstance(back, np.ndarray)
    np.testing.assert_allclose(back, want, atol=1e-6)
    np.testing.assert_allclose(aligner.transform_x(x, out="device").numpy(), want, atol=1e-6)
    # into memory of others
    out = np.zeros((len(x), 8), np.float32)
    given = Interface(out)
    assert aligner.transform_x(Capsule(x), out=given) is given
    np.testing.assert_allclose(out, want, atol=1e-6)
    # as what the rows are: a stranger's library takes no DLPack, numpy does
    assert isinstance(aligner.transform_x(Capsule(x), out="like"), unicon.DeviceArray)
    assert isinstance(aligner.transform_x(x, out="like"), np.ndarray)


@needs_soft
def test_a_device_array_outlives_everything(linear):
    x, y = linear
    aligner = fast(rank=8, device="soft").fit(x, y)
    made, want = aligner.transform_x(Capsule(x), out="device"), aligner.transform_x(x)
    capsule, interface = made.__dlpack__(), made.__cuda_array_interface__
    assert interface["shape"] == made.shape and interface["typestr"] == "<f4"
    tensor = ctypes.cast(_dlpack._pointer_of(capsule, b"dltensor"),
                         ctypes.POINTER(_dlpack._Managed)).contents.tensor
    assert (tensor.kind, tensor.number, tensor.ndim) == (2, 0, 2)
    address, count = tensor.data, want.size
    assert address == interface["data"][0]
    lent = len(_dlpack._lent)
    del made, aligner
    gc.collect()
    numbers = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (count,))
    np.testing.assert_allclose(numbers, want.ravel(), atol=1e-6)
    del capsule, tensor  # nobody took it: it goes with the capsule
    assert len(_dlpack._lent) == lent - 1


@needs_soft
def test_mistakes_have_sentences(linear):
    x, y = linear
    aligner = fast(rank=8, device="soft").fit(x, y)
    model = aligner.model_
    with pytest.raises(unicon.DataError, match=r"X has values of type code 5 with 64 bits.*accepted.*bfloat16"):
        aligner.transform_x(Capsule(x.astype("c8")))
    with pytest.raises(unicon.DataError, match=r"X has values of type '<i4'.*float16"):
        aligner.transform_x(Interface(x.astype("i4")))
    for stream in (0, "1"):
        with pytest.raises(unicon.ArgumentError, match="X.__cuda_array_interface__ has stream"):
            aligner.transform_x(Interface(x, stream=stream))
    with pytest.raises(unicon.DataError, match="masked"):
        aligner.transform_x(Interface(x, mask=Interface(x)))
    broken = Interface(x)
    del broken.__cuda_array_interface__["typestr"]
    with pytest.raises(unicon.ArgumentError, match="has no typestr"):
        aligner.transform_x(broken)
    with pytest.raises(unicon.DeviceError, match="number 3.*0 is in use"):
        aligner.transform_x(Capsule(x, number=3))
    with pytest.raises(unicon.DeviceError, match=r"X lies in the memory of a device of kind 2 \(CUDA\).*cpu"):
        model.embed(Capsule(x), "x", device="cpu")
    with pytest.raises(unicon.DeviceError, match="Y lies.*accepted: a copy in the memory of the host"):
        fast(device="cpu").fit(x, Capsule(y))
    with pytest.raises(unicon.ShapeError, match="X has shape .500,."):
        aligner.transform_x(Capsule(x[:, 0]))
    with pytest.raises(unicon.ShapeError, match="30 values.*takes 40"):
        aligner.transform_x(Capsule(y), out="device")
    with pytest.raises(unicon.ShapeError, match="out has shape"):
        aligner.transform_x(x, out=Interface(np.zeros((3, 8), "f4")))
    with pytest.raises(unicon.ShapeError, match="float32"):
        aligner.transform_x(x, out=Interface(np.zeros((500, 8), "f8")))
    with pytest.raises(unicon.ArgumentError, match="read-only"):
        out = np.zeros((500, 8), "f4")
        aligner.transform_x(x, out=Interface(out, data=(out.ctypes.data, True)))
    with pytest.raises(unicon.ArgumentError, match="out is 'gpu'; accepted"):
        aligner.transform_x(x, out="gpu")
    with pytest.raises(unicon.UnsupportedError, match='form "index" is made on the host'):
        aligner.transform_x(Capsule(x), "index", out="device")
    used = Capsule(x)
    capsule = used.__dlpack__()
    _dlpack._set_name(capsule, b"used_dltensor")
    used.__dlpack__ = lambda stream=None: capsule
    with pytest.raises(unicon.ArgumentError, match="no capsule of DLPack that is unused"):
        aligner.transform_x(used)
    bad = x.copy()
    bad[77, 5] = np.nan
    with pytest.raises(unicon.DataError, match="X: row 77, column 5 is not a finite number"):
        aligner.transform_x(Capsule(bad), out="device")


@needs_soft
def test_index_forms_of_such_rows_are_made_on_the_host(linear):
    x, y = linear
    aligner = fast(rank=8, device="soft").fit(x, y)
    np.testing.assert_allclose(aligner.transform_x(Capsule(x), "index"), aligner.transform_x(x, "index"),
                               atol=1e-6)


@needs_soft
def test_devices_are_listed():
    found = {one["name"]: one for one in unicon.devices(device="soft")}
    assert found["soft"]["usable"] and found["soft"]["chosen"] and not found["cpu"]["chosen"]
    assert "plain C" in found["soft"]["text"]


@needs_soft
def test_precision_is_an_option(linear):
    x, y = linear
    models = [fast(rank=8, iterations=1, device="soft", precision=p).fit(x, y).metadata_["precision"]
              for p in ("full", "reduced")]
    assert models == ["full", "reduced"]
    with pytest.raises(unicon.OptionError, match=r"precision is \"half\"; accepted.*full\|reduced"):
        fast(precision="half").fit(x, y)


# ---- without a device: DLPack of the host ----------------------------------------------------------


class OnHost:
    """DLPack alone, in memory of the host."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **given):
        return self.array.__dlpack__(**given)


@inside
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", "i4"])
def test_host_tensors_are_not_copied(linear, saved, dtype):
    x, y = ((np.abs(a * 3) - 2).clip(0).astype(dtype) for a in linear)
    x[:, 0] = y[:, 0] = 1
    plain = saved(fast(rank=8).fit(x, y))
    assert saved(fast(rank=8).fit(OnHost(x), OnHost(y))) == plain


@inside
def test_results_on_the_cpu_are_shared(linear):
    x, y = linear
    aligner = fast(rank=8, device="cpu").fit(x, y)
    made = aligner.transform_x(x, out="device")
    view = np.from_dlpack(made)
    assert made.is_host() and made.__dlpack_device__() == (1, 0)
    assert not hasattr(made, "__cuda_array_interface__")
    lent = len(_dlpack._lent)
    assert lent > 0
    del made
    gc.collect()
    np.testing.assert_array_equal(view, aligner.transform_x(x))
    del view
    gc.collect()
    assert len(_dlpack._lent) == lent - 1
    with pytest.raises(BufferError):
        aligner.transform_x(x, out="device").__dlpack__(dl_device=(2, 0))


@inside
@pytest.mark.ecosystem
def test_torch_shares_both_ways(linear):
    torch = pytest.importorskip("torch")
    x, y = (torch.from_numpy(a) for a in linear)
    aligner = fast(rank=8, device="cpu").fit(x.to(torch.bfloat16), y.T.contiguous().T)
    made = aligner.transform_x(x.to(torch.bfloat16), out="like")
    assert isinstance(made, torch.Tensor) and made.dtype == torch.float32
    np.testing.assert_array_equal(made.numpy(), aligner.transform_x(x.to(torch.bfloat16)))
    weights = torch.nn.Parameter(x)
    assert aligner.transform_x(weights, out="like").shape == (500, 8)
    out = torch.zeros(500, 8)
    assert aligner.transform_x(x, out=out) is out
    np.testing.assert_array_equal(out.numpy(), aligner.transform_x(x))


@inside
@pytest.mark.ecosystem
def test_jax_shares_both_ways(linear):
    jax = pytest.importorskip("jax")
    x, y = (jax.numpy.asarray(a) for a in linear)
    aligner = fast(rank=8, device="cpu").fit(x, y)
    made = aligner.transform_x(x, out="like")
    assert isinstance(made, jax.Array)
    np.testing.assert_array_equal(np.asarray(made), aligner.transform_x(x))


@inside
def test_a_wheel_with_a_plugin_is_found(tmp_path):
    """The package unicon_cuda13 is a folder to look in; nothing of it is run."""
    if not FOLDER:
        pytest.skip("set UNICON_SOFT_FOLDER to the folder of libunicon_soft.so")
    package = tmp_path / "unicon_cuda13"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    shutil.copy(Path(FOLDER) / "libunicon_soft.so", package)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    plain = {k: v for k, v in os.environ.items() if k != "UNICON_DEVICES"}
    code = "import unicon; print([one['name'] for one in unicon.devices()])"
    for more, there in (({}, True), ({"UNICON_DEVICES": ""}, False)):
        run = subprocess.run([sys.executable, "-c", code], env={**plain, "PYTHONPATH": path, **more},
                             capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert ("'soft'" in run.stdout) == there, run.stdout


# ---- on a GPU --------------------------------------------------------------------------------------


@pytest.fixture
def gpu():
    """torch, where it and the plugin have a GPU."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    found = {one["name"]: one for one in unicon.devices()}
    if not found.get("cuda", {}).get("usable"):
        pytest.skip("the CUDA plugin is not usable: " + found.get("cuda", {"text": "not there"})["text"])
    return torch


@inside
@pytest.mark.ecosystem
@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16"])
def test_cuda_tensors_are_read_where_they_are(linear, gpu, kind):
    x, y = (gpu.from_numpy(a).cuda().to(getattr(gpu, kind)) for a in linear)
    host = [a.float().cpu().numpy() for a in (x, y)]
    want = fast(rank=8, device="cuda").fit(*host)
    turned = fast(rank=8, device="cuda").fit(x.T.contiguous().T, y)
    for aligner in (turned, fast(rank=8, device="cuda").fit(x, y)):
        np.testing.assert_allclose(aligner.spectrum_, want.spectrum_, rtol=1e-5)
    z = turned.transform_x(host[0])
    stream = gpu.cuda.Stream()
    with gpu.cuda.stream(stream):
        late = x.new_zeros(4096, 4096).float() @ x.new_zeros(4096, 4096).float()  # keeps the stream busy
        moved = x + 0 * late[0, 0].to(x.dtype)
        made = turned.transform_x(moved, out="like")
    assert made.is_cuda and made.dtype == gpu.float32 and made.shape == (500, 8)
    np.testing.assert_allclose(made.cpu().numpy(), z, atol=1e-5)
    out = gpu.full((500, 8), 7.0, device="cuda")
    assert turned.transform_x(x, out=out) is out
    np.testing.assert_allclose(out.cpu().numpy(), z, atol=1e-5)
    there = turned.transform_x(x, out="device")
    del turned, aligner
    gc.collect()
    np.testing.assert_allclose(gpu.from_dlpack(there).cpu().numpy(), z, atol=1e-5)
    np.testing.assert_allclose(gpu.as_tensor(there, device="cuda").cpu().numpy(), z, atol=1e-5)
    np.testing.assert_allclose(there.numpy(), z, atol=1e-5)


@inside
@pytest.mark.ecosystem
def test_mistakes_on_a_gpu_have_sentences(linear, gpu):
    x, y = (gpu.from_numpy(a).cuda() for a in linear)
    aligner = fast(rank=8, device="cuda").fit(x, y)
    with pytest.raises(unicon.DeviceError, match="do not lie in the memory of a GPU"):
        aligner.transform_x(Interface(linear[0]), out="device")
    with pytest.raises(unicon.DeviceError, match="X lies in the memory of a device"):
        fast(device="cpu").fit(x, y)
    x[77, 5] = float("nan")
    with pytest.raises(unicon.DataError, match="X: row 77, column 5 is not a finite number"):
        aligner.transform_x(x, out="device")
