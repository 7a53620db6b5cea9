"""Published tables: with the released rows held fixed, every public byte is the same whichever records are in them."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.local.rows import rows_of
from leakcap.modes import OneOfTheInputs, given
from leakcap.planning.plans import LEVELS
from tests.leaks.rigged import CUSTODIAN, JITTERS, new_token, points_of, reachable

RECORDS = np.array([[0.0, 2.0, 1.0], [1.0, 2.0, 3.0], [1.5, 2.0, -1.0], [4.0, 2.0, 0.5], [7.0, 2.0, 2.0]])
CAP = lc.mutual_information(0.3)
WAYS: dict[str, Callable[[int], Any]] = {
    "drawn": lambda which: 2,
    "held": lambda which: [which, (which + 2) % 5],
}


class RiggedRows:
    """Randomness whose rows are these records, and which ends at `point`, `jitter` of a step beside it."""

    def __init__(self, plan: lc.Plan, places: list[int], point: np.ndarray, jitter: float) -> None:
        noise, step = plan.noise, plan.releaser.step
        self.places = list(places)
        target = (point + jitter) * step
        self.queue = [target - noise.space.coordinates[place] / noise.deviations for place in places]

    def below(self, n: int) -> int:
        return self.places.pop(0)

    def normals(self, size: int) -> np.ndarray:
        return self.queue.pop(0)


@functools.cache
def one_plan() -> lc.Plan:
    return lc.local.plan(RECORDS, cap=CAP, draws=512)


def telling(way: str) -> set[str]:
    """Names of the public artefacts that differ between records."""
    one, found = one_plan(), set()
    for point in points_of(one):
        seen = []
        for which, jitter in enumerate(JITTERS):
            table = lc.local.TablePlan(one, rows_of(WAYS[way](which), one.run.worlds), None)
            kept = one.randomness, one.run.token
            one.randomness = RiggedRows(one, [which, (which + 2) % 5], point, jitter)
            object.__setattr__(one.run, "token", new_token())
            try:
                seen.append(artefacts(table.release()))
            finally:
                one.randomness = kept[0]
                object.__setattr__(one.run, "token", kept[1])
        found |= {name for name in seen[0] if len({one[name] for one in seen}) > 1}
    return found


def artefacts(table: lc.local.PublishedTable) -> dict[str, bytes]:
    certificate = table.certificate
    return {
        "pickled table": pickle.dumps(table),
        "pickled value": pickle.dumps(table.value),
        "deep copy": pickle.dumps(copy.deepcopy(table)),
        "repr": repr(table).encode(),
        "certificate text": str(certificate).encode(),
        "certificate JSON": certificate.to_json().encode(),
        "page": certificate.to_html().encode(),
        "intervals": b"".join(end.tobytes() for level in LEVELS for end in table.interval(level)),
    }


@pytest.mark.parametrize("way", WAYS)
def test_public_artefacts_are_byte_identical_whichever_records_stand_in_the_rows(way: str) -> None:
    assert not telling(way)


def test_a_planted_row_with_noise_on_the_record_itself_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = one_plan()

    def leaks(noise: Any, coordinates: np.ndarray, step: float, randomness: Any) -> np.ndarray:
        which = int(np.flatnonzero((noise.space.coordinates == coordinates).all(axis=1))[0])
        return np.asarray(plan.outputs[which] + noise.space.lift(randomness.normals(2) * noise.deviations))

    monkeypatch.setattr(given, "released_vector", leaks)
    assert "pickled value" in telling("drawn")


def test_a_planted_certificate_that_counts_held_records_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from leakcap.local import rows

    monkeypatch.setattr(
        rows.HeldRows, "assumptions", property(lambda self: (f"the largest place is {max(self.places)}",))
    )
    assert "certificate JSON" in telling("held")


def test_nothing_of_the_custodians_hangs_on_a_published_table() -> None:
    plan = lc.local.plan(RECORDS + 0.25, cap=CAP, draws=512, rows=3)
    table = plan.release()
    kinds = (*CUSTODIAN, OneOfTheInputs, lc.local.TablePlan)

    def held(root: Any) -> list[Any]:
        return [one for one in reachable(root) if isinstance(one, kinds)]

    assert not held(table)
    assert held(replace(table, _vectors=plan))  # planted: the plan goes along
    assert "HeldRows(" not in repr(plan)
