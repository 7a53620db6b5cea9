"""Two stages: what the first part taught makes the noise on the second do less harm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import leakcap as lc
from leakcap.certificates.labels import LabelCertificate
from leakcap.errors import InputError
from leakcap.labels.learning import refine as rounds
from leakcap.labels.learning.two_stage import TwoStage
from tests.unit.labels.staged import BLOBS, KINDS, LINEAR


@pytest.fixture(scope="module")
def learned() -> TwoStage:
    """To look at only."""
    return TwoStage(LINEAR, 2.0, 4, random_state=0).fit_private(BLOBS, KINDS)


def test_it_learns(learned: TwoStage) -> None:
    assert learned.score(BLOBS, KINDS) > 0.85


def test_names_and_a_first_mechanism_of_ones_own() -> None:
    names = ["d", "c", "b", "a"]
    first = lc.labels.UnaryBits(2.0, classes=names)
    half = np.array(names)[KINDS[::2]]
    model = TwoStage(LINEAR, 3.0, classes=names, first=first, share=0.3, random_state=0)
    model.fit_private(BLOBS[::2], half)
    assert model.score(BLOBS[::2], half) > 0.85
    assert model.part_.sum() == 90 and model.observed_[0].shape == (90, 4)


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


def test_the_certificate_covers_both_parts(learned: TwoStage) -> None:
    cert = learned.certificate_
    assert "two stages" in cert.mechanism and cert.guess_success >= lc.labels.auto(2.0, 4).guess_success()
    assert LabelCertificate.from_json(cert.to_json()) == cert
    assert "each label in one of them" in " ".join(str(cert).split())


def test_a_first_mechanism_with_a_prior_of_its_own_is_certified_by_the_same_prior_as_the_second() -> None:
    kinds = np.minimum(KINDS, 2)
    first = lc.labels.RRWithPrior(0.5, [0.49, 0.49, 0.02])
    model = TwoStage(LINEAR, 2.0, 3, first=first, random_state=0, rounds=0, holdout=0, folds=0)
    cert = model.fit_private(BLOBS, kinds).certificate_
    assert cert.prior_is_even and cert.prior == pytest.approx([1 / 3] * 3)
    assert cert.guess_success > first.guess_success([1 / 3] * 3)
    assert cert.mutual_information > first.mutual_information([1 / 3] * 3)


def test_it_learns_again_from_the_same_observations() -> None:
    model, table = TwoStage(clone(LINEAR), 2.0, 4, random_state=0), BLOBS[::2]
    with pytest.raises(NotFittedError):
        model.refit(table)
    model.fit_private(table, KINDS[::2])
    observed, said, weak = model.observed_, model.certificate_, np.abs(model.model_.coef_).max()
    model.set_params(base__C=1e-4).refit(table)
    assert model.observed_ is observed and model.certificate_ is said
    assert np.abs(model.model_.coef_).max() < weak / 2
    with pytest.raises(InputError, match="refit"):
        model.fit_private(table, KINDS[::2])


def test_held_out_rows_are_of_both_parts_whatever_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []
    tried = rounds._tried
    monkeypatch.setattr(rounds, "_tried", lambda chain, held, recipe: seen.append(held) or tried(chain, held, recipe))
    model = TwoStage(LINEAR, 2.0, 4, random_state=0).fit_private(BLOBS, KINDS)
    model.refit(BLOBS)
    shares = [float(model.part_[held].mean()) for held in seen if len(held) == len(BLOBS)]
    assert len(shares) == 6 and all(0.3 < share < 0.7 for share in shares)


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
