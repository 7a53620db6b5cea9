"""Who does the work: this process, threads of it, or worker processes. Answers come as they are ready."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Protocol, TypeAlias

from leakcap.errors import InputError, LeakcapError, OutputError
from leakcap.ground.cores import one_blas_thread
from leakcap.simulate.shared_memory import Parcels, drop_stale
from leakcap.simulate.silence import silenced

__all__ = ["Serial", "Workers", "end_workers", "threads_for", "workers_for"]

IDLE = 300  # seconds after which a worker without work ends
# Read by numerical libraries when they are loaded, in a worker that has one core of several.
ONE_THREAD = {
    f"{name}_THREADS": "1"
    for name in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "NUMBA_NUM", "NUMEXPR_NUM", "VECLIB_MAXIMUM")
}
Dealt: TypeAlias = Generator[tuple[int, Any], None, None]


class Workers(Protocol):
    """Something that applies a function to many items."""

    count: int
    elsewhere: bool  # whether workers may lack this machine's disk
    moved: int  # bytes that have travelled between machines

    def run(self, function: Callable[..., Any], shared: tuple[Any, ...], items: Sequence[Any]) -> Dealt:
        """`function(*shared, item)` for every item, with the item's place, in whatever order they end."""
        ...

    def close(self) -> None:
        """Nothing of a run stays behind."""
        ...


def workers_for(backend: Any, count: int | None, alone: bool) -> Workers:
    """What the caller has asked for; a serial worker that is `alone` leaves numerical libraries all their threads."""
    from leakcap.cluster.connecting import cluster_for

    cluster = cluster_for(backend, count)
    if cluster is not None:
        from leakcap.cluster.tasks import ClusterWorkers

        # What a function prints or logs would be in the logs of whoever runs the workers.
        return ClusterWorkers(cluster, closing=cluster is not backend, around=silenced)
    count = count or 1
    kind = backend or ("serial" if count == 1 else "processes")
    if kind not in ("serial", "threads", "processes"):
        raise InputError(
            "backend must be 'serial', 'threads', 'processes', 'dask', 'dask://host:port', a connection to a cluster, "
            "or a device of torch such as 'torch:cuda'"
        )
    if kind == "serial":
        return Serial(alone)
    return Threads(count) if kind == "threads" else Processes(count, takes_part=backend is None)


def threads_for(alone: bool) -> AbstractContextManager[Any]:
    """Threads inside numerical libraries: all for one worker, one each for several.

    Models keep the number of threads they were fitted with; it must be the same in every world.
    """
    return nullcontext() if alone else one_blas_thread()


class Serial:
    """One after the other, in order."""

    count = 1
    elsewhere = False
    moved = 0

    def __init__(self, alone: bool) -> None:
        self._alone = alone  # the only worker, in this run and in those that go on with it

    def run(self, function: Callable[..., Any], shared: tuple[Any, ...], items: Sequence[Any]) -> Dealt:
        with threads_for(self._alone):
            for place, item in enumerate(items):
                yield place, function(*shared, item)

    def close(self) -> None:
        pass


class Threads:
    """Threads of this process."""

    elsewhere = False
    moved = 0

    def __init__(self, count: int) -> None:
        self.count = count

    def run(self, function: Callable[..., Any], shared: tuple[Any, ...], items: Sequence[Any]) -> Dealt:
        pool = ThreadPoolExecutor(self.count)
        try:
            # One limit around all threads: it holds for the whole process.
            with threads_for(self.count == 1):
                yield from _dealt(
                    pool, self.count, function=function, sent=shared, shared=shared, items=items, takes_part=False
                )
        finally:
            pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        pass


