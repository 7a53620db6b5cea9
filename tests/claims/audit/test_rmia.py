"""RMIA against its formula, and where it wins."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leakcap.audit.shadow.rmia import Rmia
from leakcap.errors import InputError
from tests.claims.audit.scored import auc, clean


def probabilities(s: int, n: int, z: int, t: int, seed: int, pull: float = 1.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    level = rng.normal(size=n + z)

    def drawn(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        inside = rng.random((rows, n)) < 0.5
        logits = level + 0.7 * rng.normal(size=(rows, n + z))
        logits[:, :n] += pull * inside
        p = 1 / (1 + np.exp(-logits))
        return p[:, :n], p[:, n:], inside

    shadow, population, inside = drawn(s)
    target, target_population, member = drawn(t)
    return {
        "shadow": shadow,
        "inside": inside,
        "population": population,
        "target": target,
        "beside": target_population,
        "member": member,
    }


@pytest.mark.parametrize("gamma", [1.0, 2.0])
@pytest.mark.parametrize("variant", ["online", "offline"])
def test_rmia_equals_the_share_of_pairs_counted_one_by_one(variant: str, gamma: float) -> None:
    p = probabilities(30, 11, 17, 4, seed=11)
    p["shadow"][3, 2] = p["population"][4, 5] = p["target"][1, 1] = p["beside"][2, 3] = np.nan
    found = Rmia(variant, gamma=gamma, slope=0.4).fit(p["shadow"], p["inside"], p["population"])(
        p["target"], p["beside"]
    )

    def usual(values: list[float]) -> float:
        mean = math.fsum(values) / len(values)
        return mean if variant == "online" else ((1 + 0.4) * mean + (1 - 0.4)) / 2

    for j in range(11):
        out = usual(clean(p["shadow"][~p["inside"][:, j], j]))
        own = usual(clean(p["shadow"][p["inside"][:, j], j]))
        middle = (out + own) / 2 if variant == "online" else out
        for i in range(4):
            if not math.isfinite(p["target"][i, j]):
                assert found[i, j] == 0
                continue
            wins = [
                (p["target"][i, j] / middle) / (p["beside"][i, k] / usual(clean(p["population"][:, k]))) >= gamma
                for k in range(17)
                if math.isfinite(p["beside"][i, k])
            ]
            assert math.isclose(found[i, j], sum(wins) / len(wins), abs_tol=1e-12)


@pytest.mark.parametrize("variant", ["online", "offline"])
def test_rmia_finds_members_and_is_at_chance_where_there_is_nothing(variant: str) -> None:
    for pull, low, high in ((2.0, 0.75, 1.0), (0.0, 0.48, 0.52)):
        p = probabilities(64, 100, 300, 200, seed=12, pull=pull)
        found = Rmia(variant, gamma=1.0).fit(p["shadow"], p["inside"], p["population"])(p["target"], p["beside"])
        assert low < np.mean([auc(found[:, j], p["member"][:, j]) for j in range(100)]) < high
        assert found.min() >= 0 and found.max() <= 1


def test_rmia_falls_as_gamma_grows_and_rises_with_the_probability() -> None:
    p = probabilities(40, 20, 50, 10, seed=13)
    by_gamma = [
        Rmia(gamma=g).fit(p["shadow"], p["inside"], p["population"])(p["target"], p["beside"]) for g in (1, 1.5, 3)
    ]
    assert (np.diff(by_gamma, axis=0) <= 0).all()
    higher = Rmia().fit(p["shadow"], p["inside"], p["population"])(p["target"] * 1.5, p["beside"])
    assert (higher >= Rmia().fit(p["shadow"], p["inside"], p["population"])(p["target"], p["beside"])).all()


def test_rmia_says_zero_without_a_usable_population_and_refuses_losses() -> None:
    p = probabilities(20, 5, 6, 3, seed=14)
    nothing = np.full_like(p["beside"], np.nan)
    assert (Rmia().fit(p["shadow"], p["inside"], p["population"])(p["target"], nothing) == 0).all()
    assert (Rmia().fit(0 * p["shadow"], p["inside"], p["population"])(p["target"], p["beside"]) == 0).all()
    with pytest.raises(InputError, match="below 0"):
        Rmia().fit(-p["shadow"], p["inside"], p["population"])
    with pytest.raises(InputError, match="population"):
        Rmia().fit(p["shadow"], p["inside"], p["population"][:-1])
    with pytest.raises(InputError, match="gamma"):
        Rmia(gamma=0.5)
