"""What the certificate says of an attacker is true for the best attacker of every mechanism."""

from __future__ import annotations

import json

import mpmath
import numpy as np
import pytest

import leakcap as lc
from leakcap import labels
from leakcap.certificates.labels import LabelCertificate
from leakcap.errors import InputError
from tests.claims.labels import laws

MECHANISMS = [
    labels.KRR(1.0, 4),
    labels.UnaryBits(1.5, 4),
    labels.UnaryBits(1.5, 4, optimised=True),
    labels.SubsetSelection(0.7, 4, size=2),
    labels.RRWithPrior(2.0, [0.5, 0.3, 0.15, 0.05]),
]


def questions(prior):
    """Every yes/no question about the label: sets of classes."""
    for bits in range(1, 15):
        yield np.array([bits >> c & 1 for c in range(4)], dtype=bool)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_no_attacker_beats_the_bound_at_any_observation(mechanism, seed):
    prior = np.random.default_rng(seed).dirichlet(np.full(4, 0.7))
    rows, _ = laws.channel(mechanism)
    cert = mechanism.certificate(labels=10)
    posterior = prior[:, None] * rows / (prior @ rows)
    assert (posterior.max(axis=0) <= cert.posterior(prior.max()) + 1e-9).all()
    for question in questions(prior):
        p = prior[question].sum()
        assert (posterior[question].sum(axis=0) <= cert.posterior(p) + 1e-9).all()
    # on average over observations, the exact figure lies below the bound
    assert mechanism.guess_success(prior) <= cert.posterior(prior.max()) + 1e-9


def test_a_planted_epsilon_is_beaten():
    mechanism = labels.KRR(1.0, 4)
    rows, _ = laws.channel(mechanism)
    prior = np.full(4, 0.25)
    posterior = prior[:, None] * rows / (prior @ rows)
    assert posterior.max() > labels.KRR(0.9, 4).certificate(labels=10).posterior(0.25)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.8, 0.2], [0.99, 0.01]])
def test_with_delta_the_bound_holds_on_average_and_needs_it(prior):
    mechanism = labels.Gaussian(0.4, 2, delta=0.2)
    zero, one = (np.array(law) for law in laws.entry_laws(mechanism))
    rows = np.stack([np.outer(one, zero).ravel(), np.outer(zero, one).ravel()])
    success = (np.array(prior)[:, None] * rows).max(axis=0).sum()
    cert = mechanism.certificate(labels=3)
    assert success <= cert.posterior(max(prior))
    if max(prior) == 0.5:
        assert success > cert.posterior(0.5) - cert.delta  # without delta it would be false


@pytest.mark.parametrize("seed", range(3))
def test_two_observations_of_a_label_stay_within_the_sums(seed):
    prior = np.random.default_rng(seed).dirichlet(np.ones(4))
    first, second = labels.KRR(0.8, 4), labels.SubsetSelection(1.1, 4, size=2)
    (a, _), (b, _) = laws.channel(first), laws.channel(second)
    rows = np.einsum("co,cs->cos", a, b).reshape(4, -1)
    joint = prior[:, None] * rows
    told = (joint * np.log(rows / joint.sum(axis=0))).sum()
    assert told <= first.mutual_information(prior) + second.mutual_information(prior)
    assert told > max(first.mutual_information(prior), second.mutual_information(prior))  # and more than either
    bound = labels.KRR(1.9, 4).certificate(labels=1)
    assert ((joint / joint.sum(axis=0)).max(axis=0) <= bound.posterior(prior.max()) + 1e-9).all()
    assert (rows.max(axis=0) / rows.min(axis=0)).max() == pytest.approx(np.exp(1.9))  # attained: one sum is not enough


def test_the_figures_of_the_certificate_are_those_of_the_mechanism():
    cert = labels.SubsetSelection(1.0, 10).certificate(labels=1234)
    assert (cert.kind, cert.epsilon, cert.delta, cert.labels, cert.confidence) == ("label_dp", 1.0, 0.0, 1234, 1.0)
    assert cert.prior_success == pytest.approx(0.1)
    exact = labels.SubsetSelection(1.0, 10).guess_success()
    assert exact <= cert.guess_success <= exact * (1 + 1e-8)
    words = str(cert)
    for part in ("1,234 labels", "subset selection", "epsilon = 1", "Not promised", "label-mechanisms"):
        assert part in words
    assert "delta = 1e-05" in str(labels.Gaussian(1.0, 3).certificate(labels=5))
    assert "<pre>" in cert._repr_html_()


