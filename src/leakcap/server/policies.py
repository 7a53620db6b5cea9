"""Limits inside a cap: what an analyst or a day may use, and which analysts share a clock. Kept by the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leakcap.custody.ledger import Account
from leakcap.custody.ledger.accounts import TICKS
from leakcap.custody.ledger.operations import set_budget
from leakcap.errors import InputError

__all__ = ["Policy", "set_policy"]


@dataclass(frozen=True)
class Policy:
    """What holds for a data set; amounts are shares of the clock with which it was opened.

    Attributes:
        analysts: what each may use.
        day: what a day may use; None where nothing was said.
        groups: analysts who have a clock of their own together.
    """

    analysts: Mapping[str, float]
    day: float | None
    groups: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, account: Account) -> Policy:
        """As it stands in the ledger."""
        with account.reading() as now:
            given = now.state.get("budgets", {})
            groups = {name: tuple(members) for name, members in now.state.get("groups", {}).items()}
        day = given.get("day")
        analysts = {name: ticks / TICKS for name, ticks in given.get("analysts", {}).items()}
        return cls(analysts, None if day is None else day / TICKS, groups)


def set_policy(
    account: Account,
    *,
    who: str,
    why: str,
    analysts: Mapping[str, float | None] | None = None,
    day: float | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Change what is named, and leave the rest; who did it and why is written down."""
    set_budget(
        account,
        who=who,
        why=why,
        analysts={name: None if share is None else _ticks(share) for name, share in (analysts or {}).items()},
        day="" if day is None else _ticks(day),
        groups=groups,
    )


def _ticks(share: float) -> int:
    if not 0 <= share <= 1:
        raise InputError("a budget is a share of the clock: a number from 0 to 1")
    return round(share * TICKS)
