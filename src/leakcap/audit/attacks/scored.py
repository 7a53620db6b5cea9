"""Attacks by how well a published model fits each row: LiRA, RMIA, thresholds. Releases of the plan are the shadows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.audit.attacks.membership import Scorer, Units
from leakcap.audit.shadow.lira import EmpiricalLira, Lira
from leakcap.audit.shadow.rmia import Rmia
from leakcap.audit.shadow.threshold import Threshold
from leakcap.audit.trials import Trials
from leakcap.ground.arrays import Floats

__all__ = ["STATISTICS", "fitted", "scorer"]

Truths = npt.NDArray[np.bool_]
Statistic = Callable[[Floats], Floats]
STATISTICS = ("threshold", "calibrated", "lira", "lira offline", "lira empirical", "rmia")


def fitted(name: str, learn: Floats, inside: Truths) -> Statistic:
    """The named attack, learnt from scores `(s, n)` with known members: a statistic of other scores, by row."""
    plain: dict[str, Any] = {
        "threshold": Threshold("none"),
        "calibrated": Threshold("outside"),
        "lira": Lira(),
        "lira offline": Lira("offline"),
        "lira empirical": EmpiricalLira(),
    }
    if name in plain:
        found: Statistic = plain[name].fit(learn, inside)
        return found
    top = float(learn.max())

    def likely(scores: Floats) -> Floats:
        """Scores as likelihoods, up to a factor, which cancels."""
        return np.asarray(np.exp(np.clip(scores - top, -600.0, 600.0)))

    # Everybody else is the population against whom one is compared.
    attack = Rmia().fit(likely(learn), inside, likely(learn))
    return lambda target: attack(likely(target), likely(target))


def scorer(name: str, learn: Trials) -> Scorer:
    """The same for releases that carry scores of their rows."""
    assert learn.scores is not None
    statistic = fitted(name, learn.scores.astype(np.float64), learn.inside())

    def score(trials: Trials, rows: slice, units: Units = slice(None)) -> npt.NDArray[Any]:
        assert trials.scores is not None
        return np.asarray(statistic(trials.scores[rows].astype(np.float64)))[:, units]

    return score
