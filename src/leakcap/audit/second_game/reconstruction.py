"""A person's whole row: how often does a guess come within a radius of the true one?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.audit.report import AuditReport
from leakcap.audit.run import ALPHA
from leakcap.audit.second_game import pools
from leakcap.audit.second_game.universe import PLANS, RELEASES
from leakcap.caps import CapLike
from leakcap.errors import InputError
from leakcap.ground import checks

__all__ = ["near", "reconstruction"]


def reconstruction(
    fn: Callable[..., Any],
    data: Any,
    person: Any,
    candidates: npt.ArrayLike,
    radius: float,
    *,
    cap: CapLike,
    scale: npt.ArrayLike = 1.0,
    plans: int = PLANS,
    releases: int = RELEASES,
    claim: float | None = None,
    alpha: float = ALPHA,
    **options: Any,
) -> AuditReport:
    """How often an attacker names a row that lies within `radius` of the person's true one.

    The true row is one of `candidates`, each as likely, and so is the guess: the candidate with most belief within the
    radius around it. The prior is the best guess of somebody who has not seen the release, among the same rows; a
    guess in the middle between them could be better for both.

    Args:
        fn: the function to release, as for `leakcap.plan`.
        data: one table of numbers.
        person: number of the row, or an id where `unit=` is given.
        candidates: `(rows, columns)`, the rows that the person may have; more of them need more `plans`.
        radius: Euclidean distance, in columns divided by `scale`.
        cap: the cap of each plan.
        scale: unit of the distance, a number or one for each column, above 0.
        plans: number of plans in all, half of them to be judged on: the statistics count plans, not releases.
        releases: number of releases of each plan.
        claim: highest success that somebody promised, to be refuted; None: no promise.
        alpha: probability that the audit says "refuted" of a promise that holds.
        **options: further arguments of `leakcap.plan`.

    Returns:
        A report with a finding for each view. Custodian side.

    Raises:
        InputError: there are several tables, or the radius is so large that one guess is always right.
    """
    pool = pools.pool_of("the pool", data, options)
    if len(pool.data) != 1:
        raise InputError("reconstruction takes one table: put the columns side by side")
    rows = np.asarray(candidates, dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    wins = near(rows, checks.nonnegative(radius=radius), scale)
    if wins.all(axis=0).any():
        raise InputError("radius is so large that one guess is always right: give a smaller one")
    made = [
        pools.with_entries(pool, person, pools.entries_of(pool, (row,)), f"row {number}")
        for number, row in enumerate(rows, start=1)
    ]
    return pools.attack(
        "reconstruction",
        f"a row within {radius:g} of the person's",
        fn=fn,
        pools=made,
        wins=wins,
        cap=cap,
        plans=plans,
        releases=releases,
        claim=claim,
        alpha=alpha,
        options=options,
    )


def near(rows: npt.NDArray[np.float64], radius: float, scale: npt.ArrayLike = 1.0) -> npt.NDArray[np.float64]:
    """`(rows, rows)`: 1 where one lies within the radius of the other."""
    given = np.asarray(scale, dtype=np.float64)
    if not (np.isfinite(given) & (given > 0)).all():
        raise InputError("scale must be above 0: a number, or one for each column")
    scaled = rows / given
    apart = np.sqrt(((scaled[:, None] - scaled[None]) ** 2).sum(axis=2))
    return np.asarray(apart <= radius, dtype=np.float64)
