# SPDX-License-Identifier: Apache-2.0
"""Every layout the library can read gives the same model as a plain array, without a copy."""
import numpy as np
import pytest
from support import fast

import unicon


def spread(a):
    """Every second row and column of a larger array."""
    big = np.zeros((2 * a.shape[0], 2 * a.shape[1]), a.dtype)
    big[::2, ::2] = a
    return big[::2, ::2]


def backwards(a):
    return np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1]


@pytest.mark.parametrize("layout", [np.asfortranarray, spread, backwards, lambda a: a.astype("f8"),
                                    lambda a: a.astype(">f4"), lambda a: a.tolist()])
def test_layouts(linear, saved, layout):
    x, y = linear
    plain = saved(fast(rank=8).fit(x, y))
    assert saved(fast(rank=8).fit(layout(x), layout(y))) == plain


@pytest.mark.parametrize("dtype", ["f2", "i1", "u1", "i2", "i8", "?"])
def test_types(linear, saved, dtype):
    x, y = ((np.abs(a * 3) - 2).clip(0).astype(dtype) for a in linear)
    x[:, 0] = y[:, 0] = 1  # no row is all zero
    same = fast(rank=8).fit(x.astype("f4"), y.astype("f4"))
    assert saved(fast(rank=8).fit(x, y)) == saved(same)


def test_files_and_memmaps(linear, saved, tmp_path):
    x, y = linear
    plain = saved(fast(rank=8).fit(x, y))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    mapped = [np.load(tmp_path / name, mmap_mode="r") for name in ("x.npy", "y.npy")]
    assert saved(fast(rank=8).fit(*mapped)) == plain
    assert saved(fast(rank=8).fit(tmp_path / "x.npy", str(tmp_path / "y.npy"))) == plain
    aligner = fast(rank=8).fit(x, y)
    assert (aligner.transform_x(tmp_path / "x.npy") == aligner.transform_x(x)).all()


def test_npz_arrays(linear, saved, tmp_path):
    x, y = linear
    both, packed = tmp_path / "both.npz", tmp_path / "packed.npz"
    np.savez(both, x=x, y=y, ids=np.arange(len(x)))
    np.savez(tmp_path / "x.npz", np.asfortranarray(x))
    np.savez_compressed(packed, x=x)
    plain = saved(fast(rank=8).fit(x, y))
    assert saved(fast(rank=8).fit(f"{both}:x", f"{both}:y")) == plain
    assert saved(fast(rank=8).fit(tmp_path / "x.npz", f"{both}:y")) == plain
    with pytest.raises(unicon.FormatError, match="3 arrays; say which.*'x', 'y', 'ids'"):
        fast().fit(both, y)
    with pytest.raises(unicon.FormatError, match="'x.npy' is compressed.*np.savez"):
        fast().fit(packed, y)


def test_benchmark_files(linear, saved, tmp_path):
    x, y = ((np.abs(a * 3)).clip(1, 100).astype("u1") for a in linear)
    plain = saved(fast(rank=8).fit(x, y))
    width = np.full((len(x), 1), x.shape[1], "<i4")
    np.hstack([width.view("u1"), x]).tofile(tmp_path / "x.bvecs")
    for name, rows in (("x.u8bin", x), ("y.i8bin", y)):
        with open(tmp_path / name, "wb") as file:
            np.array(rows.shape, "<u4").tofile(file)
            rows.tofile(file)
    for name in ("x.bvecs", "x.u8bin"):
        assert saved(fast(rank=8).fit(tmp_path / name, tmp_path / "y.i8bin")) == plain


@pytest.mark.ecosystem
def test_faiss_indexes(linear, saved, tmp_path):
    faiss = pytest.importorskip("faiss")
    x, y = linear
    plain = saved(fast(rank=8).fit(x, y))
    for index in (faiss.IndexFlatIP(40), faiss.IndexFlatL2(40), faiss.IndexFlat(40, faiss.METRIC_L1),
                  faiss.index_factory(40, "Flat")):
        index.add(np.ascontiguousarray(x))
        faiss.write_index(index, str(tmp_path / "x.faiss"))
        assert saved(fast(rank=8).fit(tmp_path / "x.faiss", y)) == plain
    for words in ("IDMap,Flat", "HNSW8", "SQfp16"):
        index = faiss.index_factory(40, words)
        index.train(x)
        index.add_with_ids(x, np.arange(len(x))) if words.startswith("IDMap") else index.add(x)
        faiss.write_index(index, str(tmp_path / "other.faiss"))
        with pytest.raises(unicon.FormatError, match="only flat FAISS indexes are read.*reconstruct_n"):
            fast().fit(tmp_path / "other.faiss", y)


@pytest.mark.ecosystem
def test_bfloat16_arrays(linear, saved, tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x, y = (a.astype(ml_dtypes.bfloat16) for a in linear)
    np.save(tmp_path / "x.npy", x)
    plain = saved(fast(rank=8).fit(x.astype("f4"), y.astype("f4")))
    assert saved(fast(rank=8).fit(x, y)) == plain
    assert saved(fast(rank=8).fit(tmp_path / "x.npy", y)) == plain


def test_clip_retrieval_folder(linear, saved, tmp_path):
    x, y = linear
    for name, rows in (("img_emb", x), ("text_emb", y)):
        (tmp_path / name).mkdir()
        for shard in range(12):  # 10 comes after 9, not after 1
            cut = slice(shard * 42, (shard + 1) * 42)
            np.save(tmp_path / name / f"{name}_{shard}.npy", rows[cut].astype("f2"))
    images, texts = unicon.clip_retrieval(tmp_path)
    same = fast(rank=8).fit(x.astype("f2"), y.astype("f2"))
    assert saved(fast(rank=8).fit(images, texts)) == saved(same)
    with pytest.raises(unicon.FileError, match="it has no img_emb"):
        unicon.clip_retrieval(tmp_path / "img_emb")


def test_dlpack_and_array_protocols(linear, saved):
    class Lent:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **keywords):
            return self.array.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    class Array:
        def __init__(self, array):
            self.array = array

        def __array__(self, dtype=None, copy=None):
            return self.array

    if not hasattr(np, "from_dlpack"):
        pytest.skip("this NumPy has no from_dlpack")
    x, y = (a.copy() for a in linear)
    assert saved(fast(rank=8).fit(Lent(x), Array(y))) == saved(fast(rank=8).fit(x, y))


@pytest.mark.ecosystem
def test_torch_tensors(linear, saved):
    torch = pytest.importorskip("torch")
    x, y = linear
    plain = saved(fast(rank=8).fit(x, y))
    t_x, t_y = torch.tensor(x, requires_grad=True), torch.tensor(y)
    assert saved(fast(rank=8).fit(t_x, t_y.T.contiguous().T)) == plain
    half, other = t_x.detach().bfloat16(), t_y.bfloat16()
    same = fast(rank=8).fit(half.float(), other.float())
    assert saved(fast(rank=8).fit(half, other)) == saved(same)
    assert saved(fast(rank=8).fit((t_x * 9).long(), (t_y * 9).long())) == saved(
        fast(rank=8).fit((t_x * 9).long().numpy(), (t_y * 9).long().numpy()))
    with pytest.raises(unicon.ArgumentError, match="sparse"):
        fast().fit(t_x.detach().to_sparse(), t_y)
    with pytest.raises(unicon.DataError, match="X is empty: 0 rows of 40 columns"):
        fast().fit(t_x[:0], t_y)
    with pytest.raises(unicon.ArgumentError, match="X is on meta"):
        fast().fit(t_x.to("meta"), t_y)
