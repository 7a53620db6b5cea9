"""What others' accounting says of the same encoding, in the same currency: balanced success about one row.

Rényi reconstruction, positive identification under differential privacy, class-wise mixing under differential privacy
(DP-CDA), the paper's bounds as printed and put right, and ours; and which valid one is lowest. Differential privacy
sees noise and drawing alone: not the mask, nor who else is in a mean. Proof page: obfuscation-comparators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from leakcap import convert
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.obfuscation.meaning import claim_precision
from leakcap.obfuscation.renyi import ORDERS, epsilon_for, fixed_size_renyi, poisson_renyi
from leakcap.obfuscation.sampled import MixingLaw

__all__ = [
    "CLAIMS",
    "ComparedBound",
    "best_valid",
    "class_mixing_success",
    "compared",
    "entropy_of_bit",
    "identification_failure",
    "printed_reconstruction",
    "private_success",
    "reconstruction_success",
    "replaced_row_renyi",
    "success_from_nats",
]

RARE = 1e-15  # how likely a mask stretches one given difference of rows by more than is counted with
BALANCED, CLAIMS = "balanced success", "claims as frequent as members"
NO_BOUNDS = ("as printed", "RDP printed", "DP-CDA")  # of this encoding
DELTAS = tuple(10.0**-power for power in range(1, 13))


@dataclass(frozen=True)
class ComparedBound:
    """One bound: on what, how high, whether it holds for this encoding, and what it is in words.

    `success` is balanced success about one row where `of` says so, otherwise another attacker's.
    """

    name: str
    of: str
    success: float
    valid: bool
    words: str


@proves("obfuscation-comparators")
def success_from_nats(nats: float, rate: float) -> float:
    """Highest balanced success about a row that is sampled with probability `rate`, from nats about that.

    Guarantee: the release carries at most `nats` about whether the row was sampled; then balanced success is at most
    this, and some release attains it. 1 from the entropy of the bit on.
    """
    checks.nonnegative(nats=nats)
    rate = checks.fraction(rate=rate)
    if nats >= entropy_of_bit(rate):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if _least_nats(middle, rate) <= nats * (1 + 1e-9) + 1e-13 else (low, middle)
    return min(1.0, 0.5 + 0.5 * high)


def _least_nats(told: float, rate: float) -> float:
    """The least information of a binary test whose true positives exceed its false ones by `told`: convex in these."""
    low, high = ends = 0.0, 1.0 - told
    for _ in range(40):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if _test_nats(a + told, a, rate) <= _test_nats(b + told, b, rate) else (a, high)
    return min(_test_nats(one + told, one, rate) for one in (low, *ends)) * (1 - 1e-12) - 1e-13


def _test_nats(true: float, false: float, rate: float) -> float:
    middle = rate * true + (1 - rate) * false
    return _entropy(middle) - rate * _entropy(true) - (1 - rate) * _entropy(false)


def _entropy(share: float) -> float:
    share = min(max(share, 0.0), 1.0)
    return -sum(p * math.log(p) for p in (share, 1 - share) if p > 0)


def entropy_of_bit(rate: float) -> float:
    """Nats in whether a row is sampled: no release says more about it."""
    return _entropy(checks.fraction(rate=rate))


@proves("obfuscation-comparators")
def replaced_row_renyi(law: MixingLaw, noise_std: float) -> Floats:
    """`(orders,)`: Rényi divergences of the encoded sets of two samples that differ in one row, of any class.

    Guarantee: for rows of length 1 at most, given a mask that stretches the difference of the two rows by no more than
    all but a share `RARE` of masks do. Rows released are drawn apart from each other, so their divergences add; a row
    of one class twice is two means with half of the noise's variance each.
    """
    checks.positive(noise_std=noise_std)
    rate = law.mix / law.sampled
    moved = 2 / (2 * law.mix) * mask_stretch(law.columns) / noise_std
    once, twice = fixed_size_renyi(rate, moved), fixed_size_renyi(rate, moved * math.sqrt(2))
    found = np.zeros(len(ORDERS))
    for one in range(law.classes):
        sides = (law.pairs == one).sum(axis=1)
        found = np.maximum(found, (sides == 1).sum() * once + 2 * (sides == 2).sum() * twice)
    return found


def mask_stretch(columns: int) -> float:
    """By what factor a mask lengthens a given row at most, but for a share `RARE` of masks."""
    return math.sqrt(float(chdtri(columns, RARE)) / columns) * (1 + 1e-9)


@proves("obfuscation-comparators")
def private_success(divergences: Floats) -> float:
    """Highest balanced success about one row, where replacing it changes the release by these Rényi divergences.

    Guarantee: by the divergence of order 2, which is not below the Kullback-Leibler divergence, and by (epsilon, delta)
    at several deltas; the lowest counts.
    """
    routes = [float(convert.from_zcdp(min(float(divergences[0]), 700.0)))]
    routes += [float(convert.from_dp(min(epsilon_for(divergences, delta), 700.0), delta)) for delta in DELTAS]
    return min(1.0, min(routes) + RARE)


@proves("obfuscation-comparators")
def reconstruction_success(
    law: MixingLaw, noise_std: float, prior: float, *, divergences: Floats | None = None
) -> float:
    """Highest success at rebuilding one *sampled* row well enough, where a blind guess succeeds with `prior`.

    Guarantee: against whoever knows all other sampled rows (Balle, Cherubin and Hayes 2022), for a row that is one of
    the pool's; the best order is taken. `divergences` are those of `replaced_row_renyi`, where they are known.
    """
    known = replaced_row_renyi(law, noise_std) if divergences is None else divergences
    each = [
        float(convert.rdp_reconstruction(prior, min(float(value), 700.0), order))
        for order, value in zip(ORDERS, known, strict=True)
    ]
    return min(1.0, min(each) + len(law.labels) * RARE)


def printed_reconstruction(law: MixingLaw, noise_std: float, prior: float) -> float:
    """The same as the paper has it, which is no bound for this encoding: for comparison with its Table 1.

    Everybody of the pool is drawn for each row by a coin of their own; rows of one sample, which all means share, are
    not. Differs from a bound in that, in the neighbours (added, not replaced), and in a mask that keeps lengths.
    """
    sizes = np.bincount(law.labels)
    sides = int(max((law.pairs == one).sum() for one in range(law.classes)))
    each = poisson_renyi(law.mix / int(sizes.min()), 1 / law.mix / noise_std) * sides
    found = [
        float(convert.rdp_reconstruction(prior, min(float(value), 700.0), order))
        for order, value in zip(ORDERS, each, strict=True)
    ]
    return min(found)


@proves("obfuscation-comparators")
def identification_failure(epsilon: float, delta: float, *, claims: float, rate: float) -> float:
    """Lowest share of wrong ones among claims "this row was sampled", made in a share `claims` of releases.

    Guarantee: under replace-one (epsilon, delta)-differential privacy. With delta 0 it is equation (14) of the paper,
    whatever `claims`; with a delta, rare claims may all be right.
    """
    checks.nonnegative(epsilon=epsilon)
    claims, rate = checks.fraction(claims=claims), checks.fraction(rate=rate)
    if not 0 <= delta <= 1:
        raise InputError("delta must lie between 0 and 1")
    weight = math.exp(min(epsilon, 700.0)) / (1 - rate)
    right = (weight + delta / claims) / (1 / rate + weight)
    return max(0.0, 1.0 - right * (1 + 1e-12))


@proves("obfuscation-comparators")
def class_mixing_success(law: MixingLaw, noise_std: float) -> float:
    """Balanced success about one row of the pool, by class-wise mixing under differential privacy (after DP-CDA).

    Another release: as many rows, each the mean of as many rows as here but of one class, drawn anew from all of the
    pool's rows of the class, with the same noise and no mask. Its accounting was derived here: fixed-size drawing of
    each row, replace-one, divergences added over the rows of a class.
    """
    smallest, rows = int(np.bincount(law.labels).min()), math.ceil(len(law.pairs) / law.classes)
    mean_of = min(2 * law.mix, smallest)
    each = fixed_size_renyi(mean_of / smallest, 2 / mean_of / checks.positive(noise_std=noise_std))
    return private_success(rows * each)


def compared(
    law: MixingLaw,
    noise_std: float,
    *,
    certified: float | None = None,
    log_det_nats: float | None = None,
    trace_nats: float | None = None,
    prior: float = 0.16,
) -> tuple[ComparedBound, ...]:
    """Every bound that can be told about one row of this encoding, ours first.

    Args:
        law: the public rules.
        noise_std: deviation of the noise.
        certified: balanced success by total variation of pairs, if it is known.
        log_det_nats: nats about one row, by log-determinants of pairs.
        trace_nats: nats about one row, by traces: Type I of Theorem 5, corrected.
        prior: of a blind guess of a row, for reconstruction.
    """
    rate = float(law.rates.max())
    found: list[tuple[str, str, float, str]] = []
    if certified is not None:
        found.append(("pairs", BALANCED, certified, "total variation of closest pairs (ours)"))
    for name, nats, words in (
        ("log-det", log_det_nats, "log-determinants of closest pairs (ours)"),
        ("Type I", trace_nats, "traces of closest pairs, corrected"),
    ):
        if nats is not None:
            found.append((name, BALANCED, success_from_nats(nats, rate), words))
    if trace_nats is not None:
        printed = float(convert.posterior(trace_nats, rate))
        right = claim_precision(trace_nats, rate, rate)
        found += [
            ("as printed", "positive identification", printed, "the paper's conversion of Type I"),
            ("put right", CLAIMS, right, "precision of claims, by Type I"),
        ]
    divergences = replaced_row_renyi(law, noise_std)
    wrong = max(
        identification_failure(epsilon_for(divergences, delta), delta, claims=rate, rate=rate) for delta in DELTAS
    )
    rebuilt = reconstruction_success(law, noise_std, prior, divergences=divergences)
    as_printed = printed_reconstruction(law, noise_std, prior)
    found += [
        ("RDP", BALANCED, private_success(divergences), "noise and drawing alone, one row replaced"),
        ("DP", CLAIMS, 1 - wrong, "equation (14), with a delta"),
        ("RDP rebuilt", "reconstruction", rebuilt, "of a sampled row"),
        ("RDP printed", "reconstruction", as_printed, "as the paper has it"),
        ("DP-CDA", "another release", class_mixing_success(law, noise_std), "class-wise mixing, without a mask"),
    ]
    return tuple(
        ComparedBound(name=name, of=of, success=success, valid=name not in NO_BOUNDS, words=words)
        for name, of, success, words in found
    )


def best_valid(bounds: Sequence[ComparedBound]) -> ComparedBound:
    """The lowest valid bound on balanced success."""
    found = [bound for bound in bounds if bound.valid and bound.of == BALANCED]
    if not found:
        raise InputError("there is no valid bound on balanced success among these")
    return min(found, key=lambda bound: bound.success)
