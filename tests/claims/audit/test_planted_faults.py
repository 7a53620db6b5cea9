"""Faults planted in the release path are refuted, and the same mechanism without them is not."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import leakcap as lc
from leakcap import audit, estimators
from leakcap.audit.mechanism import check_mechanism
from leakcap.modes.exact import OneOfTheWorlds
from leakcap.noise import Seeded, released_vector

finite = importlib.import_module("leakcap.modes.exact")  # the package has a function of this name

pytestmark = pytest.mark.filterwarnings("ignore::leakcap.errors.LeakcapWarning")
IRIS, KINDS = load_iris(return_X_y=True)
CANCER = load_breast_cancer().data[:, :8]
CANCER = (CANCER - CANCER.mean(axis=0)) / CANCER.std(axis=0)
SURE = 1e-6
CAP = 0.6


@dataclass
class Size:
    """How large the mechanisms are, and how often they release."""

    rows: Any
    worlds: int
    trials: int
    few: int  # for faults that stand out


SMALL = Size(IRIS, 64, 4_300, 1_500)
FULL = Size(CANCER, 1024, 30_000, 30_000)
size = SMALL


@pytest.fixture(scope="module", autouse=True, params=["small", pytest.param("full", marks=pytest.mark.slow)])
def of_a_size(request: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "size", FULL if request.param == "full" else SMALL)
        yield


def plan(data: Any = None, cap: float = CAP, **options: Any) -> lc.Plan:
    rows = size.rows if data is None else data
    return lc.plan(lc.stats.mean, rows, cap=lc.membership(cap), worlds=size.worlds, draws=16_384, **options)


@pytest.fixture(scope="module")
def honest(of_a_size: None) -> lc.Plan:
    """A plan whose release holds as it is. Faults are planted beside it: to look at only."""
    return holding(plan())


def refuted(report: audit.AuditReport) -> bool:
    return report.verdict == "refuted" and min(one.p_value for one in report.findings) < SURE


def holding(target: Any) -> Any:
    """The target, whose honest release comes first."""
    found = audit.run(target, trials=size.few)
    assert found.holds, str(found)
    return target


def check(monkeypatch: Any, target: Any, fault: Any, **options: Any) -> audit.AuditReport:
    """With the fault, what held is refuted."""
    fault(monkeypatch)
    found = audit.run(target, **{"trials": size.few, **options})
    assert refuted(found), str(found)
    return found


def other_noise(change: Any) -> Any:
    """Deviations of the noise that are not those that were certified."""

    def fault(monkeypatch: Any) -> None:
        def wrong(noise: Any, coordinates: Any, step: float, randomness: Any) -> Any:
            return released_vector(replace(noise, deviations=change(noise.deviations)), coordinates, step, randomness)

        monkeypatch.setattr(finite, "released_vector", wrong)

    return fault


def test_noise_of_half_the_size(honest: lc.Plan, monkeypatch: Any) -> None:
    """Seen by the attacker who trusts the claim: right in .65 to .68, which 4,500 judged releases tell from .60."""
    half = other_noise(lambda deviations: deviations / 2)
    check(monkeypatch, honest, half, trials=size.trials * 3 // 2, attacks=["bayes"])


def test_a_variance_in_the_place_of_a_deviation(honest: lc.Plan, monkeypatch: Any) -> None:
    assert (honest.noise.deviations < 0.7).all()  # so that the fault means less noise
    check(monkeypatch, honest, other_noise(np.square))


def test_an_eigenvalue_in_the_place_of_its_root(honest: lc.Plan, monkeypatch: Any) -> None:
    """In the basis of the covariance of all outputs, of which the fault is one step away."""

    def fault(monkeypatch: Any) -> None:
        def vector(self: Any, randomness: Any) -> Any:
            secret = randomness.below(len(honest.outputs))
            values, vectors = np.linalg.eigh(honest.noise.covariance())
            return honest.outputs[secret] + vectors @ (np.maximum(values, 0) * randomness.normals(len(values)))

        monkeypatch.setattr(OneOfTheWorlds, "vector", vector)

    check(monkeypatch, honest, fault)


def test_noise_beside_the_directions_that_were_cut(monkeypatch: Any) -> None:
    """Noise on the world's own output, in the directions that matter: one that does not has none, and names it."""

    def fault(monkeypatch: Any) -> None:
        def vector(self: Any, randomness: Any) -> Any:
            secret = randomness.below(len(target.outputs))
            space, deviations = self.noise.space, self.noise.deviations
            kept = deviations == deviations.max()  # the direction that nearly all of the variance is in
            return target.outputs[secret] + space.lift(kept * deviations * randomness.normals(space.rank))

        monkeypatch.setattr(OneOfTheWorlds, "vector", vector)

    steep = size.rows[:, :4] @ np.diag([1.0, 1e-3, 1e-6, 1e-12])
    target = plan(data=steep, weights="equal")
    found = check(monkeypatch, holding(target), fault)
    assert any(one.verdict == "refuted" for one in found.findings if "as seen" in one.attack)