def test_with_a_prior_by_rows_the_certificate_states_the_label_that_is_told_best():
    rows = np.array([[0.97, 0.01, 0.01, 0.01], [0.48, 0.48, 0.02, 0.02], [0.25, 0.25, 0.25, 0.25]])
    mechanism = labels.RRWithPrior(1.0, rows)
    apart = [labels.RRWithPrior(1.0, row) for row in rows]
    guesses, told = ([one.guess_success() for one in apart], [one.mutual_information() for one in apart])
    most = int(np.argmax(guesses - rows.max(axis=1)))
    cert = mechanism.certificate(labels=3)
    assert most == 2
    assert cert.prior == tuple(rows[most]) and cert.prior_success == rows[most].max()
    assert cert.guess_success == pytest.approx(guesses[most])
    assert cert.mutual_information >= max(told) > mechanism.mutual_information()  # the mean would not cover each
    assert "differs from label to label" in " ".join(str(cert).split())
    assert "differs from label to label" not in " ".join(str(apart[0].certificate(labels=3)).split())
    assert mechanism.guess_success() == pytest.approx(np.mean(guesses))
    for row, guess in zip(rows, guesses, strict=True):  # and no label is guessed better than its own line says
        assert guess <= cert.posterior(row.max())
    with pytest.raises(InputError, match="one row, or one each"):
        labels.KRR(1.0, 4).certificate(labels=5, prior=rows)


@pytest.mark.parametrize("seed", range(6))
def test_no_prior_makes_observations_tell_more_than_epsilon(seed):
    """Two runs, the second on classes merged in pairs, under priors that neither run was certified by."""
    prior = np.random.default_rng(seed).dirichlet(np.full(4, 0.5))
    (fine, _), (coarse, _) = laws.channel(labels.KRR(0.9, 4)), laws.channel(labels.KRR(0.4, 2))
    rows = np.einsum("co,cs->cos", fine, coarse[[0, 0, 1, 1]]).reshape(4, -1)
    told = (prior[:, None] * rows * np.log(rows / (prior @ rows))).sum()
    assert told <= 0.9 + 0.4
    # The twin: what the second run tells by itself, or all there is to know of its classes, does not cover both.
    even = np.full(4, 0.25)
    both = (even[:, None] * rows * np.log(rows / (even @ rows))).sum()
    assert both > labels.KRR(0.4, 2).mutual_information()
    far = laws.channel(labels.KRR(8.0, 4))[0]
    assert (even[:, None] * far * np.log(far / (even @ far))).sum() > np.log(2)


def test_information_is_never_rounded_down():
    for epsilon in (1e-6, 1e-5, 1e-3):
        with mpmath.workdps(60):
            e = mpmath.exp(mpmath.mpf(epsilon) * (1 - mpmath.mpf(10) ** -9))
            kept = e / (e + 999)
            told = mpmath.log(1000) + kept * mpmath.log(kept) + (1 - kept) * mpmath.log((1 - kept) / 999)
        assert labels.KRR(epsilon, 1000).certificate(labels=1).mutual_information >= told > 0


def test_figures_in_words_are_never_below_the_truth():
    assert labels.KRR(2.1000004, 2).certificate(labels=1).loss == "epsilon = 2.10001"
    assert labels.KRR(2.1, 2).certificate(labels=1).loss == "epsilon = 2.1"
    assert not labels.RRWithPrior(1.0, [0.9, 0.05, 0.05]).certificate(labels=1).prior_is_even
    told = labels.KRR(1.0, 4).certificate(labels=1, prior=[0.7, 0.1, 0.1, 0.1])
    assert "name one label (the stated prior)" in str(told) and "70.00 %" in str(told)
    shown = f"{100 * told.guess_success:.2f}"
    assert any(shown[:4] in line for line in str(told).splitlines() if "name one label" in line)
    assert told.guess_success == pytest.approx(labels.KRR(1.0, 4).guess_success([0.7, 0.1, 0.1, 0.1]))
    assert told.mutual_information == pytest.approx(labels.KRR(1.0, 4).mutual_information([0.7, 0.1, 0.1, 0.1]))


def test_json_round_trip_and_nothing_else_is_taken():
    cert = labels.KRR(1.0, classes=["<=50K", ">50K"]).certificate(labels=7, prior=[0.8, 0.2])
    assert LabelCertificate.from_json(cert.to_json()) == cert
    assert not cert.prior_is_even and cert.prior_success == pytest.approx(0.8)
    record = json.loads(cert.to_json())
    for change in (
        {"kind": "exact"},
        {"epsilon": -1},
        {"epsilon": "1"},
        {"labels": 0},
        {"prior": [0.5]},
        {"guess_success": 1.5},
        {"classes": "ab"},
        {"settings": [["kept"]]},
        {"settings": [1.0]},
        {"epsilon": 10**400},
        {"guess_success": 0.0},
        {"prior": [0.9, 0.9]},
        {"more": 1},
    ):
        with pytest.raises(InputError):
            LabelCertificate.from_json(json.dumps({**record, **change}))
    for text in ("{", "[]", "{}"):
        with pytest.raises(InputError):
            LabelCertificate.from_json(text)
    with pytest.raises(InputError):
        lc.Certificate.from_json(cert.to_json())


def test_certificates_of_other_kinds_are_not_taken_for_labels():
    plan = lc.plan(
        lambda X: X.mean(axis=0),
        np.random.default_rng(0).normal(size=(12, 2)),
        cap=lc.membership(0.8),
        worlds=16,
        draws=256,
        seed=1,
    )
    with pytest.raises(InputError):
        LabelCertificate.from_json(plan.certificate.to_json())
