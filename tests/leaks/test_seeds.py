"""Secret seeds: with the released numbers held fixed, every public byte is the same whichever half and seed it was."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import leakcap as lc
from leakcap import modes
from leakcap.modes.seeds import Ball, MeasuredSeeds
from leakcap.planning import secret_seeds
from tests.leaks.rigged import CUSTODIAN, JITTERS, X, Y, new_token, points_of, public_artefacts, reachable
from tests.refusals import refusal, texts_of

SECRETS = [(3735928559, 0), (17, 1), (4000000007, 2), (2**32 - 1, 3), (999999937, 4)]  # a seed, and which half
HALVES = [np.random.default_rng(k).permutation(24) < 12 for k in range(5)]
OPTIONS: dict[str, Any] = {"cap": lc.mutual_information(0.3), "mode": "confidence", "randomness": "secret", "seeds": 2}
OPTIONS |= {"worlds": 64, "confidence": 0.9}
RELEASING = [False]  # whether the secret is being asked about


def drawn(rows: np.ndarray, *, seed: int) -> np.ndarray:
    return rows.mean(axis=0) + 0.1 * np.random.default_rng(seed).random(3)


def model(rows: np.ndarray, labels: np.ndarray, *, random_state: int) -> Ridge:
    return Ridge(solver="sag", max_iter=3, tol=1e6, random_state=random_state).fit(rows, labels)


def moody(rows: np.ndarray, *, seed: int) -> dict[str, Any]:
    """On the secret it talks, and fails in one of several ways, as half and seed have it."""
    if RELEASING[0] and seed % 2:
        print("odd", seed, rows[0], file=sys.stderr)
        if seed == 17:
            raise ValueError(f"the seed was {seed}, the first row {rows[0]}")
        return {"mean": rows.mean(axis=0) * (np.nan if seed == 999999937 else 1e200)}
    return {"mean": rows.mean(axis=0)} if seed != 4000000007 else {"other": 1.0}


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "drawn": (drawn, (X,)),
    "model": (model, (X, Y)),
    "moody": (moody, (X,)),
}


@functools.cache
def planned(name: str) -> lc.Plan:
    fn, data = CASES[name]
    drop = {"drop": ["n_iter_"]} if name == "model" else {}
    return lc.plan(fn, *data, **OPTIONS | drop)


class RiggedSeed:
    """Randomness with a seed of our choice, whose noise ends at `point` whatever the answer was."""

    def __init__(self, plan: lc.Plan, seed: int, coordinates: list[np.ndarray], *, ends: np.ndarray) -> None:
        self.plan, self.seed, self.coordinates = plan, seed, coordinates
        self.target = ends * plan.releaser.step

    def below(self, n: int) -> int:
        assert n == 2**32
        return self.seed

    def normals(self, size: int) -> np.ndarray:
        return self.target - self.coordinates[-1] / self.plan.noise.deviations


def released(plan: lc.Plan, secret: tuple[int, int], point: np.ndarray, jitter: float) -> lc.Release:
    """The plan's own `release()`, with secret and released point of our choice."""
    seed, half = secret
    seen: list[np.ndarray] = []
    kept = plan.randomness, plan._token, plan.releaser, modes.seeds.released_vector

    def watched(noise: Any, coordinates: np.ndarray, *rest: Any) -> np.ndarray:
        seen.append(coordinates)
        return np.asarray(kept[3](noise, coordinates, *rest))

    modes.seeds.released_vector = watched
    plan.randomness, plan._token = RiggedSeed(plan, seed, seen, ends=point + jitter), new_token()
    plan.releaser = replace(plan.releaser, draw=lambda source: HALVES[half])
    RELEASING[0] = True
    try:
        return plan.release()
    finally:
        RELEASING[0] = False
        plan.randomness, plan._token, plan.releaser, modes.seeds.released_vector = kept


