# SPDX-License-Identifier: Apache-2.0
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from support import fast

import unicon

LONG = dict(preset="fast", rank=8, iterations=10000, damping="plain", temperature=1)


@pytest.fixture(scope="module")
def much():
    x, y, _ = unicon.synth("linear", 2000)
    return x, y


def test_callback_hears_shares_and_cancels(much, saved):
    heard = []

    def stop(label, done, left):
        heard.append((label, done, left))
        return left is not None and len(heard) > 5

    aligner = fast(**LONG)
    with pytest.raises(unicon.CancelledError):
        aligner.fit(*much, progress=stop)
    shares = [done for _, done, _ in heard]
    assert all(label for label, _, _ in heard) and heard[-1][0] == "iterations"
    assert shares == sorted(shares) and 0 <= shares[0] and shares[-1] <= 1
    assert heard[0][2] is None and heard[-1][2] >= 0
    assert not aligner.__sklearn_is_fitted__()
    aligner.set_params(iterations=0, damping=None, temperature=None).fit(*much)


def test_an_exception_of_the_callback_comes_out(much):
    def fail(label, done, left):
        raise LookupError("from the callback")

    with pytest.raises(LookupError, match="from the callback"):
        fast(**LONG).fit(*much, progress=fail)


def test_tqdm(linear):
    pytest.importorskip("tqdm")
    from tqdm import tqdm

    fast(rank=8, iterations=1).fit(*linear, progress=True)
    fast(rank=8).fit(*linear, progress=tqdm)


CHILD = """
import signal, sys, numpy as np, unicon
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts with it ignored
x, y, _ = unicon.synth("linear", 2000)
aligner = unicon.Aligner(**{long!r})
started = []
def tell(label, done, left):
    if not started:
        print("started", flush=True)
        started.append(1)
try:
    aligner.fit(x, y, progress=tell if {tell} else None)
except KeyboardInterrupt:
    print("interrupted")
aligner.set_params(iterations=0, damping=None, temperature=None).fit(x, y)
print("fitted", aligner.rank_)
"""


@pytest.mark.parametrize("tell", [True, False])
def test_ctrl_c(tell):
    """A long fit ends with KeyboardInterrupt, with a callback and without, and the object works."""
    code = CHILD.format(long=LONG, tell=tell)
    if not tell:
        code = code.replace("try:\n", "print('started', flush=True)\ntry:\n", 1)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "started\n"
    if not tell:
        threading.Event().wait(1)  # the call is under way
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out == "interrupted\nfitted 8\n" and child.returncode == 0


def test_the_handler_is_put_back(linear):
    before = signal.getsignal(signal.SIGINT)
    fast(rank=4).fit(*linear)
    with pytest.raises(unicon.UniconError):
        fast(rank=4).fit(linear[0] * np.nan, linear[1])
    assert signal.getsignal(signal.SIGINT) is before


def test_a_fit_lets_other_threads_run(much):
    """The GIL is free during a call: another thread counts on while this one fits."""
    count, stop = [0], threading.Event()

    def tick():
        while not stop.wait(.001):
            count[0] += 1

    ticker = threading.Thread(target=tick)
    ticker.start()
    heard = []
    with pytest.raises(unicon.CancelledError):
        fast(**LONG).fit(*much, progress=lambda label, done, left: heard.append(count[0])
                            or count[0] > 50)
    stop.set()
    ticker.join()
    assert count[0] > 50
