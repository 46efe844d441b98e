# SPDX-License-Identifier: Apache-2.0
"""What goes through the command: comparisons, pages, and the command of the package itself."""
import json
import os
import re
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from support import fast

import unicon


@pytest.fixture(scope="module", autouse=True)
def some_command():
    try:
        unicon.command()
    except unicon.FileError:
        pytest.skip("the command is not there")


def run(folder, *words):
    done = subprocess.run([unicon.command(), *map(str, words), "--json"], cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def timeless(found):
    """Without what differs from run to run."""
    return [{key: value for key, value in row.items() if key in ("name", "candidates", "baseline")}
            | {kind: {key: value for key, value in row[kind].items() if "seconds" not in key}
               for kind in ("plain", "balanced")} for row in found["rows"]]


def test_compare_is_the_commands(captions, tmp_path):
    x, y = captions
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    told = run(tmp_path, "compare", "x.npy", "y.npy", "--y-per-x", 5, "--only", "fast,cca",
               "--seed", 3)
    found = unicon.compare(x, y, 5, only=["fast", "cca"], seed=3)
    assert timeless(found) == timeless(told) and found["test"] == told["test"]
    j = np.arange(300)
    for pairs in ((j // 5, j), (j // 5, j, np.ones(300)), np.stack([j // 5, j], 1)):
        assert timeless(unicon.compare(x, tmp_path / "y.npy", pairs, only="fast,cca",
                                       seed=3)) == timeless(told)


def test_compare_with_rows_of_its_own(linear):
    x, y = linear
    label = np.array([f"l {i}" for i in range(500)])
    cut = slice(0, 300), slice(300, 400), slice(400, 500)
    train, val, test = ((x[c], y[c]) for c in cut)
    found = unicon.compare(*train, validation=val, test=test, only="ridge")
    assert found["test"] == {"x": 100, "y": 100, "pairs": 100, "held_out": False}
    same = unicon.compare(*train, labels=(label[cut[0]], label[cut[0]]), only="ridge",
                          ignore=([0], [1]),
                          validation=(*val, ("labels", label[cut[1]], label[cut[1]])),
                          test=(*test, (np.arange(100), np.arange(100))))
    assert same["rows"][0]["plain"]["x_to_y"]["hit@1"] == pytest.approx(
        found["rows"][0]["plain"]["x_to_y"]["hit@1"], abs=.05)
    grouped = unicon.compare(*train, groups=np.arange(300) // 100, only="ridge")
    assert grouped["test"]["x"] == 100 and grouped["test"]["held_out"]
    with pytest.raises(unicon.PairsError, match="must hold for all rows"):
        unicon.compare(*train, test=(*test, 5))
    with pytest.raises(unicon.ArgumentError, match="test must be"):
        unicon.compare(*train, test=x)


def test_report_is_the_commands(captions, tmp_path, monkeypatch):
    x, y = captions
    model = fast(rank=6).fit(x, y, 5).model_
    model.save(tmp_path / "model.safetensors")
    np.save(tmp_path / "X.npy", x)
    np.save(tmp_path / "Y.npy", y)
    told = run(tmp_path, "report", "model.safetensors", "X.npy", "Y.npy", "--y-per-x", 5,
               "--layout", "pca", "-o", tmp_path / "one.html")
    with pytest.warns(unicon.UniconWarning, match="fitted on these rows"):
        found = model.report(tmp_path / "two.html", x, y, 5, layout="pca")
    assert found == told
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    again = unicon.report(tmp_path / "model.safetensors", None, tmp_path / "X.npy", y, 5, layout="pca",
                          x_ids=[f"picture {i}" for i in range(60)], colors=np.arange(60) % 3)
    assert "picture 7" in json.dumps(again) and again["x_to_y"] == told["x_to_y"]
    monkeypatch.chdir(tmp_path)
    aligner = fast(rank=6).fit(x, y, 5)
    aligner.report("three.html", x, y, 5, layout="pca")
    assert (tmp_path / "three.html").exists()


def test_files_of_one_name_and_arrays_of_a_file(linear, tmp_path):
    x, y = linear
    model = fast(rank=4).fit(x[:400], y[:400]).model_
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    np.save(tmp_path / "x" / "rows.npy", x[400:])
    np.savez(tmp_path / "y" / "rows.npz", test=y[400:], train=y[:400])
    found = model.report(None, tmp_path / "x" / "rows.npy", f"{tmp_path / 'y' / 'rows.npz'}:test",
                         layout="pca")
    np.save(tmp_path / "y" / "rows.npy", y[400:])
    same = model.report(None, tmp_path / "x" / "rows.npy", tmp_path / "y" / "rows.npy", layout="pca")
    assert found["x_to_y"] == same["x_to_y"]


def test_failures_are_sentences(linear, tmp_path):
    x, y = linear
    with pytest.raises(unicon.ArgumentError, match="unknown option --shape"):
        unicon.compare(x, y, shape="round")
    with pytest.raises(unicon.UniconError, match="row 7"):
        bad = x.copy()
        bad[7] = np.nan
        unicon.compare(bad, y, only="none")
    with pytest.raises(unicon.ArgumentError, match="one line of text"):
        unicon.compare(x, y, groups=["a\nb"] * 500)
    with pytest.raises(unicon.PairsError, match="labels of one set"):
        unicon.compare(x, x, ("labels", np.arange(500)))
    with pytest.raises(unicon.UniconError, match="none.safetensors"):
        unicon.report(tmp_path / "none.safetensors", None, x, y)
    with pytest.raises(unicon.UniconError, match="cannot open none.npz"):
        unicon.compare(f"{tmp_path}/none.npz:a", y, only="none")
    with pytest.raises(unicon.PairsError, match="the pairs have shape"):
        unicon.compare(x, y, ignore=5)


def test_progress_is_heard_and_cancels(linear):
    heard = []
    unicon.compare(*linear, only="fast", progress=lambda *words: heard.append(words))
    assert all(isinstance(label, str) and 0 <= done <= 1 for label, done, _ in heard) and heard
    with pytest.raises(unicon.CancelledError):
        unicon.compare(*linear, only="best,sgd_linear", progress=lambda *words: True)

    def fail(*words):
        raise LookupError("from the callback")

    with pytest.raises(LookupError, match="from the callback"):
        unicon.compare(*linear, only="best,sgd_linear", progress=fail)


def test_tqdm(linear, capsys):
    pytest.importorskip("tqdm")
    unicon.compare(*linear, only="fast", progress=True)
    assert "%" in capsys.readouterr().err


def test_options_become_files(linear, tmp_path, monkeypatch):
    """What a command may want as a file: a model, a file of the caller's folder, lines of text."""
    from unicon._tool import _flags, _Inputs

    model = fast(rank=4).fit(*linear).model_
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "texts.txt").write_text("a\n")
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "run").mkdir()
    found = _flags(_Inputs(str(tmp_path / "run")), dict(
        beside=model, y_text="texts.txt", x_media=["one.png", "two.png"], perplexity=5, seed=None))
    assert found == ["--beside", "beside.safetensors", "--y-text", "texts.txt", "--x-media",
                     "x-media.txt", "--perplexity", "5"]
    assert unicon.Model.load(tmp_path / "run" / "beside.safetensors").id == model.id
    assert (tmp_path / "run" / "texts.txt").read_text() == "a\n"
    assert (tmp_path / "run" / "x-media.txt").read_text() == "one.png\ntwo.png\n"


def test_ctrl_c(linear, tmp_path):
    """A comparison ends with KeyboardInterrupt, and no process of it stays."""
    np.save(tmp_path / "x.npy", linear[0])
    np.save(tmp_path / "y.npy", linear[1])
    code = ("import signal, unicon\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "told = []\n"
            "def tell(*words):\n"
            "    if not told: told.append(1); print('started', flush=True)\n"
            "try: unicon.compare('x.npy', 'y.npy', only='best,sgd_linear', progress=tell)\n"
            "except KeyboardInterrupt: print('interrupted')\n")
    child = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE,
                             text=True)
    assert child.stdout.readline() == "started\n"
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out == "interrupted\n" and child.returncode == 0


def test_seconds_as_the_command_writes_them():
    from unicon._tool import _bar, _seconds

    found = _bar.match("auto [######------------------]  25 % about 1 min 20 s left")
    assert found.groups() == ("auto", "25", "1 min 20 s") and _seconds(found[3]) == 80
    assert _seconds("2 h 05 min") == 7500 and _seconds(None) is None
    assert _bar.match("reading [------------------------]   0 %").groups() == ("reading", "0", None)


def test_probe_reads_labels(linear):
    x, y, label = unicon.synth("linear", 600)
    model = fast().fit(x[:500], y[:500]).model_
    names = np.array([f"cluster {k}" for k in label])
    found = model.probe(x[:500], names[:500], x[500:], names[500:])
    assert found["labels"].tolist() == ["cluster 0", "cluster 1", "cluster 2"]
    assert found["accuracy"] > .9 and found["confusion"].sum() == 100
    assert found["accuracy"] == np.trace(found["confusion"]) / 100
    own = unicon.probe(model.embed(x[:500], "x"), label[:500], model.embed(x[500:], "x"), label[500:])
    assert own["accuracy"] == pytest.approx(found["accuracy"])
    assert own["loss"] == pytest.approx(found["loss"], rel=1e-3)
    strong = model.probe(x[:500], names[:500], x[500:], names[500:], probe_ridge=10)
    assert strong["loss"] > found["loss"]
    with pytest.raises(unicon.ShapeError, match="train_labels has 3 entries, but train has 500"):
        model.probe(x[:500], [1, 2, 3], x[500:], label[500:])
    with pytest.raises(unicon.ArgumentError, match="both must be integers or both strings"):
        model.probe(x[:500], names[:500], x[500:], label[500:])


def test_the_command_of_the_package(tmp_path):
    version = subprocess.run([unicon.command(), "--version"], capture_output=True, text=True)
    assert unicon.__version__ in version.stdout
    script = os.path.join(os.path.dirname(sys.executable), "unicon")
    if not os.path.exists(script):
        pytest.skip("the package is not installed")
    help_text = subprocess.run([script, "--help"], capture_output=True, text=True, cwd=tmp_path)
    assert help_text.returncode == 0 and re.search(r"^ +compare ", help_text.stdout, re.M)
    wrong = subprocess.run([script, "fit"], capture_output=True, text=True, cwd=tmp_path)
    assert wrong.returncode == 2 and "unicon fit: " in wrong.stderr
    module = subprocess.run([sys.executable, "-m", "unicon", "--version"], capture_output=True,
                            text=True, cwd=tmp_path)
    assert module.stdout == version.stdout


PIXEL = (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc"
         b"\xf8\xcf\xc0\xf0\x1f\0\5\0\1\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82")


def test_a_report_with_texts_images_and_a_second_model(linear, tmp_path, monkeypatch):
    """Paths in a list lead from the current folder, those in a file from the folder of that file."""
    x, y = linear
    aligner, other = (fast(rank=rank).fit(x[:400], y[:400]) for rank in (8, 4))
    (tmp_path / "pictures").mkdir()
    for k in range(3):
        (tmp_path / "pictures" / f"{k}.png").write_bytes(PIXEL)
    (tmp_path / "pictures" / "all.txt").write_text("".join(f"{k % 3}.png\n" for k in range(100)))
    monkeypatch.chdir(tmp_path)
    texts = [f"caption {k}\nin two lines" for k in range(99)] + [None]
    with warnings.catch_warnings():
        warnings.simplefilter("error", unicon.UniconWarning)
        found = aligner.report("page.html", x[400:], y[400:], layout="pca", x_text=texts, beside=other.model_,
                               x_media=[f"pictures/{k % 3}.png" for k in range(99)] + [""],
                               y_media="pictures/all.txt")
    cards = {side: {card["number"]: card for card in found["cards"][side]} for side in "xy"}
    assert cards["x"][5]["text"] == "caption 5 in two lines" and "text" not in cards["x"][99]
    assert cards["x"][5]["media"].startswith("data:image/png;base64,") and "media" not in cards["x"][99]
    assert cards["y"][99]["media"].startswith("data:image/png;base64,")
    assert found["beside"]["rank"] == 4
    with pytest.warns(unicon.UniconWarning, match="are left out"):
        aligner.report(None, x[400:], y[400:], layout="pca", x_media=["nowhere.png"] * 100)
    with pytest.raises(unicon.UniconError, match="99 lines, but there are 100 rows"):
        aligner.report(None, x[400:], y[400:], x_text=texts[:99])
    with pytest.raises(unicon.FileError, match="nothing.txt"):
        aligner.report(None, x[400:], y[400:], x_media="nothing.txt")
