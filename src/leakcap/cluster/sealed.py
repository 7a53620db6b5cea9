"""Work on a cluster of which it may see nothing: whatever travels is encrypted, and the key goes beside it.

Workers are told the key by a call from here to each of them, over their own TLS, which schedulers neither pass on nor
keep. What is in graphs, in a scheduler's or a worker's store, on its pages, in its logs and in files that it spills is
ciphertext, and names that count.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leakcap.cluster.connecting import SCHEDULER_LOST, Cluster, cluster_for, loaded
from leakcap.cluster.scattering import scattered
from leakcap.custody.sealing import Seal, let_go_of_keys
from leakcap.errors import InputError, LeakcapError, OutputError
from leakcap.ground.cores import one_blas_thread

__all__ = ["SealedWorkers", "sealed_workers"]

KEY_BYTES = 32
AGAIN = 3  # times that a worker may have lost what it was told, or be lost itself, in one round of work
KEPT = 16  # things that a worker keeps open
LOST = (
    "workers were lost again and again while they worked on shard {} of {}: nothing was released. Do they have memory "
    "enough?"
)
STUCK = (
    "no shard was done with for {:g} s, the first of those that are left being shard {}: nothing was released. Does a "
    "function hang? If it only takes long, say lc.cluster.connect(..., patience=SECONDS)"
)
STOPPED = "a worker stopped with {} in shard {}: nothing was released (its text is withheld: it may quote the data)"
UNTOLD = b"no key"  # the answer of a worker that was not told the key yet
Call = tuple[Callable[..., Any], tuple[Any, ...]]


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
    _token: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)
    _key: bytearray = field(default_factory=lambda: bytearray(secrets.token_bytes(KEY_BYTES)), repr=False)
    _there: dict[int, Any] = field(default_factory=dict, repr=False)
    _told: set[str] = field(default_factory=set, repr=False)

    def run(
        self, function: Callable[..., Any], things: Callable[[int], Any], items: dict[int, tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        """`function(thing, *item)` for every item, with its place, in whatever order they end.

        `things` makes what belongs to a place; it travels when it is first needed, or was lost with a worker.
        """
        left, before = dict(items), self.moved
        with self.watching(len(items)) as tell:
            for _ in range(1 + AGAIN):
                self._tell()
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
        with contextlib.suppress(Exception):
            self._call(sorted(self._told), _forgotten, self._token)
        self._told.clear()
        self._key[:] = bytes(KEY_BYTES)
        if self.closing:
            self.cluster.close()

    def _once(
        self, function: Callable[..., Any], things: Callable[[int], Any], left: dict[int, tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        client, seal = self.cluster.client, Seal(bytes(self._key))
        homes = sorted(self._told)
        tasks = {}
        for count, (place, item) in enumerate(left.items()):
            home = homes[place % len(homes)]
            sent = self._there.get(place)
            if sent is None or sent.status in ("lost", "cancelled", "error"):
                sent = self._sent(place, seal.closed(_packed(things(place)), b"thing %d" % place), home)
                if sent is None:
                    continue
            name = f"leakcap-{self._token}-{secrets.token_hex(4)}-{count}"  # old questions and answers are of no use
            asked = seal.closed(_packed((function, item)), b"asked " + name.encode())
            self.moved += len(asked)
            tasks[place] = client.submit(
                _answered,
                self._token,
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
                place, task = ready.get(timeout=self.cluster.patience)
                if task.status != "finished":  # its worker is gone, or its thing
                    self._there.pop(place, None)
                    continue
                told = task.result()
                self.moved += len(told)
                if told == UNTOLD:
                    continue
                answered, answer = pickle.loads(_opened(seal, told, b"answer " + task.key.encode()))
                if not answered:
                    raise answer
                yield place, answer
        except queue.Empty:
            raise OutputError(STUCK.format(self.cluster.patience, min(left) + 1)) from None
        finally:
            with contextlib.suppress(Exception):
                client.cancel(list(tasks.values()), force=True)

    def _sent(self, place: int, sealed: bytes, home: str) -> Any:
        """Where the thing of a place is; None where its worker is lost on the way."""
        name = f"leakcap-{self._token}-thing-{secrets.token_hex(4)}"
        try:
            self._there[place] = scattered(self.cluster.client, {name: sealed}, self.cluster.patience, workers=[home])[
                name
            ]
        except Exception:  # whatever Dask makes of a worker that ends while it is sent something
            if not self.cluster.alive:
                raise OutputError(SCHEDULER_LOST) from None
            return None
        self.moved += len(sealed)
        return self._there[place]

    def _tell(self) -> None:
        """Every worker that was not told the key is told it; those that are started again are waited for."""
        client = self.cluster.client
        if not self.cluster.alive:
            raise OutputError(SCHEDULER_LOST)
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(1, timeout=self.cluster.patience)
        there = set(client.nthreads())
        self._told &= there
        for address in sorted(there - self._told):
            with contextlib.suppress(OSError):  # it has just been lost
                self._call([address], _kept, self._token, bytes(self._key))
                self._told.add(address)
        if not self._told:
            raise OutputError("the cluster has no workers any more: start some, and ask again")

    def _call(self, addresses: Iterable[str], function: Callable[..., Any], *given: Any) -> None:
        """A function on workers, asked of each directly."""
        distributed = loaded()
        client, name, arguments = self.cluster.client, pickle.dumps(function), pickle.dumps(given)

        async def called() -> None:
            for address in addresses:
                secured = client.security.get_connection_args("client")
                async with distributed.rpc(address, connection_args=secured) as worker:
                    await worker.run(function=name, args=arguments, kwargs=pickle.dumps({}), wait=True)

        client.sync(called)


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


# in a worker

_keys: dict[str, bytearray] = {}
_open: OrderedDict[tuple[str, int], Any] = OrderedDict()


def _kept(token: str, key: bytes) -> None:
    """It must not fail: what workers write about failures quotes arguments."""
    _keys[token] = bytearray(key)


def _forgotten(token: str) -> None:
    if token in _keys:
        _keys[token][:] = bytes(KEY_BYTES)
        del _keys[token]
    let_go_of_keys()
    for one in [one for one in _open if one[0] == token]:
        del _open[one]


def _answered(token: str, name: str, place: int, asked: bytes, thing: bytes) -> bytes:
    """The answer, sealed; or that this worker was not told the key."""
    key = _keys.get(token)
    if key is None:
        return UNTOLD
    seal = Seal(bytes(key))
    try:
        with one_blas_thread():
            function, item = pickle.loads(_opened(seal, asked, b"asked " + name.encode()))
            told = True, function(_thing(token, place, seal, thing), *item)
    except LeakcapError as error:
        told = False, error
    except Exception as error:
        told = False, OutputError(STOPPED.format(type(error).__name__, place + 1))
    return seal.closed(_packed(told), b"answer " + name.encode())


def _thing(token: str, place: int, seal: Seal, sealed: bytes) -> Any:
    known = token, place
    if known not in _open:
        while len(_open) >= KEPT:
            _open.popitem(last=False)
        _open[known] = pickle.loads(_opened(seal, sealed, b"thing %d" % place))
    _open.move_to_end(known)
    return _open[known]


def _packed(thing: Any) -> bytes:
    import cloudpickle

    packed: bytes = cloudpickle.dumps(thing)
    return packed


def _opened(seal: Seal, sealed: bytes, bound_to: bytes) -> bytes:
    content = seal.opened(sealed, bound_to)
    if content is None:
        raise OutputError("what travelled between this process and its workers was changed: nothing was released")
    return content
