"""Who else would fit a private estimator, and how often: every fit is a release.

Meta-estimators do not say what they are about to do. What can be seen is who is calling: the method of another
estimator is running, and calls `fit` or `clone` of a private one. Pipelines and their like call each of their parts
once, and may hold one private part. Everything else is refused before anything is planned. What gets past, because it
is no estimator, shows by what it does: it fits clones of one estimator to the same rows.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.simulate.callers import SEARCHES, fitted_by

__all__ = ["MARK", "Family", "family_of", "join_family", "refuse_company"]

MIN_SHARED_ROWS = 0.25  # share of a fit's rows that a clone released before, from which on they are the same people
MARK = "_fitted_by"  # goes with an unfitted estimator into the processes to which a meta-estimator sends it


def refuse_company(estimator: Any, private: type) -> None:
    """Refuse to be fitted, or cloned, by what would release at every fit; `private` is the class that releases."""
    around = getattr(estimator, MARK, None) or fitted_by(private)
    if around == SEARCHES:
        raise InputError(
            "a search or cross-validation around a private estimator would release at every fit, and nothing "
            "bounds them together. Put the search inside, Private(GridSearchCV(...), cap=...), or compare "
            "settings with privacy_utility_curve and plan_.suggest(), which release nothing"
        )
    if around:
        raise InputError(
            f"{around} around private estimators would release at every fit of theirs, and nothing bounds these "
            f"releases together. Put it inside, with plain estimators in it: Private({around}(...), cap=...)"
        )


@dataclass(eq=False)
class Family:
    """An estimator and its clones, and which rows each of them has released. Custodian side, never saved."""

    released: list[tuple[weakref.ref[Any], npt.NDArray[np.uint64]]] = field(default_factory=list)

    def refuse_known_rows(self, estimator: Any, rows: npt.NDArray[np.uint64]) -> None:
        """Refuse rows that a clone has released: by hand or in a loop, it would be one release more of them."""
        for member, known in self.released:
            if member() is not estimator and np.isin(rows, known).mean() >= MIN_SHARED_ROWS:
                raise InputError(
                    "a clone of this estimator was fitted to these rows and has released what it learnt; nothing "
                    "bounds two releases together. Put what fits several inside, Private(...), compare settings with "
                    "plan_.suggest(), or, if they are other people, make a new estimator instead of a clone"
                )

    def remember(self, estimator: Any, rows: npt.NDArray[np.uint64]) -> None:
        """Before the release: a crash may waste it."""
        self.released.append((weakref.ref(estimator), rows))


_families: weakref.WeakKeyDictionary[Any, Family] = weakref.WeakKeyDictionary()


def family_of(estimator: Any) -> Family:
    """The family of an estimator; of its own, until it is cloned."""
    return _families.setdefault(estimator, Family())


def join_family(clone: Any, estimator: Any) -> None:
    """Make a clone one of the family of what it was made from."""
    _families[clone] = family_of(estimator)
