"""A person's whole row: how often does a guess come within a radius of the true one?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap import checks
from leakcap.audit import pools
from leakcap.audit.attacks.universe import PLANS, RELEASES
from leakcap.audit.report import AuditReport
from leakcap.audit.runs import ALPHA
from leakcap.caps import CapLike
from leakcap.errors import InputError

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

    The true row is one of `candidates`, each as likely, and so is the guess: the one with most belief within the
    radius around it. The prior is the best guess of somebody who has not seen the release, among the same rows; a
    guess in the middle between them could be better for both.

    Args:
        data: one table of numbers.
        candidates: `(rows, columns)`, more of them need more `plans`.
        radius: Euclidean, in columns divided by `scale`.

    The other arguments are those of `universe`.
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
        fn,
        made,
        wins,
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
