"""Things on their way to workers, with an eye on those who are to have them.

Where a worker ends while things are copied from one worker to the next, Dask's scheduler goes on asking for the copy
that is missing, without end: so whoever waits for it looks which workers are still there.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any

from leakcap.cluster.connecting import loaded

__all__ = ["scattered"]

LOOK = 1.0  # seconds between looks at who is there
GRACE = 5.0  # seconds for what can still end, once somebody is gone


def scattered(client: Any, things: Mapping[str, Any], patience: float, **where: Any) -> dict[str, Any]:
    """Where workers have things, by their names; an error of Dask's, or a TimeoutError, where they do not get there."""
    sending = asyncio.run_coroutine_threadsafe(
        client.scatter(dict(things), asynchronous=True, hash=False, **where), client.loop.asyncio_loop
    )
    began, there, lost = time.monotonic(), set(client.nthreads()), None
    while True:
        try:
            found: dict[str, Any] = sending.result(timeout=LOOK)
            return found
        except TimeoutError:
            if sending.done():
                raise
        now = time.monotonic()
        if lost is None and not there <= set(client.nthreads()):
            lost = now
        if now - began > patience or (lost is not None and now - lost > GRACE):
            sending.cancel()
            _let_go(client, things)
            raise TimeoutError


def _let_go(client: Any, names: Mapping[str, Any]) -> None:
    """The scheduler looks for copies as long as somebody wants them."""
    for name in names:
        with contextlib.suppress(Exception):
            loaded().Future(name, client).release()
