# SPDX-License-Identifier: Apache-2.0
"""One query through a linear map by unicon_embed_one, beside NumPy's product alone, both called
from here on one core. They take turns; the fastest rounds count, which other work on the machine
disturbs least. What the calls cost by themselves is inside both.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python python/bench/one_query.py [ROUNDS]
"""

import sys
import time

import numpy as np

import unicon
from unicon._library import lib

CALLS = 200


def linear_model(d, r):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((2 * d + 64, d), dtype="f4") for _ in range(2))
    return unicon.Aligner(preset="fast", rank=r, metric="none", balance="off", exponent=1).fit(x, y).model_


def mean_seconds(call):
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    for d in (384, 768):
        r = d - 16
        model = linear_model(d, r)
        row = np.random.default_rng(1).standard_normal(d, dtype="f4")
        weight = np.random.default_rng(2).standard_normal((d, r), dtype="f4")
        out, plain = np.empty(r, "f4"), np.empty(r, "f4")
        room = np.empty(max(1, lib.unicon_embed_one_room(model.pointer, 0)), "f4")
        words = model.pointer, 0, row.ctypes.data, room.ctypes.data, out.ctypes.data
        ways = {"ours": lambda: lib.unicon_embed_one(*words), "numpy": lambda: np.dot(row, weight, out=plain)}
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(rounds):
            for name, way in ways.items():
                best[name] = min(best[name], mean_seconds(way))
        assert np.allclose(out, model.embed_one(row, "x"))
        print(f"{d} to {r}: {1e6 * best['ours']:.1f} us, NumPy's product {1e6 * best['numpy']:.1f} us, "
              f"{best['ours'] / best['numpy']:.2f} of it")


if __name__ == "__main__":
    main()
