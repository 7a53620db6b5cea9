"""Cohorts: people dealt into groups that share a bit, so that worlds are halves of the groups. Custodian side.

It is a choice of the custodian's, for speed: contributions are added up by cohort, and one small product gives every
world. What is lost stands in docs/proofs/cohorts.md, and in every certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from leakcap.custody.ledger.accounts import Secret
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Ints
from leakcap.ground.proofs import proves
from leakcap.worlds.keyed import keyed_numbers

__all__ = ["COHORTS", "FEWEST", "MOST", "WORLDS", "Cohorts", "Listed", "SqlAlone"]

WORLDS, COHORTS = 1024, 1024  # by default
FEWEST, MOST = 1024, 4096  # cohorts: fewer make more noise and more mates, more are no faster


@dataclass(frozen=True)
class Listed:
    """What a session lists: halves of the people, or of so many cohorts of them."""

    worlds: int
    cohorts: int | None = None

    @classmethod
    def of(
        cls, design: str, *, worlds: int | None, cohorts: int | None, always: bool, registered: bool
    ) -> Listed | None:
        """What was asked for; None where everybody has a coin of their own."""
        checks.choice(("bits", "worlds", "cohorts"), design=design)
        if design == "bits" and (always or worlds is not None):
            raise InputError("always and worlds are for design='worlds': with a coin for everybody leave them out")
        if design != "cohorts" and cohorts is not None:
            raise InputError(
                "cohorts= is for design='cohorts', where people share a bit: leave it out, or choose that design"
            )
        if design == "bits":
            return None
        number = checks.count(at_least=2, worlds=WORLDS if worlds is None else worlds)
        if design == "worlds":
            return cls(number)
        if not registered:
            raise InputError(
                "cohorts are for tables that are asked in SQL, lc.Session(lc.sql.register(data, unit=...), "
                "design='cohorts', ...): for other data use design='worlds'"
            )
        if checks.count(cohorts=COHORTS if cohorts is None else cohorts) not in range(FEWEST, MOST + 1):
            raise InputError(
                f"cohorts must be from {FEWEST:,} to {MOST:,}: fewer make more noise and give everybody more mates, "
                "more are no faster"
            )
        return cls(number, COHORTS if cohorts is None else cohorts)

    def refuse_few(self, people: int) -> None:
        """Refuse more cohorts than there are people: nobody would gain from them."""
        if self.cohorts is not None and people < self.cohorts:
            raise InputError(
                f"{self.cohorts:,} cohorts are more than there are people: use design='worlds', where nobody shares a "
                "bit"
            )

    def dealt(self, names: Any, secret: Secret) -> Cohorts | None:
        """The cohorts of these people, by the account's secret; None where nobody shares a bit."""
        return None if self.cohorts is None else Cohorts.of(names, secret, self.cohorts)


@dataclass(frozen=True, eq=False)
class Cohorts:
    """Everybody's cohort; custodian side.

    Attributes:
        count: how many there are.
        of_unit: `(people,)`, the cohort of each.
    """

    count: int
    of_unit: Ints

    @classmethod
    @proves("cohorts")
    def of(cls, names: Any, secret: Secret, count: int) -> Cohorts:
        """Dealt in the order of a keyed function of their names, under a key of its own of the account's secret.

        Guarantee: sizes differ by one at most, and who is whose mate is a matter of names and the secret alone. Without
        the secret nobody can tell mates, or bring people of their own into a chosen person's cohort better than by
        chance.
        """
        of_unit = np.empty(len(names), dtype=np.intp)
        of_unit[np.argsort(keyed_numbers(names, secret.key("cohorts")), kind="stable")] = np.arange(len(names)) % count
        return cls(count, of_unit)

    @property
    def average(self) -> float:
        """People in a cohort."""
        return len(self.of_unit) / self.count

    @property
    def most(self) -> int:
        """People in the largest."""
        return int(np.bincount(self.of_unit).max(initial=0))


class SqlAlone:
    """The questions of a session on cohorts: only those in SQL."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise InputError("a session with design='cohorts' answers session.sql(...) alone: choose another for the rest")
