# SPDX-License-Identifier: Apache-2.0
"""Time of Aligner.fit against the C call alone, at the size of Flickr8k: 6000 rows of 2048 numbers
with five rows of 512 each. The two take turns; the ratio is that of the fastest runs, which other
work on the machine disturbs least.

    python python/bench/overhead.py [ROUNDS]
"""

import ctypes
import statistics
import subprocess
import sys
import time

import numpy as np

import unicon
from unicon._library import Data, lib

N, K, D_X, D_Y = 6000, 5, 2048, 512


def make_data():
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((N, 64), dtype="f4")
    x = latent @ rng.standard_normal((64, D_X), dtype="f4")
    y = np.repeat(latent, K, axis=0) @ rng.standard_normal((64, D_Y), dtype="f4")
    x += rng.standard_normal(x.shape, dtype="f4")
    y += rng.standard_normal(y.shape, dtype="f4")
    return x.astype("f2"), y.astype("f2")


def check(status):
    if status:
        raise SystemExit(f"status {status}")


def c_call(x, y):
    """Rows, pairs and fit as a C program would call them, no Python objects between."""
    ctx, options, rows_x, rows_y, pairs, model = (ctypes.c_void_p() for _ in range(6))
    check(lib.unicon_ctx_create(ctypes.byref(ctx)))
    check(lib.unicon_options_create(ctx, ctypes.byref(options)))
    check(lib.unicon_options_set(ctx, options, b"preset", b"fast"))
    check(lib.unicon_rows_wrap(ctx, b"X", x.ctypes.data, 0, *x.shape, *x.strides,
                               ctypes.byref(rows_x)))
    check(lib.unicon_rows_wrap(ctx, b"Y", y.ctypes.data, 0, *y.shape, *y.strides,
                               ctypes.byref(rows_y)))
    check(lib.unicon_pairs_per_x(ctx, len(x), len(y), K, ctypes.byref(pairs)))
    data = Data(rows_x, rows_y, pairs, None)
    check(lib.unicon_fit(ctx, ctypes.byref(data), None, options, ctypes.byref(model)))
    lib.unicon_model_destroy(model)
    lib.unicon_pairs_destroy(pairs)
    lib.unicon_rows_close(rows_y)
    lib.unicon_rows_close(rows_x)
    lib.unicon_options_destroy(options)
    lib.unicon_ctx_destroy(ctx)


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def outside(aligner, x, y, rounds=5):
    """Seconds of Aligner.fit that are not spent in unicon_fit; the median."""
    call, found = lib.unicon_fit, []

    def timed(*arguments):
        start = time.perf_counter()
        status = call(*arguments)
        found[-1] -= time.perf_counter() - start
        return status

    lib.unicon_fit = timed
    for _ in range(rounds):
        found.append(0.0)
        total = seconds(lambda: aligner.fit(x, y, K))
        found[-1] += total
    lib.unicon_fit = call
    return statistics.median(found)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    x, y = make_data()
    aligner = unicon.Aligner(preset="fast")
    ways = {"C call": lambda: c_call(x, y), "Aligner.fit": lambda: aligner.fit(x, y, K)}
    times = {name: [] for name in ways}
    for name, way in ways.items():
        way()  # the first call finds cold memory
    for number in range(rounds):
        for name in sorted(ways, reverse=number % 2 == 1):  # who is first changes
            times[name].append(seconds(ways[name]))
    for name, taken in times.items():
        print(f"{name:12} {min(taken):.3f} s, median {statistics.median(taken):.3f} s, "
              f"of {rounds}")
    best = {name: min(taken) for name, taken in times.items()}
    print(f"overhead     {100 * (best['Aligner.fit'] / best['C call'] - 1):+.1f} %")
    print(f"outside      {1000 * outside(aligner, x, y):.2f} ms of a fit are not inside unicon_fit")
    code = "import time; t = time.perf_counter(); import unicon; print(time.perf_counter() - t)"
    taken = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                  check=True).stdout) for _ in range(5)]
    print(f"import       {statistics.median(taken):.3f} s, NumPy included")


if __name__ == "__main__":
    main()
