"""`plan(..., randomness="secret")`: what it takes, what it refuses and in which words, and what it says."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import leakcap as lc
from leakcap.planning.making import stored_plan
from leakcap.simulate.seeds import SeedTask
from tests.refusals import refusal

X = np.random.default_rng(3).normal(size=(24, 3))
OPTIONS: dict[str, Any] = {"cap": 0.7, "mode": "confidence", "randomness": "secret", "seeds": 3, "worlds": 64}


def drawn(rows: Any, *, seed: int) -> Any:
    return np.asarray(rows).mean(axis=0) + 0.1 * np.random.default_rng(seed).random(np.shape(rows)[1])


def by_place(rows: Any, seed: int, /) -> Any:
    return rows.mean(axis=0)


def by_state(rows: Any, random_state: int) -> Any:
    return rows.std(axis=0)


def fitted(rows: Any, random_state: int) -> Ridge:
    return Ridge(solver="sag", max_iter=3, tol=1e6, random_state=random_state).fit(rows, rows[:, 0])


def planned(fn: Any = drawn, *data: Any, **options: Any) -> lc.Plan:
    return lc.plan(fn, *(data or (X,)), **OPTIONS | options)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "one seed": ({"seeds": 1}, "seeds=1 leaves nothing to match: give 2 or more"),
    "no seed": ({"seeds": 0}, "seeds"),
    "half a seed": ({"seeds": 2.5}, "seeds"),
    "seeds in words": ({"seeds": "many"}, "seeds"),
    "a truth value": ({"seeds": True}, "seeds"),
    "no randomness": ({"randomness": None}, "say randomness='secret', too"),
    "other randomness": ({"randomness": "public"}, "randomness"),
    "another mode": ({"mode": "exact"}, "mode='confidence'"),
    "coins": ({"design": "bits"}, "without another design"),
    "inputs": ({"inputs": [1, 2]}, "inputs= does not go with"),
    "a ledger for a simulation": ({"ledger": "sqlite:///nowhere", "seed": 1}, "leave the ledger out"),
    "other noise": ({"mechanism": "exponential"}, "mechanism= does not go with"),
    "draws": ({"draws": 1024}, "draws= does not go with"),
    "another shape": ({"shape": "logdet"}, "shape"),
    "a device": ({"backend": "torch:cuda"}, "leave the device out"),
    "doubling": ({"worlds": "doubling"}, "worlds must be a number"),
    "few worlds": ({"worlds": 32}, "worlds"),
    "a pool cap": ({"cap": lc.pool_membership(0.6)}, "under a pool cap"),
    "a task": ({"cap": lc.task(np.eye(64), 0.9)}, "a task names finite worlds"),
    "a cap at the prior": ({"cap": 0.5}, ""),
    "too little memory": ({"memory": 2**26, "seeds": 40_000}, "fewer worlds, seeds or outputs"),
    "text for a list": ({"drop": "labels_"}, "lists of text"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused_in_words(name: str) -> None:
    options, words = WRONG[name]
    refusal(lambda: planned(**options), words)


FUNCTIONS: dict[str, tuple[Any, str]] = {
    "no seed": (lambda rows: rows.mean(axis=0), "takes its seed by name"),
    "compiled": (np.mean, "takes its seed by name"),
    "any keyword": (lambda rows, **more: rows.mean(axis=0), "takes its seed by name"),
    "seed by place": (by_place, "takes its seed by name"),
    "bound": (functools.partial(drawn, seed=3), "bound to it already"),
    "shape": (lambda rows, seed: rows[: 1 + seed % 2, 0], "shape"),
    "undefined": (lambda rows, seed: float("nan") if seed % 8 == 0 else 0.0, "NaN or infinite"),
    "infinite": (lambda rows, seed: float("inf"), "NaN or infinite"),
    "text": (lambda rows, seed: "answer", ""),
    "nothing": (lambda rows, seed: {}, "no number"),
    "failing": (lambda rows, seed: rows[1000, 0], "IndexError"),
    "fails at times": (lambda rows, seed: rows[23 - seed % 23, 0], "IndexError"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_cannot_be_covered_are_refused_in_words(name: str) -> None:
    fn, words = FUNCTIONS[name]
    refusal(lambda: planned(fn), words)


def test_where_data_reach_the_seed_it_is_an_argument_for_data() -> None:
    refusal(lambda: planned(lambda rows, seed: rows.mean(axis=0), X, X), "takes its seed by name")


def test_a_seed_comes_by_the_name_the_function_has_for_it() -> None:
    seen: list[Any] = []

    def noted(rows: Any, random_state: Any = None) -> Any:
        seen.append(random_state)
        return rows.mean(axis=0)

    planned(noted)
    assert all(type(seed) is int and 0 <= seed < 2**32 for seed in seen)
    assert len(set(seen)) > 100


def test_the_two_worlds_of_a_pair_share_their_seeds_and_no_two_pairs_do() -> None:
    seen: list[int] = []

    def noted(rows: Any, seed: int) -> Any:
        seen.append(seed)
        return rows.mean(axis=0)

    planned(noted)
    runs = np.array(seen[1:-1]).reshape(-1, 2, 3)  # but for the first look and the whole pool
    assert (runs[:, 0] == runs[:, 1]).all()
    assert len(np.unique(runs)) == runs[:, 0].size


def test_rows_are_cut_out_anew_for_every_seed() -> None:
    """What a function does to its rows no other run sees."""

    seen: list[float] = []

    def greedy(rows: Any, seed: int) -> Any:
        seen.append(float(rows.mean()))
        rows += 100.0
        return rows.mean(axis=0)

    planned(greedy).release()
    assert max(seen) < 50


def test_a_fitted_model_forgets_the_seed() -> None:
    made = planned(fitted, drop=["n_iter_"])
    released = made.release().value
    assert released.random_state is None
    assert released.predict(X).shape == (24,)


def test_tables_units_strata_rates_and_clips_work_as_elsewhere() -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(who=np.arange(24) // 2, group=np.arange(24) % 2)
    made = planned(
        lambda rows, seed: {"a": rows["a"].mean(), "n": seed % 2},
        table,
        unit="who",
        strata=np.arange(24) // 2 % 2,
        clip=(-1, 1),
        rate=1 / 3,
        worlds=66,
        workers=2,
        backend="threads",
    )
    assert set(made.release().value) == {"a", "n"}
    assert made.certificate.units == 12
    assert made.certificate.rate == "1/3"
    assert np.abs(made.outputs).max() <= 1


def test_the_certificate_names_pairs_seeds_ball_and_gamma() -> None:
    made = planned(confidence=0.999)
    words = " ".join(str(made.certificate).split())
    assert made.certificate.kind == "confidence"
    for text in (
        "32 pairs of worlds with 3 seeds each",
        "probability 0.999 ",
        "0.001 of gamma 0.001",
        "16 pilot pairs",
    ):
        assert text in words
    assert "Of 192 measured answers" in words
    assert "ball of" in words
    assert "which seed were used" in words
    assert lc.Certificate.from_json(made.certificate.to_json()) == made.certificate


def test_a_recap_costs_no_confidence_and_scales_the_noise() -> None:
    made = planned(cap=lc.mutual_information(0.2))
    other = made.recap(lc.mutual_information(0.05))
    assert other.noise.std / made.noise.std == pytest.approx(2, rel=1e-3)
    assert other.certificate.gamma == made.certificate.gamma
    other.release()
    with pytest.raises(lc.AlreadyReleased):
        made.release()


def test_a_seeded_plan_is_a_simulation_and_gives_itself_again() -> None:
    one, two = (planned(seed=5) for _ in range(2))
    assert one.certificate.kind == "simulation"
    assert one.noise.std == two.noise.std
    assert (one.release().value == two.release().value).all()


def test_answers_that_are_the_same_for_all_need_no_noise() -> None:
    made = planned(lambda rows, seed: np.array([1.5, 2.0]))
    assert made.certificate.noised_directions == 0
    assert (made.release().value == [1.5, 2.0]).all()
    assert "0 pairs" not in str(made.certificate)


def test_other_ways_to_look_at_a_plan() -> None:
    made = planned()
    assert made.summary().noise.shape == (3,)
    assert np.isfinite(made.expected(lambda value: float(value[0]), releases=3).mean)
    refusal(made.compare, "without a seed")
    refusal(made.suggest, "mode='exact'")
    lower, upper = made.release().interval(0.9)
    assert (lower < upper).all()


def test_a_run_that_was_stopped_goes_on_and_releases_once(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, answer = [0], SeedTask.answer

    def counted(self: SeedTask, *args: Any) -> Any:
        calls[0] += 1
        if calls[0] == 150:
            raise KeyboardInterrupt
        return answer(self, *args)

    monkeypatch.setattr(SeedTask, "answer", counted)
    with pytest.raises(KeyboardInterrupt):
        planned(checkpoint=tmp_path / "run")
    made = planned(checkpoint=tmp_path / "run")
    assert 290 <= calls[0] <= 150 + 180, "of 290 runs in all, 149 were made before"
    first = made.release()
    again = planned(checkpoint=tmp_path / "run")
    assert again.certificate == made.certificate
    assert (again.release().value == first.value).all()
    refusal(lambda: planned(checkpoint=tmp_path / "run", seeds=4), "the settings differ")
    refusal(lambda: stored_plan(tmp_path / "run"), "call plan\\(\\) with the data and this checkpoint")


def test_a_release_takes_an_account_for_itself(tmp_path: Any) -> None:
    ledger = f"sqlite:///{tmp_path / 'book'}"
    first = planned(ledger=ledger, name="people").release()
    again = planned(ledger=ledger, name="people")
    assert (again.release().value == first.value).all()
    refusal(lambda: planned(by_state, ledger=ledger, name="people").release(), "released before")


def test_a_floor_is_kept() -> None:
    made = planned(floor=50.0)
    assert made.noise.output_deviations.min() >= 50 * (1 - 1e-9)
    assert made.certificate.noised_directions == 3


def test_shapes_differ_where_outputs_do() -> None:
    """Anisotropic noise is less in total where some outputs hardly move."""

    def uneven(rows: Any, seed: int) -> Any:
        return rows.mean(axis=0) * [1.0, 0.02, 0.02]

    few, even = (planned(uneven, weights="equal", shape=shape, worlds=512).noise.std for shape in ("best", "isotropic"))
    assert few < 0.8 * even
