"""Where questions are answered: charged, drawn, written down in one transaction, and only then handed out."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from leakcap.custody.ledger import Account, Entry, Open, budgets
from leakcap.custody.ledger.accounts import Spent, as_text
from leakcap.errors import BudgetError, InputError, LeakcapError
from leakcap.ground import checks
from leakcap.ground.arrays import Bools, Floats
from leakcap.noise import Randomness
from leakcap.planning.rebuilding import attempted
from leakcap.sessions.answers import (
    Noised,
    Preview,
    SessionAnswer,
    Spending,
    error_bars,
    finish_of,
    numbers_of,
    value_of,
)
from leakcap.sessions.brought import Brought, Sums
from leakcap.sessions.clock import TICKS, Clock, told_after
from leakcap.sessions.left_out import LeftOut, warn_of_left_out
from leakcap.sessions.linear import Payment, off_by, paying, with_noise
from leakcap.sessions.questions import SessionQuestion
from leakcap.sessions.swept import SweptSums
from leakcap.simulate.silence import kept_quiet

__all__ = ["Desk"]

DEFAULT_SHARE = 0.01
MAX_LISTED = 1000  # numbers of an answer that its history shows
UNDER_POOL_CAPS = (
    "under a pool cap nothing but the sums may depend on the data: declare bounds=(low, high), and give share= in "
    "place of noise= for a mean"
)
FOR_ANALYSTS = (
    "analysts ask within declared bounds, such as bounds=(0, 100): without, the answer is built around the pool's own "
    "statistic, which of a single person is that person's value. Give share= in place of noise= for a mean"
)


@dataclass(frozen=True, eq=False)
class _Settled:
    """A question that was answered, now or before."""

    entry: Entry
    sums: Sums
    deviations: Floats
    released: Floats
    again: bool
    left_out: LeftOut | None  # for the custodian; None where nobody was, or it was answered before


@dataclass(frozen=True, eq=False)
class Desk:
    """Answers the questions of one analyst from one account; custodian side."""

    account: Account
    clock: Clock
    people: Any  # (units,): by which clocks are found
    coins: Bools  # (units,): who takes part
    everybody: bool  # whether all do
    version: str  # of the data
    analyst: str  # empty for the custodian
    retire: bool
    randomness: Randomness
    own_rows: bool = False  # whether noise is made for the most rows that somebody has, because none were declared

    @property
    def quiet(self) -> bool:
        """Whether no account is shown but what was declared: to analysts, and to anybody where the pool is hidden."""
        return self.everybody or bool(self.analyst)

    def answer(
        self, question: SessionQuestion, *, noise: Any = None, share: float | None = None, request: str | None = None
    ) -> SessionAnswer:
        """The answer to a question: a stored one where there is one, otherwise one that is charged for."""
        settled = self._settled(question, noise, share, request)
        warn_of_left_out(
            [settled.left_out]
        )  # it is kept by now: whoever makes errors of warnings asks again for nothing
        released, sums, deviations = settled.released, settled.sums, settled.deviations
        halving = None if self.everybody or sums.halving is None else sums.halving(released)
        finish = finish_of(sums, deviations)
        bars = error_bars(sums, released, numbers_of(finish, released), deviations=deviations, halving=halving)
        return SessionAnswer(
            value=value_of(finish, released),
            question=settled.entry.body["question"],
            number=settled.entry.number,
            share=settled.entry.charge / TICKS,
            noise=bars.noise,
            covers_halving=self.everybody or halving is not None,
            again=settled.again,
            _numbers=bars.numbers,
            _widths=bars.widths,
        )

    def noised(
        self, question: SessionQuestion, share: float | None, *, noise: Any = None
    ) -> tuple[Noised, LeftOut | None]:
        """The same for a part of something larger, which needs no error bars, and who was left out of it."""
        settled = self._settled(question, noise, share, None)
        value = value_of(finish_of(settled.sums, settled.deviations), settled.released)
        return Noised(value, settled.deviations), settled.left_out

    def _settled(self, question: SessionQuestion, noise: Any, share: float | None, request: str | None) -> _Settled:
        noise, share = _noise_or_share(noise, share)
        text = question.text(**{"noise": noise} if share is None else {"share": share})
        sums = self._sums(question, noise is not None)
        deviations = self._deviations(sums, noise, share)
        key = "" if request is None else as_text([str(request), self.analyst])
        with self.account.writing() as now:
            group = budgets.group_of(now.state, self.analyst)
            same = as_text([text, self.version, group, self.retire])
            entry = _stored(now, key, same)
            again, left_out = entry is not None, None
            if entry is None:
                made = question.pool_made or not sums.public
                left_out = self._charge(
                    now, sums, deviations, group=group, text=text, key=key, same=same, pool_made=made
                )
                entry = now.latest()
        if again:
            self.account.remember()  # whoever stored it may have been killed before that
        released = np.frombuffer(base64.b64decode(entry.body["sums"]), dtype="<f8").copy()
        return _Settled(entry, sums, deviations, released=released, again=again, left_out=left_out)

    def preview(
        self, question: SessionQuestion, *, noise: Any = None, share: float | None = None, request: str | None = None
    ) -> Preview:
        """What a question would cost; nothing is spent, nothing leaves, no secret is touched."""
        noise, share = _noise_or_share(noise, share)
        sums = self._sums(question, noise is not None)
        deviations = self._deviations(sums, noise, share)
        declared = self._declared(sums, deviations)
        with self.account.reading() as now:
            group, allowance = budgets.group_of(now.state, self.analyst), int(now.state["allowance"])
            used = _declared_so_far(now.state, group)
            spent = Spent.read(now, group).of(self.people)
        retired = None
        if not self.quiet:
            cost = sums.charges(deviations, self.clock, self.everybody)
            retired = int((~paying(cost, spent, allowance).pays).sum())
        return Preview(declared / TICKS, deviations, used + declared <= allowance, retired)

    def spending(self) -> tuple[Spending, Spending]:
        """What is spent, and what is left, as shares of the clock that the account was opened with.

        For analysts it is what was declared; for the custodian, what whoever has the least left has paid.
        """
        with self.account.reading() as now:
            allowance = int(now.state["allowance"])
            if self.quiet:
                spent = min(_declared_so_far(now.state, budgets.group_of(now.state, self.analyst)), allowance)
            else:
                clocks = (Spent.read(now, group).ticks for group in budgets.groups(now.state))
                spent = max(int(ticks.max(initial=0)) for ticks in clocks)
        so_far = told_after(spent / TICKS * self.clock.square, self.clock.distance if spent else 0.0)
        in_the_end = told_after(allowance / TICKS * self.clock.square, self.clock.distance)
        return Spending(so_far, spent / TICKS), Spending(in_the_end, max(0, allowance - spent) / TICKS)

    def _charge(
        self,
        now: Open,
        sums: Sums,
        deviations: Floats,
        *,
        group: str,
        text: str,
        key: str,
        same: str,
        pool_made: bool,
    ) -> LeftOut | None:
        """Charge everybody for a question, draw the answer, and write both down; who was left out of it."""
        moment, state, declared = datetime.now(UTC), now.state, self._declared(sums, deviations)
        allowance, used = int(state["allowance"]), state.setdefault("declared", {})
        if declared > allowance:
            raise BudgetError(
                "this question alone takes more than the whole clock of somebody who brings the most: give "
                f"{np.ceil(100 * np.sqrt(declared / allowance)) / 100:g} times as much noise at least, or a smaller "
                "share"
            )
        budgets.refuse(state, self.analyst, declared, moment)
        off = state.setdefault("off_by", {})
        off[group] = off.get(group, 0.0) + off_by(sums.numbers)
        if off[group] > self.clock.distance:
            raise BudgetError(
                "this session has given as many numbers as its noise is exact for: open another with new people"
            )
        before = Spent.read(now, group)
        if isinstance(sums, SweptSums):
            sums = sums.expecting(self.coins)
        with kept_quiet(self.quiet):
            cost = sums.charges(deviations, self.clock, self.everybody)
        payment = paying(cost, before.of(self.people), allowance)
        # What an analyst is refused for must not tell of the pool: what was declared, and nothing else.
        so_far = _declared_so_far(state, group)
        short = so_far + declared > allowance if self.quiet else not payment.pays.all()
        if short and not self.retire:
            raise BudgetError(
                "somebody cannot pay for this question any more: give more noise or a smaller share, or let such "
                "people be left out with retire=True"
            )
        with kept_quiet(self.quiet):
            total, grains, beside = sums.totals(deviations, payment.pays, self.coins, self.everybody)
        noised = with_noise(total, np.asarray(grains), deviations, self.randomness) + beside
        before.after(self.people, payment.spent).write(now, group, before)
        used[group] = used.get(group, 0) + declared
        if pool_made or self.own_rows:  # a price that was read off the pool is not for analysts
            hidden = state.setdefault("declared_of_pool", {})
            hidden[group] = hidden.get(group, 0) + declared
        budgets.count(state, self.analyst, declared, moment, pool_made=pool_made or self.own_rows)
        # What is drawn is charged and kept, also where nothing can be made of it: taking it back would tell something.
        made, failed = attempted(partial(numbers_of, finish_of(sums, deviations)), noised)
        numbers = np.empty(0) if failed else made
        body = {
            "question": text,
            "analyst": self.analyst,
            "group": group,
            "at": moment.isoformat(timespec="seconds"),
            "sums": base64.b64encode(noised.astype("<f8").tobytes()).decode(),
            "numbers": numbers.tolist() if len(numbers) <= MAX_LISTED else [],
            "pool_made": pool_made,
            "own_rows": self.own_rows,
        }
        now.append("answer", body, charge=declared, request=key, question=same)
        return self._left_out(sums, payment, allowance, declared=so_far + declared)

    def _left_out(self, sums: Sums, payment: Payment, allowance: int, declared: int) -> LeftOut | None:
        """What the custodian may hear of who was left out; what was `declared` is all that a hidden pool lets out."""
        if self.analyst:
            return None
        if self.everybody:
            return LeftOut(None, len(self.people), 0) if declared > allowance else None
        if isinstance(sums, Brought) and sums.centre is not None:
            return None  # whoever cannot pay stays in the pool's own statistic, which coins move
        people = int((~payment.pays).sum())
        left = allowance - int(payment.spent.max(initial=0))
        return LeftOut(people, len(self.people), left) if people else None

    def _sums(self, question: SessionQuestion, noise_given: bool) -> Sums:
        """What everybody brings. What is refused is so by declarations alone, before the data are looked at."""
        if self.quiet and not question.public(noise_given):
            raise InputError(UNDER_POOL_CAPS if self.everybody else FOR_ANALYSTS)
        try:
            with kept_quiet(self.quiet):
                return question.sums(noise_given)
        except Exception as error:
            if not self.quiet or isinstance(error, LeakcapError):
                raise
        raise LeakcapError("the question could not be answered. Why is withheld: it might tell of the data")

    def _declared(self, sums: Sums, deviations: Floats) -> int:
        """Ticks that a question takes from somebody who brings the most."""
        worst = sums.limits.worst(deviations / sums.factor(self.everybody))
        return max(1, int(self.clock.ticks(np.array([worst]))[0]))

    def _deviations(self, sums: Sums, noise: Any, share: float | None) -> Floats:
        """Of the noise in the sums."""
        if share is not None:
            least = sums.factor(self.everybody) * sums.limits.least(self.clock.share(share))
            return sums.rounded(least, self.everybody)
        if sums.scale is None:
            raise InputError("this answer is made of several noised sums: give share= in place of noise=")
        try:
            return np.broadcast_to(np.asarray(noise, dtype=np.float64).ravel() * sums.scale, (sums.numbers,)).copy()
        except ValueError:
            pass
        raise InputError(f"noise must be one number, or one for each of the {sums.numbers} numbers of the answer")


def _noise_or_share(noise: Any, share: float | None) -> tuple[Any, float | None]:
    """One of the two, checked."""
    if noise is not None and share is not None:
        raise InputError("give noise= or share=, not both: each follows from the other")
    if noise is None:
        return None, checks.positive(share=DEFAULT_SHARE if share is None else share)
    try:
        given = np.asarray(noise, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.full(1, np.nan)
    if not given.size or not np.isfinite(given).all() or not (given > 0).all():
        raise InputError("noise must be finite and above 0: the deviation of the noise, on the answer's own scale")
    return given.tolist(), None


def _declared_so_far(state: Mapping[str, Any], group: str) -> int:
    """What answers within declared bounds took of anybody's clock, at most."""
    hidden = state.get("declared_of_pool", {}).get(group, 0)
    return int(state.get("declared", {}).get(group, 0)) - int(hidden)


def _stored(now: Open, key: str, same: str) -> Entry | None:
    """The stored answer to a request or a question, if there is one."""
    known = now.answered(same)
    if not key:
        return known
    asked = now.asked(key)
    if asked is not None and (known is None or asked.number != known.number):
        raise InputError("this request= was used for another question: a key is for one question. Take another key")
    return known
