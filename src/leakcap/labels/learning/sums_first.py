"""Noised sums first, then each label by itself: what the sums say of every row, and what both cost together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from leakcap.certificates.labels import SUMS_THEN_RESPONSES, SUMS_THEN_RESPONSES_ASSUMPTIONS, LabelCertificate
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.ground.proofs import proves
from leakcap.labels.learning.prior import checked_prior
from leakcap.labels.mechanisms.base import SMALLEST_EPSILON
from leakcap.labels.mechanisms.krr import KRR
from leakcap.labels.statistics.base import SumsClassifier

__all__ = ["beliefs", "left_for_responses", "most_nats", "spending_copy", "together"]

_LEAST = 1e-12  # a chance that counts as never


@proves("label-statistics")
def left_for_responses(epsilon: float, prior: Any) -> float:
    """The epsilon that is left for each label by itself, where sums spend the prior's.

    Guarantee: with what the prior spends it is `epsilon`; the mechanisms' own margin is larger than its last digit.
    """
    left = epsilon - checked_prior(prior).epsilon
    if not left >= SMALLEST_EPSILON:
        raise InputError("the prior's epsilon leaves nothing for responses: give it a smaller one, or raise epsilon")
    return float(left)


def spending_copy(prior: Any, classes: int) -> SumsClassifier:
    """A copy of the prior, for labels as places among so many classes; not fitted yet."""
    copy: SumsClassifier = clone(checked_prior(prior)).set_params(n_classes=classes)
    return copy


def beliefs(model: SumsClassifier, table: Any) -> Floats:
    """Logarithms of what the fitted sums make of every row, a column for each class."""
    found = np.maximum(model.predict_proba(table), _LEAST)
    return np.asarray(np.log(found / found.sum(axis=1, keepdims=True)))


@proves("label-statistics")
def most_nats(epsilon: float, classes: int) -> float:
    """Nats that a response among some of so many classes tells of its label at most, whatever is known of it before.

    Guarantee: `k` likely classes of any prior are a channel of the capacity of randomised response among `k`; the
    largest for 2 to `classes` bounds all of them.
    """
    return max(KRR(epsilon, k).mutual_information() for k in range(2, classes + 1)) * (1 + 1e-9) + 1e-13


@proves("label-statistics", "label-guessing")
def together(sums: LabelCertificate, responses: LabelCertificate, nats: float) -> LabelCertificate:
    """One certificate for noised sums and what was observed of each label afterwards, in their light.

    Guarantee: epsilons and deltas of both add up. Naming one of even classes succeeds at most as a response makes of
    the success after the sums; `nats` bounds what a response tells where the sums are known.

    Args:
        sums: of the noised sums, for even classes.
        responses: of the observations; its epsilon and delta hold whatever the sums were.
        nats: that a response adds at most.
    """
    count = len(sums.classes)
    parts = (
        ("epsilon_of_sums", sums.epsilon),
        ("delta_of_sums", sums.delta),
        ("epsilon_of_responses", responses.epsilon),
        ("delta_of_responses", responses.delta),
    )
    total = replace(
        responses,
        mechanism=SUMS_THEN_RESPONSES + responses.mechanism,
        settings=(*parts, *((f"sums_{name}", value) for name, value in sums.settings), *responses.settings),
        epsilon=sums.epsilon + responses.epsilon,
        delta=min(1.0, sums.delta + responses.delta),
        prior=(1 / count,) * count,
        prior_is_even=True,
        prior_success=1 / count,
        theorems=tuple(dict.fromkeys((*sums.theorems, *responses.theorems))),
        assumptions=SUMS_THEN_RESPONSES_ASSUMPTIONS,
    )
    # A response multiplies the odds of a guess by e^epsilon at most, and what that makes of a success is concave.
    named = min(total.posterior(1 / count), responses.posterior(sums.guess_success))
    told = min(math.log(count), (sums.mutual_information + nats) * (1 + 1e-12))
    return replace(total, guess_success=named, mutual_information=told)
