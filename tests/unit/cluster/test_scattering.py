"""Data on their way to workers arrive, or it is said that they did not, whoever is lost meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.cluster import scattering
from leakcap.cluster.scattering import scattered

pytest.importorskip("distributed")
THING = np.random.default_rng(0).normal(size=300)


async def _endless(dask_scheduler: Any) -> None:
    """As Dask's scheduler copies things, where a worker ends meanwhile."""

    async def replicate(*_: Any, **__: Any) -> None:
        while True:
            await asyncio.sleep(0.1)

    dask_scheduler.replicate = replicate


def _as_before(dask_scheduler: Any) -> None:
    del dask_scheduler.replicate


def test_a_worker_that_is_lost_while_it_is_sent_data_holds_nobody_up(
    mortal: lc.cluster.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scattering, "GRACE", 0.5)
    client = mortal.client
    client.run_on_scheduler(_endless)
    victim = next(iter(client.run(os.getpid).values()))
    timer = threading.Timer(0.5, os.kill, (victim, signal.SIGKILL))
    timer.start()
    with pytest.raises(TimeoutError):
        scattered(client, {"leakcap-some": THING}, 600.0, broadcast=True)
    timer.join()
    with pytest.raises(TimeoutError):  # nobody is lost, and yet it takes too long
        scattered(client, {"leakcap-more": THING}, 2.0, broadcast=True)
    client.run_on_scheduler(_as_before)
    assert np.array_equal(scattered(client, {"leakcap-other": THING}, 60.0)["leakcap-other"].result(), THING)
