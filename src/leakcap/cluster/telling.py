"""A key that workers are told beside their work, and with which everything that travels for it is encrypted.

Each of them is told by a call from here, over their own TLS, which schedulers neither pass on nor keep. So what is in
graphs, in a scheduler's or a worker's store, on its pages, in its logs and in files that it spills is ciphertext.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from leakcap.cluster.connecting import SCHEDULER_LOST, Cluster, loaded, refuse_without_tls
from leakcap.cluster.travel import let_go
from leakcap.custody.sealing import Seal, let_go_of_keys
from leakcap.errors import OutputError

__all__ = ["UNTOLD", "ToldKey", "seal_of"]

KEY_BYTES = 32
UNTOLD = b"no key"  # the answer of a worker that was not told
LOOK = 1.0  # seconds between looks at who has come
WAITING = 5.0  # seconds for which a worker waits to be told


@dataclass(eq=False)
class ToldKey:
    """A key, and who was told it; custodian side."""

    cluster: Cluster
    token: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)
    key: bytearray = field(default_factory=lambda: bytearray(secrets.token_bytes(KEY_BYTES)), repr=False)
    told: set[str] = field(default_factory=set, repr=False)

    @property
    def seal(self) -> Seal:
        return Seal(bytes(self.key))

    def tell(self) -> None:
        """Every worker that was not told is told; those that are started again are waited for."""
        client = self.cluster.client
        if not self.cluster.alive:
            raise OutputError(SCHEDULER_LOST)
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(1, timeout=self.cluster.patience)
        self.tell_those_who_came()
        if not self.told:
            raise OutputError("the cluster has no workers any more: start some, and ask again")

    def tell_those_who_came(self) -> None:
        """The same, of those that are there."""
        there = set(self.cluster.client.nthreads())
        self.told &= there
        for address in sorted(there - self.told):
            if not self.cluster.insecure:
                refuse_without_tls("a worker", address)
            with contextlib.suppress(OSError):  # it has just been lost
                self.call([address], _kept, self.token, bytes(self.key))
                self.told.add(address)

    def tell_again(self) -> None:
        """Everybody is told anew: somebody was not, or has started again at the same address."""
        self.told.clear()
        self.tell()

    def waited_for(self, ready: queue.SimpleQueue[Any]) -> Any:
        """The next of what gets ready, while workers that come are told; a queue.Empty where it takes too long."""
        until = time.monotonic() + self.cluster.patience
        while True:
            with contextlib.suppress(queue.Empty):
                return ready.get(timeout=max(0.0, min(LOOK, until - time.monotonic())))
            if time.monotonic() >= until:
                raise queue.Empty
            if self.cluster.alive:
                self.tell_those_who_came()

    def forget(self) -> None:
        """Workers let go of it and of what they keep open, and so does this process."""
        with contextlib.suppress(Exception):
            self.call(sorted(self.told), _forgotten, self.token)
        self.told.clear()
        self.key[:] = bytes(KEY_BYTES)
        let_go_of_keys()

    def call(self, addresses: Iterable[str], function: Callable[..., Any], *given: Any) -> None:
        """A function on workers, asked of each directly."""
        distributed = loaded()
        client, name, arguments = self.cluster.client, pickle.dumps(function), pickle.dumps(given)

        async def called() -> None:
            for address in addresses:
                secured = client.security.get_connection_args("client")
                async with distributed.rpc(address, connection_args=secured) as worker:
                    await worker.run(function=name, args=arguments, kwargs=pickle.dumps({}), wait=True)

        client.sync(called)


# in a worker

_keys: dict[str, bytearray] = {}


def seal_of(token: str) -> Seal | None:
    """With the key that this worker was told; None where nobody tells it."""
    until = time.monotonic() + WAITING
    while token not in _keys and time.monotonic() < until:
        time.sleep(0.02)
    key = _keys.get(token)
    return None if key is None else Seal(bytes(key))


def _kept(token: str, key: bytes) -> None:
    """It must not fail: what workers write about failures quotes arguments."""
    _keys[token] = bytearray(key)


def _forgotten(token: str) -> None:
    if token in _keys:
        _keys[token][:] = bytes(KEY_BYTES)
        del _keys[token]
    let_go_of_keys()
    let_go(token)
