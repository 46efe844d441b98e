# SPDX-License-Identifier: Apache-2.0
"""Fits over the processes of an MPI job (mpi4py): each process sums the rows it has, and the sums are
merged in a tree.

    # mpirun -n 16 python fit.py
    from mpi4py import MPI
    import unicon.mpi
    comm = MPI.COMM_WORLD
    x, y = f"image/{comm.rank}.npy", f"text/{comm.rank}.npy"      # the shard of this process
    aligner = unicon.mpi.fit(comm, x, y, pairs=5, preset="fast")  # the same on all processes

Where one process fails, all raise its error, which names the process.
"""

from __future__ import annotations

from typing import Any, Optional

from ._parts_of import has_maps_to_share, split_options
from ._pairs import Pairs
from ._rows import Matrix
from .aligner import Aligner
from .errors import DataError, UniconError, error_of
from .model import Model
from .stats import Stats


def _agree(comm: Any, error: Optional[UniconError]) -> None:
    """Raises on all processes what the first of those that failed has to say."""
    told = comm.allgather(None if error is None else (error.status, str(error)))
    for number, failure in enumerate(told):
        if failure is not None:
            raise error_of(failure[0], f"process {number}: {failure[1]}") from None


def _together(comm: Any, work: Any) -> Any:
    """Does `work` on this process; an error of any process is an error of all."""
    made, failed = None, None
    try:
        made = work()
    except UniconError as error:
        failed = error
    _agree(comm, failed)
    return made


def _merged(comm: Any, part: Optional[Stats]) -> Optional[bytes]:
    """The sum over processes on process 0: process k takes in k + step, for steps 1, 2, 4, ..."""
    step, rank, size = 1, comm.Get_rank(), comm.Get_size()
    while step < size:
        failed = None
        if rank % (2 * step) == step:
            comm.send(None if part is None else part.to_bytes(), dest=rank - step)
        elif rank % (2 * step) == 0 and rank + step < size:
            content = comm.recv(source=rank + step)
            try:
                if content is not None:
                    other = Stats.from_bytes(content)
                    part = other if part is None else part + other
            except UniconError as error:
                failed = error
        _agree(comm, failed)
        step *= 2
    return None if rank or part is None else part.to_bytes()


def stats(comm: Any, X: Optional[Matrix], Y: Optional[Matrix], pairs: Pairs = None,
          weights: Any = None, **options: Any) -> Stats:
    """Statistics of the rows of all processes, on all of them. X and Y are the rows of this process
    (None: it has none), with the partners of each row. With a kernel process 0, which must have
    rows, gives the landmarks. Options are those of Stats; a process runs on one thread unless
    `threads` says otherwise."""
    for_stats, _ = split_options(options)
    maps: Optional[bytes] = None
    if has_maps_to_share(for_stats):
        def choose() -> Optional[bytes]:
            return None if comm.Get_rank() else Stats.maps(X, Y, **for_stats).to_bytes()
        maps = comm.bcast(_together(comm, choose), root=0)

    def add() -> Optional[Stats]:
        if X is None:
            return None
        part = Stats.from_bytes(maps).empty() if maps else Stats(**for_stats)
        return part.update(X, Y, pairs, weights)

    content = comm.bcast(_merged(comm, _together(comm, add)), root=0)
    if content is None:
        raise DataError("no process has rows")
    return Stats.from_bytes(content)


def fit(comm: Any, X: Optional[Matrix], Y: Optional[Matrix], pairs: Pairs = None,
        weights: Any = None, *, validation: Any = None, **options: Any) -> Aligner:
    """An Aligner fitted on the rows of all processes, the same on each: process 0 fits from the
    statistics and sends the model. `validation`, as in Aligner.fit, is read by process 0; options of
    Aligner and of Stats."""
    _, for_fit = split_options(options)
    aligner: Aligner = _together(comm, lambda: Aligner(**for_fit))
    aligner.stats_ = stats(comm, X, Y, pairs, weights, **options)

    def solve() -> Optional[bytes]:
        if comm.Get_rank():
            return None
        content: bytes = aligner.fit_from(aligner.stats_, validation).model_.to_bytes()
        return content

    aligner.model_ = Model.from_bytes(comm.bcast(_together(comm, solve), root=0))
    aligner.n_features_in_ = aligner.model_.width_x
    return aligner
