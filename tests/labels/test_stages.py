"""Two stages: what the first part taught makes the noise on the second do less harm."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn import datasets as toys
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from leakcap.errors import InputError
from leakcap.label_certificate import LabelCertificate
from leakcap.labels import rounds
from leakcap.labels.classifier import Classifier
from leakcap.labels.stages import TwoStage

LINEAR = LogisticRegression(max_iter=200)
X, y = toys.load_digits(return_X_y=True)
X = PCA(16, random_state=0).fit_transform(X / 16)
BLOBS, KINDS = toys.make_blobs(600, centers=4, random_state=3, cluster_std=1.0)


def kept(model: TwoStage, labels: np.ndarray) -> float:
    """Share of the second part's labels that came through."""
    return float((model.observed_[1] == labels[~model.part_]).mean())


def test_the_second_stage_keeps_more_labels_than_randomised_response_would() -> None:
    model = TwoStage(LINEAR, 2.0, 10, random_state=0).fit_private(X, y)
    alone = np.exp(2) / (np.exp(2) + 9)
    assert kept(model, y) > alone + 0.1  # its standard error is 0.017


def test_the_check_sees_a_first_stage_that_taught_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: predictions of other rows are no prior."""
    true = Classifier.fit
    shuffled = np.random.default_rng(0).permutation
    monkeypatch.setattr(Classifier, "fit", lambda self, table, seen: true(self, shuffled(table), seen))
    model = TwoStage(LINEAR, 2.0, 10, random_state=0).fit_private(X, y)
    assert not kept(model, y) > np.exp(2) / (np.exp(2) + 9) + 0.1


def test_it_learns() -> None:
    model = TwoStage(LINEAR, 2.0, 4, random_state=0).fit_private(BLOBS, KINDS)
    assert model.score(BLOBS, KINDS) > 0.85


def test_names_and_a_first_mechanism_of_ones_own() -> None:
    names = ["d", "c", "b", "a"]
    first = lc.labels.UnaryBits(2.0, classes=names)
    model = TwoStage(LINEAR, 3.0, classes=names, first=first, share=0.3, random_state=0)
    model.fit_private(BLOBS, np.array(names)[KINDS])
    assert model.score(BLOBS, np.array(names)[KINDS]) > 0.85
    assert model.part_.sum() == 180 and model.observed_[0].shape == (180, 4)


def test_every_label_is_used_once_and_epsilon_does_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[np.ndarray] = []
    for mechanism in (lc.labels.KRR, lc.labels.SubsetSelection, lc.labels.RRWithPrior):

        def recorded(self: Any, labels: Any, draw: Any = mechanism.privatize) -> Any:
            drawn.append(np.asarray(labels))
            return draw(self, labels)

        monkeypatch.setattr(mechanism, "privatize", recorded)
    model = TwoStage(LINEAR, 1.0, 40, random_state=0, rounds=0, holdout=0, folds=0)
    model.fit_private(BLOBS[:40], np.arange(40))  # every label its own
    assert sorted(np.concatenate(drawn).tolist()) == list(range(40)) and len(drawn) == 2
    assert model.certificate_.epsilon == 1.0 and model.certificate_.labels == 40


def test_the_certificate_covers_both_parts() -> None:
    model = TwoStage(LINEAR, 1.0, 4, random_state=0).fit_private(BLOBS, KINDS)
    cert = model.certificate_
    assert "two stages" in cert.mechanism and cert.guess_success >= lc.labels.auto(1.0, 4).guess_success()
    assert LabelCertificate.from_json(cert.to_json()) == cert
    assert "each label in one of them" in " ".join(str(cert).split())


def test_a_first_mechanism_with_a_prior_of_its_own_is_certified_by_the_same_prior_as_the_second() -> None:
    kinds = np.minimum(KINDS, 2)
    first = lc.labels.RRWithPrior(0.5, [0.49, 0.49, 0.02])
    cert = TwoStage(LINEAR, 2.0, 3, first=first, random_state=0).fit_private(BLOBS, kinds).certificate_
    assert cert.prior_is_even and cert.prior == pytest.approx([1 / 3] * 3)
    assert cert.guess_success > first.guess_success([1 / 3] * 3)
    assert cert.mutual_information > first.mutual_information([1 / 3] * 3)


def test_it_learns_again_from_the_same_observations() -> None:
    model = TwoStage(LINEAR, 2.0, 4, random_state=0)
    with pytest.raises(NotFittedError):
        model.refit(BLOBS)
    model.fit_private(BLOBS, KINDS)
    observed, said, weak = model.observed_, model.certificate_, np.abs(model.model_.coef_).max()
    model.set_params(base__C=1e-4).refit(BLOBS)
    assert model.observed_ is observed and model.certificate_ is said
    assert np.abs(model.model_.coef_).max() < weak / 2
    with pytest.raises(InputError, match="refit"):
        model.fit_private(BLOBS, KINDS)


def test_held_out_rows_are_of_both_parts_whatever_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []
    tried = rounds._tried
    monkeypatch.setattr(rounds, "_tried", lambda chain, held, recipe: seen.append(held) or tried(chain, held, recipe))
    model = TwoStage(LINEAR, 2.0, 4, random_state=0).fit_private(BLOBS, KINDS)
    model.refit(BLOBS)
    shares = [float(model.part_[held].mean()) for held in seen if len(held) == len(BLOBS)]
    assert len(shares) == 6 and all(0.3 < share < 0.7 for share in shares)


def public_bytes(monkeypatch: pytest.MonkeyPatch, labels: np.ndarray, split: Any = None) -> bytes:
    """What leaves when both mechanisms observe the same, whatever the labels."""
    monkeypatch.setattr(
        lc.labels.SubsetSelection, "privatize", lambda self, y: np.eye(4, dtype=bool)[np.arange(len(y)) % 4]
    )
    monkeypatch.setattr(lc.labels.KRR, "privatize", lambda self, y: np.arange(len(y)) % 4)
    monkeypatch.setattr(lc.labels.RRWithPrior, "privatize", lambda self, y: self.prior.argmax(axis=1))
    model = TwoStage(LINEAR, 1.0, 4, first=lc.labels.KRR(1.0, 4), random_state=0)
    if split is not None:
        monkeypatch.setattr(TwoStage, "_split", split)
    model.fit_private(BLOBS, labels)
    return pickle.dumps(model) + repr(model).encode() + str(model.certificate_).encode()


def test_with_the_observations_fixed_every_byte_is_the_same_whatever_the_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert public_bytes(monkeypatch, KINDS) == public_bytes(monkeypatch, (KINDS + 1) % 4)


def test_the_check_sees_a_split_by_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    found = [
        public_bytes(monkeypatch, labels, lambda self, n, labels=labels: (labels < 2, np.random.RandomState(0)))
        for labels in (KINDS, (KINDS + 1) % 4)
    ]
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"share": 1.0}, "share"),
        ({"first": "best"}, "first"),
        ({"first": lc.labels.KRR(9.0, 4)}, "same classes"),
        ({"first": lc.labels.KRR(1.0, 5)}, "same classes"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"n_classes": None}, "classes"),
        ({"n_classes": 3}, "whole numbers"),
        ({"grid": {"C": [1, 2]}, "share": 0.1}, "grid"),
    ],
)
def test_bad_settings_are_refused_before_a_label_is_drawn(
    settings: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lc.labels.Mechanism, "privatize", lambda *given: pytest.fail("labels were privatised"))
    with pytest.raises(InputError, match=says):
        TwoStage(**{"base": LINEAR, "epsilon": 1.0, "n_classes": 4, **settings}).fit_private(BLOBS, KINDS)


def test_two_rows_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lc.labels.Mechanism, "privatize", lambda *given: pytest.fail("labels were privatised"))
    with pytest.raises(InputError, match="one sample"):
        TwoStage(LINEAR, 1.0, 4).fit_private(BLOBS[:2], KINDS[:2])
