"""The trade-off curve: one simulation, every cap kept, nothing released, and the figures are what fits really give."""

from __future__ import annotations

import pickle
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn import linear_model

import leakcap as lc
from leakcap.estimators import KMeans, Mean, Ridge, base
from leakcap.estimators.tradeoff import Curve, privacy_utility_curve
from leakcap.noise import Seeded
from leakcap.planning.plans import Plan

rng = np.random.default_rng(11)
X = rng.normal(size=(80, 2)) * [1.0, 4.0]
Y = X @ [1.0, 0.5] + 0.5 * rng.normal(size=80)
TEST = (X[60:], Y[60:])
CAPS = [0.52, 0.6, 0.9]
FEW = {"draws": 256}


def small(**settings: Any) -> Ridge:
    return Ridge(**({"worlds": 32, "random_state": 0, "options": FEW} | settings))


@pytest.fixture(scope="module")
def curve() -> Curve:
    return privacy_utility_curve(small(), X[:60], Y[:60], CAPS, test=TEST, releases=60)


def test_looser_caps_need_less_noise_and_give_better_scores(curve: Curve) -> None:
    noise = [point.noise for point in curve.points]
    scores = [point.score for point in curve.points]
    assert noise == sorted(noise, reverse=True) and len(set(noise)) == 3
    assert scores == sorted(scores) and len(set(scores)) == 3


def test_every_cap_is_kept(curve: Curve) -> None:
    assert all(0.5 < point.success <= cap for point, cap in zip(curve.points, CAPS, strict=True))


def test_the_unprotected_score_is_the_plain_estimators(curve: Curve) -> None:
    plain = linear_model.Ridge().fit(X[:60], Y[:60])
    assert curve.unprotected == pytest.approx(plain.score(*TEST), abs=1e-9)
    assert curve.without_noise != curve.unprotected  # a half is not the whole
    assert curve.points[0].score < curve.without_noise


def test_scores_are_those_of_real_releases() -> None:
    """200 releases of a fit's own plan score as the curve says, within 4 standard errors; at another cap they do not.

    Two means of such scores differ by more with a chance below 1e-4; seeds are fixed.
    """
    found = privacy_utility_curve(Mean(worlds=16, random_state=0, options=FEW), X, caps=[0.55, 0.6], releases=200)
    plan = Mean(worlds=16, random_state=0, options=FEW)._planned(X, None, None, None, lc.membership(0.55))[0]
    wanted, scale = X.mean(axis=0), X.std(axis=0)
    releases = [plan.releaser.vector(Seeded(1000 + i)) for i in range(200)]
    real = np.array([1 - np.mean((vector - wanted / scale) ** 2) for vector in releases])
    error = np.hypot(real.std(), found.points[0].spread) / np.sqrt(200)
    assert abs(real.mean() - found.points[0].score) < 4 * error
    assert abs(real.mean() - found.points[1].score) > 4 * error


def test_one_simulation_serves_all_caps_and_nothing_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Plan] = []
    real = base.plan
    monkeypatch.setattr(base, "plan", lambda *given, **options: plans.append(real(*given, **options)) or plans[-1])
    monkeypatch.setattr(Plan, "release", lambda self: pytest.fail("a curve must not release"))
    estimator = small()
    privacy_utility_curve(estimator, X, Y, CAPS, releases=4)
    monkeypatch.undo()
    assert len(plans) == 1
    assert not hasattr(estimator, "n_features_in_") and not hasattr(estimator, "estimator_")
    assert plans[0].release().certificate.kind == "simulation"  # the right to release is still there


def test_the_estimators_own_cap_plays_no_part(curve: Curve) -> None:
    other = privacy_utility_curve(small(cap=lc.membership(0.99)), X[:60], Y[:60], CAPS, test=TEST, releases=60)
    assert other.points == curve.points


def test_caps_may_be_of_any_kind() -> None:
    caps = [lc.membership(0.6), [lc.membership(0.6), lc.mutual_information(0.01)], lc.any_inference(0.5, 0.6)]
    found = privacy_utility_curve(small(), X, Y, caps, releases=4)
    assert [point.name for point in found.points] == [
        "membership 60 %",
        "membership 60 % and mutual information 0.01 nats",
        "any inference 60 %",
    ]
    assert found.points[1].noise > found.points[0].noise


