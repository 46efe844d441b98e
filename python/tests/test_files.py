# SPDX-License-Identifier: Apache-2.0
"""Parquet files, and folders of embeddings as a whole."""
import numpy as np
import pytest
from support import fast

import unicon

pa = pytest.importorskip("pyarrow", minversion="14", reason="pyarrow 14 is not installed")
pq = pytest.importorskip("pyarrow.parquet")


def lists(rows, kind=None):
    return pa.array(rows.tolist(), kind or pa.list_(pa.float32()))


def test_parquet_files(linear, saved, tmp_path):
    x, y = linear
    plain = saved(fast(rank=8).fit(x, y))
    ids = pa.array([f"id {i}" for i in range(500)])
    pq.write_table(pa.table({"id": ids, "v": lists(x)}), tmp_path / "x.parquet")
    pq.write_table(pa.table({"v": lists(x), "w": lists(y)}), tmp_path / "both.parquet",
                   row_group_size=77)
    pq.write_table(pa.table({f"c{k}": y[:, k] for k in range(30)}), tmp_path / "y.PARQUET")
    assert saved(fast(rank=8).fit(tmp_path / "x.parquet", str(tmp_path / "y.PARQUET"))) == plain
    both = tmp_path / "both.parquet"
    assert saved(fast(rank=8).fit(f"{both}:v", f"{both}:w")) == plain
    assert (unicon.read_rows(f"{both}:w") == y).all()
    assert (unicon.read_rows(f"{both}:w", 3, 4) == y[3:7]).all()
    with pytest.raises(unicon.FormatError, match="say which column.*v .list<.*w .list<"):
        fast().fit(both, y)
    with pytest.raises(unicon.FormatError, match="no column z; it has v, w"):
        fast().fit(f"{both}:z", y)
    with pytest.raises(unicon.DataError, match="column id of .* is text"):
        fast().fit(f"{tmp_path / 'x.parquet'}:id", y)
    with pytest.raises(unicon.FileError, match="no such file"):
        fast().fit(tmp_path / "none.parquet", y)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 is not enough")
    with pytest.raises(unicon.FormatError, match="bad.parquet: "):
        fast().fit(tmp_path / "bad.parquet", y)


@pytest.mark.ecosystem
@pytest.mark.parametrize("writer", ["polars", "duckdb", "pandas"])
def test_parquet_files_of_others(linear, saved, tmp_path, writer):
    module = pytest.importorskip(writer, reason=f"{writer} is not installed")
    x, y = linear
    path = tmp_path / "x.parquet"
    if writer == "polars":
        module.DataFrame({"v": x}).write_parquet(path)
    elif writer == "pandas":
        module.DataFrame({"id": [f"{i}" for i in range(500)], "v": list(x)}).to_parquet(path)
    else:
        module.from_arrow(pa.table({"v": lists(x)})).to_parquet(str(path))
    assert saved(fast(rank=8).fit(path, y)) == saved(fast(rank=8).fit(x, y))


def test_without_pyarrow(linear, tmp_path, monkeypatch):
    import builtins

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", lambda name, *rest: real(name, *rest)
                        if not name.startswith("pyarrow") else (_ for _ in ()).throw(ImportError()))
    with pytest.raises(unicon.FormatError, match="pip install pyarrow"):
        fast().fit(tmp_path / "x.parquet", linear[1])


def shards(folder, name, rows, sizes=(200, 200, 100)):
    (folder / name).mkdir(parents=True)
    cuts = np.cumsum((0, *sizes))
    for k, (start, end) in enumerate(zip(cuts, cuts[1:])):
        np.save(folder / name / f"{name}_{k}.npy", rows[start:end])


def descriptions(folder, sizes=(200, 200, 100)):
    (folder / "metadata").mkdir()
    start = 0
    for k, size in enumerate(sizes):
        pq.write_table(pa.table({"caption": [f"caption {i}" for i in range(start, start + size)],
                                 "key": np.arange(start, start + size)}),
                       folder / "metadata" / f"metadata_{k}.parquet")
        start += size


def test_a_folder_of_clip_retrieval(linear, saved, tmp_path):
    x, y = (rows.astype("f2") for rows in linear)
    shards(tmp_path, "img_emb", x)
    shards(tmp_path, "text_emb", y)
    descriptions(tmp_path)
    run = unicon.open_folder(tmp_path)
    assert run.rows == 500 and len(run.files) == 3
    assert saved(fast(rank=8).fit(run.x, run.y)) == saved(fast(rank=8).fit(x, y))
    table = run.metadata(["caption"])
    assert table.num_rows == 500 and table["caption"][433].as_py() == "caption 433"
    assert run.metadata().column_names == ["caption", "key"]
    last = tmp_path / "metadata" / "metadata_2.parquet"
    pq.write_table(pa.table({"key": np.arange(400, 500)}), last)  # a column less in one piece
    assert run.metadata()["caption"].null_count == 100
    last.unlink()
    with pytest.raises(unicon.ShapeError, match="img_emb has 3 files, but metadata has 2"):
        unicon.open_folder(tmp_path)


@pytest.mark.ecosystem
def test_embedding_reader_reads_the_same(linear, tmp_path):
    reader = pytest.importorskip("embedding_reader", reason="embedding-reader is not installed")
    x, y = linear
    shards(tmp_path, "img_emb", x)
    shards(tmp_path, "text_emb", y)
    descriptions(tmp_path)
    run = unicon.open_folder(tmp_path)
    for path, rows in ((run.x, x), (run.y, y)):
        theirs = reader.EmbeddingReader(path, file_format="npy")
        assert theirs.count == run.rows == 500
        found = np.concatenate([batch for batch, _ in theirs(batch_size=123, show_progress=False)])
        assert (found == unicon.read_rows(path)).all() and (found == rows).all()


def test_folders_that_are_not_whole(linear, tmp_path):
    x, y = linear
    with pytest.raises(unicon.FileError, match="there is no such folder"):
        unicon.open_folder(tmp_path / "none")
    with pytest.raises(unicon.FileError, match="has no folders img_emb and text_emb"):
        unicon.open_folder(tmp_path)
    shards(tmp_path, "img_emb", x)
    run = unicon.open_folder(tmp_path)
    assert run.y is None and run.rows == 500
    with pytest.raises(unicon.FileError, match="no Parquet files beside"):
        run.metadata()
    shards(tmp_path, "text_emb", y, (200, 199, 101))
    with pytest.raises(unicon.ShapeError, match="file 1 of img_emb has 200 rows, but that of text_emb has 199"):
        unicon.open_folder(tmp_path)


def test_a_folder_of_parquet_files(linear, saved, tmp_path):
    x, y = linear
    for k in range(12):  # 10 comes after 9, not after 1
        cut = slice(k * 42, (k + 1) * 42)
        pq.write_table(pa.table({"image": lists(x[cut]), "text": lists(y[cut]),
                                 "key": np.arange(len(x))[cut]}), tmp_path / f"part_{k}.parquet")
    run = unicon.open_folder(tmp_path, x="image", y="text")
    assert run.rows == 500
    assert saved(fast(rank=8).fit(run.x, run.y)) == saved(fast(rank=8).fit(x, y))
    assert run.metadata(["key"])["key"].to_pylist() == list(range(500))
    assert unicon.open_folder(tmp_path, x="image", y="none").y is None
    with pytest.raises(unicon.ArgumentError, match="no column a or b.*they have image, text, key"):
        unicon.open_folder(tmp_path, "a", "b")
