"""Ids of secrets and data sets are drawn: they tell neither the data nor the secret, nor that two runs share them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.certificates import ids
from leakcap.planning import entry
from leakcap.planning.released import forget_released

DRAWS_IDS = True
X = np.random.default_rng(5).normal(size=(24, 2))
SMALL: dict[str, Any] = {"cap": lc.membership(0.7), "worlds": 16, "draws": 256}


def ids_of(data: np.ndarray) -> tuple[str | None, str | None]:
    made = lc.plan(lambda rows: rows.mean(axis=0), data, **SMALL).certificate
    return made.secret_id, made.data_id


def test_two_plans_of_the_same_data_have_no_id_in_common() -> None:
    found = [*ids_of(X), *ids_of(X)]
    assert None not in found
    assert len(set(found)) == 4


def ids_for_each(monkeypatch: pytest.MonkeyPatch, data: list[np.ndarray]) -> set[Any]:
    """Ids of plans of different data, where the operating system gives the same digits for ids each time."""
    found = set()
    for one in data:
        digits = iter(("a" * 32, "b" * 32))
        monkeypatch.setattr(ids, "drawn_id", lambda digits=digits: next(digits))
        found.add(ids_of(one))
    return found


def test_ids_are_what_was_drawn_whatever_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ids_for_each(monkeypatch, [X, X + 1, X[:-2]]) == {("a" * 32, "b" * 32)}


def test_a_planted_id_made_of_the_data_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: an id that is a digest of the rows lets anybody check a guess at them."""
    planned = entry.Run

    def run(**given: Any) -> Any:
        digest = f"{abs(hash(given['simulation'].table.tobytes())):032x}"[-32:]
        return planned(**given | {"ids": ids.DrawnIds(digest, digest)})

    monkeypatch.setattr(entry, "Run", run)
    assert len(ids_for_each(monkeypatch, [X, X + 1, X[:-2]])) == 3


def test_a_recap_has_the_ids_of_its_plan_and_a_simulation_has_none() -> None:
    plan = lc.plan(np.mean, X, **SMALL)
    again = plan.recap(lc.membership(0.8)).certificate
    assert (again.secret_id, again.data_id) == (plan.certificate.secret_id, plan.certificate.data_id)
    simulated = lc.plan(np.mean, X, seed=1, **SMALL).certificate
    assert (simulated.secret_id, simulated.data_id) == (None, None)


def test_plans_with_other_noise_have_the_ids_of_the_plan_they_come_from() -> None:
    """One right to release, one secret: also where the noise was proposed or optimised."""
    plan = lc.plan(lambda rows: rows.mean(axis=0), X, **SMALL)
    proposed, better = lc.verify(plan, np.eye(2)), lc.optimize_noise(plan, seconds=0.2)
    assert plan.certificate.secret_id and proposed.plan and proposed.certificate
    for made in (proposed.certificate, proposed.plan.certificate, better.plan.certificate):
        assert (made.secret_id, made.data_id) == (plan.certificate.secret_id, plan.certificate.data_id)


def test_a_resumed_plan_has_the_ids_that_it_began_with(tmp_path: Any) -> None:
    first, second = (lc.plan(np.mean, X, checkpoint=tmp_path / "run", **SMALL).certificate.to_json() for _ in range(2))
    assert first == second


def parts_for(world: int, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is public of two parts whose secret is this world, with the same noise each time."""
    monkeypatch.setattr(ids, "drawn_id", lambda: "c" * 32)
    monkeypatch.setattr(entry.secrets, "randbits", lambda bits: 7)
    forget_released()
    both = lc.plan_together([np.mean, np.std], X, **SMALL)
    parts = both.apart(lc.membership(0.7))
    both._secret._world = world
    composed = both.composed()
    public = [composed.to_json().encode(), str(composed).encode(), pickle.dumps(composed)]
    for part in parts:
        made = replace(part.release(), value=None, _vector=np.zeros(1))
        public += [pickle.dumps(made), made.certificate.to_json().encode()]
    return public


def test_public_bytes_of_parts_are_the_same_whichever_world_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parts_for(0, monkeypatch) == parts_for(9, monkeypatch)


def test_a_planted_secret_in_the_composition_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: an id that is the secret shows at once."""

    def telling(world: int) -> list[bytes]:
        monkeypatch.setattr(ids.DrawnIds, "draw", classmethod(lambda cls: cls(f"{world:032x}", "d" * 32)))
        return parts_for(world, monkeypatch)

    assert telling(0) != telling(9)


def test_nothing_public_refers_to_the_shared_secret() -> None:
    both = lc.plan_together([np.mean, np.std], X, **SMALL)
    first, second = both.apart(lc.membership(0.7))
    for made in (first.release(), second.release(), both.composed()):
        assert b"SharedSecret" not in pickle.dumps(made)
    for held in (both._secret, first, both.plan):
        with pytest.raises(lc.LeakcapError):
            pickle.dumps(held)
