"""Work on a cluster for things that stay with workers, each of its place; whatever travels is encrypted."""

from __future__ import annotations

import contextlib
import queue
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leakcap.cluster.connecting import SCHEDULER_LOST, Cluster, cluster_for
from leakcap.cluster.scattering import scattered
from leakcap.cluster.telling import UNTOLD, ToldKey, seal_of
from leakcap.cluster.travel import Sealed, closed, kept_open, opened, size
from leakcap.errors import InputError, LeakcapError, OutputError
from leakcap.ground.cores import one_blas_thread

__all__ = ["SealedWorkers", "sealed_workers"]

AGAIN = 3  # times that a worker may have lost what it was told, or be lost itself, in one round of work
LOST = (
    "workers were lost again and again while they worked on shard {} of {}: nothing was released. Do they have memory "
    "enough?"
)
STUCK = (
    "no shard was done with for {:g} s, the first of those that are left being shard {}: nothing was released. Does a "
    "function hang? If it only takes long, say lc.cluster.connect(..., patience=SECONDS)"
)
STOPPED = "a worker stopped with {} in shard {}: nothing was released (its text is withheld: it may quote the data)"


def unwatched(_: int) -> AbstractContextManager[Callable[[int, int], None]]:
    """Nobody is told how many of so many things are done, and how many bytes have travelled."""
    return contextlib.nullcontext(lambda done, moved: None)


@dataclass(eq=False)
class SealedWorkers:
    """Applies functions to things that stay with workers; custodian side."""

    cluster: Cluster
    closing: bool = False  # whether the connection ends with this
    watching: Callable[[int], AbstractContextManager[Callable[[int, int], None]]] = unwatched  # of one round of work
    moved: int = 0  # bytes that travelled
    key: ToldKey = field(init=False, repr=False)
    _there: dict[int, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.key = ToldKey(self.cluster)

    def run(
        self, function: Callable[..., Any], things: Callable[[int], Any], items: dict[int, tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        """`function(thing, *item)` for every item, with its place, in whatever order they end.

        `things` makes what belongs to a place; it travels when it is first needed, or was lost with a worker.
        """
        left, before = dict(items), self.moved
        with self.watching(len(items)) as tell:
            for _ in range(1 + AGAIN):
                self.key.tell()
                for place, answer in self._once(function, things, left):
                    if answer is not None:
                        del left[place]
                        tell(len(items) - len(left), self.moved - before)
                        yield place, answer
                if not left:
                    return
        raise OutputError(LOST.format(min(left) + 1, len(items)))

    def close(self) -> None:
        """Nothing stays with workers: they let go of what is theirs, then of the key, and so does this process."""
        for sent in self._there.values():
            with contextlib.suppress(Exception):
                sent.release()
        self._there.clear()
        self.key.forget()
        if self.closing:
            self.cluster.close()

    def _once(
        self, function: Callable[..., Any], things: Callable[[int], Any], left: dict[int, tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        client, seal, token = self.cluster.client, self.key.seal, self.key.token
        homes = sorted(self.key.told)
        tasks = {}
        for count, (place, item) in enumerate(left.items()):
            home = homes[place % len(homes)]
            sent = self._there.get(place)
            if sent is None or sent.status in ("lost", "cancelled", "error"):
                sent = self._sent(place, closed(seal, things(place), f"thing {place}", apart=False), home)
                if sent is None:
                    continue
            name = f"leakcap-{token}-{secrets.token_hex(4)}-{count}"  # old questions and answers are of no use
            asked = closed(seal, (function, item), f"asked {name}", apart=False)
            self.moved += size(asked)
            tasks[place] = client.submit(
                _answered,
                token,
                name,
                place,
                asked,
                sent,
                key=name,
                workers=[home],
                allow_other_workers=True,
                pure=False,
            )
        ready: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        for place, task in tasks.items():
            task.add_done_callback(partial(_note, ready, place))
        try:
            for _ in range(len(tasks)):
                place, task = self.key.waited_for(ready)
                if task.status != "finished":  # its worker is gone, or its thing
                    self._there.pop(place, None)
                    continue
                told = task.result()
                if told == UNTOLD:  # and so it is asked again
                    self.key.tell_again()
                    continue
                self.moved += size(told)
                answered, answer = opened(seal, told, f"answer {task.key}")
                if not answered:
                    raise answer
                yield place, answer
        except queue.Empty:
            raise OutputError(STUCK.format(self.cluster.patience, min(left) + 1)) from None
        finally:
            with contextlib.suppress(Exception):
                client.cancel(list(tasks.values()), force=True)

    def _sent(self, place: int, sealed: Sealed, home: str) -> Any:
        """Where the thing of a place is; None where its worker is lost on the way."""
        name = f"leakcap-{self.key.token}-thing-{secrets.token_hex(4)}"
        try:
            self._there[place] = scattered(self.cluster.client, {name: sealed}, self.cluster.patience, workers=[home])[
                name
            ]
        except Exception:  # whatever Dask makes of a worker that ends while it is sent something
            if not self.cluster.alive:
                raise OutputError(SCHEDULER_LOST) from None
            return None
        self.moved += size(sealed)
        return self._there[place]


def _note(ready: queue.SimpleQueue[tuple[int, Any]], place: int, task: Any) -> None:
    ready.put((place, task))


def sealed_workers(backend: Any) -> SealedWorkers | None:
    """Of what a backend names, which end with whoever holds them; None where it is this process."""
    if backend is None:
        return None
    cluster = cluster_for(backend, None)
    if cluster is None:
        raise InputError(
            "backend must be 'dask', 'dask://host:port', a distributed.Client or what lc.cluster.connect gives"
        )
    return SealedWorkers(cluster, closing=cluster is not backend)


def _answered(token: str, name: str, place: int, asked: Sealed, thing: Sealed) -> Any:
    """In a worker: the answer, sealed; or that this worker was not told the key."""
    seal = seal_of(token)
    if seal is None:
        return UNTOLD
    try:
        with one_blas_thread():
            function, item = opened(seal, asked, f"asked {name}")
            answer = function(kept_open(seal, thing, f"thing {place}", token), *item)
            return closed(seal, (True, answer), f"answer {name}", apart=False)
    except LeakcapError as error:
        told: LeakcapError = error
    except BaseException as error:  # a worker that ends of it writes its text down
        told = OutputError(STOPPED.format(type(error).__name__, place + 1))
    return closed(seal, (False, told), f"answer {name}", apart=False)
