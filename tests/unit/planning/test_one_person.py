"""`mode="individual"` for functions that are no sum: what such a plan says, gives and refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.kernels.contributions import adds_up
from leakcap.kernels.swapping import answers_swaps

N = 24  # people
X = np.random.default_rng(0).standard_normal((N, 2)) + np.array([3, 50])


def planned(fn: Any = lc.stats.median, rows: Any = X, **options: Any) -> lc.Plan:
    given = {"cap": 0.7, "mode": "individual", "worlds": 64, "seed": 1, "draws": 512}
    return lc.plan(fn, rows, **given | options)


def test_the_certificate_says_that_it_was_sampled_and_what_it_bounds() -> None:
    certificate = planned(seed=None).certificate
    assert (certificate.kind, certificate.mode) == ("confidence", "individual")
    assert certificate.only_one_person and not certificate.whoever_is_known
    assert certificate.confidence == pytest.approx(1 - 1e-6)
    assert certificate.gamma_used == pytest.approx(certificate.gamma * (1 - 1 / (certificate.attempt + 1)))
    assert certificate.given(1) == 1
    text = " ".join(str(certificate).split())
    assert f"Sampled, for each of the {N} units" in text
    assert "In closed form" not in text
    assert "hold together with probability 0.999999" in text
    assert lc.Certificate.from_json(certificate.to_json()) == certificate


def test_a_closed_form_stays_one() -> None:
    assert planned(lc.stats.mean, draws=None).certificate.kind == "simulation"
    assert planned(lc.stats.mean, draws=None, seed=None).certificate.kind == "closed_form"


def test_recaps_are_certified_on_their_own_and_release_once() -> None:
    plan = planned(seed=None)
    tighter = plan.recap(0.65)
    assert tighter.certificate.attempt > plan.certificate.attempt
    assert tighter.certificate.gamma_used < plan.certificate.gamma_used
    assert tighter.noise.std > plan.noise.std
    assert np.isfinite(tighter.release().value).all()
    with pytest.raises(lc.AlreadyReleased):
        plan.release()


def test_the_same_seed_gives_the_same_certificate() -> None:
    assert planned().certificate == planned().certificate
    assert planned().certificate != planned(seed=2).certificate


def test_a_checkpoint_gives_the_same_plan_again(tmp_path: Path) -> None:
    first = planned(seed=None, checkpoint=tmp_path / "run")
    again = planned(seed=None, checkpoint=tmp_path / "run")
    assert first.certificate == again.certificate
    assert first.noise.deviations == pytest.approx(again.noise.deviations)
    with pytest.raises(lc.InputError, match="needs the data again"):
        lc.planning.entry.stored_plan(tmp_path / "run")
    released = first.release().value
    assert np.array_equal(planned(seed=None, checkpoint=tmp_path / "run").release().value, released)


def test_clipped_answers_move_less() -> None:
    free, held = planned(lc.stats.covariance), planned(lc.stats.covariance, clip=(-0.2, 1.0))
    assert held.noise.std < free.noise.std
    assert (np.abs(held.run.simulation.table) <= 1.0).all()


def test_answers_that_never_change_need_no_noise() -> None:
    plan = planned(rows=np.full((20, 2), 3.5))
    assert plan.certificate.membership_success == 0.5
    assert plan.release().value == pytest.approx([3.5, 3.5])


def test_a_function_that_fails_after_some_swaps_still_has_a_certificate() -> None:
    """What fails counts as the centre, in simulated worlds as in the secret one."""

    def moody(rows: np.ndarray) -> float:
        if armed and rows[0] > 3.2:
            raise ValueError("no answer here")
        return float(rows.mean())

    armed = False
    plan = planned(moody, X[:12, 0], draws=256)
    armed = True
    assert plan.recap(0.65).certificate.membership_success <= 0.65


def test_wrong_words_about_swaps_are_refused() -> None:
    class Wrong:
        def answers(self, mask: np.ndarray, out: np.ndarray, into: np.ndarray) -> np.ndarray:
            return np.zeros((1 + len(out), 2))

    @answers_swaps(lambda data, units: Wrong())
    def mean(rows: np.ndarray) -> np.ndarray:
        return np.asarray(rows.mean(axis=0))

    with pytest.raises(lc.OutputError, match="correct its swapper"):
        planned(mean)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cap": lc.mutual_information(0.1)}, "one person named in advance"),
        ({"cap": 0.5 + 1e-9}, "coin flip"),
        ({"rate": 1 / 7}, "multiple of 7"),
        ({"worlds": "doubling"}, "needs mode='exact'"),
    ],
)
def test_what_cannot_be_had_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(lc.LeakcapError, match=message):
        planned(**options)


def middle(rows: np.ndarray) -> np.ndarray:
    return np.median(rows, axis=0)


def test_any_function_is_bounded_by_worlds_drawn_alike() -> None:
    rows = X[:20, 0]
    plan = planned(middle, rows, draws=None, worlds=512, cap=0.8, seed=None)
    certificate = plan.certificate
    assert (certificate.kind, certificate.theorems[0]) == ("confidence", "drawn-alike")
    assert certificate.only_one_person and certificate.membership_success <= 0.8
    text = " ".join(str(certificate).split())
    assert "pilot worlds: 64, measured worlds: 448" in text
    assert np.isfinite(plan.release().value).all()
    assert plan.noise.std < 0.5 * lc.plan(middle, rows, cap=0.8, mode="confidence", worlds=512, seed=1).noise.std


def test_a_cap_that_takes_more_worlds_says_how_many() -> None:
    with pytest.raises(lc.CapError, match=r"worlds=\d+ would do") as refused:
        planned(middle, X[:20, 0], draws=None, worlds=128, cap=0.8)
    needed = int(re.search(r"worlds=(\d+)", str(refused.value)).group(1))  # type: ignore[union-attr]
    assert planned(middle, X[:20, 0], draws=None, worlds=needed, cap=0.8).certificate.membership_success <= 0.8


def test_infinite_answers_are_cut_in_the_secret_world_as_in_all_others() -> None:
    """Cut to the limit, as in the worlds that were measured: were they the centre there, they would tell."""
    plan = planned(lambda rows: np.inf if rows.max() > 3.5 else rows.mean(), X[:, 0], draws=256, clip=(0, 4))
    made: Any = plan.releaser
    mask = np.zeros(N, dtype=bool)
    mask[np.argmax(X[:, 0])] = True
    assert made.rerun(mask) == 4


def test_totals_are_on_the_scale_of_the_whole_pool() -> None:
    """Also where swaps of a total are sampled."""
    total = adds_up(lambda data, units: None, total=True)(lambda rows: float(np.median(rows) * len(rows)))
    total.adjacent = None
    plan = planned(total, X[:, 1], draws=256)
    assert plan.run.simulation.table.mean() == pytest.approx(N * 50, rel=0.02)
    swapped: Any = plan.run.swapped
    mask = plan.run.worlds.mask(0)
    found = swapped.swapper.answers(mask, np.flatnonzero(mask)[:1], np.flatnonzero(~mask)[:1])
    assert found[0] == pytest.approx(plan.run.simulation.table[0])


def test_another_noise_is_refused() -> None:
    with pytest.raises(lc.InputError, match="Gaussian noise alone"):
        planned(mechanism="exponential")


def test_so_many_runs_are_refused() -> None:
    with pytest.raises(lc.InputError, match="leave draws out"):
        planned(middle, np.zeros((200_000, 1)), draws=4096)


def test_an_audit_of_it_runs() -> None:
    report = lc.audit.run(planned(), trials=400, attacks=["learned"])
    assert report.holds is not False
