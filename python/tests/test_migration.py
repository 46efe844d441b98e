# SPDX-License-Identifier: Apache-2.0
"""unicon.Migration: what the command does, and the map against numpy."""
import json
import pickle
import subprocess

import numpy as np
import pytest

import unicon


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def moving():
    """The same items by two models, one bent from the other, and fresh ones."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(1000, 10)) + rng.normal(size=(30, 10))[rng.integers(0, 30, 1000)]
    old = unit(np.tanh(hidden @ rng.normal(size=(10, 24)) / 4) + .3).astype("f4")
    new = unit(np.tanh(hidden @ rng.normal(size=(10, 32)) / 4) + .2).astype("f4")
    return old[:700], new[:700], old[700:], new[700:]


@pytest.fixture(scope="module")
def rewriting(moving):
    return unicon.Migration(into="new").fit(moving[0], moving[1])


def test_decision_and_map(moving, rewriting):
    old, new, more_old, more_new = moving
    j = rewriting.decision
    ways = {row["way"]: row for row in j["ways"]}
    assert rewriting.space == "new" and j["direction"] == "old-to-new" and j["pairs"] == 700
    assert ways["rewrite"]["overlap@10"]["value"] > ways["keep"]["overlap@10"]["value"] > .2
    assert ways["reembed"]["overlap@10"]["value"] == 1
    mapped = rewriting.embed(more_old)
    assert mapped.shape == (300, 32) and np.allclose(np.linalg.norm(mapped, axis=1), 1, atol=1e-5)
    assert (mapped * more_new).sum(1).mean() > .95
    assert np.allclose(rewriting.embed(more_new, of="new"), more_new, atol=1e-6)
    one = np.stack([rewriting.embed_one(row) for row in more_old[:20]])
    assert np.allclose(one, mapped[:20], atol=1e-4)


def test_the_map_is_a_kernel_ridge(moving, rewriting):
    """The file read with numpy, and the solution of (K + lambda) a = y - b at its landmarks."""
    old, new, more_old, _ = moving
    kernel = next(t for t in rewriting.decision["tried"] if t["method"] == "kernel")
    assert kernel["score"] > 0
    meta = rewriting.model.metadata
    if meta["x.map"] != "nystrom":
        pytest.skip("the best map is linear here")
    tensors = {}
    content = rewriting.model.to_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    for name, entry in json.loads(content[8:start]).items():
        if name != "__metadata__":
            begin, end = (start + at for at in entry["data_offsets"])
            tensors[name] = np.frombuffer(content[begin:end], "<f4").reshape(entry["shape"])
    c = np.clip(more_old @ tensors["x.landmarks"].T, -1, 1)
    if meta["x.kernel"] == "rbf":
        k = np.exp(-(2 - 2 * c) / (2 * float(meta["x.kernel_width"])**2))
    else:
        k = (np.sqrt(1 - c * c) + (np.pi - np.arccos(c)) * c) / np.pi
    z = unit(k @ tensors["x.weight"] + tensors["x.offset"])
    assert np.allclose(z, rewriting.embed(more_old), atol=2e-4)


def test_rewrite_goes_on_and_is_checked(moving, rewriting, tmp_path):
    old, _, more_old, more_new = moving
    np.save(tmp_path / "index.npy", more_old)
    out = tmp_path / "out.npy"
    assert rewriting.rewrite(tmp_path / "index.npy", out) == 0
    assert np.allclose(np.load(out), rewriting.embed(more_old), atol=1e-6)
    assert rewriting.rewrite(tmp_path / "index.npy", out) == 300  # there already, and checked
    assert json.loads((tmp_path / "out.npy.json").read_text())["model"] == rewriting.model.id
    rewriting.check(out)
    with pytest.raises(unicon.DataError, match="in the new space already"):
        rewriting.rewrite(out, tmp_path / "twice.npy")
    ids, scores = rewriting.search(more_new, out, k=5)
    assert (ids[:, 0] == np.arange(300)).mean() > .8
    _, calibrated = rewriting.search(more_new, out, k=5, calibrate="new")
    assert (np.diff(calibrated, axis=1) <= 1e-6).all() and not np.allclose(scores, calibrated)
    truth = np.take_along_axis(more_new @ more_new.T, ids, 1)
    assert abs(calibrated - truth).mean() < abs(scores - truth).mean() + .01
    data = bytearray(out.read_bytes())
    data[-1] ^= 1
    out.write_bytes(data)
    with pytest.raises(unicon.FormatError, match="does not hold what was written"):
        rewriting.check(out)
    out.write_bytes(data[:1000])
    with pytest.raises(unicon.FormatError, match="cut off or replaced"):
        rewriting.check(out)


def test_a_stop_can_be_gone_on_from(rewriting, tmp_path, moving):
    index = np.tile(moving[2], (1300, 1))  # long enough for progress to be told on the way
    out = tmp_path / "long.npy"

    def stop(_phase, share, _left):
        return share > 0.05  # some blocks are there, however slow the machine

    with pytest.raises(unicon.CancelledError):
        rewriting.rewrite(index, out, progress=stop)
    assert not out.exists() and (tmp_path / "long.npy.part.json").exists()
    there = rewriting.rewrite(index, out)
    assert 0 < there < len(index) and there % 4096 == 0
    rewriting.check(out)
    assert not (tmp_path / "long.npy.part").exists()


def test_wrong_uses(moving, rewriting, tmp_path):
    old, new, more_old, more_new = moving
    with pytest.raises(unicon.ShapeError, match="24"):
        rewriting.embed(more_new, of="old")
    with pytest.raises(unicon.DataError, match="their mean is gone"):
        rewriting.embed(more_old - more_old.mean(0))
    with pytest.raises(unicon.DataError, match="their mean is gone"):
        rewriting.search(more_new - more_new.mean(0), rewriting.embed(more_old))
    rewriting.search(more_new - more_new.mean(0), rewriting.embed(more_old), trust=True)
    with pytest.raises(unicon.DataError, match="do not look like"):
        rewriting.embed(np.random.default_rng(3).normal(size=(300, 24)) + more_old.mean(0) * 3)
    with pytest.warns(unicon.UniconWarning, match="lengths around"):
        rewriting.embed(5 * more_old)
    with pytest.raises(unicon.ArgumentError, match='"old" or "new"'):
        rewriting.embed(more_old, of="both")
    with pytest.raises(unicon.ArgumentError, match="accepted"):
        rewriting.calibrate([.5], "pear")
    with pytest.raises(unicon.ArgumentError, match="f4, f2"):
        rewriting.rewrite(more_old, tmp_path / "x.npy", dtype="f8")
    with pytest.raises(unicon.NotFittedError):
        unicon.Migration().model
    with pytest.raises(unicon.OptionError, match="has no effect here"):
        unicon.Migration(rank=3).fit(old, new)
    with pytest.raises(unicon.ArgumentError, match="queries_new"):
        unicon.Migration().fit(old, new, judgements=([0], [0]))
    with pytest.raises(unicon.DataError, match="same vectors"):
        unicon.Migration().fit(old, old)
    with pytest.raises(unicon.DataError, match="not finite or all zero"):
        rewriting.embed_one(np.zeros(24))
    with pytest.raises(unicon.ShapeError):
        rewriting.embed_one(np.zeros(25))


def test_bridge_shared_and_files(moving, tmp_path):
    old, new, more_old, more_new = moving
    bridge = unicon.Migration(into="old").fit(old, new)
    assert bridge.space == "old" and bridge.embed(more_new).shape == (300, 24)
    ids, _ = bridge.search(more_new, more_old, k=1)
    assert (ids[:, 0] == np.arange(300)).mean() > .3
    with pytest.raises(unicon.ArgumentError, match="nothing to rewrite"):
        bridge.rewrite(more_old, tmp_path / "no.npy")
    shared = unicon.Migration(into="shared").fit(old, new)
    with pytest.raises(unicon.ArgumentError, match='of="old"'):
        shared.embed(more_old)
    shared.rewrite(more_old, tmp_path / "shared.npy")
    ids, _ = shared.search(more_new, tmp_path / "shared.npy", k=1)
    assert (ids[:, 0] == np.arange(300)).mean() > .3
    shared.save(tmp_path / "saved")
    again = unicon.Migration.load(tmp_path / "saved")
    assert again.decision == shared.decision and again.model.id == shared.model.id
    assert unicon.Migration.load(tmp_path / "saved" / "model.safetensors").verdict == shared.verdict
    with pytest.raises(unicon.DataError, match="another model"):
        bridge.search(more_new, tmp_path / "shared.npy", moved=True)
    copy = pickle.loads(pickle.dumps(shared.model))
    assert copy.id == shared.model.id
    plain = unicon.Aligner(preset="fast").fit(old, new)
    plain.save(tmp_path / "plain.safetensors")
    with pytest.raises(unicon.DataError, match="no direction"):
        unicon.Migration.load(tmp_path / "plain.safetensors")


def test_queries_and_judgements(moving):
    old, new, more_old, more_new = moving
    near = np.argsort(-(more_new @ new.T), 1)[:, :3]
    pairs = (np.repeat(np.arange(300), 3), near.ravel(), np.tile([3., 2., 1.], 300))
    made = unicon.Migration().fit(old, new, queries_old=more_old, queries_new=more_new,
                                  judgements=pairs)
    ways = {row["way"]: row for row in made.decision["ways"]}
    assert made.decision["score"] == "ndcg@10" and ways["reembed"]["ndcg@10"]["value"] > .999
    assert ways["rewrite"]["ndcg@10"]["value"] > ways["keep"]["ndcg@10"]["value"]


def test_as_the_command(moving, command, tmp_path):
    old, new, more_old, _ = moving
    for name, rows in (("old", old), ("new", new), ("index", more_old)):
        np.save(tmp_path / f"{name}.npy", rows)
    run = lambda *words: subprocess.run([command, *map(str, words)], check=True, cwd=tmp_path,
                                        capture_output=True)
    run("migrate", "old.npy", "new.npy", "--into", "new", "-o", "moved")
    run("rewrite", "moved/model.safetensors", "index.npy", "-o", "out.npy")
    made = unicon.Migration(into="new").fit(tmp_path / "old.npy", tmp_path / "new.npy")
    assert made.model.to_bytes() == (tmp_path / "moved" / "model.safetensors").read_bytes()
    assert made.decision == json.loads((tmp_path / "moved" / "decision.json").read_text())
    made.check(tmp_path / "out.npy")
