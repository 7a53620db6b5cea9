"""The settings of private estimators: they are saved with the estimator, so that no data may stand in them."""

from __future__ import annotations

from types import NoneType
from typing import Any

import numpy as np

from leakcap.caps import Task, as_caps
from leakcap.errors import InputError
from leakcap.estimators.data import column_of
from leakcap.estimators.elsewhere import OPTIONS
from leakcap.simulate.teaching import generator_of

__all__ = ["refuse_data_in_settings", "refuse_no_cap", "seed_of", "strata_of"]


def refuse_no_cap(estimator: Any) -> None:
    """Only who fits knows what may leak."""
    if estimator.cap is None:
        raise InputError(f"say what may leak: {type(estimator).__name__}(..., cap=lc.membership(0.55)), for example")


def refuse_data_in_settings(estimator: Any) -> None:
    """Refuse settings that hold anything about people or worlds."""
    worlds, strata, cap, options = estimator.worlds, estimator.strata, estimator.cap, estimator.options
    if not isinstance(worlds, (int, np.integer, str)):
        raise InputError("worlds must be a number or 'auto': for worlds of your own use leakcap.plan")
    if not isinstance(strata, (str, NoneType)):
        raise InputError("strata must be 'y' or the name of a column: give an array to fit(X, y, strata=...)")
    if cap is not None and any(isinstance(one, Task) and not callable(one.wins) for one in as_caps(cap)):
        raise InputError("the wins of a task must be a function of the worlds here, because fit draws the worlds")
    unknown = set(options or {}) - OPTIONS
    if unknown:
        raise InputError(f"options may hold {', '.join(sorted(OPTIONS))}, not {', '.join(sorted(unknown))}")


def seed_of(random_state: Any) -> int | None:
    """A number for whatever scikit-learn takes as `random_state`; None for None."""
    if random_state is None:
        return None
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(generator_of(random_state).randint(2**31))


def strata_of(setting: str | None, X: Any, y: Any) -> Any:
    """The group of each row that the setting `strata` names: the classes, or a column."""
    if setting is None:
        return None
    if setting == "y":
        if y is None:
            raise InputError("strata='y' requires y to be passed, but the target y is None")
        groups = np.asarray(y)
        return groups.ravel() if groups.shape[1:] == (1,) else groups
    return np.asarray(column_of(X, setting))
