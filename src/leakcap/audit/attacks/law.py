"""Is the noise the one that the certificate speaks of? A check of the mechanism rather than an attack.

What was released, less the answer of the very world it is said to come from, must be the claimed noise: as large, and
without a trace of that world. A release made from anything else, the whole pool for one, is found by the second.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from leakcap.audit.trials import Known, Trials
from leakcap.audit.verdicts import CHECK, Finding, verdict_of_test

__all__ = ["law"]


def law(known: Known, judge: Trials, alpha: float) -> list[Finding]:
    """Two findings: the size of the noise, and whether it knows the world. None where no noise is claimed."""
    if known.factor is None or known.answers is None or judge.secret is None:
        return []
    directions, sizes, _ = np.linalg.svd(known.factor, full_matrices=False)
    kept = sizes > 1e-10 * sizes.max(initial=0.0)
    if not kept.any():
        return []
    whiten = directions[:, kept] / sizes[kept]
    answers = (known.answers - known.answers.mean(axis=0)) @ whiten
    noise = (judge.seen - known.answers.mean(axis=0)) @ whiten - answers[judge.secret]
    energy, count = float((noise**2).sum()), noise.size
    # Chi-square with `count` degrees of freedom, both tails.
    below, above = special.chdtr(count, energy), special.chdtrc(count, energy)
    p_size = min(1.0, 2 * min(below, above))
    # Given the worlds, the sum of products is normal with this variance if the noise is what it should be.
    weight = float((answers[judge.secret] ** 2).sum())
    z = float((noise * answers[judge.secret]).sum()) / np.sqrt(weight) if weight > 0 else 0.0
    p_trace = float(special.erfc(abs(z) / np.sqrt(2)))

    def checked(question: str, measured: float, p: float, reading: str) -> Finding:
        return Finding(
            attack="law of the noise",
            question=question,
            measured=float(measured),
            interval=(np.nan, np.nan),
            prior=np.nan,
            certified=None,
            p_value=p,
            verdict=verdict_of_test(p, alpha),
            trials=len(judge),
            kind=CHECK,
            reading=reading,
        )

    size, trace = np.sqrt(energy / count), z / np.sqrt(len(judge))
    times, deviations = "the noise is {} times as large as certified", "{} standard deviations, where 0 is expected"
    return [
        checked("size of the noise, in units of the claimed one", size, p_size, times),
        checked("trace of the world in the noise (should be 0)", trace, p_trace, deviations),
    ]
