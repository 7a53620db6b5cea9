"""What an estimator computes in every world, and what it is worth: the two records that `fit` is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Computation", "Utility"]


@dataclass(frozen=True, eq=False)
class Utility:
    """What a fitted estimator is worth on the pool, and what an estimator that knows nothing would be worth."""

    name: str
    score: Callable[[Any], float]
    nothing: float = 0.0


@dataclass(frozen=True, eq=False)
class Computation:
    """What is computed in every world, and how an estimator is made from the released numbers.

    `answer` is a function of the rows of one world, sliced alike from all of `data`, and may offer a kernel. All that
    leaves is in its answer. `build` makes a fresh, fitted, plain estimator from a released answer and from nothing
    else that depends on who took part.
    """

    answer: Callable[..., Any]
    data: tuple[Any, ...]
    build: Callable[[Any], Any]
    utility: Utility | None = None
    pool_public: tuple[str, ...] = ()
    weights: Any = "equal"  # answers are given in units in which errors count alike
    drop: tuple[str, ...] = ()
    keys: tuple[set[Any], ...] = ()  # categories that leave as they are, where the answer does not hold them
