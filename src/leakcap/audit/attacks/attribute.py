"""Which value does a known person's attribute have? Everything else about everybody is known to the attacker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leakcap.audit import pools
from leakcap.audit.attacks.universe import PLANS, RELEASES
from leakcap.audit.report import AuditReport
from leakcap.audit.runs import ALPHA
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
    """How often an attacker tells which of several values, equally likely before, an entry of a person has.

    Args:
        column: name or number of the column in `data`, or in table number `table` of several.
        values: at least two that it may have; more of them need more `plans`.

    The other arguments are those of `universe`.
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