class Processes:
    """Worker processes. What all items share travels to each once.

    If the caller takes part, it is one of the workers: it begins at once, while the others start.
    """

    elsewhere = False
    moved = 0

    def __init__(self, count: int, takes_part: bool) -> None:
        self.count, self._takes_part = count, takes_part
        self._parcels = Parcels()

    def run(self, function: Callable[..., Any], shared: tuple[Any, ...], items: Sequence[Any]) -> Dealt:
        if not items:
            return
        helpers, alone, whole = self.count - self._takes_part, self.count == 1, False
        try:
            sent = tuple(map(self._parcels.of, shared))
            pool = _processes(helpers, alone)
            with _as_one_of_many(alone) if self._takes_part else nullcontext():
                yield from _dealt(
                    pool, helpers, function=function, sent=sent, shared=shared, items=items, takes_part=self._takes_part
                )
            whole = True
            return
        except (LeakcapError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            stopped = type(error).__name__
        finally:
            if not whole:
                end_workers()
        raise OutputError(
            f"the workers stopped with {stopped} (its text is withheld: it may quote the data). Try backend='serial'; "
            "data and function must be picklable for processes"
        )

    def close(self) -> None:
        self._parcels.remove()


@contextmanager
def _as_one_of_many(alone: bool) -> Iterator[None]:
    """This process does what a worker does: one thread in numerical libraries, and no processes within processes."""
    from joblib import parallel_config

    with threads_for(alone), parallel_config(backend="threading"):
        yield


def _dealt(
    pool: Executor,
    helpers: int,
    function: Callable[..., Any],
    sent: tuple[Any, ...],
    shared: tuple[Any, ...],
    items: Sequence[Any],
    takes_part: bool,
) -> Dealt:
    """Items are dealt one by one to whoever is free: the pool's helpers, and the caller where it takes part.

    Nobody waits for the caller: a helper's next item is dealt by the pool itself, when the last one is done.
    """
    left = deque(enumerate(items))
    ready: queue.SimpleQueue[tuple[int, Future[Any]]] = queue.SimpleQueue()

    def deal() -> None:
        with suppress(IndexError):  # nothing is left
            place, item = left.popleft()
            future: Future[Any] = Future()
            try:
                future = pool.submit(_in_worker, function, sent, item)
            except BaseException as error:  # the pool is broken: whoever waits for this item is told
                future.set_exception(error)
            future.add_done_callback(partial(done, place))

    def done(place: int, future: Future[Any]) -> None:
        if not future.cancelled() and future.exception() is None:
            deal()
        ready.put((place, future))

    for _ in range(helpers):
        deal()
    back = 0
    while back < len(items):
        mine = None
        if takes_part:
            with suppress(IndexError):
                mine = left.popleft()
        if mine is not None:
            place, item = mine
            yield place, function(*shared, item)
            back += 1
        for place, future in _arrived(ready, wait=mine is None):
            yield place, future.result()
            back += 1


def _arrived(ready: queue.SimpleQueue[Any], wait: bool) -> Iterator[Any]:
    """What is there; at least one, if need be by waiting for it."""
    if wait:
        yield ready.get()
    while not ready.empty():
        yield ready.get()


def _in_worker(function: Callable[..., Any], shared: tuple[Any, ...], item: Any) -> Any:
    return function(*shared, item)


_pools: dict[tuple[int, int, bool], Any] = {}


def _processes(count: int, alone: bool) -> Any:
    """Worker processes, those of the last run if they are still there."""
    from joblib.externals.loky import ProcessPoolExecutor

    key = os.getpid(), count, alone
    known = _pools.get(key)
    if known is None or known._flags.broken or known._flags.shutdown:
        _pools[key] = ProcessPoolExecutor(
            count, timeout=IDLE, initializer=_begin, initargs=(os.getpid(),), env=None if alone else ONE_THREAD
        )
    return _pools[key]


def end_workers() -> None:
    """End all worker processes at once, whatever they do; the next run starts others."""
    for key in list(_pools):
        pool = _pools.pop(key)
        if key[0] == os.getpid():
            pool.shutdown(wait=True, kill_workers=True)


def _begin(custodian: int) -> None:
    """In a worker: end soon after the process that began the run, which may have been killed."""
    from joblib import parallel_config

    def watch() -> None:
        while os.getppid() == custodian:
            drop_stale()
            time.sleep(0.2)
        os._exit(1)

    parallel_config(backend="threading")  # for good: no processes within processes
    threading.Thread(target=watch, daemon=True).start()
