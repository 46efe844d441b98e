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

from typing import Any, Callable, Optional

from ._parts_of import begin, has_maps_to_share, split_options
from ._pairs import Pairs
from ._rows import Matrix
from .aligner import Aligner
from .errors import DataError, UniconError, error_of
from .model import Model
from .stats import Stats


def _agree(comm: Any, error: Optional[Exception]) -> None:
    """Raises on all processes what the first of those that failed has to say; errors of others than
    the library stay as they are where they happened."""
    said = error and (str(error) if isinstance(error, UniconError)
                      else f"{type(error).__name__}: {error}")
    told = comm.allgather(said and (getattr(error, "status", -1), said))
    if error and not isinstance(error, UniconError):
        raise error
    for number, failure in enumerate(told):
        if failure:
            raise error_of(failure[0], f"process {number}: {failure[1]}") from None


def _together(comm: Any, work: Callable[[], Any]) -> Any:
    """Does `work` on this process; an error of any process is an error of all."""
    made, failed = None, None
    try:
        made = work()
    except Exception as error:
        failed = error
    _agree(comm, failed)
    return made


def _merged(comm: Any, part: Optional[Stats]) -> Optional[bytes]:
    """The sum over processes on process 0: process k takes in k + step, for steps 1, 2, 4, ..."""
    def as_bytes() -> Optional[bytes]:
        return None if part is None else part.to_bytes()

    def take_in() -> Optional[Stats]:
        other = None if content is None else Stats.from_bytes(content)
        return part if other is None else other if part is None else part + other

    step, rank, size = 1, comm.Get_rank(), comm.Get_size()
    while step < size:
        sends = rank % (2 * step) == step
        content = _together(comm, as_bytes if sends else lambda: None)
        if sends:
            comm.send(content, dest=rank - step)
            content = None
        elif rank % (2 * step) == 0 and rank + step < size:
            content = comm.recv(source=rank + step)
        part = _together(comm, take_in)
        step *= 2
    made: Optional[bytes] = _together(comm, lambda: None if rank else as_bytes())
    return made


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
        return begin(for_stats, maps).update(X, Y, pairs, weights)

    content = comm.bcast(_merged(comm, _together(comm, add)), root=0)
    if content is None:
        raise DataError("no process has rows")
    made: Stats = _together(comm, lambda: Stats.from_bytes(content))
    return made


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

    model = comm.bcast(_together(comm, solve), root=0)
    aligner.model_ = _together(comm, lambda: Model.from_bytes(model))
    aligner.n_features_in_ = aligner.model_.width_x
    return aligner
