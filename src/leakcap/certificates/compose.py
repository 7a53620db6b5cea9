"""Certificates of several releases as one: what all of them tell together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from scipy.special import ndtr

from leakcap import convert
from leakcap.certificates.composition import RELATIONS, ComposedPart, Composition
from leakcap.certificates.labels import LabelCertificate
from leakcap.certificates.release import Certificate
from leakcap.certificates.session import SessionCertificate
from leakcap.convert.continuity import entropy_slack
from leakcap.errors import InputError
from leakcap.ground import checks
from leakcap.ground.proofs import proves
from leakcap.version import __version__

__all__ = ["compose", "compose_label_runs"]

DECLARED = (
    "Declared by the caller, not checked: the data sets are independent of each other. No person is in two of them, "
    "and none was made from another one or from another one's release.",
    "No cap was chosen in the light of another of these releases.",
)
FIXED = (
    "All questions and caps were fixed before the first of these answers was released: `plan_together` sees to that.",
    "Noise was drawn for every answer on its own, from the operating system, as all of their certificates say.",
)
OWN_SEEDS = ("Every function had a seed of its own, drawn like the noise.",)
NOT_PROMISED = (
    "Other releases of these data: they are bounded neither here nor by any of the certificates.",
    "What each certificate does not promise is not promised here either.",
)
ABOUT_ONE_PERSON = ("Any guess but the one about one person: at least one of these certificates bounds nothing else.",)

ROUNDED_UP = 1 + 1e-12  # more than the sums below can lose to rounding


def compose(*certificates: Certificate, data: str) -> Composition:
    """What several releases tell together, by their certificates alone.

    Args:
        *certificates: two or more, of releases by `leakcap.plan` or `leakcap.plan_together`.
        data: "independent": each is of a data set of its own, which you declare and the result lists. "same": all are
            parts of one `plan_together`, with one secret and noise of their own.

    Returns:
        The figures for an attacker who has all of the releases.

    Raises:
        InputError: a certificate is no guarantee, or of another kind, or states no ids; the same data or the same
            release come twice where they should be independent; or the certificates have different secrets where they
            should be the same.

    Guarantee: independent: information about all secrets adds up, and a guess about one person's part in one of the
    releases gains nothing from the others; all figures hold together with the confidence stated. Same: what
    covariances bound adds up, with certainty, and mean distances (secret seeds) with the confidence stated; the guess
    about one person follows from the sum.

    Examples:
        >>> import numpy as np
        >>> import leakcap as lc
        >>> rng = np.random.default_rng(0)
        >>> north, south = (lc.plan(np.mean, rng.normal(size=100), cap=0.6, worlds=64) for _ in range(2))
        >>> lc.compose(north.certificate, south.certificate, data="independent").membership_success <= 0.6
        True
    """
    checks.choice(RELATIONS, data=data)
    for certificate in certificates:
        _refuse_other(certificate)
    if len(certificates) < 2:
        raise InputError("give two certificates or more: one stands as it is")
    parts = tuple(_part(certificate) for certificate in certificates)
    return _of_one_secret(parts) if data == "same" else _independent(parts, certificates)


def _refuse_other(certificate: Any) -> None:
    if isinstance(certificate, LabelCertificate):
        raise InputError(
            "certificates of labels are not composed with releases: they speak of one label, whatever else is known. "
            "Runs of `leakcap labels` on the same file add up by themselves"
        )
    if isinstance(certificate, SessionCertificate):
        raise InputError("the certificate of a session covers all its answers: open the session for that of today")
    if isinstance(certificate, Composition):
        raise InputError("give the certificates that a composition was made of, all at once")
    if not isinstance(certificate, Certificate):
        raise InputError("give certificates: release.certificate, or Certificate.from_json(text)")
    if not certificate.is_guarantee:
        raise InputError("simulations, and the papers' stopping rule, guarantee nothing: nothing adds up to more")
    if certificate.secret_id is None or certificate.data_id is None:
        raise InputError(
            "a certificate states no ids of its secret and data set. Either it is from before they were stated, and "
            "stands alone; or it is charged to a ledger's account, whose clock bounds all its answers together"
        )


def _part(certificate: Certificate) -> ComposedPart:
    assert certificate.secret_id is not None
    assert certificate.data_id is not None
    return ComposedPart(
        kind=certificate.kind,
        mode=certificate.mode,
        units=certificate.units,
        worlds=certificate.worlds,
        rate=certificate.rate,
        membership_success=certificate.membership_success,
        mutual_information=certificate.mutual_information,
        sampler_distance=certificate.sampler_distance,
        gamma=certificate.gamma,
        secret_id=certificate.secret_id,
        data_id=certificate.data_id,
        log_det=certificate.log_det,
        signal=certificate.signal,
    )


@proves("composition")
def _independent(parts: tuple[ComposedPart, ...], certificates: tuple[Certificate, ...]) -> Composition:
    """Secrets and noise are independent: the chain rule adds informations, and others say nothing about one's own."""
    for what, ids in (("secret", [one.secret_id for one in parts]), ("data set", [one.data_id for one in parts])):
        if len(set(ids)) < len(ids):
            raise InputError(
                f"two of these certificates have the same {what}: they are not independent. Parts of one plan_together "
                "are composed with data='same'; a plan and its recaps are released once"
            )
    if len({one.mode == "pool" for one in parts}) > 1:
        raise InputError("some of these are about being in the data and some about being used: two promises, not one")
    about_one = any(certificate.only_one_person for certificate in certificates)
    return Composition(
        data="independent",
        parts=parts,
        membership_success=max(one.membership_success for one in parts),
        mutual_information=None if about_one else math.fsum(one.mutual_information for one in parts) * ROUNDED_UP,
        confidence=_down(1 - math.fsum(one.gamma for one in parts) * ROUNDED_UP),
        assumptions=DECLARED,
        not_promised=NOT_PROMISED + (ABOUT_ONE_PERSON if about_one else ()),
        theorems=("composition", "currency"),
        leakcap_version=__version__,
    )


