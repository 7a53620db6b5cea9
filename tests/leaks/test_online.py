"""Questions with growing budgets: with the released numbers held fixed, nothing public tells the secret half."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.planning import online
from leakcap.planning.released import forget_released

X = np.arange(12.0).reshape(6, 2) / 12
FIRST, LAST = np.arange(6) < 3, np.arange(6) >= 3
SECRET = [False]  # whether the secret half is being asked about


def moody(rows: np.ndarray) -> float:
    """Talks and fails on the secret half alone, and only if it holds the first person."""
    if SECRET[0] and rows[0, 0] == 0:
        print("here", file=sys.stderr)
        raise ValueError(f"the first person took part: {rows[0]}")
    return float(rows.mean())


def with_seed(rows: np.ndarray, *, seed: int) -> float:
    return moody(rows) + 1e-9 * (seed % 2)


def public(secret: np.ndarray, monkeypatch: pytest.MonkeyPatch, capfd: Any, seeds: int | None = None) -> list[Any]:
    """All that leaves, for a secret half of our choice and numbers that are the same for all."""
    forget_released()
    asked = lc.Online(X, radius=1.0, steps=1, pairs=64, seeds=seeds)
    asked._worlds = online.independent_worlds(6, 128, np.random.default_rng(0), 0.5)
    with monkeypatch.context() as patch:
        patch.setattr(online.secrets, "randbits", lambda bits: 7)  # the simulated seeds
        answer = asked.ask(moody if seeds is None else with_seed, 0.5)
    with monkeypatch.context() as patch:
        drawn = type("Drawn", (), {"mask": lambda self, number: secret})
        patch.setattr(online, "independent_worlds", lambda *args: drawn())
        patch.setattr(online, "released_vector", lambda noise, coordinates, *rest: np.zeros(len(coordinates)))
        SECRET[0] = True
        try:
            made = asked.release()
        finally:
            SECRET[0] = False
    return [pickle.dumps(made), made[0].certificate.to_json(), str(made), capfd.readouterr(), answer.noise.std]


@pytest.mark.parametrize("seeds", [None, 2])
def test_all_that_is_public_is_the_same_whichever_half_is_secret(
    seeds: int | None, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    assert public(FIRST, monkeypatch, capfd, seeds) == public(LAST, monkeypatch, capfd, seeds)


def test_a_planted_error_that_is_heard_is_caught(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """The twin: whoever hears the function on the secret half knows that the first person took part."""
    monkeypatch.setattr(online, "unheard", lambda answer: answer())
    public(LAST, monkeypatch, capfd)
    with pytest.raises(lc.OutputError):
        public(FIRST, monkeypatch, capfd)
