# SPDX-License-Identifier: Apache-2.0
"""The package and the command give the same bytes. The command is $UNICON or that of the wheel."""
import json
import subprocess

import numpy as np
import pytest

from unicon import Aligner

CASES = [
    dict(),
    dict(preset="fast"),
    dict(preset="fast", rank=8),
    dict(preset="paper", rank=8, batch=100, seed=5),
    dict(preset="fast", rank=8, kernel="angular", map="nystrom", landmarks=100, seed=3),
    dict(preset="fast", rank=8, kernel="rbf", width=.7, balance="csls:20", balance_bank=50),
    dict(preset="fast", rank=8, exponent=2, balance="quadratic:5"),
    dict(preset="fast", rank=8, kernel="matern32", map="random", features=200),
    dict(preset="fast", rank=8, iterations=2, loss="siglip", bias=-5.5, metric=.25, ridge=.003,
         center="off"),
]


def flags(options):
    return [part for name, value in options.items()
            for part in ("--" + name.replace("_", "-"), str(value))]


@pytest.fixture
def files(captions, tmp_path):
    x, y = captions
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    return tmp_path


def run(command, folder, *arguments):
    done = subprocess.run([command, *map(str, arguments)], cwd=folder, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("options", CASES, ids=lambda options: " ".join(flags(options)) or "none")
def test_models(command, files, captions, saved, options):
    run(command, files, "fit", "x.npy", "y.npy", "--y-per-x", 5, "-o", "m.safetensors",
        *flags(options))
    written = (files / "m.safetensors").read_bytes()
    assert saved(Aligner(**options).fit(*captions, pairs=5)) == written


def test_embed_search_eval(command, files, captions):
    x, y = captions
    aligner = Aligner(preset="fast", rank=8, kernel="angular", balance="softmax:10")
    aligner.fit(x, y, pairs=5)
    aligner.save(files / "m.safetensors")
    run(command, files, "embed", "m.safetensors", "--side", "y", "y.npy", "-o", "z.npy")
    assert (np.load(files / "z.npy") == aligner.transform_y(y)).all()
    run(command, files, "search", "m.safetensors", "--query-side", "y", "y.npy", "x.npy", "-k", 7,
        "-o", "found")
    ids, scores = aligner.search(y, x, k=7, query_side="y")
    assert (np.load(files / "found.ids.npy") == ids).all()
    assert (np.load(files / "found.scores.npy") == scores).all()
    told = json.loads(run(command, files, "eval", "m.safetensors", "x.npy", "y.npy", "--y-per-x", 5,
                          "--ci", "--json"))
    found = json.loads(json.dumps(aligner.evaluate(x, y, 5, ci=True)))
    assert told.keys() == found.keys()
    for way in ("x_to_y", "y_to_x"):
        assert told[way].keys() <= found[way].keys()
        found[way] = {name: found[way][name] for name in told[way]}
        told_ci, found_ci = told[way].pop("ci"), found[way].pop("ci")
        assert found_ci.keys() == told_ci.keys()
        for name, ends in told_ci.items():
            assert found_ci[name] == pytest.approx(ends, rel=1e-9)
        for name in {"chance", "plain", "hubs"} & told[way].keys():
            assert found[way].pop(name) == pytest.approx(told[way].pop(name), rel=1e-9)
        assert found[way] == pytest.approx(told[way], rel=1e-9)  # 12 digits are printed
