"""The rare arguments of `plan`, given together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy.typing as npt

from leakcap.errors import InputError
from leakcap.simulate.progress import Watcher

__all__ = ["Settings"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Settings:
    """Rare arguments of `leakcap.plan` and `leakcap.release`, to be given together and used again.

    Each means what it means there, and may be given there instead; not in both places.

    Args:
        rate: share of the pool in a world: 1/2, 1/k or (k-1)/k.
        clip: `(low, high)` for the outputs, numbers or one for each; part of the mechanism.
        weights: how much noise in each output matters: None, "equal", "relative", or a number for each.
        mode: "exact", "confidence", "individual" or "empirical".
        confidence: that all certified figures hold together, over the certifying draws.
        draws: releases to certify with; None chooses as many as keep the statistical margin small.
        public: in words, what the custodian declares public.
        pool_public: in words, what was done to the data by looking at all of them.
        drop: names of attributes of an estimator that are not to be released.
        backend: where worlds run: None, "serial", "threads", "processes", a cluster, or "torch:cuda".
        workers: how many processes or threads.
        progress: True to show it, or a function that is called with it.
        checkpoint: a folder in which a run is kept, to go on after a stop.
        shape: of the noise: "best", or "logdet", "linear" or "isotropic".
        floor: least deviation of the noise.
        memory: bytes that the plan may use, about.
        mechanism: which noise: "gaussian", "exponential" or "auto".

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> quiet = lc.Settings(confidence=0.999, draws=4096)
        >>> heights = np.random.default_rng(0).normal(170, 10, size=200)
        >>> lc.plan(lambda x: x.mean(), heights, cap=0.6, worlds=64, seed=1, settings=quiet).certificate.confidence
        0.999
    """

    rate: float = 0.5
    clip: tuple[npt.ArrayLike, npt.ArrayLike] | None = None
    weights: npt.ArrayLike | str | None = None
    mode: str = "exact"
    confidence: float = 1 - 1e-6
    draws: int | None = None
    public: Iterable[str] = ()
    pool_public: Iterable[str] = ()
    drop: Iterable[str] = ()
    backend: Any = None
    workers: int | None = None
    progress: bool | Watcher | None = None
    checkpoint: str | Path | None = None
    shape: str = "best"
    floor: float = 0.0
    memory: int = 2 * 2**30
    mechanism: str = "gaussian"

    def beside(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments of a plan: those given to it, and these.

        Args:
            given: arguments of the plan, by name.

        Returns:
            The arguments, by name.

        Raises:
            InputError: one was given in both places.
        """
        usual = {field.name: field.default for field in fields(self)}
        own = {name: getattr(self, name) for name in usual if not _same(getattr(self, name), usual[name])}
        twice = [name for name in own if not _same(given[name], usual[name])]
        if twice:
            raise InputError(f"{twice[0]} was given twice: to the plan, and in its settings. Leave one out")
        return {**given, **own}


def _same(value: Any, usual: Any) -> bool:
    plain = isinstance(value, (int, float, str)) and isinstance(value, type(usual))
    return value is usual or (plain and value == usual)
