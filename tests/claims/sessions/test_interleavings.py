"""Any order of questions, retries, previews, restarts and changed data: clocks and history stay what a model says."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

import leakcap as lc
from leakcap.custody.ledger.accounts import Spent
from leakcap.errors import BudgetError, InputError
from leakcap.sessions import desk
from leakcap.sessions.clock import TICKS
from leakcap.sessions.linear import Payment

PEOPLE = 12
CAP = 0.6


class Interleavings(RuleBasedStateMachine):
    """A ledger with one data set, several sessions on it, and a model of what everybody has paid."""

    opened: Any = Bundle("opened")

    @initialize(target=opened)
    def begin(self) -> Any:
        self.folder = Path(tempfile.mkdtemp())
        self.ledger = f"sqlite:///{self.folder / 'ledger.db'}"
        self.paid: dict[int, float] = {}  # squared distances, by the id of a person
        self.answers: dict[tuple[Any, ...], Any] = {}
        self.here = list(range(PEOPLE))
        return self._open(None)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def _open(self, analyst: str | None) -> Any:
        ids = np.array(self.here)
        rows = np.column_stack([ids % 5, ids * 0.5]).astype(float)
        return lc.Session(
            rows, cap=CAP, unit=ids, rows_per_unit=1, ledger=self.ledger, name="people", analyst=analyst
        ), list(self.here)

    @rule(target=opened, analyst=st.sampled_from([None, "ann", "bob"]))
    def open_another(self, analyst: str | None) -> Any:
        return self._open(analyst)

    @rule(
        one=opened, column=st.sampled_from(["0", "1"]), least=st.integers(0, 4), share=st.sampled_from([0.05, 0.3, 0.6])
    )
    def ask(self, one: Any, column: str, least: int, share: float) -> None:
        session, here = one
        key = (tuple(here), column, least, share)
        answer = session.sum(column, where=f'"0" >= {least}', bounds=(0, 6), share=share)
        assert answer.again == (key in self.answers)
        if key in self.answers:
            assert answer.value == self.answers[key]
            return
        self.answers[key] = answer.value
        for person in here:
            brings = (person % 5 if column == "0" else person * 0.5) * (person % 5 >= least)
            cost = (2 * brings / answer.noise[0]) ** 2 / session._desk.clock.square
            if 0 < cost <= 1 - self.paid.get(person, 0.0) + 1e-9:
                self.paid[person] = self.paid.get(person, 0.0) + cost

    @rule(one=opened, share=st.sampled_from([1.5, 4.0]))
    def ask_too_much(self, one: Any, share: float) -> None:
        with pytest.raises(BudgetError):
            one[0].count(share=share)

    @rule(one=opened)
    def preview(self, one: Any) -> None:
        before = one[0].spent
        one[0].preview("count", share=0.2)
        assert one[0].spent == before

    @rule(one=opened, key=st.sampled_from(["monday", "tuesday"]))
    def request(self, one: Any, key: str) -> None:
        """The key is for one question; who asks, and when, does not matter to what it answers."""
        session, here = one
        name = ("request", key, session._desk.analyst)
        question = (tuple(here), "request", key)
        try:
            answer = session.count(share=0.001 if key == "monday" else 0.002, request=key)
        except InputError:
            assert name in self.answers and self.answers[name] != question
            return
        assert self.answers.setdefault(question, answer.value) == answer.value
        if name not in self.answers:
            self.answers[name] = question
        if not answer.again:
            for person in here:
                cost = (2 / answer.noise[0]) ** 2 / session._desk.clock.square
                if cost <= 1 - self.paid.get(person, 0.0) + 1e-9:
                    self.paid[person] = self.paid.get(person, 0.0) + cost

    @rule(target=opened, gone=st.integers(0, PEOPLE - 1), one=consumes(opened))
    def somebody_leaves_or_comes_back(self, gone: int, one: Any) -> Any:
        self.here = sorted(set(self.here) ^ {gone}) or [0]
        return self._open(None)

    @invariant()
    def nobody_overspends_and_everybody_paid_what_the_model_says(self) -> None:
        if not hasattr(self, "folder"):
            return
        session, here = self._open(None)
        with session._desk.account.reading() as now:
            spent = Spent.read(now, "")
            assert spent.ticks.max(initial=0) <= TICKS
            own = dict(zip(here, spent.of(session._desk.people).tolist(), strict=True))
            numbers = [entry.number for entry in now.entries()]  # walks the whole chain
        assert numbers == list(range(1, len(numbers) + 1))
        for person, ticks in own.items():
            assert ticks / TICKS == pytest.approx(self.paid.get(person, 0.0), abs=1e-6)


def test_any_order_of_calls_keeps_the_clocks(own_key: Path) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        Interleavings,
        settings=settings(max_examples=12, stateful_step_count=12, suppress_health_check=list(HealthCheck)),
    )


@pytest.mark.parametrize("fault", ["a charge that is forgotten", "a clock that starts anew for newcomers"])
def test_planted_faults_are_found(own_key: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    if fault == "a charge that is forgotten":
        monkeypatch.setattr(desk, "paying", lambda cost, spent, allowance: Payment(cost <= allowance - spent, spent))
    else:
        honest = Spent.of
        monkeypatch.setattr(Spent, "of", lambda own, people: honest(own, people) * (len(own.people) == len(people)))
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            Interleavings,
            settings=settings(
                max_examples=40,
                stateful_step_count=15,
                suppress_health_check=list(HealthCheck),
                print_blob=False,
                phases=[Phase.generate],
            ),
        )
