# SPDX-License-Identifier: Apache-2.0
"""Engines that add up statistics of parts; skipped where they are not installed."""
import numpy as np
import pytest

import unicon
from unicon import Stats


def cosines(model, x, y):
    return model.embed(x, "x") @ model.embed(y, "y").T


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True,
                                  dashboard_address=None) as made, distributed.Client(made):
        yield made


def test_dask_arrays_on_processes(cluster, captions):
    import dask.array as da

    import unicon.dask

    x, y = captions
    whole = Stats().update(x, y, 5)
    ddx, ddy = da.from_array(x, (13, 7)), da.from_array(y, (100, 30))
    total = unicon.dask.stats(ddx, ddy, 5)
    assert total.info["rows_y"] == 300 and total.info["updates"] == 5
    np.testing.assert_allclose(cosines(total.fit(preset="fast"), x, y),
                               cosines(whole.fit(preset="fast"), x, y), atol=1e-6)
    aligner = unicon.dask.fit(ddx, ddy, 5, preset="fast", rank=6, sample_rows=50)
    assert aligner.rank_ == 6 and aligner.stats_.info["sample"]["rows_x"] <= 50
    assert aligner.forget(x[:13], y[:65], 5)["removed"]["rows_x"] == 13
    with pytest.raises(unicon.ShapeError, match="ddy needs 60"):
        unicon.dask.stats(ddx, ddy)


def test_dask_kernels_share_landmarks(cluster, linear):
    import dask.array as da

    import unicon.dask

    x, y = linear
    aligner = unicon.dask.fit(da.from_array(x, (120, 40)), da.from_array(y, (500, 30)),
                              preset="fast", kernel="rbf", landmarks=50, rank=20)
    assert aligner.stats_.info["features_x"] == 50 and aligner.stats_.info["rows_x"] == 500


def test_dask_says_which_part_is_broken(cluster, linear):
    import dask.array as da

    import unicon.dask

    x, y = linear
    bad = x.copy()
    bad[333, 4] = np.inf
    with pytest.raises(unicon.DataError, match="part 3: X: row 33, column 4"):
        unicon.dask.stats(da.from_array(bad, (100, 40)), da.from_array(y, (100, 30)))


def test_dask_frames_of_parquet_files(cluster, linear, tmp_path):
    frames = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import unicon.dask

    x, y = linear
    for part in range(3):
        rows = slice(part * 200, part * 200 + 200)
        pandas.DataFrame({"image": list(x[rows]), "text": list(y[rows])}).to_parquet(
            tmp_path / f"{part}.parquet")
    frame = frames.read_parquet(str(tmp_path / "*.parquet"))
    total = unicon.dask.stats(frame["image"], frame["text"])
    assert total.info["rows_x"] == 500
    np.testing.assert_allclose(cosines(total.fit(preset="fast"), x, y),
                               cosines(Stats().update(x, y).fit(preset="fast"), x, y), atol=1e-6)


def test_spark_with_local_processes(linear, monkeypatch):
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    pytest.importorskip("pandas", reason="pandas is not installed")
    import shutil
    import sys

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    if not shutil.which("java"):
        pytest.skip("there is no Java")
    from pyspark.sql import SparkSession

    import unicon.spark

    x, y = linear
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false") \
        .getOrCreate()
    try:
        rows = [(a.tolist(), b.tolist()) for a, b in zip(x, y)]
        frame = session.createDataFrame(rows, "image array<float>, text array<float>")
        aligner = unicon.spark.fit(frame.repartition(4), "image", "text", preset="fast")
        assert aligner.stats_.info["rows_x"] == 500
        np.testing.assert_allclose(cosines(aligner.model_, x, y),
                                   cosines(Stats().update(x, y).fit(preset="fast"), x, y),
                                   atol=1e-6)
    finally:
        session.stop()


MPI_PROGRAM = """
import sys
import numpy as np
from mpi4py import MPI
import unicon, unicon.mpi
comm = MPI.COMM_WORLD
x, y, _ = unicon.synth("linear", 500)
rows = np.array_split(np.arange(500), comm.size)[comm.rank]
kernel = dict(kernel="rbf", landmarks=40) if sys.argv[1] == "rbf" else {}
if sys.argv[1] == "broken" and comm.rank == 1:
    x[rows[3], 2] = np.nan
x, y = (None, None) if sys.argv[1] == "idle" and comm.rank == 1 else (x[rows], y[rows])
try:
    aligner = unicon.mpi.fit(comm, x, y, preset="fast", rank=10, **kernel)
except unicon.DataError as error:
    told = comm.gather(f"{comm.rank} says: {error}")
    if comm.rank == 0:
        print("\\n".join(told))
    sys.exit(0)
assert len(set(comm.allgather(aligner.model_.id))) == 1
if comm.rank == 0:
    aligner.save(sys.argv[2])
    print("rows", aligner.stats_.info["rows_x"])
"""


@pytest.fixture
def mpirun(tmp_path):
    import os
    import shutil
    import subprocess
    import sys

    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    beside = os.path.join(os.path.dirname(sys.executable), "mpirun")
    command = beside if os.path.exists(beside) else shutil.which("mpirun")
    if not command:
        pytest.skip("there is no mpirun")
    program = tmp_path / "fit.py"
    program.write_text(MPI_PROGRAM)

    def run(processes, what, model):
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                       "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        done = subprocess.run([command, "-n", str(processes), sys.executable, program, what,
                               tmp_path / model], capture_output=True, text=True, timeout=300,
                              env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout, tmp_path / model
    return run


@pytest.mark.parametrize("processes", [2, 4])
def test_mpi_processes_fit_as_one(mpirun, linear, processes):
    x, y = linear
    told, path = mpirun(processes, "linear", "m.safetensors")
    assert "rows 500" in told
    alone = Stats().update(x, y).fit(preset="fast", rank=10)
    np.testing.assert_allclose(cosines(unicon.Model.load(path), x, y), cosines(alone, x, y),
                               atol=1e-6)


def test_mpi_kernels_idle_and_broken_processes(mpirun):
    assert "rows 500" in mpirun(3, "rbf", "k.safetensors")[0]
    assert "rows 250" in mpirun(2, "idle", "i.safetensors")[0]
    told, path = mpirun(3, "broken", "b.safetensors")
    assert sorted(told.splitlines()) == [f"{k} says: process 1: X: row 3, column 2 is not a finite "
                                         "number (NaN, infinite or beyond float32); 1 of 167 rows "
                                         "cannot be used (bad_rows drop leaves them and their pairs "
                                         "out)" for k in range(3)]
    assert not path.exists()