def telling(plan: lc.Plan, capfd: Any) -> set[str]:
    """Names of the public artefacts that differ between secrets."""
    found = set()
    for point in points_of(plan):
        seen = []
        for secret, jitter in zip(SECRETS, JITTERS, strict=True):
            capfd.readouterr()
            release = released(plan, secret, point, jitter)
            heard = repr(tuple(capfd.readouterr())).encode()
            seen.append({**public_artefacts(release), "page": release.to_html().encode(), "heard": heard})
        found |= {name for name in seen[0] if len({artefact[name] for artefact in seen}) > 1}
    return found


@pytest.mark.parametrize("name", CASES)
def test_public_artefacts_are_byte_identical_whichever_half_and_seed_were_secret(name: str, capfd: Any) -> None:
    assert not telling(planned(name), capfd)


def test_a_planted_certificate_that_tells_the_seed_is_caught(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    plan = planned("drawn")
    whole = type(plan.releaser).vector

    def tells(self: Any, randomness: Any) -> np.ndarray:
        vector = whole(self, randomness)
        plan.certificate = replace(plan.certificate, attempt=int(randomness.below(2**32)))
        return np.asarray(vector)

    kept = plan.certificate
    monkeypatch.setattr(type(plan.releaser), "vector", tells)
    try:
        assert "certificate JSON" in telling(plan, capfd)
    finally:
        plan.certificate = kept


def test_a_planted_word_about_the_secret_is_caught(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """The twin: a plan whose function is heard while it runs on the secret."""
    monkeypatch.setattr(secret_seeds, "unheard", lambda answer: answer())
    plan = lc.plan(moody, X, **OPTIONS)
    capfd.readouterr()
    with pytest.raises(lc.OutputError):
        released(plan, (17, 0), *points_of(plan)[:1], 0.0)
    assert "odd 17" in capfd.readouterr().err


def test_a_planted_ball_without_an_end_is_caught(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """The twin of cutting: an answer that is far out leaves the grid's exact numbers, and tells the seed."""
    monkeypatch.setattr(Ball, "cut", lambda self, stretched: stretched)
    assert "pickled value" in telling(planned("moody"), capfd)


@pytest.mark.parametrize("name", CASES)
def test_a_release_leads_to_nothing_of_the_custodian(name: str) -> None:
    plan = planned(name)
    point = points_of(plan)[0]
    release = released(plan, SECRETS[0], point, 0.0)
    gc.collect()
    held = list(reachable(release))
    kinds = (*CUSTODIAN, modes.SecretSeed, modes.SeededPairs, Ball, MeasuredSeeds, RiggedSeed)
    assert not [type(one).__name__ for one in held if isinstance(one, kinds)]
    assert not [one for one in held if isinstance(one, int) and one == SECRETS[0][0]]
    for name_of_artefact, artefact in public_artefacts(release).items():
        assert str(SECRETS[0][0]).encode() not in artefact, name_of_artefact
        assert SECRETS[0][0].to_bytes(4, "little") not in artefact, name_of_artefact


def test_no_error_of_a_simulated_run_quotes_rows_or_seeds() -> None:
    seeds: list[str] = []

    def failing(rows: np.ndarray, *, seed: int) -> float:
        seeds.append(str(seed))
        raise ValueError(f"{rows[0]} {seed}")

    def changing(rows: np.ndarray, *, seed: int) -> np.ndarray:
        seeds.append(str(seed))
        return rows[0, : 1 + seed % 2]

    def undefined(rows: np.ndarray, *, seed: int) -> float:
        seeds.append(str(seed))
        return rows[0, 0] if seed % 4 else float("nan")

    for fn in (failing, changing, undefined):
        error = refusal(functools.partial(lc.plan, fn, X, **OPTIONS), kind=lc.OutputError)
        private = [*seeds, *(repr(float(cell)) for cell in X.ravel())]
        assert not [text for text in private if text in texts_of(error)]
        seeds.clear()
