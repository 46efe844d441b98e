#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Migration: an index of old vectors, queries of a new model. `unicon migrate` on 500, 1000 and 4000
pairs beside centred Procrustes and ridge either way, all deployed on the whole index and judged by
overlap@10 with the neighbours of the new model, on 1000 queries that nothing has seen; what was
promised beside what came of it; and scores before and after the curves. The baselines choose their
ridge on a fifth of the pairs. migration_features.py makes the pairs of models."""
import json
import os
import pathlib

import numpy as np

from common import SMOKE, Skip, main, say, table, unicon

SIZES = (200, 400) if SMOKE else (500, 1000, 4000)
QUERIES, INDEX = (60, 900) if SMOKE else (1000, 12000)
RIDGES = 10.0 ** np.arange(-6, .1, .5)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def models():
    """Name and the rows of both models, queries first."""
    if SMOKE:
        rng = np.random.default_rng(0)
        z = rng.normal(size=(QUERIES + INDEX, 8)) + rng.normal(size=(40, 8))[rng.integers(0, 40, QUERIES + INDEX)]
        for name in "a", "b":
            yield name, *(unit(np.tanh(z @ rng.normal(size=(8, d)) / 3) + .1 * rng.normal(size=(len(z), d)))
                          .astype("f4") for d in (20, 24))
        return
    folder = pathlib.Path(os.environ.get("UNICON_DATA") or "/nowhere") / "migration"
    if not folder.is_dir():
        raise Skip("no migration under UNICON_DATA (experiments/migration_features.py makes it)")
    for path in sorted(folder.iterdir()):
        old, new = (unit(np.load(path / f"{side}.npy").astype("f4")) for side in ("old", "new"))
        order = np.random.default_rng(5).permutation(len(old))[:QUERIES + INDEX]
        yield path.name, old[order], new[order]


def top(queries, base, k=10):
    out = []
    for first in range(0, len(queries), 250):
        scores = queries[first:first + 250] @ base.T
        out.append(np.argpartition(-scores, k, 1)[:, :k])
    return np.concatenate(out)


def overlap(a, b):
    return float(np.mean([len(set(x) & set(y)) / len(x) for x, y in zip(a, b)]))


def ridges(x, y):
    """The map x -> y with its mean, as a function of the share of the largest eigenvalue."""
    mean_x, mean_y = x.mean(0), y.mean(0)
    values, vectors = np.linalg.eigh(((x - mean_x).T @ (x - mean_x)).astype("f8"))
    cross = vectors.T @ ((x - mean_x).T @ (y - mean_y))

    def fit(share):
        weight = (vectors @ (cross / (values + share * values[-1])[:, None])).astype("f4")
        return lambda rows: unit((rows - mean_x) @ weight + mean_y)

    return fit


def procrustes(x, y):
    mean_x, mean_y = x.mean(0), y.mean(0)
    u, _, v = np.linalg.svd((x - mean_x).T @ (y - mean_y), full_matrices=False)
    return lambda rows: unit((rows - mean_x) @ (u @ v) + mean_y)


def best_ridge(x, y, judge):
    """Fitted with the share that does best on the last fifth of the pairs."""
    cut = len(x) * 4 // 5
    fit = ridges(x[:cut], y[:cut])
    return ridges(x, y)(max(RIDGES, key=lambda share: judge(fit(share), slice(cut, None))))


def baselines(old, new, index_old, queries_new, truth):
    """overlap@10 on the whole index: Procrustes, ridge new to old, ridge old to new."""
    def rewritten(f, held):
        return overlap(top(new[held], f(old[held])), top(new[held], new[held]))

    def bridged(f, held):
        return overlap(top(f(new[held]), old[held]), top(new[held], new[held]))

    yield overlap(top(queries_new, procrustes(old, new)(index_old)), truth)
    yield overlap(top(best_ridge(new, old, bridged)(queries_new), index_old), truth)
    yield overlap(top(queries_new, best_ridge(old, new, rewritten)(index_old)), truth)


def migrate(work, old, new, index_old, rows):
    for name, data in (("old", old), ("new", new), ("index", index_old)):
        np.save(f"{work}/{name}.npy", data)
    decision = json.loads(unicon("migrate", f"{work}/old.npy", f"{work}/new.npy", "-q", "--json",
                                 "--into", "new", "--index-rows", rows, "-o", f"{work}/moved"))
    for stale in ("moved.npy", "moved.npy.json"):
        pathlib.Path(work, stale).unlink(missing_ok=True)
    unicon("rewrite", f"{work}/moved/model.safetensors", f"{work}/index.npy", "-q", "-o", f"{work}/moved.npy")
    return decision, np.load(f"{work}/moved.npy")


def calibrated(work, queries_new, index_new, pairs):
    """Mean distance of the ten best scores of a query from those of the new model, before and after,
    of items that the map has not seen."""
    np.save(f"{work}/asked.npy", queries_new)
    out = []
    for words in (), ("--calibrate", "new"):
        unicon("search", f"{work}/moved/model.safetensors", "--query-side", "y", f"{work}/asked.npy",
               f"{work}/moved.npy", "--base-embedded", "-q", "-k", 10, "-o", f"{work}/found", *words)
        ids, scores = np.load(f"{work}/found.ids.npy"), np.load(f"{work}/found.scores.npy")
        truth = np.einsum("qd,qkd->qk", queries_new, index_new[ids])
        out.append(float(np.abs(scores - truth)[ids >= pairs].mean()))
    return out


def interval(found):
    return f"{found.get('value', found.get('overlap@10')):.3f} ({found['low']:.3f}–{found['high']:.3f})"


def one(work, name, rows, pairs, maps, promises, scores):
    old, new = rows
    asked_old, asked_new, index_old, index_new = old[:QUERIES], new[:QUERIES], old[QUERIES:], new[QUERIES:]
    truth = top(asked_new, index_new)
    decision, moved = migrate(work, index_old[:pairs], index_new[:pairs], index_old, len(index_old) - pairs)
    ways = {row["way"]: row for row in decision["ways"]}
    others = list(baselines(index_old[:pairs], index_new[:pairs], index_old, asked_new, truth))
    ours = overlap(top(asked_new, moved), truth)
    maps.append((name, pairs, overlap(top(asked_old, index_old), truth), *others, ours, ours - max(others),
                 ways["rewrite"]["how"]))
    size = ways["rewrite"]["items"]
    starts = range(pairs, min(len(moved) - size, pairs + 10 * size) + 1, size)
    fresh = [overlap(top(asked_new, moved[at:at + size]), top(asked_new, index_new[at:at + size])) for at in starts]
    unseen = overlap(top(asked_new, moved[pairs:]), top(asked_new, index_new[pairs:]))
    promises.append((name, pairs, size, interval(ways["rewrite"]["overlap@10"]), float(np.mean(fresh)),
                     len(moved) - pairs, interval(decision["index"]), unseen))
    scores.append((name, pairs, *calibrated(work, asked_new, index_new, pairs)))
    say(f"{name}, {pairs} pairs: {ours:.3f} beside {max(others):.3f}")


def body(work):
    maps, promises, scores = [], [], []
    for name, *rows in models():
        for pairs in SIZES:
            one(work, name, rows, pairs, maps, promises, scores)
    gains = [("median gain", pairs, *(None,) * 5, float(np.median([r[7] for r in maps if r[1] == pairs])), None)
             for pairs in SIZES]
    return {
        "migration-maps": table("models | pairs | keep the old | Procrustes | ridge, new → old | ridge, old → new | "
                                "unicon migrate | gain | map", maps + gains),
        "migration-promises": table("models | pairs | items | promised | fresh | index | expected | got", promises),
        "migration-scores": table("models | pairs | distance of scores | calibrated", scores),
    }


if __name__ == "__main__":
    main("migration", body)
