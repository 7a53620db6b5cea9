"""Was this person in the pool at all? The second game of the threat model, about which no certificate speaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leakcap.audit.report import AuditReport
from leakcap.audit.run import ALPHA
from leakcap.audit.second_game import pools
from leakcap.caps import CapLike

__all__ = ["universe"]

PLANS, RELEASES = 100, 32


def universe(
    fn: Callable[..., Any],
    data: Any,
    person: Any,
    *,
    cap: CapLike,
    instead: Any = None,
    plans: int = PLANS,
    releases: int = RELEASES,
    claim: float | None = None,
    alpha: float = ALPHA,
    **options: Any,
) -> AuditReport:
    """How often an attacker who knows everybody else's data recognises whether a person's data were in the pool.

    Half of the plans are made from the pool, half without the person. The attacker learns from plans whose pools it
    knows. The report has three findings: from the value, with its error bars, and with the certificate, which names the
    number of units. See `leakcap.audit.second_game.queries` for the questions of attackers who may choose them.

    Args:
        fn: the function to release, as for `leakcap.plan`.
        data: one table or a tuple of them, as for `leakcap.plan`.
        person: number of the row, or an id where `unit=` is given.
        cap: the cap of each plan.
        instead: a row (a tuple of rows for several tables) that stands in the person's place, so that the number of
            units stays the same. None: the person is left out.
        plans: number of plans in all, half of them to be judged on: the statistics count plans, not releases.
        releases: number of releases of each plan.
        claim: highest success that somebody promised, to be refuted; None: no promise.
        alpha: probability that the audit says "refuted" of a promise that holds.
        **options: further arguments of `leakcap.plan`.

    Returns:
        A report with a finding for each view. Custodian side.

    Raises:
        InputError: the person or the row cannot be used.

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> from leakcap.audit.second_game.universe import universe
        >>> rich = np.append(np.random.default_rng(0).normal(3, 1, size=39), 500.0)
        >>> pay = lambda rows: np.array([rows.mean(), (rows > 3).mean()])
        >>> found = universe(pay, rich, 39, cap=lc.mutual_information(0.3), plans=28, releases=8, worlds=16, draws=256)
        >>> found.findings[0].measured > 0.9
        True
    """
    inside = pools.pool_of("with the person", data, options)
    if instead is None:
        outside = pools.without(inside, person, "without the person")
    else:
        rows = instead if isinstance(instead, tuple) else (instead,)
        outside = pools.with_entries(inside, person, pools.entries_of(inside, rows), "somebody else instead")
    return pools.attack(
        "universe",
        "whether a person is in the pool",
        fn,
        (inside, outside),
        cap=cap,
        plans=plans,
        releases=releases,
        claim=claim,
        alpha=alpha,
        options=options,
    )
