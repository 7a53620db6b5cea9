"""A number of worlds that was chosen, and a start that all worlds share, tell nothing about the secret.

The method is that of `test_public_bytes`: the released grid point is held fixed, the secret is exchanged, and every
public byte must stay. Nothing is statistical: there are no false alarms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.noise import OperatingSystem
from leakcap.planning import doubling
from tests.leaks.rigged import CLASS, X, points_of, public_artefacts, rigged_release, telling_artefacts

AUTO: dict[str, Any] = {"cap": lc.mutual_information(0.3), "worlds": "doubling", "draws": 256}


@pytest.fixture(autouse=True)
def _small(small_pools: None, monkeypatch: Any) -> None:
    monkeypatch.setattr(doubling, "MAX_WORLDS", 64)


def mean(x: np.ndarray) -> np.ndarray:
    return x.mean(axis=0)


def started(x: np.ndarray, start: Any = None) -> Any:
    return {"mean": x.mean(axis=0) if start is None else (x.mean(axis=0) + start["mean"]) / 2}


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "halves": (mean, {}),
    "thirds": (mean, {"rate": 1 / 3}),
    "strata": (mean, {"strata": CLASS}),
    "a kernel": (lc.stats.mean, {}),
    "membership": (mean, {"cap": lc.membership(0.75)}),
    "seeded": (mean, {"seed": 5}),
    "a start": (started, {"worlds": 16}),
    "a start and auto": (started, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_public_artefacts_are_byte_identical_whichever_world_was_secret(name: str) -> None:
    fn, options = CASES[name]
    assert not telling_artefacts(lc.plan(fn, X, **(AUTO | options)))


def test_a_planted_remark_about_the_secrets_block_is_caught() -> None:
    """The planted twin: it names the block in which the secret was drawn."""
    plan = lc.plan(mean, X, **AUTO)
    plain, found = plan.certificate, set()
    for world in (0, plan.worlds.m // 2 - 1):  # of the first block, and of the last
        early = world < 4
        plan.certificate = replace(plain, pool_public=(*plain.pool_public, f"Enough worlds at once: {early}"))
        found.add(public_artefacts(rigged_release(plan, world, points_of(plan)[1], 0.0))["pickled release"])
    assert len(found) == 2


def test_the_secret_is_drawn_after_the_number_of_worlds_and_from_all_of_them(monkeypatch: Any) -> None:
    asked: list[int] = []
    below = OperatingSystem.below

    def counted(self: Any, n: int) -> int:
        asked.append(n)
        return below(self, n)

    monkeypatch.setattr(OperatingSystem, "below", counted)
    plan = lc.plan(mean, X, **AUTO)
    assert not asked, "neither the search for the number nor the certificate draws a secret"
    plan.release()
    assert asked == [plan.worlds.m]


def test_the_chosen_number_depends_on_the_pool_alone() -> None:
    """Same pool and worlds, other randomness of the operating system: the same plan, to the last byte."""
    one, other = (lc.plan(mean, X, **(AUTO | {"seed": 4})) for _ in range(2))
    assert one.certificate.to_json() == other.certificate.to_json()
    assert one.worlds.packed.tobytes() == other.worlds.packed.tobytes()
