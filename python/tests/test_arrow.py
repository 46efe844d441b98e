# SPDX-License-Identifier: Apache-2.0
"""Tables as rows, by the Arrow C interface: the numbers are the very same, and no package is asked."""
import gc
import subprocess
import sys

import numpy as np
import pytest
from support import fast

import unicon
from unicon._arrow import matrix_of

pa = pytest.importorskip("pyarrow", minversion="14", reason="pyarrow 14 is not installed")


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(1000, 7)).astype("f4")


def fixed(rows):
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])


def lists(rows, kind):
    return pa.array(rows.tolist(), kind)


LAYOUTS = {
    "fixed": lambda a: pa.table({"v": fixed(a)}),
    "cut": lambda a: pa.table({"v": fixed(np.vstack([a[:13], a]))}).slice(13),
    "column": fixed,
    "cut column": lambda a: fixed(np.vstack([a[:5], a])).slice(5),
    "chunks": lambda a: pa.chunked_array([fixed(a[:400]), fixed(a[390:]).slice(10)]),
    "lists": lambda a: pa.table({"v": lists(a, pa.list_(pa.float32()))}),
    "cut lists": lambda a: pa.table({"v": lists(np.vstack([a[:9], a]), pa.list_(pa.float32()))})[9:],
    "large lists": lambda a: pa.table({"v": lists(a, pa.large_list(pa.float64()))}),
    "columns": lambda a: pa.table({str(k): a[:, k] for k in range(7)}),
    "cut columns": lambda a: pa.table({str(k): np.append(a[:3, k], a[:, k]) for k in range(7)})[3:],
    "batch": lambda a: pa.record_batch([fixed(np.vstack([a[:3], a]))], ["v"]).slice(3),
    "reader": lambda a: pa.RecordBatchReader.from_batches(
        pa.schema([("v", fixed(a).type)]),
        (pa.record_batch([fixed(a[k:k + 250])], ["v"]) for k in range(0, 1000, 250))),
    "no nulls": lambda a: pa.table({"v": pa.concat_arrays(
        [lists(a[:1], pa.list_(pa.float32())), pa.array([None], pa.list_(pa.float32())),
         lists(a, pa.list_(pa.float32()))])})[2:],
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts(rows, layout):
    found = matrix_of("X", layout(rows))
    assert found.shape == rows.shape and (found == rows).all()


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                  "uint64", "float16", "float32", "float64"])
def test_types(kind):
    values = np.arange(12).astype(kind)
    found = matrix_of("X", pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(values), 3)}))
    assert found.dtype == kind and (found == values.reshape(4, 3)).all()


def test_a_column_of_lists_is_read_where_it_is(rows):
    table = pa.table({"v": fixed(rows)})
    there = table["v"].chunk(0).values.buffers()[1].address
    assert matrix_of("X", table).ctypes.data == there
    assert matrix_of("X", table[10:]).ctypes.data == there + 280


def test_memory_is_given_back_and_kept_while_needed(rows):
    gc.collect()
    before = pa.total_allocated_bytes()
    found = matrix_of("X", pa.table({"v": lists(rows, pa.list_(pa.float32()))}))
    for _ in range(20):
        matrix_of("X", pa.table({"v": lists(rows, pa.list_(pa.float32()))}))
    gc.collect()
    assert 28000 <= pa.total_allocated_bytes() - before < 80000  # that of `found` alone
    assert (found == rows).all()
    del found
    gc.collect()
    assert pa.total_allocated_bytes() <= before + 1000


BAD = [
    (dict(v=[1., None]), unicon.DataError, "column v of X has 1 nulls, the first at place 1"),
    (dict(v=[[1., 2.], None]), unicon.DataError, "column v of X has 1 nulls, the first at place 1"),
    (dict(v=[[1., 2.], [None, 3.]]), unicon.DataError, "a row of column v of X has 1 nulls"),
    (dict(v=[[1., 2.], [3.]]), unicon.ShapeError, "lists of 2 and, in row 1, of 1 numbers"),
    (dict(v=[[], []]), unicon.DataError, "column v of X is"),
    (dict(v=["a"]), unicon.DataError, "column v of X is text; accepted: numbers, and lists"),
    (dict(v=[[1.]], n=[2]), unicon.ShapeError, "the columns v, n, of which v holds vectors"),
    (dict(v=[b"ab"]), unicon.DataError, "column v of X is bytes"),
    (dict(v=[True]), unicon.DataError, "column v of X is bits"),
    (dict(v=[{"a": 1}]), unicon.DataError, "column v of X is structs"),
]


@pytest.mark.parametrize("columns, error, sentence", BAD)
def test_refused(columns, error, sentence):
    with pytest.raises(error, match=sentence):
        matrix_of("X", pa.table(columns))


