# SPDX-License-Identifier: Apache-2.0
"""Every way to say which rows belong together gives the same model."""
import numpy as np
import pytest
from support import fast

import unicon

ROWS = np.arange(300)


@pytest.fixture(scope="module")
def expected(captions, tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "model.safetensors"
    fast(rank=8).fit(*captions, pairs=5).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("pairs", [
    ("y_per_x", 5), np.int32(5), np.stack([ROWS // 5, ROWS], axis=1), (ROWS // 5, ROWS),
    [(int(j) // 5, int(j)) for j in ROWS],
    (ROWS.astype("u2") // 5, ROWS.astype("i4"), np.ones(300)),
    np.stack([ROWS // 5, ROWS], axis=1)[::-1]])
def test_same_pairs(captions, saved, expected, pairs):
    assert saved(fast(rank=8).fit(*captions, pairs)) == expected


def test_mirror(captions, saved):
    x, y = captions
    turned = fast(rank=8).fit(y, x, pairs=("x_per_y", 5))
    straight = fast(rank=8).fit(x, y, pairs=5)
    np.testing.assert_allclose(turned.spectrum_, straight.spectrum_, rtol=1e-4)


def test_sparse(captions, saved, expected):
    sparse = pytest.importorskip("scipy.sparse")
    x, y = captions
    ones = sparse.coo_matrix((np.ones(300), (ROWS // 5, ROWS)), shape=(60, 300))
    for form in (ones, ones.tocsr(), ones.tocsc().astype(bool), sparse.coo_array(ones)):
        assert saved(fast(rank=8).fit(x, y, pairs=form)) == expected
    weighted = ones.copy()
    weighted.data = np.arange(1., 301.)
    beside = fast(rank=8).fit(x, y, pairs=5, weights=np.arange(1., 301.))
    assert saved(fast(rank=8).fit(x, y, pairs=weighted)) == saved(beside) != expected
    with pytest.raises(unicon.ShapeError, match="the pairs are for 60 by 299 rows, but X has 60"):
        fast().fit(x, y[:298], pairs=ones.tocsr()[:, :299])


def test_labels(captions, saved, tmp_path):
    x, y = captions
    numbers = saved(fast(rank=8).fit(x, y, labels=(np.arange(60), ROWS // 5)))
    words = [f"image {i}" for i in range(60)]
    texts = [words[j // 5] for j in ROWS]
    assert saved(fast(rank=8).fit(x, y, labels=(words, texts))) == numbers
    assert saved(fast(rank=8).fit(x, y, ("labels", words, texts))) == numbers
    for name, lines in (("x", words), ("y", texts)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    assert saved(fast(rank=8).fit(x, y, labels=(tmp_path / "x", tmp_path / "y"))) == numbers


def test_file(captions, saved, expected, tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"{j // 5}\t{j}\n" for j in ROWS))
    assert saved(fast(rank=8).fit(*captions, pairs=tmp_path / "pairs.tsv")) == expected


def test_evaluate_takes_the_same_forms(captions):
    x, y = captions
    aligner = fast(rank=8).fit(x, y, pairs=5)
    found = aligner.evaluate(x, y, 5)
    assert found["pairs"] == 300 and found["y_to_x"]["queries"] == 300
    assert aligner.evaluate(x, y, (ROWS // 5, ROWS)) == found
    assert aligner.evaluate(x, y, labels=(np.arange(60), ROWS // 5)) == found


@pytest.mark.parametrize("pairs, sentence", [
    (4, "y has 300 rows, but with 4 for each of the 60 rows of x"),
    (0, "y has 300 rows, but with 0 for each"),
    (("x_per_y", 2), "x has 60 rows, but with 2 for each"),
    ([(0, 0), (0, 300)], r"pair 1 is \(0, 300\), but the rows of y are 0 .. 299"),
    ([(0, 0), (-1, 3)], r"pair 1 is \(-1, 3\)"),
    ([(0, 0), (1, 1), (0, 0)], "given twice"),
    (([0, 1], [0]), "the pairs have 2 rows of x, but 1 of y"),
    (([0.5], [0]), "the pairs have values of type float64; accepted: integers"),
    (np.zeros((3, 4), int), r"the pairs have shape \(3, 4\); accepted: m by 2"),
    (("labels", [0], ["a"]), "both must be integers or both strings"),
    (("per", 5), "accepted: ..y_per_x., K."),
    (([0], [0], [-1.0]), "pair 0 has weight -1; weights are float32 numbers from 0 to 3.4e38"),
    (([0], [0], [1e308]), "from 0 to 3.4e38"),
    ((np.array([2**63], "u8"), [0]), "the pairs have 9223372036854775808; accepted"),
    ([], "the list of pairs is empty"),
    (np.zeros((0, 2), int), "at least 1 is needed")])
def test_refused(captions, pairs, sentence):
    with pytest.raises(unicon.PairsError, match=sentence):
        fast().fit(*captions, pairs=pairs)


def test_an_empty_list_of_ignored_pairs_means_none(captions, saved, tmp_path):
    x, y = captions
    expected = saved(fast().fit(x, y, 5))
    (tmp_path / "none.tsv").touch()
    for none in ([], np.zeros((0, 2), int), ([], []), tmp_path / "none.tsv"):
        assert saved(fast().fit(x, y, 5, ignore=none)) == expected
        with pytest.raises(unicon.PairsError, match="the list of negative pairs is empty"):
            fast().fit(x, y, 5, negatives=none)


def test_refused_weights_and_labels(captions):
    with pytest.raises(unicon.PairsError, match="there are 3 weights, but 300 pairs"):
        fast().fit(*captions, pairs=5, weights=[1, 2, 3])
    with pytest.raises(unicon.PairsError, match="not labels or a file"):
        fast().fit(*captions, ("labels", np.arange(60), ROWS // 5), np.ones(300))
    with pytest.raises(unicon.PairsError, match="give one of them"):
        fast().fit(*captions, 5, labels=(np.arange(60), ROWS // 5))
    with pytest.raises(unicon.PairsError, match="y has 300, but row i belongs to row i"):
        fast().fit(*captions)
