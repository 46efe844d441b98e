# SPDX-License-Identifier: Apache-2.0
"""Processes made by fork, after a fit and beside one, use the library like their parent."""
import multiprocessing
import threading

import pytest
from support import fast

PATIENCE = 60  # seconds, for a child that would hang otherwise


def fit_in_child(x, y, queue):
    queue.put(fast(rank=8, threads=2).fit(x, y).spectrum_.tolist())


def fork_and_fit(x, y):
    """The spectrum that a forked child gets, or None if it did not end in time."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=fit_in_child, args=(x, y, queue))
    child.start()
    child.join(PATIENCE)
    if child.is_alive():
        child.kill()
        child.join()
        return None
    return queue.get() if child.exitcode == 0 else None


pytestmark = [
    pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),  # 3.12: threads are running
]


def test_child_after_a_fit(linear):
    here = fast(rank=8, threads=2).fit(*linear)
    assert fork_and_fit(*linear) == here.spectrum_.tolist()


def test_children_beside_a_fit(linear):
    """Whatever lock the other thread holds at the fork, the child finds it free."""
    here = fast(rank=8, threads=2).fit(*linear).spectrum_.tolist()
    stop = threading.Event()

    def fit_on_and_on():
        while not stop.is_set():
            fast(rank=8, threads=2, iterations=1).fit(*linear)

    thread = threading.Thread(target=fit_on_and_on)
    thread.start()
    try:
        for _ in range(10):
            assert fork_and_fit(*linear) == here
    finally:
        stop.set()
        thread.join()