@proves("composition", "log-det", "trace", "secret-seeds")
def _of_one_secret(parts: tuple[ComposedPart, ...]) -> Composition:
    """Fischer's inequality: the determinant of all answers is at most the product of theirs; traces just add up.

    Where the secret is a fresh half, with seeds of their own, mean distances do (Theorem 7 of PAC Privacy), as long as
    all of them were bounded rightly.
    """
    if len({one.secret_id for one in parts}) > 1:
        raise InputError(
            "these certificates have different secrets. If the data are the same, nothing bounds the releases "
            "together: every plan draws a secret of its own, and fresh secrets do not add up. Plan the functions at "
            "once with plan_together, or ask in a session. If the data are independent, say data='independent'"
        )
    if len({(one.data_id, one.units, one.worlds, one.rate) for one in parts}) > 1:
        raise InputError("these certificates have one secret and different pools: one of them is not as it was issued")
    numbers = [(one.log_det, one.signal) for one in parts]
    if any(figure is None for pair in numbers for figure in pair):
        raise InputError("a certificate states no figures that add up: only parts of a plan_together have them")
    rate = float(Fraction(parts[0].rate))
    fresh = parts[0].mode == "confidence"  # any subset may be the secret, simulated or not
    secrets = 2 ** parts[0].units if fresh else parts[0].worlds
    distance = math.fsum(one.sampler_distance for one in parts) * ROUNDED_UP
    total = math.fsum(one.log_det or 0.0 for one in parts) + entropy_slack(min(distance, 0.5), secrets)
    information = min(total, math.log(secrets)) * ROUNDED_UP
    signal = math.fsum(one.signal or 0.0 for one in parts) * ROUNDED_UP
    by_signal = float(ndtr(math.sqrt(signal / (4 * rate * (1 - rate))))) * ROUNDED_UP + distance
    return Composition(
        data="same",
        parts=parts,
        membership_success=min(1.0, by_signal, _balanced(information, rate)),
        mutual_information=information,
        confidence=_down(1 - math.fsum(one.gamma for one in parts) * ROUNDED_UP) if fresh else 1.0,
        assumptions=FIXED + (OWN_SEEDS if fresh else ()),
        not_promised=NOT_PROMISED,
        theorems=("composition", "secret-seeds" if fresh else "log-det", "trace", "currency"),
        leakcap_version=__version__,
    )


def _balanced(information: float, rate: float) -> float:
    """Balanced membership success: the root of the divergence at rate 1/2, else Pinsker's inequality on both sides."""
    if rate == 0.5:
        return float(convert.posterior(information, 0.5))
    return min(1.0, (0.5 + 0.5 * math.sqrt(information / (2 * rate * (1 - rate)))) * ROUNDED_UP)


def _down(value: float) -> float:
    return max(0.0, math.nextafter(value, 0.0))


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
