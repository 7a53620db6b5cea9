"""Distilled models: with the released votes held fixed, all that is public is the same whoever takes part."""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from leakcap.custody.ledger import accounts as account
from leakcap.errors import InputError
from leakcap.estimators import Distilled
from leakcap.estimators import distilled as settings
from leakcap.estimators.taught_blocks import TaughtBlocks
from leakcap.sessions import desk
from tests.leaks.test_sessions import Stopped
from tests.unit.estimators.teachers import ODD, PUBLIC, Leaving, Telling, pool

pytestmark = pytest.mark.filterwarnings("ignore::leakcap.errors.RepeatedReleaseWarning")  # worlds are tried one by one
ROWS, CLASSES = pool(24)


class Loud(Telling):
    """Tells all that it sees while it learns."""

    def fit(self, X: Any, y: Any) -> Loud:
        print("rows", X)
        super().fit(X, y)
        return self


@pytest.fixture(autouse=True)
def _votes_held_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "LOUDEST", 100.0)
    monkeypatch.setattr(desk, "datetime", Stopped)

    def fixed(total: Any, grains: Any, deviations: Any, randomness: Any) -> Any:
        return (np.sin(np.arange(len(deviations))) + 1.2) * deviations

    monkeypatch.setattr(desk, "with_noise", fixed)


def shown(teacher: Any, cap: Any, *, first: int = 0, coins: int | None = None, student: Any = None) -> list[bytes]:
    """All that a fit in a session shows, without the people before `first`, or by coins of a seed."""
    session = lc.Session((ROWS[first:], CLASSES[first:]), cap=cap, unit=np.arange(first, 24), rows_per_unit=1, seed=1)
    if coins is not None:
        drawn = np.random.default_rng(coins).integers(0, 2, size=24).astype(bool)
        session._desk = replace(session._desk, coins=drawn)
    model = Distilled(teacher, student or Telling(), queries=PUBLIC, classes=[0, 1], blocks=4)
    made = session.fit(model, ["0", "1"], "2", share=0.9)
    public = (made.predict(PUBLIC), made.votes_, made.blocks_, made.estimator_, made)
    texts = repr((made, session.history)), str(session.certificate)
    return [*map(pickle.dumps, public), *(text.encode() for text in texts)]


def differing(show: Callable[[int], list[bytes]], count: int) -> int:
    """How many of the things shown are not the same."""
    seen = [show(number) for number in range(count)]
    return sum(len(set(things)) > 1 for things in zip(*seen, strict=True))


@pytest.mark.parametrize("teacher", [Telling(), Leaving(), Loud()])
def test_public_bytes_of_a_distilled_model_are_the_same_whoever_took_part(teacher: Any, capfd: Any) -> None:
    assert differing(lambda seed: shown(teacher, lc.membership(0.6), coins=seed), 4) == 0
    said = capfd.readouterr()
    assert str(ODD) not in said.out + said.err and "rows" not in said.out + said.err


@pytest.mark.parametrize("teacher", [Telling(), Leaving()])
def test_public_bytes_of_a_distilled_model_are_the_same_without_a_person(teacher: Any) -> None:
    assert differing(lambda first: shown(teacher, lc.pool_membership(0.6), first=first), 3) == 0


def test_counts_that_put_a_student_right_bring_nobody_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held fixed, far above the noise: so the student's probabilities are put right at all."""

    def fixed(total: Any, grains: Any, deviations: Any, randomness: Any) -> Any:
        return 40 * (np.sin(np.arange(len(deviations))) + 1.2) * deviations

    def without(first: int) -> list[bytes]:
        return shown(Telling(), lc.pool_membership(0.6), first=first, student=LogisticRegression())

    monkeypatch.setattr(desk, "with_noise", fixed)
    assert differing(without, 3) == 0
    assert (
        differing(lambda seed: shown(Telling(), lc.membership(0.6), coins=seed, student=LogisticRegression()), 3) == 0
    )
    assert np.abs(pickle.loads(without(0)[3]).shifts_).max() > 0.1


def test_a_planted_trace_of_those_who_voted_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: blocks without anybody are no teachers, and the model says how many teachers there were."""
    learnt, taught = Distilled._learnt, TaughtBlocks.vectors
    voted: list[int] = []

    def counting(self: TaughtBlocks, mask: Any) -> Any:
        voted.append(int(mask.sum()))
        return taught(self, mask)

    def telling(self: Any, fitting: Any, rows: Any) -> Any:
        made = learnt(self, fitting, rows)
        made.blocks_ = voted[-1]
        return made

    monkeypatch.setattr(TaughtBlocks, "vectors", counting)
    monkeypatch.setattr(Distilled, "_learnt", telling)
    assert differing(lambda seed: shown(Telling(), lc.membership(0.6), coins=seed), 4) > 0


def released(
    cap: Any, monkeypatch: pytest.MonkeyPatch, *, coins: int = 0, rows: slice = slice(None), blocks: Any = 4
) -> list[bytes]:
    """All that a fit outside of a session shows, with coins of a seed in place of those of the operating system."""
    monkeypatch.setattr(account.secrets, "token_bytes", np.random.default_rng(coins).bytes)
    options = {"rows_per_unit": 1} if isinstance(cap, type(POOL)) else None
    model = Distilled(
        Telling(), Telling(), queries=PUBLIC, classes=[0, 1], blocks=blocks, cap=cap, options=options, random_state=None
    )
    made = model.fit(ROWS[rows], CLASSES[rows])
    cert = made.certificate_
    assert cert.kind != "simulation"
    texts = cert.to_json(), str(cert), cert.to_html(), repr(made), repr(made.estimator_), repr(sorted(vars(made)))
    public = made, made.estimator_, made.student_, cert, made.predict_proba(PUBLIC)
    return [*map(pickle.dumps, public), *(text.encode() for text in texts)]


POOL = lc.pool_membership(0.6)


def test_what_a_release_of_its_own_shows_is_the_same_whoever_took_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates, pages, pickles of the estimator itself and of all that hangs on it."""
    assert differing(lambda seed: released(lc.membership(0.6), monkeypatch, coins=seed), 4) == 0
    assert differing(lambda gone: released(POOL, monkeypatch, rows=slice(gone, None)), 3) == 0


