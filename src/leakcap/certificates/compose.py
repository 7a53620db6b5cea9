"""Certificates of several releases about the same people as one: what all of them tell together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from leakcap.certificates.labels import LabelCertificate
from leakcap.ground.proofs import proves

__all__ = ["compose_label_runs"]

ROUNDED_UP = 1 + 1e-12  # more than the sums below can lose to rounding


@proves("label-guessing")
def compose_label_runs(earlier: Sequence[LabelCertificate], latest: LabelCertificate) -> LabelCertificate:
    """The certificate of labels that were privatised in several runs: epsilon and delta add up.

    Each of `earlier` counts all runs up to its own, in the order of the runs; `latest` is of the new run alone.

    Guarantee: it bounds what the observations of all runs together tell about one label, given that there were no
    other runs on it.
    """
    if not earlier:
        return latest
    before, runs = earlier[-1], len(earlier) + 1
    total = replace(
        latest,
        epsilon=before.epsilon + latest.epsilon,
        delta=min(1.0, before.delta + latest.delta),
        mechanism=f"{latest.mechanism}, run {runs} on labels privatised before",
        settings=(*latest.settings, ("epsilon_of_this_run", latest.epsilon), ("runs", float(runs))),
        assumptions=(
            *latest.assumptions,
            f"These labels were privatised {runs} times. All figures are for everything observed in these runs "
            "together, and hold if there were no others.",
        ),
    )
    return replace(
        total,
        guess_success=total.posterior(latest.prior_success),
        mutual_information=_information(earlier, latest, total),
    )


def _information(earlier: Sequence[LabelCertificate], latest: LabelCertificate, total: LabelCertificate) -> float:
    """Nats that all observations together tell about one label, at most."""
    if all((run.classes, run.prior) == (latest.classes, latest.prior) for run in earlier):
        # Given the label, observations are independent: together they tell at most the sum, and at most the label.
        entropy = -math.fsum(p * math.log(p) for p in latest.prior if p) * ROUNDED_UP
        return min(entropy, earlier[-1].mutual_information + latest.mutual_information)
    # The runs share no prior: what holds for every prior.
    classes = math.fsum(math.log(len(run.classes)) for run in (*earlier, latest)) * ROUNDED_UP
    return classes if total.delta else min(classes, total.epsilon)
