# SPDX-License-Identifier: Apache-2.0
"""What the experiments share: the command, the data, scores, and the file of results.

An experiment is a script with a function body(work) -> tables that ends with main(NAME, body):
it writes RESULTS/NAME.json, from which collect.py makes the tables of docs/results/README.md.
`--smoke` runs the same code on small made-up data, to see that it runs.

    UNICON_DATA     folder of the features; what is not there is skipped with a message
    UNICON          the command (build/unicon)
    UNICON_RESULTS  folder of the results (docs/results; with --smoke a folder that is removed)
"""
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy; scripts/setup.sh --experiments installs it", file=sys.stderr)
    sys.exit()

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNICON = os.environ.get("UNICON", str(ROOT / "build/unicon"))
SMOKE = "--smoke" in sys.argv
SEEDS = 1 if SMOKE else 5

# What the authors' code runs on image and text and on its synthetic data (with a kernel: ten steps
# from s = 0, batches weighted by held-out score), and the head that SGD trains: same engine, random
# start, AdamW, no metric, early stop on dev.
PAPER = "--preset paper"
SYNTHETIC = "--preset paper-synthetic"
KERNEL = SYNTHETIC + " --start zero --iterations 9 --aggregate accuracy"
SGD = "--preset fast --start random --metric none"

COLUMNS = "figure | paper | its authors' code | ours, the same setting | ours, best"


class Skip(Exception):
    """Data that is not there."""


@dataclasses.dataclass
class Part:
    """Rows of both sides and the option that pairs them."""

    x: str
    y: str
    pairs: tuple = ()

    def words(self):
        return (self.x, self.y, *self.pairs)

    def validation(self):
        """As the validation pairs of a fit; --y-per-x holds for them too."""
        pairs = ("--val-pairs", self.pairs[1]) if self.pairs[:1] == ("--pairs",) else ()
        return ("--val-x", self.x, "--val-y", self.y, *pairs)


@dataclasses.dataclass
class Fit:
    path: str
    seconds: float
    metadata: dict


def split(words):
    """Words for the command: options may come as one string, "--preset fast --rank 8"."""
    for word in map(str, words):
        yield from word.split() if word.startswith("--") else [word]


def unicon(*words):
    """Runs the command; its standard output."""
    words = [*split(words)] + (["--threads", "1"] if SMOKE and words[0] != "--version" else [])
    done = subprocess.run([UNICON, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


def fit(work, train, *options, name="model"):
    path = f"{work}/{name}.safetensors"
    found = json.loads(unicon("fit", *train.words(), "-q", "--json", "-o", path, *options))
    return Fit(path, found["seconds"], found["metadata"])


def evaluate(model, part):
    return json.loads(unicon("eval", model.path, *part.words(), "-q", "--json"))


def embed(work, model, part):
    """Both sides in the shared space, as unit rows."""
    for side, rows in (("x", part.x), ("y", part.y)):
        unicon("embed", model.path, "--side", side, rows, "-q", "-o", f"{work}/z{side}.npy")
    return np.load(f"{work}/zx.npy"), np.load(f"{work}/zy.npy")


def both(found, name):
    """Mean of a metric over both directions."""
    return (found["x_to_y"][name] + found["y_to_x"][name]) / 2


def hits(found, *ranks):
    """hit@k for each k, mean of both directions."""
    return [both(found, f"hit@{k}") for k in ranks]


def weights(work, model, part, *options):
    """S = -dL/ds of a model on a part, with the loss of its fit unless options say otherwise."""
    unicon("weights", model.path, *part.words(), "-q", "-o", f"{work}/S.npy", *options)
    return np.load(f"{work}/S.npy")


def score(found):
    """What chooses between candidates, as in `--preset auto`."""
    return (both(found, "mrr") + both(found, "hit@10")) / 2


def directions(found, names=("hit@1", "hit@10")):
    """Both directions of each metric: x to y, y to x, x to y, ..."""
    return [found[side][name] for name in names for side in ("x_to_y", "y_to_x")]


def best_of(work, train, dev, candidates, name="candidate"):
    """Fits every candidate {label: options}; the label and model with the best score on dev, and
    the time of all of them."""
    models = {
        label: fit(work, train, *options, name=f"{name}{i}")
        for i, (label, options) in enumerate(candidates.items())
    }
    chosen = max(models, key=lambda label: score(evaluate(models[label], dev)))
    return chosen, models[chosen], sum(m.seconds for m in models.values())


def sgd_clip(work, train, dev, *options, epochs=40, batch=1000, rates=(0.01, 0.03, 0.1)):
    """The SGD head of a fair baseline: step length by dev, early stop on dev. Step length,
    model, time of all step lengths."""
    sgd = f"{SGD} --refine {2 if SMOKE else epochs} --refine-batch {batch} --refine-rate"
    candidates = {rate: (f"{sgd} {rate}", *dev.validation(), *options) for rate in rates}
    return best_of(work, train, dev, candidates, name="sgd")


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)


def table(columns, rows):
    """A table of the results: columns as "a | b", those that end in ", s" hold seconds; None is an
    empty cell."""
    return {"columns": columns.split(" | "), "rows": [list(row) for row in rows]}


def results_folder():
    return pathlib.Path(os.environ.get("UNICON_RESULTS", ROOT / "docs/results"))


def main(name, body, apart=False):
    """Runs the experiment and writes its tables and its time as NAME.json. `apart`: it is not one
    of those that `make experiments` runs."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as work:
        if SMOKE and "UNICON_RESULTS" not in os.environ:
            os.environ["UNICON_RESULTS"] = work
        try:
            tables = body(work)
        except Skip as why:
            print(f"{name}: skipped: {why}", file=sys.stderr)
            return
        seconds = time.perf_counter() - begin
        found = {
            "experiment": name,
            "version": unicon("--version").splitlines()[0],
            "seconds": round(seconds, 1),
            **({"apart": True} if apart else {}),
            "tables": tables,
        }
        with open(results_folder() / f"{name}.json", "w") as out:
            json.dump(found, out, indent=1, ensure_ascii=False)
            out.write("\n")
    print(f"{name}: {seconds:.0f} s", file=sys.stderr)
