"""Which value does a known person's attribute have? The attacker knows everything else about everybody."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leakcap.audit.report import AuditReport
from leakcap.audit.run import ALPHA
from leakcap.audit.second_game import pools
from leakcap.audit.second_game.universe import PLANS, RELEASES
from leakcap.caps import CapLike
from leakcap.errors import InputError

__all__ = ["attribute"]


def attribute(
    fn: Callable[..., Any],
    data: Any,
    person: Any,
    column: Any,
    values: Sequence[Any],
    *,
    cap: CapLike,
    table: int = 0,
    plans: int = PLANS,
    releases: int = RELEASES,
    claim: float | None = None,
    alpha: float = ALPHA,
    **options: Any,
) -> AuditReport:
    """How often an attacker recognises which of several values, equally likely before, an entry of a person has.

    Args:
        fn: the function to release, as for `leakcap.plan`.
        data: one table or a tuple of them, as for `leakcap.plan`.
        person: number of the row, or an id where `unit=` is given.
        column: name or number of the column in `data`, or in table number `table` of several.
        values: at least two values that the entry may have; more of them need more `plans`.
        cap: the cap of each plan.
        table: number of the table that holds the column, from 0 on.
        plans: number of plans in all, half of them to be judged on: the statistics count plans, not releases.
        releases: number of releases of each plan.
        claim: highest success that somebody promised, to be refuted; None: no promise.
        alpha: probability that the audit says "refuted" of a promise that holds.
        **options: further arguments of `leakcap.plan`.

    Returns:
        A report with a finding for each view. Custodian side.

    Raises:
        InputError: the values repeat or are fewer than two, or there is no such table, column or person.
    """
    if len(values) < 2 or any(values[i] == values[j] for i in range(len(values)) for j in range(i)):
        raise InputError("values must be two or more that differ")
    pool = pools.pool_of("the pool", data, options)
    if not 0 <= table < len(pool.data):
        raise InputError(f"table must be a number from 0 to {len(pool.data) - 1}: which of the data holds the column")
    candidates = []
    for number, value in enumerate(values, start=1):
        entries: list[dict[Any, Any]] = [{} for _ in pool.data]
        entries[table] = {column: value}
        candidates.append(pools.with_entries(pool, person, entries, f"value {number}"))
    return pools.attack(
        "attribute",
        f"which of {len(values)} values an entry has",
        fn,
        candidates,
        cap=cap,
        plans=plans,
        releases=releases,
        claim=claim,
        alpha=alpha,
        options=options,
    )
