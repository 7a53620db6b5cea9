"""A release that is charged to the account of its data set in the ledger, stored there, and only then handed out."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from leakcap.caps import Cap
from leakcap.custody.ledger import AccountAt, Entry, Open, Store, budgets, open_book
from leakcap.custody.ledger.accounts import Opened, Spent, as_text, checked_name, name_of, open_account
from leakcap.errors import AlreadyReleased, BudgetError
from leakcap.ground.arrays import Bools, Floats
from leakcap.modes.clock import Clock
from leakcap.worlds import Units

__all__ = ["Charged", "kept_for_others"]

# What a release does that has a secret of its own: it is the only one.
ALONE = (
    "these data were released before, with a secret world of their own, and nothing bounds two secrets together: keep "
    "that release. For several answers ask in a session, leakcap.Session(data, cap=..., ledger=...), from the first"
)
CUSTODIAN = ""  # who releases
SPENT = (
    "somebody's clock does not pay for this release any more: the ledger counts what was answered about these data "
    "before. Ask for it in a session with more noise, or see what is left with `leakcap ledger show`"
)


def kept_for_others(caps: tuple[Cap, ...]) -> float:
    """Of success, what a release leaves for the samplers of other answers from the same account; a little more."""
    return Clock.of(caps).distance * (1 + 1e-6)


@dataclass(eq=False)
class Charged:
    """The account that a plan is charged to; custodian side. It is opened when the plan is released, not before.

    `design` is "bits", "pool" or, for any other plan, "release". `names` are those of the units.
    """

    ledger: str | Store
    name: str
    design: str
    names: Any
    named: bool  # whether these are names of people, not places in a table
    identity: dict[str, str]  # of the plan, caps apart
    version: str  # of the contents
    contents: tuple[str, ...]  # by which they are known under any name
    words: str  # what is released
    _opened: Opened | None = None

    @classmethod
    def at(
        cls, place: str | Store | AccountAt, name: str | None, design: str, units: Units, *, version: str, **facts: Any
    ) -> Charged:
        """The account of a data set in a ledger: the one that was named, or that of these contents."""
        if not isinstance(place, AccountAt):
            place = AccountAt(
                place, name_of(version) if name is None else checked_name(str(name)), version, by_rows=False
            )
        return cls(
            place.place,
            place.name,
            design,
            names=units.names,
            named=units.labels is not None and not place.by_rows,
            version=place.version,
            **facts,
        )

    @property
    def opened(self) -> Opened:
        """The account, once it is open."""
        assert self._opened is not None
        return self._opened

    def coins(self) -> Bools:
        """Everybody's own coin, the same in every answer about these data."""
        return self.opened.secret.coins(self.names)

    def released(self, caps: tuple[Cap, ...], squares: Floats | None, off_by: float) -> dict[str, Any] | None:
        """Open the account: what this plan was released as, or None where it can be released now.

        `squares` are everybody's charges, as squared distances; None where a release takes all there is.

        Raises:
            AlreadyReleased: another release has taken the account.
            BudgetError: somebody's clock does not pay for this one.
        """
        clock = None if squares is None else Clock.of(caps)
        self._opened = open_account(
            open_book(self.ledger),
            self.name,
            design=self.design,
            caps=caps,
            version=self.version,
            contents=self.contents,
            named=self.named,
            people=self.names,
            clock=(0.0, 0.0) if clock is None else (clock.square, clock.distance),
            other_caps=True,
        )
        with self.opened.account.reading() as now:
            known = now.answered(self._same(caps))
            if known is None:
                self._charge(now, squares, off_by)  # it would be refused: before anything is drawn
        return None if known is None else self._known(known)

    def commit(self, caps: tuple[Cap, ...], squares: Floats | None, off_by: float, **released: Any) -> dict[str, Any]:
        """Charge for a release and store it, unless it was: then that is what is released."""
        same = self._same(caps)
        with self.opened.account.writing() as now:
            known = now.answered(same)
            if known is None:
                charge = self._charge(now, squares, off_by)
                now.append("release", self._told() | _packed(**released), charge=charge, question=same)
                known = now.latest()
        return self._known(known)

    def _told(self) -> dict[str, Any]:
        """What the history of the account says of it."""
        return {
            "question": self.words,
            "analyst": CUSTODIAN,
            "group": budgets.EVERYBODY,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "numbers": [],
            "pool_made": self.design != "pool",
        }

    def _known(self, entry: Entry) -> dict[str, Any]:
        self.opened.account.remember()
        return _unpacked(entry)

    def _charge(self, now: Open, squares: Floats | None, off_by: float) -> int:
        """What a release takes, laid beside the next entry; an error where that is more than there is."""
        if squares is None:
            _refuse_released(now)
            return int(now.state["allowance"])
        clock, group = Clock(self.opened.square, self.opened.distance), budgets.EVERYBODY
        people = self.opened.secret.people(self.names)
        cost, before = clock.ticks(squares), Spent.read(now, group)
        own, allowance = before.of(people), int(now.state["allowance"])
        off = now.state.setdefault("off_by", {})
        off[group] = off.get(group, 0.0) + off_by
        if not (cost <= allowance - own).all() or off[group] > clock.distance:
            raise BudgetError(SPENT)
        charge, moment = max(1, int(cost.max(initial=0))), datetime.now(UTC)
        budgets.refuse(now.state, CUSTODIAN, charge, moment)
        before.after(people, own + cost).write(now, group, before)
        for kept in ("declared", *(() if self.design == "pool" else ("declared_of_pool",))):
            used = now.state.setdefault(kept, {})
            used[group] = used.get(group, 0) + charge
        budgets.count(now.state, CUSTODIAN, charge, moment, pool_made=self.design != "pool")
        return charge

    def _same(self, caps: tuple[Cap, ...]) -> str:
        return as_text([self.identity, [cap.describe() for cap in caps]])


def _refuse_released(now: Open) -> None:
    if any(entry.charge or entry.kind == "alone" for entry in now.entries()):
        raise AlreadyReleased(ALONE)


def _packed(*, vector: Floats, widths: Floats, certificate: str) -> dict[str, Any]:
    return {
        "vector": base64.b64encode(np.asarray(vector, dtype="<f8").tobytes()).decode(),
        "widths": np.asarray(widths, dtype=np.float64).tolist(),
        "certificate": str(certificate),
    }


def _unpacked(entry: Entry) -> dict[str, Any]:
    body = entry.body
    return {
        "vector": np.frombuffer(base64.b64decode(body["vector"]), dtype="<f8").copy(),
        "widths": np.asarray(body["widths"], dtype=np.float64),
        "certificate": body["certificate"],
    }