def bare(target: lc.Plan, names: tuple[str, ...]) -> Any:
    """Some parts of the answer leave as they are in the secret world."""
    labels = list(target.run.simulation.node.labels())
    chosen = np.array([any(name in label for name in names) for label in labels])
    assert chosen.any() and not chosen.all()

    def fault(monkeypatch: Any) -> None:
        made = OneOfTheWorlds.vector

        def vector(self: Any, randomness: Any) -> Any:
            class Told:
                world = -1

                def below(self, n: int) -> int:
                    self.world = randomness.below(n)
                    return self.world

                def normals(self, size: int) -> Any:
                    return randomness.normals(size)

            told = Told()
            found = made(self, told).copy()
            found[chosen] = target.outputs[told.world][chosen]
            return found

        monkeypatch.setattr(OneOfTheWorlds, "vector", vector)

    return fault


def test_votes_of_a_forest_without_noise(monkeypatch: Any) -> None:
    forest = estimators.RandomForestClassifier(
        2,
        max_depth=2,
        splits="entropy",
        cap=lc.membership(CAP),
        worlds=size.worlds,
        random_state=0,
        options={"draws": 4096},
    ).fit(IRIS, KINDS)
    check(monkeypatch, holding(forest), bare(forest.plan_, ("vote",)))


def test_a_mean_of_principal_components_without_noise(monkeypatch: Any) -> None:
    components = estimators.PCA(
        2, cap=lc.membership(CAP), worlds=size.worlds, random_state=0, options={"draws": 4096}
    ).fit(size.rows)
    check(monkeypatch, holding(components), bare(components.plan_, ("beyond", "within")))


def test_the_whole_pool_in_the_place_of_a_world(monkeypatch: Any) -> None:
    def fault(monkeypatch: Any) -> None:
        def vector(self: Any, randomness: Any) -> Any:
            randomness.below(len(target.outputs))
            coordinates = self.noise.space.project(target.run.simulation.whole_pool)
            return released_vector(self.noise, coordinates, self.step, randomness)

        monkeypatch.setattr(OneOfTheWorlds, "vector", vector)

    target = holding(plan(cap=0.75))
    found = check(monkeypatch, target, fault)
    assert any(one.verdict == "refuted" for one in found.findings if one.attack == "law of the noise")


def test_a_seed_that_can_be_guessed(honest: lc.Plan, monkeypatch: Any) -> None:
    def fault(monkeypatch: Any) -> None:
        monkeypatch.setattr(honest, "randomness", Seeded(7))

    found = check(monkeypatch, honest, fault)
    assert next(one for one in found.findings if one.attack == "predictable").verdict == "refuted"


def test_a_seed_that_is_set_anew_for_every_release(honest: lc.Plan, monkeypatch: Any) -> None:
    def fault(monkeypatch: Any) -> None:
        made = OneOfTheWorlds.vector
        monkeypatch.setattr(OneOfTheWorlds, "vector", lambda self, randomness: made(self, _Anew(randomness)))

    class _Anew:
        def __init__(self, randomness: Any) -> None:
            self.source = Seeded(1_234_567)
            self.outer = randomness

        def below(self, n: int) -> int:
            world = self.source.below(n)
            self.outer.world = world
            return world

        def normals(self, size: int) -> Any:
            return self.source.normals(size)

    found = check(monkeypatch, honest, fault)
    assert next(one for one in found.findings if one.attack == "predictable").verdict == "refuted"


def members(rows: Any) -> float:
    """Whether five given people all take part: rare, and certain where it is seen."""
    return float(np.isin(np.arange(5), rows).all())


def test_noise_that_a_stopping_rule_left_out() -> None:
    """No world of the first shows the event, so there is no noise, and one release in forty tells five people."""
    for seed in range(20):
        target = lc.plan(
            members, np.arange(60), cap=lc.mutual_information(1e-4), mode="empirical", worlds=64, seed=seed
        )
        if target.noise.std == 0:
            break
    else:
        pytest.fail("the rule saw the event in every run")
    target.randomness = Seeded(1000)
    found = audit.run(target, trials=size.trials * 3 // 5, attacks=["learned"])
    assert refuted(found), str(found)


def radius(d: int, scale: float, gamma: bool) -> Any:
    """Provable Membership Inference Privacy, Corollary 10 with M = 2: the radius as printed, or as it must be.

    The secret is one of two outputs, all ones or all minus ones, of which every deviation is 1. What an attacker needs
    is the noise along the line between them and its length across.
    """

    def release(place: float) -> tuple[float, float]:
        rng = np.random.default_rng()
        along, across = rng.standard_normal(), np.sqrt(rng.chisquare(d - 1))
        length = (rng.gamma(d, scale) if gamma else rng.exponential(scale)) / np.sqrt((along**2 + across**2) / d)
        return place + length * along, length * across

    return release


@pytest.mark.parametrize("eta", [0.4, 0.25])
def test_the_radius_of_a_paper_at_a_million_outputs(eta: float) -> None:
    d, scale = 1_000_000, (6.16 / eta) ** 2
    places = [-np.sqrt(d), np.sqrt(d)]
    wrong = check_mechanism(radius(d, scale, gamma=False), places, success=0.5 + eta, trials=size.trials)
    assert refuted(wrong), str(wrong)
    assert wrong.measured == pytest.approx({0.4: 0.989, 0.25: 0.931}[eta], abs=0.015)
    right = check_mechanism(radius(d, scale, gamma=True), places, success=0.5 + eta, trials=size.trials)
    assert right.holds, str(right)
