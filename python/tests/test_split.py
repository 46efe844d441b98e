# SPDX-License-Identifier: Apache-2.0
"""Rows cut in two: nothing that belongs together is cut, and the pairs of a part are those of the
whole, numbered anew."""
import numpy as np
import pytest
from support import fast

import unicon


def together(part, i, j, weight=None):
    """The pairs of a part in the numbers of the whole."""
    a, b = part.pairs[:2]
    found = {(int(part.x[p]), int(part.y[q])) for p, q in zip(a, b)}
    wanted = {(p, q) for p, q in zip(i.tolist(), j.tolist())
              if p in set(part.x.tolist()) and q in set(part.y.tolist())}
    return found == wanted


def test_parts_are_the_whole(captions):
    x, y = captions
    rows = np.arange(300)
    found = unicon.split(x, y, pairs=5, fraction=.25, seed=3)
    for side, count in (("x", 60), ("y", 300)):
        parts = [getattr(part, side) for part in found]
        assert sorted(np.concatenate(parts).tolist()) == list(range(count))
    assert len(found.test.x) == 15 and len(found.test.y) == 75
    for part in found:
        assert together(part, rows // 5, rows) and len(part.pairs[0]) == len(part.y)
    a = fast(rank=8).fit(*found.train.of(x, y))
    b = fast(rank=8).fit(x[found.train.x], y[found.train.y], pairs=5)
    assert a.model_.to_bytes() == b.model_.to_bytes()
    other = unicon.split(x, y, pairs=5, fraction=.25, seed=4)
    assert set(other.test.x.tolist()) != set(found.test.x.tolist())


def test_one_to_one_stays_so(linear):
    train, test = unicon.split(*linear)
    assert train.pairs is None and test.pairs is None
    assert (train.x == train.y).all() and len(test.x) == 100
    again = unicon.split(*linear, pairs=(np.arange(500), np.arange(500), np.arange(500) + 1.))
    assert (again.test.x == test.x).all() and (again.test.pairs[2] == test.x + 1).all()


def test_groups_stay_together(linear):
    groups = np.array([f"g{i % 25}" for i in range(500)])
    train, test = unicon.split(*linear, groups=groups, fraction=.2)
    assert not set(groups[train.x]) & set(groups[test.x])
    assert train.groups.shape == train.x.shape


def test_labels_draw_single_rows(linear):
    label = np.arange(500) % 10
    train, test = unicon.split(*linear, labels=(label, label), fraction=.2)
    assert train.pairs[0] == "labels" and (train.pairs[1] == label[train.x]).all()
    assert 50 < len(test.x) < 150 and set(test.x.tolist()) != set(test.y.tolist())
    fast(rank=4).fit(*train.of(*linear))


def test_bad_rows_are_left_out(linear):
    x, y = linear[0].copy(), linear[1]
    x[7] = np.nan
    with pytest.raises(unicon.DataError, match="row 7"):
        unicon.split(x, y)
    with pytest.warns(unicon.UniconWarning, match="1 of 500 rows dropped"):
        train, test = unicon.split(x, y, bad_rows="drop")
    assert 7 not in train.x and 7 not in test.x and len(train.x) + len(test.x) == 499


def test_what_a_split_refuses(linear, tmp_path):
    with pytest.raises(unicon.PairsError, match="np.loadtxt"):
        unicon.split(*linear, pairs=tmp_path / "pairs.tsv")
    with pytest.raises(unicon.PairsError, match="np.loadtxt"):
        unicon.split(*linear, labels=(tmp_path / "x", tmp_path / "y"))
    with pytest.raises(unicon.ArgumentError, match="not 1.5"):
        unicon.split(*linear, fraction=1.5)


def test_part_of_frames_and_files(linear, tmp_path):
    x, y = linear
    part = unicon.split(x, y).test
    np.save(tmp_path / "x.npy", x)
    rows, lists, _ = part.of(tmp_path / "x.npy", y.tolist())
    assert (rows == x[part.x]).all() and np.allclose(lists, y[part.y])
    pandas = pytest.importorskip("pandas")
    frame, _, _ = part.of(pandas.DataFrame(x), y)
    assert isinstance(frame, pandas.DataFrame) and (frame.index == part.x).all()


# ---- items ----


def test_items_keep_pairs_together(captions, saved):
    x, y = captions
    items = unicon.paired(x, y, pairs=5)
    assert items.x.shape == items.y.shape == (60,) and len(items.y) == 60
    take = np.array([3, 50, 7])
    few = items.x[take], items.y[take]
    assert few[1].numbers().tolist() == [*range(15, 20), *range(35, 40), *range(250, 255)]
    whole = fast(rank=8).fit(*items)
    assert saved(whole) == saved(fast(rank=8).fit(x, y, pairs=5))
    part = fast(rank=8).fit(items.x[:40], items.y[:40])
    assert saved(part) == saved(fast(rank=8).fit(x[:40], y[:200], pairs=5))
    assert part.evaluate(items.x[40:], items.y[40:]) == part.evaluate(x[40:], y[200:], pairs=5)
    assert part.score(items.x[40:], items.y[40:]) == part.score(x[40:], y[200:], pairs=5)
    assert (part.transform_x(items.x[40:]) == part.transform_x(x[40:])).all()


def test_items_are_connected_rows(linear):
    x, y = linear
    i, j = [0, 1, 1, 4, 5], [2, 2, 3, 9, 10]
    items = unicon.paired(x[:8], y[:12], (i, j), weights=[1, 2, 3, 4, 5])
    assert [items.x[[k]].numbers().tolist() for k in range(3)] == [[0, 1], [4], [5]]
    assert [items.y[[k]].numbers().tolist() for k in range(3)] == [[2, 3], [9], [10]]
    part = items.x[[0, 2]].with_partner(items.y[[0, 2]])
    assert [column.tolist() for column in part.pairs] == [[0, 1, 1, 2], [0, 0, 1, 2], [1, 2, 3, 5]]
    grouped = unicon.paired(x[:8], y[:12], (i, j), groups=[0, 1, 1, 1, 1, 5, 6, 7])
    assert [grouped.x[[k]].numbers().tolist() for k in range(2)] == [[0, 1, 4], [5]]


def test_items_of_a_long_chain(linear):
    """Row i belongs to rows i and i + 1: all of them are one item, but for the last two."""
    i = np.arange(298)
    x, y = np.concatenate([i, i]), np.concatenate([i, i + 1])
    items = unicon.paired(*(rows[:300] for rows in linear),
                          (np.append(x, 299), np.append(y, 299)))
    assert len(items.x) == 2 and len(items.x[[0]].numbers()) == 298


def test_what_items_refuse(linear, captions):
    items = unicon.paired(*linear)
    with pytest.raises(unicon.ArgumentError, match="give its x as X"):
        fast().fit(items.y, items.x)
    with pytest.raises(unicon.ArgumentError, match="give its x as X"):
        fast().fit(items.x, linear[1])
    with pytest.raises(unicon.ArgumentError, match="but X is not"):
        fast().fit(linear[0], items.y)
    with pytest.raises(unicon.ShapeError, match="not the same ones"):
        fast().fit(items.x[:10], items.y[:11])
    with pytest.raises(unicon.PairsError, match="give none beside"):
        fast().fit(*items, pairs=5)
    with pytest.raises(unicon.PairsError, match="pairs=5 if"):
        unicon.paired(*captions)
    with pytest.raises(unicon.PairsError, match="not labels"):
        unicon.paired(*linear, ("labels", [0], [1]))