def test_other_refusals():
    with pytest.raises(unicon.DataError, match="is a dictionary"):
        matrix_of("X", pa.table({"v": pa.array(["a"]).dictionary_encode()}))
    with pytest.raises(unicon.DataError, match="Arrow type tss:"):
        matrix_of("X", pa.table({"v": pa.array([1], pa.timestamp("s"))}))
    with pytest.raises(unicon.ShapeError, match="a table without columns"):
        matrix_of("X", pa.table({}))
    two = pa.chunked_array([pa.array([[1., 2.]]), pa.array([[1.]])])
    with pytest.raises(unicon.ShapeError, match="X has lists of 1 and of 2 numbers"):
        matrix_of("X", two)

    def batches():
        yield pa.record_batch([[1.]], ["v"])
        raise RuntimeError("the disk is on fire")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("v", pa.float64())]), batches())
    with pytest.raises(unicon.FormatError, match="X: its Arrow stream failed:.*disk is on fire"):
        matrix_of("X", reader)


def test_lists_beyond_their_numbers():
    offsets = np.array([0, 2, 4], np.int32)
    column = pa.Array.from_buffers(pa.list_(pa.float64()), 2, [None, pa.py_buffer(offsets)],
                                   children=[pa.array([1., 2., 3., 4.])])
    assert matrix_of("X", column).tolist() == [[1, 2], [3, 4]]
    offsets[:] = 0, 3, 6  # after pyarrow has checked them
    with pytest.raises(unicon.FormatError, match="has lists beyond its 4 numbers"):
        matrix_of("X", column)


def test_models_are_the_same(linear, saved):
    x, y = linear
    plain = saved(fast(rank=8).fit(x, y))
    columns = {f"c{k}": y[:, k] for k in range(y.shape[1])}
    assert saved(fast(rank=8).fit(pa.table({"v": fixed(x)}), pa.table(columns))) == plain
    model = fast(rank=8).fit(x, y).model_
    ids, _ = model.search(pa.table({"v": fixed(x[:5])}), fixed(y))
    assert (ids == model.search(x[:5], y)[0]).all()
    with pytest.raises(unicon.DataError, match="Y is empty"):
        fast().fit(x, pa.table(columns)[:0])


def test_polars(linear, saved):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    x, y = linear
    plain = saved(fast(rank=8).fit(x, y))
    assert saved(fast(rank=8).fit(polars.DataFrame({"v": x}), polars.DataFrame(y))) == plain
    assert saved(fast(rank=8).fit(polars.DataFrame({"v": x})["v"],
                                  polars.DataFrame({"v": y.tolist()}))) == plain
    with pytest.raises(unicon.DataError, match="column v of X has 1 nulls"):
        fast().fit(polars.DataFrame({"v": [1., None]}), y)


def test_duckdb(linear, saved):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    x, y = linear
    table = pa.table({"id": np.arange(500), "v": fixed(x)})
    found = duckdb.from_arrow(table).order("id").project("v")
    if not hasattr(found, "__arrow_c_stream__"):
        pytest.skip("this duckdb has no Arrow stream")
    assert saved(fast(rank=8).fit(found, y)) == saved(fast(rank=8).fit(x, y))


def test_pandas(linear, saved):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    x, y = linear
    plain = saved(fast(rank=8).fit(x, y))
    assert saved(fast(rank=8).fit(pandas.DataFrame(x), pandas.DataFrame(y))) == plain
    if hasattr(pandas.DataFrame, "__arrow_c_stream__"):
        vectors = pandas.DataFrame({"v": [row.tolist() for row in x]})
        assert saved(fast(rank=8).fit(vectors, y)) == plain
    x = x.copy()
    x[3, 2] = np.nan  # missing numbers are the library's matter, as in an array
    with pytest.raises(unicon.DataError, match="row 3"):
        fast().fit(pandas.DataFrame(x), y)


@pytest.mark.ecosystem
def test_data_sets(linear, tmp_path):
    """Those that make a table when they are asked."""
    x, _ = linear
    table = pa.table({"v": fixed(x)})
    pyarrow_dataset = pytest.importorskip("pyarrow.dataset")
    assert (unicon.read_rows(pyarrow_dataset.dataset(table)) == x).all()
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    assert (unicon.read_rows(lance.write_dataset(table, str(tmp_path / "rows"))) == x).all()


@pytest.mark.ecosystem
def test_hugging_face_data_sets(linear):
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    x, _ = linear
    rows = datasets.Dataset.from_dict({"v": x.tolist(), "text": ["a"] * 500}).select_columns("v")
    assert (unicon.read_rows(rows) == x).all()
    assert (unicon.read_rows(rows.select(range(9, 30))) == x[9:30]).all()
    assert (unicon.read_rows(rows["v"]) == x).all()


def test_no_package_is_needed():
    """The structures are read by ctypes: pyarrow is not imported by the package."""
    code = "import sys, unicon; print(sorted({'pyarrow', 'polars', 'pandas', 'sklearn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
