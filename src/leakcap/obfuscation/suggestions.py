"""Which sizes leave the server most to learn under a cap: some are tried, one at a time, around what was asked for.

Everything here is an estimate on the owner's side. The noise is that which `encode` would look for, before it is
certified; accuracy is that of a rehearsal.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakcap.certificates.display import Displayed
from leakcap.errors import CapError, InputError, LeakcapError
from leakcap.obfuscation.certified import FIRST_NOISE, RESERVE, Tick, obfuscation_of
from leakcap.obfuscation.design import Sizes
from leakcap.obfuscation.effort import EncodingEffort
from leakcap.obfuscation.least import likely_noise
from leakcap.obfuscation.pools import EncodablePool
from leakcap.obfuscation.rehearsal import rehearsed

__all__ = ["EncodingSuggestions", "SuggestedSizes", "suggested"]

COMPONENTS = (100, 30, 10)
TIMES = (4.0, 0.25)  # rows in a mean, beside those of the best so far
RELEASED = (2.0, 0.5)
SAMPLED = (0.5,)  # of the smallest class, beside four fifths

Pools = Callable[[Sizes, int | None], EncodablePool]


@dataclass(frozen=True)
class SuggestedSizes:
    """A setting that was tried: arguments for `Encoder`, the noise that it needs, and what a linear model learns."""

    arguments: dict[str, Any]
    noise: float
    accuracy: float
    plain: float


class EncodingSuggestions(Displayed):
    """Settings for one cap, best first. Custodian side: how well a pool can be learnt from is a fact about it."""

    def __init__(self, tried: list[SuggestedSizes], cap: float) -> None:
        self.tried = tuple(sorted(tried, key=lambda one: (-one.accuracy, one.noise)))
        self.cap = cap

    @property
    def best(self) -> SuggestedSizes:
        return self.tried[0]

    def __str__(self) -> str:
        names = ("rows_sampled", "rows_released", "mix", "mask_dim", "whiten")
        head = [*names, "noise", "accuracy"]
        rows = [
            [
                *(f"{one.arguments.get(name) or '-'}" for name in names),
                f"{one.noise:.4g}",
                f"{100 * one.accuracy:.1f} %",
            ]
            for one in self.tried
        ]
        wide = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        table = ["  ".join(cell.rjust(width) for cell, width in zip(row, wide, strict=True)) for row in (head, *rows)]
        return "\n".join(
            [
                f"Settings for a cap of {self.cap:g}, best first: estimates, from encodings that nobody saw",
                *table,
                f"A linear model on the rows themselves: {100 * self.best.plain:.1f} %. To use the first:",
                f"  Encoder({', '.join(f'{name}={value!r}' for name, value in self.best.arguments.items())}, "
                f"cap={self.cap:g})",
            ]
        )

    def __reduce__(self) -> Any:
        raise LeakcapError("suggestions are custodian-side and are not pickled; keep str(suggestions) if you need them")


def suggested(
    pools: Pools,
    sizes: Sizes,
    *,
    whiten: int | None,
    cap: float,
    confidence: float,
    effort: EncodingEffort,
    settings: int,
    tick: Tick,
) -> EncodingSuggestions:
    """Tries settings around the best so far, at most so many; sizes that do not fit the pool are passed over."""
    if cap - RESERVE <= 0.5:
        raise CapError(f"choose a cap above {0.5 + RESERVE}: closer to a coin flip nothing is certified")
    tried: list[SuggestedSizes] = []
    seen: set[tuple[Any, ...]] = set()

    def attempt(asked: Sizes, components: int | None) -> None:
        try:
            pool = pools(asked, components)
        except InputError:
            if not tried:
                raise  # what was asked for itself
            return
        design = pool.design
        arguments = {
            "mask_dim": design.mask_dim,
            "mix": design.mix,
            "rows_sampled": design.rows_sampled,
            "rows_released": design.rows_released,
            **({} if components is None else {"whiten": components}),
        }
        if tuple(arguments.items()) in seen or len(tried) >= settings:
            return
        seen.add(tuple(arguments.items()))
        rng = np.random.default_rng(secrets.randbits(128))
        release = obfuscation_of(pool, public=None, noise=FIRST_NOISE, backend=effort.backend)
        noise = likely_noise(release, cap - RESERVE, effort=effort.for_cap(), gamma=1 - confidence, rng=rng)
        found = rehearsed(pool, noise)
        tried.append(SuggestedSizes(arguments, noise, found.accuracy, found.plain))
        tick(len(tried), settings)

    attempt(sizes, whiten)
    while len(tried) < settings:
        before = len(tried)
        best = max(tried, key=lambda one: one.accuracy)
        for changed in _around(best, sizes):
            attempt(*changed)
        if len(tried) == before or max(tried, key=lambda one: one.accuracy) is best:
            break
    return EncodingSuggestions(tried, cap)


def _around(best: SuggestedSizes, sizes: Sizes) -> Iterator[tuple[Sizes, int | None]]:
    """Settings that differ from the best in one thing."""
    given = {name: value for name, value in best.arguments.items() if name != "whiten"}
    now, components = replace(sizes, **given), best.arguments.get("whiten")
    if sizes.blocks == 1:
        for other in COMPONENTS:
            yield now, other
    for times in TIMES:
        yield replace(now, mix=max(1, round(best.arguments["mix"] * times))), components
    for times in RELEASED:
        yield replace(now, rows_released=round(now.rows_released * times)), components
    for share in SAMPLED:
        each = best.arguments["rows_sampled"] * share / 0.8
        yield replace(now, rows_sampled=max(1, round(each))), components
