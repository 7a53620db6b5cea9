"""Sums as the prior of TwoStage and Classifier: what is drawn with which epsilon, what is said, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

import leakcap as lc
from leakcap.certificates.labels import LabelCertificate
from leakcap.errors import InputError
from leakcap.labels.learning.classifier import Classifier
from leakcap.labels.learning.two_stage import TwoStage
from leakcap.labels.statistics.sums import SumsMechanism
from tests.unit.labels.staged import BLOBS, KINDS, LINEAR

KRR = lc.labels.KRR(1.0, 4)
QUICK = {"rounds": 1, "holdout": 0.0, "random_state": 0}


def staged(**settings: Any) -> TwoStage:
    return TwoStage(**{"base": clone(LINEAR), "epsilon": 1.5, "n_classes": 4, **QUICK, **settings})


def classifier(**settings: Any) -> Classifier:
    return Classifier(**{"base": clone(LINEAR), "mechanism": KRR, **QUICK, **settings})


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """What is drawn from labels, with its epsilon."""
    found: list[tuple[str, float]] = []
    release = SumsMechanism.release

    def summed(self: Any, rows: Any, codes: Any) -> Any:
        found.append(("sums", self.epsilon))
        return release(self, rows, codes)

    monkeypatch.setattr(SumsMechanism, "release", summed)
    for kind in (lc.labels.KRR, lc.labels.RRWithPrior, lc.labels.Gaussian):

        def observed(self: Any, codes: Any, draw: Any = kind._observe) -> Any:
            found.append(("responses", self.epsilon))
            return draw(self, codes)

        monkeypatch.setattr(kind, "_observe", observed)
    return found


def test_two_stages_split_epsilon_between_sums_and_responses(drawn: list[tuple[str, float]]) -> None:
    model = staged(prior=lc.labels.Ridge(0.5)).fit_private(BLOBS, KINDS)
    assert model.score(BLOBS, KINDS) > 0.85
    assert drawn == [("sums", 0.5), ("responses", 1.0)]
    cert = model.certificate_
    assert (cert.epsilon, cert.delta, cert.labels, cert.leaves) == (1.5, 1e-5, 600, "noised sums and observations")
    said = dict(cert.settings)
    assert (said["epsilon_of_sums"], said["epsilon_of_responses"], said["delta_of_sums"]) == (0.5, 1.0, 1e-5)
    assert not model.part_.any() and model.observed_[0] is model.prior_.sums_ and len(model.observed_[1]) == 600


@pytest.mark.parametrize(
    ("mechanism", "delta"), [(KRR, 1e-5), (lc.labels.Gaussian(1.0, 4, delta=1e-4), 1.1e-4)], ids=str
)
def test_a_classifier_adds_what_the_sums_spend(mechanism: Any, delta: float, drawn: list[tuple[str, float]]) -> None:
    model = classifier(mechanism=mechanism, prior=lc.labels.LDA(0.5)).fit_private(BLOBS, KINDS)
    assert model.score(BLOBS, KINDS) > 0.85
    assert drawn == [("sums", 0.5), ("responses", 1.0)]
    assert model.certificate_.epsilon == 1.5 and model.certificate_.delta == pytest.approx(delta)
    alone = mechanism.certificate(600)
    assert alone.guess_success < model.certificate_.guess_success <= model.certificate_.posterior(0.25)
    assert model.certificate_.mutual_information > alone.mutual_information


@pytest.mark.parametrize("make", [staged, classifier])
def test_the_certificate_says_both_parts_in_words(make: Any) -> None:
    cert = make(prior=lc.labels.Ridge(0.5)).fit_private(BLOBS[::2], KINDS[::2]).certificate_
    words = " ".join(str(cert).split())
    for said in ("summed by class", "Then each label was replaced", "epsilon of sums 0.5", "epsilon of responses 1;"):
        assert said in words
    assert "epsilon = 1.5, delta = 1e-05" in words and "A curator may hold all labels" in words
    assert LabelCertificate.from_json(cert.to_json()) == cert
    assert "Only the noised sums and the observations leave" in " ".join(cert.to_html().split())


@pytest.mark.parametrize("make", [staged, classifier])
def test_names_in_any_order(make: Any) -> None:
    names = ["d", "c", "b", "a"]
    settings = {"classes": names, "n_classes": None} if make is staged else {}
    if make is classifier:
        settings = {"mechanism": lc.labels.KRR(1.0, classes=names)}
    model = make(prior=lc.labels.Ridge(0.5), **settings).fit_private(BLOBS, np.array(names)[KINDS])
    assert model.score(BLOBS, np.array(names)[KINDS]) > 0.85


def test_both_learn_again_from_what_was_drawn(drawn: list[tuple[str, float]]) -> None:
    stages, model = staged(prior=lc.labels.Ridge(0.5)), classifier(prior=lc.labels.Ridge(0.5))
    for one in (stages, model):
        one.fit_private(BLOBS, KINDS)
    said = stages.certificate_, model.certificate_
    stages.set_params(base__C=0.1).refit(BLOBS)
    model.set_params(base__C=0.1).fit(BLOBS, model.observed_)
    assert (stages.certificate_, model.certificate_) == said and len(drawn) == 4
    for one in (stages, model):
        with pytest.raises(InputError, match="spend epsilon again"):
            one.fit_private(BLOBS, KINDS)
    assert clone(model).fit_private(BLOBS, KINDS).score(BLOBS, KINDS) > 0.85


@pytest.mark.parametrize("make", [staged, classifier])
def test_sums_that_were_drawn_are_spent_where_nothing_came_of_them(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(prior=lc.labels.Ridge(0.5))
    for kind in (lc.labels.KRR, lc.labels.RRWithPrior):
        monkeypatch.setattr(kind, "privatize", lambda *given: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        model.fit_private(BLOBS, KINDS)
    monkeypatch.undo()
    with pytest.raises(InputError, match="has privatised labels before"):
        model.fit_private(BLOBS, KINDS)


@pytest.mark.parametrize("holdout", [0.0, 0.2])
def test_where_no_response_says_anything_the_sums_still_teach(holdout: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """One class is so likely in every row that the response is the same whatever the label."""
    sure = 0.97 * np.eye(4) + 0.0075
    monkeypatch.setattr(lc.labels.Ridge, "_chances", lambda self, scores: sure[scores.argmax(axis=1)])
    model = staged(prior=lc.labels.Ridge(1.0), holdout=holdout).fit_private(BLOBS, KINDS)
    told = model._known[0]
    assert (told == told[:, :1]).all()
    assert (model.predict(BLOBS) == model.prior_.predict(BLOBS)).mean() > 0.9


def test_fit_alone_has_no_prior() -> None:
    model = classifier(prior=lc.labels.Ridge(0.5))
    with pytest.raises(InputError, match="fit_private"):
        model.fit(BLOBS, KRR.privatize(KINDS))


HOLES = BLOBS.copy()
HOLES[3] = np.nan
FITTED = lc.labels.Ridge(0.5, 4).fit(BLOBS, KINDS)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"prior": GaussianNB()}, "with an epsilon of its own"),
        ({"prior": FITTED}, "are spent"),
        ({"prior": lc.labels.Ridge(0.5, n_classes=4)}, "takes its classes"),
        ({"prior": lc.labels.Ridge(-1.0)}, "epsilon"),
        ({"prior": lc.labels.Ridge(0.5, delta=0)}, "delta"),
        ({"X": HOLES}, "NaN|finite"),
        ({"y": KINDS + 1}, "whole numbers"),
        ({"y": KINDS[1:]}, "rows"),
    ],
)
@pytest.mark.parametrize("make", [staged, classifier])
def test_what_cannot_be_is_refused_before_a_label_is_drawn(
    make: Any, settings: dict[str, Any], says: str, drawn: list[tuple[str, float]]
) -> None:
    given = {"X": BLOBS, "y": KINDS, "prior": lc.labels.Ridge(0.5), **settings}
    model = make(prior=given.pop("prior"))
    with pytest.raises((InputError, ValueError), match=says):
        model.fit_private(given["X"], given["y"])
    assert drawn == []
    if "prior" not in settings:
        assert model.fit_private(BLOBS, KINDS).score(BLOBS, KINDS) > 0.8  # and nothing is spent


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"prior": lc.labels.Ridge(1.5)}, "leaves nothing for responses"),
        ({"first": KRR}, "leave first= and share= out"),
        ({"share": 0.3}, "leave first= and share= out"),
    ],
)
def test_two_stages_refuse_what_sums_leave_no_room_for(settings: Any, says: str, drawn: list[Any]) -> None:
    with pytest.raises(InputError, match=says):
        staged(**{"prior": lc.labels.Ridge(0.5), **settings}).fit_private(BLOBS, KINDS)
    assert drawn == []
