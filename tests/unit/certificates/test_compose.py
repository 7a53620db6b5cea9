"""Runs on the same labels together: the composed certificate covers the best attacker who sees all observations."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from leakcap import labels
from leakcap.certificates.compose import compose_label_runs
from leakcap.certificates.labels import LabelCertificate

PRIOR = (0.6, 0.3, 0.1)
EPSILONS = (0.5, 1.0, 0.3)


def channel(epsilon: float) -> np.ndarray:
    """Randomised response among three classes: the chance of each observation, given the label."""
    rows = np.ones((3, 3)) + (np.exp(epsilon) - 1) * np.eye(3)
    return rows / rows.sum(axis=1, keepdims=True)


def joint(epsilons: tuple[float, ...]) -> np.ndarray:
    """The chance of label and all observations, `(3, 3 ** runs)`."""
    channels = [channel(epsilon) for epsilon in epsilons]
    seen = itertools.product(range(3), repeat=len(epsilons))
    given = [np.prod([rows[:, place] for rows, place in zip(channels, places, strict=True)], axis=0) for places in seen]
    return np.array(PRIOR)[:, None] * np.stack(given, axis=1)


def information(chances: np.ndarray) -> float:
    apart = chances.sum(axis=1, keepdims=True) * chances.sum(axis=0)
    return float((chances * np.log(chances / apart)).sum())


def composed(epsilons: tuple[float, ...]) -> LabelCertificate:
    """Run after run, as the custodian stores them."""
    stored: list[LabelCertificate] = []
    for epsilon in epsilons:
        latest = labels.KRR(epsilon, classes=["a", "b", "c"]).certificate(labels=10, prior=PRIOR)
        stored.append(compose_label_runs(stored, latest))
    return stored[-1]


def test_one_run_keeps_its_certificate() -> None:
    latest = labels.KRR(0.5, 3).certificate(labels=10)
    assert compose_label_runs([], latest) is latest


@pytest.mark.parametrize("runs", [2, 3])
def test_the_best_attacker_on_all_observations_stays_within(runs: int) -> None:
    chances, certificate = joint(EPSILONS[:runs]), composed(EPSILONS[:runs])
    assert certificate.epsilon == pytest.approx(sum(EPSILONS[:runs]))
    assert chances.max(axis=0).sum() <= certificate.guess_success
    assert information(chances) <= certificate.mutual_information
    assert f"privatised {runs} times" in " ".join(certificate.assumptions)


def test_the_last_run_alone_would_promise_too_much() -> None:
    """The planted twin."""
    alone = labels.KRR(EPSILONS[2], classes=["a", "b", "c"]).certificate(labels=10, prior=PRIOR)
    chances = joint(EPSILONS)
    assert information(chances) > alone.mutual_information
    assert chances.max(axis=0).sum() > alone.guess_success


def test_information_is_never_more_than_the_label_holds() -> None:
    entropy = -sum(p * np.log(p) for p in PRIOR)
    assert composed((6.0, 6.0)).mutual_information == pytest.approx(entropy)


def test_deltas_add_up_to_one_at_most() -> None:
    certificate = labels.Gaussian(0.5, 3, delta=0.4).certificate(labels=10)
    twice = compose_label_runs([certificate], certificate)
    assert twice.delta == pytest.approx(0.8)
    assert compose_label_runs([certificate, replace(twice, delta=0.9)], certificate).delta == 1.0
