"""Everything that can be bounded about one encoding, by every account, in one table: what `Encoder.compare` gives.

Bounds about one row by ours and by others' accounts; and what the nats of an encoding mean for attackers who want
something else than balanced success. It depends on the pool and the public rules, never on who was drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakcap.errors import InputError, LeakcapError
from leakcap.ground import checks
from leakcap.obfuscation.certified import WIDTH, claims_right, obfuscation_of, source_of
from leakcap.obfuscation.comparators import CLAIMS, ComparedBound, best_valid, compared
from leakcap.obfuscation.effort import EncodingEffort
from leakcap.obfuscation.meaning import average_membership, name_any_member, reconstruction
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.one_unit import certify_units
from leakcap.obfuscation.pools import EncodablePool
from leakcap.obfuscation.reverse import AssumedRows, IfAssumptionsHeld, reverse_engineering
from leakcap.obfuscation.sampled import MixingLaw, draw_mixed
from leakcap.obfuscation.whole import certify_whole, mixtures_of, relative_covariances

__all__ = ["EncodingComparison", "compared_encoding"]

MASK_DRAWS, WHOLE_DRAWS = 8, 256
OURS = ("pairs", "log-det", "Type I", "as printed", "put right")


@dataclass(frozen=True, eq=False)
class EncodingComparison:
    """Bounds on one encoding, ours first. Custodian side: how exposed rows are is a fact about the pool.

    Guarantee: those that are `valid` and not of another release hold together with `confidence`, for every row of the
    pool named in advance, against whoever knows the pool and all rules. They are of exact arithmetic: what rounding
    may tell besides is in the certificate's figures.

    Attributes:
        bounds: name, what is bounded, how high, whether it holds for this encoding, and in words.
        unit_nats: about whether the worst row was drawn.
        sample_nats: about everybody who was drawn, together.
        mask_nats: about the mask, estimated.
        shape: of the mask.
        confidence: of what is valid.
    """

    bounds: tuple[ComparedBound, ...]
    unit_nats: float
    sample_nats: float
    mask_nats: float
    shape: tuple[int, int]
    confidence: float

    @property
    def best(self) -> ComparedBound:
        """The lowest valid bound on balanced success."""
        return best_valid(self.bounds)

    def mask_rebuilt(self, *, error: float, missed: float, spread: float, tail: float) -> IfAssumptionsHeld:
        """How likely somebody finds a map that imitates the mask, *if the assumptions held* (Theorem 7). No guarantee.

        Args:
            error: length by which the map may be off on an encoded row.
            missed: share of rows on which it may be off by more.
            spread: assumed: along every direction the variance of new rows is at least its square.
            tail: assumed: along every direction a share `2 exp(-t^2/tail^2)` at most lies beyond `t`.

        Returns:
            Success before and after the release, and the assumptions.

        Raises:
            InputError: no rows are such, or nothing follows for so large a share of rows.
        """
        assumed = AssumedRows(spread=spread, tail=tail)
        return reverse_engineering(self.mask_nats, shape=self.shape, error=error, missed=missed, assumed=assumed)

    def __str__(self) -> str:
        head = ("account", "bounds", "at most", "holds")
        rows = [
            (bound.name, bound.of, f"{bound.success:.4f}", "yes" if bound.valid else "no: " + bound.words)
            for bound in self.bounds
        ]
        wide = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = ["  ".join(cell.ljust(size) for cell, size in zip(row, wide, strict=True)) for row in (head, *rows)]
        return "\n".join(
            [
                *(line.rstrip() for line in lines),
                f"Nats about the worst row: {self.unit_nats:.3g}; about all who were drawn: {self.sample_nats:.4g}.",
                f"Lowest valid bound on balanced success: {self.best.name}, {self.best.success:.4f}.",
                f"What holds does so together, with confidence 1 - {1 - self.confidence:.1g}.",
            ]
        )

    def __reduce__(self) -> Any:
        raise LeakcapError("a comparison is custodian-side and is not pickled; keep str(comparison) if you need it")


def compared_encoding(
    pool: EncodablePool,
    noise: float | None,
    *,
    confidence: float,
    effort: EncodingEffort,
    prior: float,
    seed: int | None,
) -> EncodingComparison:
    """All accounts of an encoding; half of the failure probability is for rows, half for the whole sample.

    Public rows that are added are noise that does not depend on the pool: without them everybody learns more.
    """
    if not noise or not effort.draws:
        raise InputError("compare() needs noise and draws: give noise= and draws=, or encode with cap= first")
    release, rng = obfuscation_of(pool, public=None, noise=noise, backend=effort.backend), source_of(seed)
    gamma, prior, law = (1 - confidence) / 2, checks.fraction(prior=prior), release.law
    with effort.watched("comparison") as tick:
        units = certify_units(
            release, effort=effort.for_noise(), gamma=gamma, rng=rng, width=WIDTH, alarms=(), nats=True, tick=tick
        )
    assert units.nats is not None
    log_det, trace = (float(values.max()) for values in units.nats)
    whole = certify_whole(release, draws=min(units.draws, WHOLE_DRAWS), gamma=gamma, rng=rng)
    bounds = compared(law, noise, certified=units.worst, log_det_nats=log_det, trace_nats=trace, prior=prior)
    if release.blocks > 1:  # others' accounts are of one mask
        bounds = tuple(bound for bound in bounds if bound.name in OURS)
    return EncodingComparison(
        bounds=(*bounds, *meanings(law, units.worst, whole.nats, prior)),
        unit_nats=min(log_det, trace),
        sample_nats=whole.nats,
        mask_nats=whole.nats + mask_nats(release, rng),
        shape=(pool.rows.shape[1], pool.design.mask_dim),
        confidence=confidence,
    )


def meanings(law: MixingLaw, worst: float, sample_nats: float, prior: float) -> tuple[ComparedBound, ...]:
    """What is bounded for attackers who want something else: by pairs, and by nats about everybody who was drawn."""
    rates, told = law.rates, np.full(len(law.rates), 2 * worst - 1)
    rate = float(rates.max())
    by_all = "by nats about all who were drawn"
    found = (
        ("claims", CLAIMS, claims_right(told, rates, rate), "by total variation of pairs"),
        ("name one", "naming somebody drawn", name_any_member(sample_nats, law), by_all),
        ("share", "share of the drawn in a guess", average_membership(sample_nats, law), by_all),
        ("rebuild", "reconstruction", reconstruction(sample_nats, prior), by_all),
    )
    return tuple(
        ComparedBound(name=name, of=of, success=success, valid=True, words=words) for name, of, success, words in found
    )


def mask_nats(release: Obfuscated, rng: np.random.Generator) -> float:
    """What Theorem 7 adds to the nats about the sample, estimated: `d/2 E log det(S S_B^-1)`, block by block."""
    total = 0.0
    for _ in range(MASK_DRAWS):
        mixed = draw_mixed(release.law, rng)
        noises = release.noise_covariances(rng)
        mixtures = mixtures_of(release, mixed, mixed.rows)
        every = relative_covariances(release, mixtures, noises)
        bare = relative_covariances(release, [np.zeros_like(one) for one in mixtures], noises)
        total += sum(
            float(np.linalg.slogdet(one)[1] - np.linalg.slogdet(none)[1]) for one, none in zip(every, bare, strict=True)
        )
    return release.law.columns / 2 * total / MASK_DRAWS
