# SPDX-License-Identifier: Apache-2.0
"""unicon.mpi over a communicator of threads: what a process does, and that none waits for one that
has failed. With mpi4py itself: test_engines.py."""
import queue
import threading

import numpy as np
import pytest

import unicon
import unicon.mpi
from unicon import Stats

WAIT = 60  # seconds until a process counts as left alone


class Job:
    """What mpi4py's communicator has of it, for `size` threads."""

    def __init__(self, size):
        self.size, self.barrier = size, threading.Barrier(size, timeout=WAIT)
        self.told, self.mail = [None] * size, [[queue.Queue() for _ in range(size)]
                                               for _ in range(size)]

    def run(self, work):
        """work(communicator) on every thread; what each returned or raised."""
        ends = [None] * self.size

        def one(rank):
            try:
                ends[rank] = work(Communicator(self, rank))
            except BaseException as error:
                ends[rank] = error

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return ends


class Communicator:
    def __init__(self, job, rank):
        self.job, self.rank = job, rank

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.job.size

    def allgather(self, value):
        self.job.told[self.rank] = value
        self.job.barrier.wait()
        told = list(self.job.told)
        self.job.barrier.wait()
        return told

    def bcast(self, value, root=0):
        return self.allgather(value)[root]

    def send(self, value, dest):
        self.job.mail[self.rank][dest].put(value)

    def recv(self, source):
        return self.job.mail[source][self.rank].get(timeout=WAIT)


def part(rows, comm):
    return np.array_split(rows, comm.job.size)[comm.rank]


def fitted(linear, size, break_one=None, **options):
    def work(comm):
        x, y = (part(rows, comm).copy() for rows in linear)
        if break_one and comm.rank == 1:
            x = break_one(x)
        return unicon.mpi.fit(comm, x, y, preset="fast", rank=10, **options)
    return Job(size).run(work)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_options_of_a_part_hold_with_any_kernel(linear, kernel, monkeypatch):
    threads = []
    update = Stats.update

    def noting(self, *arguments, **keywords):
        threads.append(self._options.get("threads"))
        return update(self, *arguments, **keywords)

    def with_a_bad_row(x):
        x[3, 2] = np.nan
        return x
    monkeypatch.setattr(Stats, "update", noting)
    with pytest.warns(unicon.UniconWarning, match="1 of 167 rows dropped"):
        ends = fitted(linear, 3, with_a_bad_row, kernel=kernel, landmarks=40, bad_rows="drop")
    assert [a.stats_.info["rows_x"] for a in ends] == [499] * 3
    assert threads == [1] * 3


@pytest.mark.parametrize("size", [2, 4])
def test_any_error_of_a_process_ends_all(linear, size, monkeypatch):
    def ragged(x):
        return [[1.0, 2.0], [3.0]]
    ends = fitted(linear, size, ragged)
    assert isinstance(ends[1], ValueError) and not isinstance(ends[1], unicon.UniconError)
    for rank, end in enumerate(ends):
        if rank != 1:
            assert isinstance(end, unicon.UniconError)
            assert str(end).startswith("process 1: ValueError: ")

    # what one sends to another, and what is sent to all
    to_bytes = Stats.to_bytes

    def failing(self):
        if threading.current_thread().name == "sender":
            raise MemoryError("no room")
        return to_bytes(self)
    monkeypatch.setattr(Stats, "to_bytes", failing)

    def work(comm):
        if comm.rank == size - 1:
            threading.current_thread().name = "sender"
        return unicon.mpi.stats(comm, *(part(rows, comm) for rows in linear))
    ends = Job(size).run(work)
    assert isinstance(ends[-1], MemoryError)
    assert all(str(end) == f"process {size - 1}: MemoryError: no room" for end in ends[:-1])