def test_scoring_is_as_in_scikit_learn(curve: Curve) -> None:
    def at_zero(estimator: Any, features: Any, target: Any) -> float:
        return float(estimator.predict(features[:1] * 0)[0])

    named = privacy_utility_curve(
        small(), X[:60], Y[:60], [0.9], test=TEST, scoring="neg_mean_squared_error", releases=9
    )
    own = privacy_utility_curve(small(), X[:60], Y[:60], [0.9], scoring=at_zero, releases=9)
    assert named.scoring == "neg_mean_squared_error" and named.without_noise < 0
    assert own.scoring == "at_zero" and own.unprotected == pytest.approx(
        linear_model.Ridge().fit(X[:60], Y[:60]).intercept_
    )
    assert curve.scoring == "R2"


def test_without_test_data_the_estimators_own_utility_is_measured() -> None:
    found = privacy_utility_curve(KMeans(2, worlds=16, random_state=0, options=FEW), X, caps=0.7, releases=5)
    assert found.scoring == "share of the spread explained"
    assert found.nothing == 0.0
    assert 0 < found.unprotected < 1


def test_units_and_weights_are_passed_on() -> None:
    whose = np.arange(80) // 2
    found = privacy_utility_curve(small(), X, Y, [0.7], unit=whose, sample_weight=np.arange(80) + 1.0, releases=4)
    assert found.units == 40


def test_a_curve_is_the_custodians_and_is_not_pickled(curve: Curve) -> None:
    assert "CUSTODIAN ONLY" in repr(curve)
    assert curve.table().startswith("CUSTODIAN ONLY") and str(curve) == curve.table()
    with pytest.raises(lc.LeakcapError, match="custodian"):
        pickle.dumps(curve)
    with pytest.raises(AttributeError):
        curve.points = ()  # type: ignore[misc]


def test_pictures_say_whose_they_are_and_show_every_point(curve: Curve) -> None:
    svg = ElementTree.fromstring(curve.to_svg())
    points = svg.findall(".//*[@class='bound-point']/*")
    assert len(points) == 3
    assert "CUSTODIAN ONLY" in "".join(svg.itertext())
    assert "prefers-color-scheme:dark" in curve.to_svg()
    page = curve._repr_html_()
    assert "CUSTODIAN ONLY" in page and "<script" not in page and page.count("<tr>") == 1 + 3 + 2


def test_plots_go_onto_given_axes(curve: Curve) -> None:
    ax = Figure().add_subplot()
    assert curve.plot(ax) is ax
    (line,) = [one for one in ax.lines if len(one.get_xdata()) == 3]
    assert np.allclose(line.get_ydata(), [point.score for point in curve.points])
    assert np.allclose(np.asarray(line.get_xdata()) + 0.5, [point.success for point in curve.points])


def test_an_answer_without_any_noise_can_be_drawn() -> None:
    found = privacy_utility_curve(
        Mean(worlds=16, random_state=0, options=FEW), np.ones((40, 1)), caps=[0.6], releases=4
    )
    assert found.points[0].success == 0.5 and found.points[0].noise == 0
    ElementTree.fromstring(found.to_svg())


@pytest.mark.parametrize(
    ("estimator", "options", "words"),
    [
        (linear_model.Ridge(), {}, "private estimator"),
        (small(), {"caps": []}, "at least one cap"),
        (small(), {"caps": ["x"]}, "numbers above"),
        (small(), {"caps": [0.4]}, "coin flip"),
        (small(), {"releases": 1}, "at least 2"),
        (small(), {"test": X}, "X_test"),
        (Mean(worlds=16, options={"draws": 256}), {"test": (X,)}, "scoring="),
    ],
)
def test_bad_arguments_are_refused(estimator: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(lc.InputError, match=words):
        privacy_utility_curve(estimator, X, Y, **({"caps": [0.7], "releases": 2} | options))
