#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The paper's synthetic data (section 4.1) as the authors' code makes them: matching accuracy (the
partner is the nearest of 100 rows, x to y), SGD-CLIP as they train it and a tuned one, S(gamma)
before and after each step, twenty steps; and what the figures turn with: the scale of the clusters,
on the generator of the paper's text, and their sizes.

Constants: `unicon synth --help` has those of the generators. Theirs: 600/100/100 and 1000/100/100
pairs, rank 10, batches of 30. SGD-CLIP: AdamW, rate .002, decay .01, batches of 30, 400 and 500
epochs, temperature 1, one linear layer (nonlinear: tanh of it)."""
import numpy as np

import figure
import reference
from common import COLUMNS, KERNEL, SMOKE, SYNTHETIC, evaluate, fit, main, results_folder, say
from common import sgd_clip, table, weights
from data import save_part, synthetic

SEEDS = range(1 if SMOKE else 10)
SGD_SEEDS = SEEDS[:3]
EPOCHS = {"linear-released": 5 if SMOKE else 400, "nonlinear-released": 5 if SMOKE else 500}
SETTING = {"linear-released": SYNTHETIC, "nonlinear-released": f"{KERNEL} --kernel arccos0"}
# paper, authors' code: UniCon; SGD-CLIP at its best epoch on test, at its last
PUBLISHED = {"linear-released": ((1.00, 1.00), (1.00, 1.00), (None, None)),
             "nonlinear-released": ((0.86, 0.852), (0.84, 0.827), (None, 0.707))}


def hit(model, part):
    return evaluate(model, part)["x_to_y"]["hit@1"]


def arrays(part):
    return [np.load(path).astype("f4") for path in (part.x, part.y)]


def same_in_numpy(kind, parts):
    train, val, test = (arrays(part) for part in parts)
    if kind == "linear-released":
        f = reference.linear(*train, 10, 1, batch=30)
        return reference.accuracy(reference.cosines(test[0] @ f[0], test[1] @ f[1]))
    model = reference.kernel_model(train, val, "arccos0")
    return reference.accuracy(model(*test))


def heads(kind, parts, head, **how):
    """Accuracy on test and on val after every epoch."""
    train, val, test = (arrays(part) for part in parts)
    curve = []

    def watch(_, pair):
        curve.append([reference.accuracy(reference.cosines(pair[0](x), pair[1](y)))
                      for x, y in (test, val)])

    settings = dict(r=10, rate=2e-3, batch=30, epochs=EPOCHS[kind], decay=0.01, **how)
    reference.train_heads(*train, np.arange(len(train[1])), head, watch=watch, **settings)
    return np.array(curve)


def theirs(kind, parts, seed):
    """SGD-CLIP as they train it."""
    return heads(kind, parts, "linear" if kind == "linear-released" else "tanh", seed=seed)


def one_kind(work, kind):
    found, curves = {}, []
    for seed in SEEDS:
        parts, _ = synthetic(work, kind, seed)
        train, val, test = parts

        def add(name, value):
            found.setdefault(name, []).append(value)

        add("same", hit(fit(work, train, f"{SETTING[kind]} --seed {seed}", *val.validation()), test))
        add("numpy", same_in_numpy(kind, parts))
        add("fast", hit(fit(work, train, "--preset fast"), test))
        add("auto", hit(fit(work, train, *val.validation()), test))
        if seed not in SGD_SEEDS:
            continue
        curve = theirs(kind, parts, seed)
        curves.append(curve)
        add("sgd best", curve[:, 0].max())
        add("sgd last", curve[-1, 0])
        add("sgd by val", curve[curve[:, 1].argmax(), 0])
        mlp = heads(kind, parts, "mlp", seed=seed, cosine=True)
        add("mlp by val", mlp[mlp[:, 1].argmax(), 0])
        add("sgd tuned", hit(sgd_clip(work, train, val, "--rank 10", epochs=100, batch=200,
                                      rates=(0.003, 0.01, 0.03))[1], test))
        say(f"{kind} {seed}")
    return {name: np.mean(values) for name, values in found.items()}, np.mean(curves, 0)


def accuracy_tables(work):
    rows, methods = [], []
    series = {}
    for kind in EPOCHS:
        mean, curve = one_kind(work, kind)
        (ours, code), (best, code_best), (last, code_last) = PUBLISHED[kind]
        name = kind.split("-")[0]
        rows += [
            (f"{name}: UniCon", ours, code, mean["same"], mean["auto"]),
            (f"{name}: SGD-CLIP, best epoch on test", best, code_best, mean["sgd best"], None),
            (f"{name}: SGD-CLIP, last epoch", last, code_last, mean["sgd last"], None),
        ]
        methods += [(name, label, mean[key]) for key, label in (
            ("same", "paper-synthetic"), ("numpy", "the same in NumPy"), ("fast", "`fast`"),
            ("auto", "`auto`, chosen on validation pairs"),
            ("sgd by val", "SGD-CLIP as they train it, epoch by validation"),
            ("sgd tuned", "SGD-CLIP, our engine, three step lengths by validation"),
            ("mlp by val", "MLP head, 256 units, rate .002 to 0, epoch by validation"))]
        epochs = [e for e in (1, 2, 5, 10, 20, 50, 100, 200, 400) if e <= len(curve)]
        series[f"SGD-CLIP, {name}"] = [(e, float(curve[e - 1, 0])) for e in epochs]
        series[f"UniCon, {name}"] = [(e, float(mean["same"])) for e in epochs]
    figure.lines(results_folder() / "synthetic-sgd.svg", series, "epochs of SGD-CLIP", "accuracy")
    return {"synthetic": table(COLUMNS, rows),
            "synthetic-methods": table("data | method | accuracy", methods)}


def steps(work):
    """S and accuracy of the nonlinear data in one batch of 300, after each of 21 steps from s = 0;
    the change of S is relative, in the Frobenius norm."""
    (train, _, test), _ = synthetic(work, "nonlinear-released", 0)
    x, y = arrays(train)
    few = save_part(work, "few", x[:300], y[:300])
    last = 3 if SMOKE else 20
    setting = f"{KERNEL} --batch full --kernel arccos0"
    first = fit(work, few, f"{setting} --iterations 0")
    panels = [weights(work, first, few, "--loss moment")]
    rows = []
    for iterations in range(last + 1):
        model = fit(work, few, f"{setting} --iterations {iterations}")
        panels.append(weights(work, model, few))
        change = np.linalg.norm(panels[-1] - panels[-2]) / np.linalg.norm(panels[-2])
        rows.append((iterations + 1, float(change), hit(model, test)))
    show = [np.asarray(panels[k])[:80, :80] for k in (0, 1, 2, min(3, last))]
    negatives = panels[0] - np.diag(np.diag(panels[0]))
    figure.signed_panels(results_folder() / "synthetic-s.png", show,
                         scale=2.5 * np.abs(negatives).max())
    keep = [row for row in rows if row[0] in (1, 2, 3, 4, 5, 10, 20, 21)]
    return table("step | relative change of S | accuracy", keep)


LOSSES = {"clip": "--loss clip", "triplet, hinge": "--loss triplet --margin .5",
          "triplet of their code": "--loss general --psi softmin --phi identity --margin .5",
          "sigmoid of their code": "--loss general --psi softplus --phi identity --nu 1.5"}


def cluster_scale(work):
    """The generator of the paper's text with other scales of the centres, two steps at their
    synthetic setting in one batch, for each loss at temperature 1; and `fast`."""
    rows = []
    for kind in "linear", "nonlinear":
        for centers in (3,) if SMOKE else (0, 0.5, 1, 2, 3):
            found = []
            for seed in SEEDS[:5]:
                (train, _, test), _ = synthetic(work, kind, seed, f"--centers {centers}")
                kernel = " --kernel arccos0" if kind == "nonlinear" else ""
                found.append([
                    hit(fit(work, train, f"{SYNTHETIC} --batch full --start zero --iterations 1"
                            f"{kernel} {loss}"), test)
                    for loss in LOSSES.values()
                ] + [hit(fit(work, train, "--preset fast"), test)])
            rows.append((kind, centers, *np.mean(found, 0)))
    return table(" | ".join(("data", "scale of the centres", *LOSSES, "`fast`")), rows)


def imbalance(work):
    """600 training pairs of three clusters of unequal sizes, tested on equal ones."""
    rows = []
    for share in ((1, 1, 1),) if SMOKE else ((1, 1, 1), (8, 3, 1), (28, 1, 1)):
        found = []
        for seed in SEEDS[:5]:
            (train, _, test), (label, _) = synthetic(work, "linear", seed, "--noise .1", "--train",
                                                     80 if SMOKE else 3000)
            x, y = arrays(train)
            size = (np.array(share) / sum(share) * (60 if SMOKE else 600)).astype(int)
            take = np.concatenate([np.where(label == k)[0][:n] for k, n in enumerate(size)])
            part = save_part(work, "unequal", x[take], y[take])
            found.append([hit(fit(work, part, f"{options} --seed {seed}"), test) for options in (
                SYNTHETIC, f"{SYNTHETIC} --batch-order random", "--preset fast")])
        rows.append((":".join(map(str, share)), *np.mean(found, 0)))
    return table("sizes of the clusters | paper-synthetic, rows in order | rows shuffled | `fast`",
                 rows)


def body(work):
    return {**accuracy_tables(work), "synthetic-steps": steps(work),
            "synthetic-clusters": cluster_scale(work), "synthetic-imbalance": imbalance(work)}


if __name__ == "__main__":
    main("synthetic", body)
