"""Was this person in the pool at all? The second game of the threat model, which no certificate speaks about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leakcap.audit import pools
from leakcap.audit.report import AuditReport
from leakcap.audit.runs import ALPHA
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
    """How often an attacker who knows everybody else's data tells whether a person's were in the pool.

    Half of the plans are made of the pool, half without the person. The attacker learns from plans whose pools it was
    told. Three findings: from the value, with its error bars, and with the certificate, which names the number of
    units. See `audit.queries` for what attackers ask who may choose the question.

    Args:
        data: one table or a tuple of them, as for `plan`.
        person: number of the row, or an id where `unit=` is given.
        instead: a row (a tuple of rows for several tables) that stands in the person's place, so that the number of
            units stays; None: nobody does.
        plans: made in all, half of them to be judged on: the statistics count plans, not releases.
        releases: of each plan.
        claim: highest success that somebody promised, to be refuted; None: no promise.
        options: for `plan`.

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> from leakcap.audit.attacks.universe import universe
        >>> rich = np.append(np.random.default_rng(0).normal(3, 1, size=39), 500.0)
        >>> pay = lambda rows: np.array([rows.mean(), (rows > 3).mean()])
        >>> found = universe(pay, rich, 39, cap=lc.membership(0.6), plans=40, releases=8, worlds=32, draws=1024)
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