def test_how_many_blocks_there_are_is_made_of_the_noised_number_of_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without eight people, and without sixteen: by their exact number there would be fewer blocks."""
    monkeypatch.setattr(settings, "FEWEST_EACH", 1)
    assert differing(lambda part: released(POOL, monkeypatch, rows=slice(8 * part, None), blocks="auto"), 3) == 0


def test_a_planted_trace_in_a_release_of_its_own_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: the estimator keeps how many voted, which no certificate is about."""
    taught, voted = TaughtBlocks.vectors, list[int]()

    def counting(self: TaughtBlocks, mask: Any) -> Any:
        voted.append(int(mask.sum()))
        return taught(self, mask)

    def keeping(self: Any, *given: Any, **more: Any) -> Any:
        made = fit(self, *given, **more)
        made.voters_ = voted[-1]
        return made

    fit = Distilled.fit
    monkeypatch.setattr(TaughtBlocks, "vectors", counting)
    monkeypatch.setattr(Distilled, "fit", keeping)
    assert differing(lambda seed: released(lc.membership(0.6), monkeypatch, coins=seed), 4) > 0


HOLED = PUBLIC.copy()
HOLED[3, 1] = np.nan
REFUSED: dict[str, dict[str, Any]] = {
    "a cap too small for the blocks": {"blocks": 2},
    "a teacher that fails on public rows": {"teacher": Leaving, "queries": np.vstack([PUBLIC, [[ODD, 0.0]]])},
    "a teacher without shares": {"votes": "scores"},
    "public rows with holes": {"queries": HOLED},
    "no public rows": {"queries": None},
    "public rows of other columns": {"queries": PUBLIC[:, :1]},
    "one block": {"blocks": 1},
    "a model that is private already": {"student": Distilled},
}


def refused(case: str, cap: Any, *, first: int = 0, coins: int | None = None) -> tuple[str, int]:
    """What a refusal says, and how much is done before: calls of functions, which tell times but for the machine's."""
    changes = {name: one() if isinstance(one, type) else one for name, one in REFUSED[case].items()}
    session = lc.Session((ROWS[first:], CLASSES[first:]), cap=cap, unit=np.arange(first, 24), rows_per_unit=1, seed=1)
    if coins is not None:
        drawn = np.random.default_rng(coins).integers(0, 2, size=24).astype(bool)
        session._desk = replace(session._desk, coins=drawn)
    given = {"teacher": Telling(), "student": Telling(), "queries": PUBLIC, "blocks": 4, "classes": [0, 1]} | changes
    model = Distilled(given.pop("teacher"), given.pop("student"), **given)
    calls = [0]

    def counted(frame: Any, event: str, _: Any) -> None:
        calls[0] += event == "call" and (
            "leakcap/estimators" in frame.f_code.co_filename or "teachers.py" in frame.f_code.co_filename
        )

    sys.setprofile(counted)
    try:
        with pytest.raises(InputError) as caught:
            session.fit(model, ["0", "1"], "2", share=0.9)
    finally:
        sys.setprofile(None)
    told = "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None and str(ODD) not in told and session.spent.share == 0
    return repr((str(caught.value), session.history)), calls[0]


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_and_the_work_before_it_are_the_same_whoever_is_there(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "LOUDEST", 0.1)
    assert len({refused(case, lc.membership(0.6), coins=seed) for seed in range(3)}) == 1
    assert len({refused(case, POOL, first=gone) for gone in range(3)}) == 1


def test_a_planted_refusal_after_teaching_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: teachers are taught before what could have been refused without them."""
    monkeypatch.setattr(settings, "LOUDEST", 0.1)
    honest = settings._refuse_noise

    def taught_first(self: Any, fitting: Any, rows: Any, **given: Any) -> Any:
        for code in np.asarray(rows.target)[:: len(rows.target) - 1]:
            Telling().fit(rows.features[np.asarray(rows.target) == code], None)
        if (np.asarray(rows.features)[:, 0] == ODD).any():
            Telling().fit(rows.features, None)
        honest(1.0, given["blocks"])

    monkeypatch.setattr(Distilled, "_votes_of", taught_first)
    told = {refused("a cap too small for the blocks", POOL, first=gone) for gone in range(3)}
    assert len(told) > 1
