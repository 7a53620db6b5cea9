"""What the maker of a plan may tell about it: how its answer is used, and other ways to compute it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Offered", "Variant"]


@dataclass(frozen=True, eq=False)
class Variant:
    """Another way to compute the answer to the same question, on the same rows."""

    fn: Callable[..., Any]
    data: tuple[Any, ...]
    build: Callable[[Any], Any]
    weights: Any = "equal"
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Offered:
    """How released values are used and judged, and what else could have been asked; custodian side.

    `build` makes of a released value what `score` judges (higher is better). `variants` are made when they are tried:
    making one may cost a fit. `strata` has labels for the rows of the pool.
    """

    build: Callable[[Any], Any]
    score: Callable[[Any], float] | None = None
    name: str = ""
    variants: Mapping[str, Callable[[], Variant]] = field(default_factory=dict)
    strata: Mapping[str, Any] = field(default_factory=dict)
