# SPDX-License-Identifier: Apache-2.0
"""What goes wrong says so in the library's sentence, changes nothing, and the object works on."""
import os
from pathlib import Path

import numpy as np
import pytest
from support import fast

import unicon
from unicon import Aligner


def damaged(x, row, column, value):
    copy = x.copy()
    copy[row, column] = value
    return copy


CASES = {
    "nan": (lambda x: damaged(x, 3, 2, np.nan), unicon.DataError,
            "X: row 3, column 2 is not a finite number"),
    "infinite": (lambda x: damaged(x, 7, 0, np.inf), unicon.DataError, "X: row 7, column 0"),
    "beyond float32": (lambda x: damaged(x.astype("f8"), 7, 0, 1e300), unicon.DataError,
                       "X: row 7, column 0"),
    "zero row": (lambda x: damaged(x, 5, slice(None), 0), unicon.DataError,
                 "X: row 5 is all zero and has no direction"),
    "no rows": (lambda x: x[:0], unicon.DataError, "X is empty: 0 rows of 40 columns"),
    "no columns": (lambda x: x[:, :0], unicon.DataError, "X is empty: 500 rows of 0 columns"),
    "fewer rows": (lambda x: x[:9], unicon.PairsError, "y has 500, but row i belongs to row i"),
    "object": (lambda x: x.astype(object), unicon.DataError, "X has values of type object"),
    "strings": (lambda x: x.astype(str), unicon.DataError, "X has values of type <U"),
    "complex": (lambda x: x.astype("c8"), unicon.DataError, "Complex data not supported"),
    "vector": (lambda x: x[0], unicon.ShapeError, r"X has shape \(40,\)"),
    "cube": (lambda x: x[None], unicon.ShapeError, r"X has shape \(1, 500, 40\)"),
    "number": (lambda x: 3.0, unicon.ShapeError, r"X has shape \(\)"),
    "none": (lambda x: None, unicon.ArgumentError, "X is missing"),
    "masked": (lambda x: np.ma.masked_less(x, 0), unicon.DataError, "X has masked values"),
    "no file": (lambda x: "nothing/here.npy", unicon.FileError, "nothing/here.npy"),
    "unknown format": (lambda x: __file__, unicon.FormatError, "unknown file extension"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_matrix(linear, saved, name):
    make, error, sentence = CASES[name]
    x, y = linear
    aligner = fast(rank=8)
    bad = make(x)
    with pytest.raises(error, match=sentence):
        aligner.fit(bad, y)
    assert not aligner.__sklearn_is_fitted__() and not hasattr(aligner, "n_features_in_")
    before = saved(aligner.fit(x, y))
    with pytest.raises(error, match=sentence):
        aligner.fit(bad, y)
    assert saved(aligner) == before
    assert saved(aligner.fit(x, y)) == before


@pytest.mark.parametrize("name", [name for name in CASES if name != "fewer rows"])
def test_bad_matrix_in_transform(linear, name):
    make, error, sentence = CASES[name]
    x, y = linear
    aligner = fast(rank=8).fit(x, y)
    expected = aligner.transform_x(x)
    with pytest.raises(error, match=sentence):
        aligner.transform_x(make(x))
    assert (aligner.transform_x(x) == expected).all()


def test_wrong_width(linear):
    x, y = linear
    aligner = fast(rank=8).fit(x, y)
    with pytest.raises(unicon.ShapeError, match="Y has rows of 40 values, but side y of the model"):
        aligner.transform_y(x)


@pytest.mark.parametrize("options, sentence", [
    (dict(rank=0), 'rank is "0"; accepted: a whole number from 1'),
    (dict(rank=2.5), 'rank is "2.5"; accepted: a whole number'),
    (dict(kernel="rfb"), 'kernel is "rfb"; accepted: linear|'),
    (dict(ridge="much"), 'ridge is "much"; accepted: a number'),
    (dict(threads=0), 'threads is "0"; accepted: a whole number'),
    (dict(rank=True), 'rank is "on"; accepted:'),
    (dict(rank=[1, 2]), r'rank is "[1, 2]"')])
def test_bad_value(linear, options, sentence):
    with pytest.raises(unicon.OptionError) as caught:
        fast(**options).fit(*linear)
    assert sentence in str(caught.value) and caught.value.status == 2


def test_unknown_option():
    for refuse in (lambda: fast(rnak=3), lambda: fast().set_params(rnak=3)):
        with pytest.raises(unicon.OptionError, match='"rnak"; did you mean "rank"'):
            refuse()
    with pytest.raises(unicon.OptionError, match="ci is no option of a fit"):
        fast(ci=True)


def test_memory_limit(linear):
    aligner = fast(max_mem="1M", kernel="rbf")
    with pytest.raises(unicon.MemoryLimitError) as caught:
        aligner.fit(*linear)
    assert isinstance(caught.value, MemoryError) and "max_mem" in str(caught.value)
    aligner.set_params(max_mem=None).fit(*linear)


def test_not_fitted(linear):
    for use in (lambda a: a.transform_x(linear[0]), lambda a: a.save("x"), lambda a: a.rank_):
        with pytest.raises(unicon.NotFittedError, match="call fit"):
            use(fast())


def test_files(linear, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"not a model at all")
    with pytest.raises(unicon.FormatError, match="model.safetensors"):
        Aligner.load(path)
    with pytest.raises(OSError, match="nothing.safetensors"):
        Aligner.load(tmp_path / "nothing.safetensors")
    with pytest.raises(OSError):
        fast(rank=2).fit(*linear).save(tmp_path / "no folder" / "model.safetensors")


def test_models_of_other_formats_are_refused(linear, tmp_path):
    aligner = fast(rank=2).fit(*linear)
    for name in ("model.pt", "model.npy"):
        with pytest.raises(unicon.ArgumentError, match="in the format safetensors"):
            aligner.save(tmp_path / name)
    aligner.save(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]


def test_nul_bytes_are_refused_not_cut(linear, tmp_path, monkeypatch):
    x, y = linear
    monkeypatch.chdir(tmp_path)
    aligner = fast(rank=4).fit(x, y)
    np.save("a", x)
    np.savetxt("a.tsv", [[0, 0], [1, 1]], "%d")
    aligner.save("a.safetensors")
    before = sorted(os.listdir())
    calls = [lambda: aligner.save("b\0.safetensors"), lambda: aligner.save(b"b\0.safetensors"),
             lambda: aligner.save(Path("b\0.safetensors")),
             lambda: Aligner.load("a.safetensors\0"), lambda: aligner.transform_x("a.npy\0.txt"),
             lambda: aligner.fit(x, y, "a.tsv\0"), lambda: aligner.fit(x, y, ignore="a.tsv\0"),
             lambda: aligner.fit(x, y, negatives="a.tsv\0"),
             lambda: aligner.fit(x, y, labels=("a.tsv\0", "a.tsv\0")),
             lambda: fast(kernel="rbf", landmark_method="a.tsv\0").fit(x, y),
             lambda: fast(start=Path("a.safetensors\0")).fit(x, y),
             lambda: fast(kernel="linear\0rbf").fit(x, y), lambda: fast(max_mem="1G\0").fit(x, y),
             lambda: unicon.synth("linear\0", 10),
             lambda: aligner.evaluate(x, y, ci="on\0")]
    for number, call in enumerate(calls):
        with pytest.raises(ValueError, match="NUL"):
            call()
            pytest.fail(f"call {number} went through")
    assert sorted(os.listdir()) == before


def test_bad_arguments(linear):
    x, y = linear
    aligner = fast(rank=4).fit(x, y)
    with pytest.raises(unicon.ArgumentError, match="k is 0"):
        aligner.search(x, y, k=0)
    with pytest.raises(unicon.ArgumentError, match="side is 'z'"):
        aligner.search(x, y, query_side="z")
    with pytest.raises(unicon.ArgumentError, match="progress is 3"):
        aligner.fit(x, y, progress=3)


def test_what_is_given_as_validation_or_labels_must_fit(linear):
    x, y = linear
    for wrong in ({"X": x}, {"X": x, "Y": y, "pear": 5}, 3, (x,)):
        with pytest.raises(unicon.ArgumentError, match="validation must be"):
            fast().fit(x, y, validation=wrong)
    with pytest.raises(unicon.PairsError, match="labels must be"):
        fast().fit(x, y, labels=np.arange(500))


def test_statuses_are_those_of_the_header():
    from unicon._library import lib, text

    names = {"ArgumentError": "ARGUMENT", "OptionError": "OPTION", "ShapeError": "SHAPE",
             "DataError": "DATA", "PairsError": "PAIRS", "MemoryLimitError": "MEMORY",
             "FileError": "IO", "FormatError": "FORMAT", "NumericError": "NUMERIC",
             "CancelledError": "CANCELLED", "UnsupportedError": "UNSUPPORTED",
             "DeviceError": "DEVICE"}
    for name, word in names.items():
        assert text(lib.unicon_status_name(getattr(unicon, name).status)) == "UNICON_ERR_" + word
