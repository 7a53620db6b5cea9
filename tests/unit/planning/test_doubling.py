"""`worlds="doubling"`: more worlds while they lower the noise, the same worlds again, nothing of the secret in it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap import stats
from leakcap.planning import doubling
from leakcap.planning.doubling import _block, _enough
from leakcap.planning.entry import stored_plan
from leakcap.simulate import Progress
from leakcap.simulate import worker as task
from leakcap.worlds.join import joined
from tests.unit.cli.running import leakcap
from tests.unit.planning.chosen import AUTO, CALLS, STOP, X, counted, stages

GROUP = np.arange(40) % 2
WORDS = "chosen by looking at the answers"


@pytest.fixture(autouse=True)
def _small(small_pools: None) -> None:
    CALLS.clear()
    STOP.clear()


def request_of(plan: lc.Plan, folder: Path) -> Any:
    stored = stored_plan(folder)._checkpoint
    assert stored is not None
    return stored.kept("request")[0], stored.entropy


@functools.cache
def chosen() -> lc.Plan:
    """To look at only."""
    calls = len(CALLS)
    plan = lc.plan(counted, X, **AUTO)
    del CALLS[calls:]
    return plan


# How many


def test_it_goes_on_while_two_doublings_bring_four_per_cent() -> None:
    assert not _enough(stages(1.0))
    assert not _enough(stages(1.0, 1.0))
    assert not _enough(stages(1.0, 0.97, 0.95))
    assert _enough(stages(1.0, 0.98, 0.965))
    assert not _enough(stages(1.0, 1.02, 0.95)), "one unlucky doubling is not the end"
    assert _enough(stages(1.0, 0.7, 0.6, 0.6, 0.59))
    assert _enough(stages(0.0)), "no noise is needed at all"
    assert not _enough(stages(np.inf, np.inf, 1.0)), "caps that were impossible for fewer worlds"
    assert not _enough(stages(np.inf, 1.0, 0.9))


# Which worlds


@pytest.mark.parametrize(
    "options",
    [{}, {"rate": 1 / 3}, {"rate": 3 / 4}, {"strata": GROUP}, {"unit": np.arange(40) // 2}],
    ids=["halves", "thirds", "three quarters", "strata", "units"],
)
def test_worlds_are_balanced_and_those_of_a_shorter_run_come_first(options: dict[str, Any], tmp_path: Path) -> None:
    plan = lc.plan(counted, X, checkpoint=tmp_path / "plan", **(AUTO | options))
    request, entropy = request_of(plan, tmp_path / "plan")
    worlds, masks = plan.worlds, plan.worlds.masks()
    assert len(np.unique(masks.sum(axis=0))) == 1
    assert worlds.paired == (worlds.share == 0.5)
    if worlds.paired:
        half = worlds.m // 2
        assert (masks[:half] != masks[half:]).all()
    blocks = [_block(request, entropy, 0)]
    while sum(block.m for block in blocks) < worlds.m:
        blocks.append(_block(request, entropy, len(blocks)))
        together, order = joined(blocks)
        assert together.m == 2 * joined(blocks[:-1])[0].m
        assert np.array_equal(np.concatenate([block.packed for block in blocks])[order], together.packed)
        before = {row.tobytes() for row in joined(blocks[:-1])[0].packed}
        assert before <= {row.tobytes() for row in together.packed}
    assert np.array_equal(together.packed, worlds.packed)
    people = np.arange(40) // 2 if "unit" in options else np.arange(40)
    for found, mask in zip(plan.outputs, masks, strict=True):
        assert np.allclose(found, X[mask[people], 1:].mean(axis=0), rtol=1e-12)
    assert len(CALLS) == worlds.m + 1, "every world once, and the whole pool"


def test_blocks_are_drawn_from_streams_of_their_own() -> None:
    """None repeats another, nor the worlds of a plan with a fixed number."""
    plan = chosen()
    rows = [row.tobytes() for row in plan.worlds.packed]
    fixed = {row.tobytes() for row in lc.plan(counted, X, **(AUTO | {"worlds": 8})).worlds.packed}
    assert len(set(rows)) == len(rows)
    assert not fixed & set(rows)


def test_the_certificate_is_that_of_the_same_worlds_by_number() -> None:
    """Searching costs no confidence: gamma is spent once, on the last set of worlds."""
    plan = chosen()
    given = lc.plan(counted, X, **(AUTO | {"worlds": plan.worlds.masks()}))
    one, other = plan.certificate, given.certificate
    for name in ("membership_success", "mutual_information", "gamma_used", "attempt", "bounds", "draws", "capped"):
        assert getattr(one, name) == getattr(other, name)
    assert plan.noise.std == given.noise.std
    assert any(WORDS in words for words in one.pool_public)
    assert not any(WORDS in words for words in other.pool_public)
    assert "random halves" in one.design


def test_a_kernel_runs_for_the_new_worlds_only_and_gives_the_same_plan() -> None:
    asked: list[int] = []

    def mean(x: np.ndarray) -> np.ndarray:
        return x.mean(axis=0)

    def in_all_worlds(data: Any, units: Any, worlds: Any) -> Any:
        asked.append(worlds.m)
        return stats.mean.kernel(data, units, worlds)  # type: ignore[attr-defined]

    looped = lc.plan(mean, X[:, 1:], **AUTO)
    mean.kernel = in_all_worlds  # type: ignore[attr-defined]
    served = lc.plan(mean, X[:, 1:], **AUTO)
    assert asked[:3] == [8, 8, 16]
    assert sum(asked) == served.worlds.m == looped.worlds.m
    assert np.array_equal(served.worlds.packed, looped.worlds.packed)
    assert np.allclose(served.outputs, looped.outputs, rtol=1e-9)


def test_workers_give_the_same_plan() -> None:
    serial = chosen()
    threads = lc.plan(counted, X, backend="threads", workers=2, **AUTO)
    assert threads.certificate == serial.certificate
    assert threads.outputs.tobytes() == serial.outputs.tobytes()


def test_every_stage_is_shown() -> None:
    seen: list[Progress] = []
    plan = lc.plan(counted, X, progress=seen.append, **AUTO)
    worlds = [state for state in seen if state.stage == "worlds"]
    totals = list(dict.fromkeys(state.total for state in worlds))
    assert totals == [8 * 2**i for i in range(len(totals))]
    assert len(totals) > 2
    assert worlds[-1].done == totals[-1] == plan.worlds.m
    done = [state.done for state in worlds]
    assert done == sorted(done)
    kinds = [state.stage for state in seen]
    changes = [one for i, one in enumerate(kinds) if i == 0 or kinds[i - 1] != one]
    assert changes == ["worlds", "noise"] * len(totals) + ["certificate"]


# Limits


def test_it_ends_at_the_most_worlds(monkeypatch: Any) -> None:
    monkeypatch.setattr(doubling, "MAX_WORLDS", 16)
    monkeypatch.setattr(doubling, "MIN_GAIN", -9.0)  # never content
    assert lc.plan(counted, X, **AUTO).worlds.m == 16
    assert lc.plan(counted, X, **(AUTO | {"rate": 1 / 3})).worlds.m == 9


def test_it_ends_before_a_block_that_would_take_too_long(monkeypatch: Any) -> None:
    monkeypatch.setattr(doubling, "MIN_GAIN", -9.0)
    monkeypatch.setattr(doubling, "MAX_SECONDS", 0.0)
    assert lc.plan(counted, X, **AUTO).worlds.m == 8


def test_it_ends_before_the_memory_does(monkeypatch: Any) -> None:
    monkeypatch.setattr(doubling, "MIN_GAIN", -9.0)
    monkeypatch.setattr(doubling, "MEMORY_SHARE", 16 * (16 + 5) / 2**31)
    assert lc.plan(counted, X, **AUTO).worlds.m == 16


def test_answers_that_are_equal_everywhere_need_no_more_worlds() -> None:
    assert lc.plan(lambda x: 3.0, X, **AUTO).worlds.m == 8


def test_a_cap_that_so_few_worlds_cannot_keep_gets_more_of_them(monkeypatch: Any) -> None:
    monkeypatch.setattr(doubling, "MAX_WORLDS", 64)
    plan = lc.plan(counted, X, **(AUTO | {"cap": lc.identification(0.05)}))
    assert plan.worlds.m > 20
    assert plan.certificate.capped[0].certified <= 0.05


def test_tasks_are_asked_of_whatever_worlds_there_are(monkeypatch: Any) -> None:
    monkeypatch.setattr(doubling, "MAX_WORLDS", 16)
    monkeypatch.setattr(doubling, "MIN_GAIN", -9.0)
    plan = lc.plan(counted, X, **(AUTO | {"cap": lc.task(lambda masks: masks[:, :3], 0.7)}))
    assert plan.worlds.m == 16
    assert plan.certificate.capped[0].certified <= 0.7


# What is refused


@pytest.mark.parametrize("mode", ["confidence", "empirical"])
def test_other_modes_fix_the_number_beforehand(mode: str) -> None:
    with pytest.raises(lc.InputError, match="mode='exact'"):
        lc.plan(counted, X, mode=mode, **AUTO)
    assert not CALLS


def test_other_words_are_refused() -> None:
    with pytest.raises(lc.InputError, match="'doubling'"):
        lc.plan(counted, X, **(AUTO | {"worlds": "many"}))


def test_caps_that_no_number_of_worlds_keeps_are_refused_before_anything_runs() -> None:
    with pytest.raises(lc.CapError):
        lc.plan(counted, X, **(AUTO | {"cap": lc.identification(1e-5)}))
    assert not CALLS


def test_answers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(lc.OutputError, match="NaN or infinite"):
        lc.plan(lambda x: np.nan if x[0, 0] == 1 else 1.0, X, **AUTO)


# Stopped, and going on


@functools.cache
def undisturbed() -> tuple[str, bytes, bytes, int]:
    plan = chosen()
    return plan.certificate.to_json(), plan.outputs.tobytes(), plan.release().value.tobytes(), plan.worlds.m


def same_as_undisturbed(plan: lc.Plan) -> bool:
    found = plan.certificate.to_json(), plan.outputs.tobytes(), plan.release().value.tobytes(), plan.worlds.m
    return found == undisturbed()


def test_a_stopped_run_goes_on_to_the_same_bytes_and_runs_no_stored_world_again(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """It stops in every block, and while the noise is searched after each."""
    m = undisturbed()[3]
    monkeypatch.setattr(task, "SAVED", -1.0)
    options = AUTO | {"checkpoint": tmp_path / "plan"}
    searched: list[int] = []
    search = doubling.relative_noise

    def stops(*given: Any) -> float:
        worlds = given[0].worlds.m
        searched.append(worlds)
        if searched.count(worlds) == 1:
            raise KeyboardInterrupt
        return search(*given)

    monkeypatch.setattr(doubling, "relative_noise", stops)
    failures = 0
    for further in (1, 3, 2, 4, 9, 1, 3, 2, 9, 5):
        STOP[:] = [len(CALLS) + further]
        with pytest.raises((ValueError, KeyboardInterrupt)) as caught:
            lc.plan(counted, X, **options)
        failures += caught.type is ValueError
        with pytest.raises(lc.InputError, match="not finished"):
            stored_plan(tmp_path / "plan")
    STOP.clear()
    for _ in range(10):
        try:
            plan = lc.plan(counted, X, **options)
            break
        except KeyboardInterrupt:
            continue
    assert same_as_undisturbed(plan)
    done = [call for call in CALLS if call < 2**40 - 1]
    assert len(set(done)) == m
    assert len(done) <= m + failures + 1, "only worlds that had failed; the first two are stored together"
    assert failures > 3 and len(searched) > 3
    assert same_as_undisturbed(stored_plan(tmp_path / "plan"))
    calls, searches = len(CALLS), len(searched)
    assert same_as_undisturbed(lc.plan(counted, X, **options))
    assert (len(CALLS), len(searched)) == (calls, searches), "a finished run runs nothing"


def test_the_number_of_a_stored_run_stays_whatever_caps_are_asked_later(tmp_path: Path) -> None:
    first = lc.plan(counted, X, checkpoint=tmp_path / "plan", **AUTO)
    calls = len(CALLS)
    other = lc.plan(counted, X, checkpoint=tmp_path / "plan", **(AUTO | {"cap": lc.membership(0.6)}))
    assert np.array_equal(first.worlds.packed, other.worlds.packed)
    assert len(CALLS) == calls
    assert first.recap(lc.membership(0.6)).certificate == other.certificate


def test_a_run_of_another_number_is_another_run(tmp_path: Path) -> None:
    lc.plan(counted, X, checkpoint=tmp_path / "plan", **AUTO)
    with pytest.raises(lc.InputError, match="the settings"):
        lc.plan(counted, X, checkpoint=tmp_path / "plan", **(AUTO | {"worlds": 32}))


# The command


def test_the_command_chooses_and_resumes_and_its_certificate_can_be_checked(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    np.savetxt("people.csv", X[:, 1:], delimiter=",", header="a,b", comments="")
    order = ["release", "people.csv", "--fn", "mean", "--columns", "a,b", "--cap", "mi=0.3", "--draws", "256", "-q"]
    assert leakcap(*order, "--worlds", "doubling", "--out", "out", "--preview") == 0
    assert leakcap(*order, "--worlds", "doubling", "--out", "out") == 0
    certificate = lc.Certificate.from_json(Path("out/public/certificate.json").read_text())
    assert certificate.worlds in (32, 64, 128)
    assert any(WORDS in words for words in certificate.pool_public)
    assert leakcap("check", "out/public/certificate.json", "--custodian", "out/custodian", "-q") == 0
    assert leakcap(*order, "--worlds", "several", "--out", "other") == 2
