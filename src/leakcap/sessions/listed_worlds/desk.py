"""Where questions are answered from one of a list of worlds: number by number, each in a transaction of its own.

A number that was drawn is charged and delivered whatever happens to the next: a server that takes back what it has
drawn, or asks a price that depends on it, gives an answer for nothing (docs/proofs/clock.md).
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, xlogy

from leakcap.caps import Cap, Membership
from leakcap.custody.ledger import Account, Entry, Open, budgets
from leakcap.custody.ledger.accounts import as_text
from leakcap.custody.ledger.capped import caps_now, in_numbers, in_words
from leakcap.errors import BudgetError, InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.noise import Randomness
from leakcap.planning.accuracy import LEVELS
from leakcap.sessions.answers import Preview, SessionAnswer, Spending, value_of
from leakcap.sessions.clock import success_within, told_after
from leakcap.sessions.cohorts import Cohorts
from leakcap.sessions.listed_worlds.charges import TICKS, Clocks, raised
from leakcap.sessions.listed_worlds.directions import hidden_by, next_direction
from leakcap.sessions.listed_worlds.engine import ListedState, ListedWorlds, Priced
from leakcap.sessions.listed_worlds.functions import AskedOfWorlds
from leakcap.sessions.listed_worlds.leaning import RECENT
from leakcap.sessions.listed_worlds.past import answered_numbers, stored_numbers
from leakcap.sessions.listed_worlds.potentials import RESERVE, MembershipClock
from leakcap.simulate import Outputs, rebuild

__all__ = ["WorldsDesk"]

DEFAULT_SHARE = 0.01
STATE, CLOCKS, ASKED = "posterior", "worlds clocks", "asked {}"
SEARCHED = 40  # noises that are tried for a share
REFUSED = (
    "somebody cannot pay for this question any more: ask with more noise, or another question. Nothing was drawn, and "
    "nothing is spent"
)


@dataclass(frozen=True, eq=False)
class WorldsDesk:
    """Answers the questions of one analyst from one of a list of worlds; custodian side."""

    account: Account
    engine: ListedWorlds
    secret: int
    square: float  # a whole clock of the first cap
    always: bool
    version: str
    analyst: str
    randomness: Randomness
    cohorts: Cohorts | None = None

    def answer(
        self, question: AskedOfWorlds, *, noise: Any = None, share: float | None = None, request: str | None = None
    ) -> SessionAnswer:
        """The answer to a question: stored numbers where there are some, otherwise drawn and charged for."""
        outputs = self._outputs(question)
        text = question.text(**({"noise": noise} if noise is not None else {"share": share}))
        same = as_text([text, self.version])
        if request is not None:
            same = self._for_request(as_text([str(request), self.analyst]), same)
        with self.account.reading() as now:
            first, number = now.answered(f"{same}#0"), now.number
        # Noise that follows from a share is that of the first number, whatever was answered since.
        deviations = self._deviations(outputs, noise, share) if first is None else stored_numbers(first, "noise")
        drawn = self._drawn(outputs, deviations, text=text, same=same)
        return self._handed_out(drawn, outputs, deviations, text=text, since=number)

    def preview(
        self, question: AskedOfWorlds, *, noise: Any = None, share: float | None = None, request: str | None = None
    ) -> Preview:
        """What the first number of an answer would cost, and how many such answers the worlds can carry."""
        if self.analyst:
            raise InputError(
                "prices of questions to a list of worlds follow from the pool: a free look at them would be an answer. "
                "Ask the custodian"
            )
        outputs = self._outputs(question)
        deviations = self._deviations(outputs, noise, share)
        with self.account.reading() as now:
            state = self._state(now)
        whitened = outputs.table / deviations
        weights = state.posterior.weights()
        direction = next_direction(whitened, weights, np.empty((0, whitened.shape[1])))
        if direction is None:
            return Preview(0.0, deviations, fits=True, retired=0, more=math.inf)
        priced = self.engine.price(state, whitened @ direction, 1.0)
        if priced is None:
            return Preview(math.inf, deviations, fits=False, more=0.0)
        told = _information(weights, priced)
        left = -float(xlogy(weights, weights).sum())
        share_found = float(priced.charges.max()) / TICKS
        return Preview(share_found, deviations, fits=True, retired=0, more=left / max(told, 1e-300))

    def spending(self) -> tuple[Spending, Spending]:
        """What whoever has the least left has spent, and has left.

        What clocks show bounds no success: answers of the same price tell more or less. As soon as there is an answer,
        what is promised is the cap.
        """
        with self.account.reading() as now:
            state, caps = self._state(now), caps_now(now.title or {}, now.state)
        success = success_within(caps)
        if self.always:
            shares = self.engine.shares(state)
            surest = float(np.maximum(shares, 1 - shares).max())
            whole, left = 1.0, math.nan if self.analyst else max(0.0, 1 - (surest - 0.5) / (success - 0.5))
        else:
            raised_to = (2 * float(ndtri(success - RESERVE))) ** 2 if "raised_to" in now.state else self.square
            whole, left = raised_to / self.square, int(state.clocks.min()) / TICKS
        spent = whole - left if math.isnan(left) else max(0.0, whole - left)
        return Spending(success if state.answers else 0.5, spent), Spending(success, left)

    @proves("clock")
    def raise_to(self, cap: Cap, *, who: str, why: str) -> None:
        """A larger cap from now on. Everybody's clock goes up, by the rule that is for what is known of them.

        Guarantee: no potential rises by more than the difference of the caps, so that the larger one is kept.
        """
        rule = self.engine.rule
        if not isinstance(rule, Clocks) or len(rule.potentials) > 1 or not isinstance(cap, Membership):
            raise InputError(
                "with a list of worlds one membership cap can be raised, such as 0.55 to 0.6, and no other"
            )
        (potential,) = rule.potentials
        assert isinstance(potential, MembershipClock)
        with self.account.writing() as now:
            # What is kept back for rounding errors is kept back once.
            before = now.state["raised_to"] - RESERVE if "raised_to" in now.state else told_after(self.square)
            gain = cap.success - RESERVE - before
            if gain <= 0:
                raise InputError(
                    "a cap is raised, never lowered: answers were given by it. Give analysts or days a budget"
                )
            state = self._state(now)
            clocks = raised(potential, self.engine.shares(state), state.clocks[0], gain)
            self._keep(now, replace(state, clocks=clocks[None]))
            now.state |= {"raised": in_words([cap]), "capped": in_numbers([cap]), "raised_to": cap.success}
            what = {"caps": in_words([cap])}
            at = datetime.now(UTC).isoformat(timespec="seconds")
            now.append("budget", {"what": what, "who": who, "why": why, "at": at})

    def posterior_success(self) -> Floats:
        """How sure whoever knows the worlds is of everybody by now; custodian side."""
        with self.account.reading() as now:
            shares = self.engine.shares(self._state(now))
        return np.maximum(shares, 1 - shares)

    def _outputs(self, question: AskedOfWorlds) -> Outputs:
        """In every world. A question that fails in one of them is refused before anything is drawn."""
        found = question.in_worlds(self.engine.worlds)
        return replace(found, table=found.table * question.scale)

    def _deviations(self, outputs: Outputs, noise: Any, share: float | None) -> Floats:
        d = outputs.table.shape[1]
        if noise is not None and share is not None:
            raise InputError("give noise= or share=, not both: each follows from the other")
        if noise is not None:
            try:
                found = np.broadcast_to(np.asarray(noise, dtype=np.float64).ravel(), (d,)).copy()
            except (TypeError, ValueError):
                found = np.full(1, np.nan)
            if len(found) != d or not (np.isfinite(found) & (found > 0)).all():
                raise InputError(
                    f"noise must be above 0 and finite: one number, or one for each of the {d} of the answer"
                )
            if hidden_by(outputs.table, found).any():
                raise InputError(
                    "the noise is too large beside this answer: nothing of it would be drawn. Ask with less noise"
                )
            return found
        return self._for_share(outputs, checks.positive(share=DEFAULT_SHARE if share is None else share))

    def _for_share(self, outputs: Outputs, share: float) -> Floats:
        """Noise at which no number of the answer takes more than its part of a share, by the pool and the history."""
        with self.account.reading() as now:
            state = self._state(now)
        spread = outputs.table.std(axis=0)
        moving = spread > 0
        if not moving.any():
            return np.ones(len(spread))
        shape = np.where(moving, spread, spread[moving].min())
        each = share / moving.sum()
        noise = shape.copy()
        for _ in range(SEARCHED):
            whitened = outputs.table / noise
            direction = next_direction(whitened, state.posterior.weights(), np.empty((0, len(shape))))
            if direction is None and hidden_by(outputs.table, noise).any():
                raise InputError("share is too small: nothing of this answer would be drawn. Give a larger one")
            if direction is None:
                return noise
            priced = self.engine.price(state, whitened @ direction, 1.0)
            cost = 4.0 if priced is None else float(priced.charges.max()) / TICKS / each
            if cost <= 1:
                return noise
            noise = noise * max(1.02, min(4.0, math.sqrt(cost)))
        raise BudgetError(REFUSED)

    def _for_request(self, key: str, same: str) -> str:
        """A request is for one question."""
        with self.account.writing() as now:
            known = now.asked(key)
            if known is None:
                now.append("request", {"same": same}, request=key)
            elif known.body["same"] != same:
                raise InputError("this request= was used for another question: a key is for one question")
        return same

    def _drawn(self, outputs: Outputs, deviations: Floats, *, text: str, same: str) -> list[Entry]:
        """The numbers of an answer, each drawn in a transaction of its own."""
        whitened = outputs.table / deviations
        found: list[Entry] = []
        while True:
            with self.account.writing() as now:
                known = now.answered(f"{same}#{len(found)}")
                if known is None:
                    self._draw_next(now, whitened, found, deviations=deviations, text=text, same=same)
                    known = now.latest()
            if known.kind == "end":
                break
            found.append(known)
        self.account.remember()
        return found

    def _draw_next(
        self, now: Open, whitened: Floats, found: list[Entry], *, deviations: Floats, text: str, same: str
    ) -> None:
        state, moment = self._state(now), datetime.now(UTC)
        asked = np.array([stored_numbers(entry, "direction") for entry in found]).reshape(-1, whitened.shape[1])
        direction = next_direction(whitened, state.posterior.weights(), asked)
        question = f"{same}#{len(found)}"
        body: dict[str, Any] = {
            "question": text,
            "analyst": self.analyst,
            "group": "",
            "at": moment.isoformat(timespec="seconds"),
            "noise": _text(deviations),
        }
        priced = None if direction is None else self.engine.price(state, whitened @ direction, 1.0)
        if direction is None or (priced is None and found):
            # What was drawn is delivered; the rest is what everybody can work out.
            body |= {"centre": _text(state.posterior.weights() @ whitened), "refused": direction is not None}
            now.append("end", body, question=question)
            return
        if priced is None:
            raise BudgetError(REFUSED)
        charge = max(1, int(priced.charges.max()))
        budgets.refuse(now.state, self.analyst, charge, moment)
        cell = priced.cells.draw(self.secret, self.randomness)
        self._keep(now, self.engine.after(state, priced, cell))
        budgets.count(now.state, self.analyst, charge, moment)
        body |= {"direction": _text(direction), "number": float(priced.cells.values[cell])}
        now.append("number", body, charge=charge, question=question)

    def _handed_out(
        self, drawn: list[Entry], outputs: Outputs, deviations: Floats, *, text: str, since: int
    ) -> SessionAnswer:
        with self.account.reading() as now:
            end = now.answered(f"{as_text([text, self.version])}#{len(drawn)}")
        assert end is not None
        numbers = answered_numbers(drawn, end)
        return SessionAnswer(
            value=value_of(partial(rebuild, outputs.node), numbers),
            question=text,
            number=drawn[-1].number if drawn else end.number,
            share=0.0 if self.always else sum(entry.charge for entry in drawn) / TICKS,
            noise=deviations,
            covers_halving=False,
            again=end.number <= since,
            whole=not end.body.get("refused", False),
            _numbers=numbers,
            _widths=tuple((level, float(ndtri((1 + level) / 2)) * deviations) for level in LEVELS),
        )

    @cached_property
    def _halves(self) -> str:
        """Which halves are listed: drawn from a key, they are others if another version draws otherwise."""
        found = hashlib.sha256(self.engine.worlds.packed.data)  # they may be many: they are not copied
        if self.cohorts is not None:
            found.update(self.cohorts.of_unit.astype("<i8").tobytes())
        return found.hexdigest()

    def _state(self, now: Open) -> ListedState:
        if now.state.get("halves", self._halves) != self._halves:
            raise InputError(
                "these halves are not the ones that this account's answers were drawn from: open it with the versions "
                "of leakcap and numpy that it was opened with"
            )
        posterior, clocks = now.value(STATE), now.value(CLOCKS)
        if posterior is None or clocks is None:
            return self.engine.begin()
        told = json.loads(posterior)
        rows, units = self.engine.rule.rows, self.engine.worlds.n
        return ListedState(
            np.frombuffer(base64.b64decode(told["fraction"]), dtype="<f8"),
            np.frombuffer(base64.b64decode(told["power"]), dtype="<i8"),
            np.frombuffer(clocks, dtype="<i8").reshape(rows, units),
            answers=told["answers"],
            lost=told["lost"],
            recent=_asked(now, told["answers"]),
        )

    def _keep(self, now: Open, state: ListedState) -> None:
        told = {
            "fraction": _text(state.fraction),
            "power": base64.b64encode(state.power.astype("<i8").tobytes()).decode(),
            "answers": state.answers,
            "lost": state.lost,
        }
        now.state["halves"] = self._halves
        now.put(STATE, json.dumps(told).encode())
        now.put(CLOCKS, state.clocks.astype("<i8").tobytes())
        if state.recent is not None:
            now.put(ASKED.format((state.answers - 1) % RECENT), state.recent[-1].astype("<f4").tobytes())


def _asked(now: Open, answers: int) -> npt.NDArray[np.float32] | None:
    """The last questions, in their order; None in accounts that were kept before these were."""
    stored = [now.value(ASKED.format(number % RECENT)) for number in range(max(0, answers - RECENT), answers)]
    if not stored or any(one is None for one in stored):
        return None
    return np.stack([np.frombuffer(one, dtype="<f4") for one in stored if one is not None])


def _information(weights: Floats, priced: Priced) -> float:
    """Nats that an answer tells about the secret, under these weights."""
    masses = priced.cells.masses()
    cells = weights @ masses
    with np.errstate(divide="ignore", invalid="ignore"):
        return float((weights[:, None] * xlogy(masses, np.where(masses > 0, masses / cells, 1.0))).sum())


def _text(numbers: Floats) -> str:
    return base64.b64encode(np.asarray(numbers, dtype="<f8").tobytes()).decode()
