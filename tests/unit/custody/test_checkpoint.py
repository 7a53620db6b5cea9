"""Runs that are stopped and go on: the same answer, no stored world twice, and no other run's answers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import leakcap as lc
from leakcap.custody.checkpoint import Checkpoint
from leakcap.custody.vault import Vault
from leakcap.noise.calibrate import MAX_ATTEMPTS
from leakcap.planning import doubling
from leakcap.planning import request as requests
from leakcap.planning.entry import stored_plan
from leakcap.simulate import worker as task
from leakcap.worlds import draw_worlds
from tests.unit.custody.rows import row
from tests.unit.custody.runs import (
    CALLS,
    CAP,
    MASKS,
    SEEDED,
    SMALL,
    TABLE,
    X,
    contents,
    counted,
    doubled,
    same_as_undisturbed,
    stopping,
    stored_signatures,
)

# Stopped, and going on


STOPS: list[Any] = [
    ("serial", "ValueError", ValueError),
    ("serial", "KeyboardInterrupt", KeyboardInterrupt),
    ("serial", "SystemExit", lc.OutputError),
    ("threads", "ValueError", ValueError),
    pytest.param("processes", "ValueError", ValueError, marks=pytest.mark.slow),  # see tests/kills too
]


@pytest.mark.parametrize(("backend", "kind", "raised"), STOPS, ids=lambda one: getattr(one, "__name__", one))
def test_a_stopped_run_goes_on_to_the_same_answer_and_runs_no_stored_world_again(
    backend: str, kind: str, raised: Any, folder: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(task, "SAVED", -1.0)  # every world at once (in this process)
    options = SEEDED | {"backend": backend, "workers": 2, "checkpoint": folder}
    log = tmp_path / "log"
    for limit in (1, 5, 9):
        before = len(log.read_text().split()) if log.exists() else 0
        stored = stored_signatures(folder) if before else set()
        (tmp_path / "stop").write_text(f"{kind} {before + limit}")
        with pytest.raises(raised):
            lc.plan(stopping, X, **options)
        assert not stored & set(map(int, log.read_text().split()[before:]))
    (tmp_path / "stop").unlink()
    stored, before = stored_signatures(folder), len(log.read_text().split())
    assert stored
    plan = lc.plan(stopping, X, **options)
    later = list(map(int, log.read_text().split()[before:]))
    assert not stored & set(later)
    assert len(later) <= 16 - len(stored) + 1  # and the whole pool; a thread may still have ended its world
    assert same_as_undisturbed(plan)
    lc.plan(stopping, X, **options)
    assert len(log.read_text().split()) == before + len(later), "a finished run runs nothing"


def test_a_run_may_go_on_with_other_workers(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """How it is run is none of what it depends on."""
    monkeypatch.setattr(task, "SAVED", -1.0)
    (tmp_path / "stop").write_text("ValueError 6")
    with pytest.raises(ValueError, match=r"^$"):
        lc.plan(stopping, X, **SEEDED, checkpoint=folder)
    (tmp_path / "stop").unlink()
    seen: list[Any] = []
    plan = lc.plan(stopping, X, **SEEDED, checkpoint=folder, backend="threads", workers=3, progress=seen.append)
    assert seen[0].resumed == 6
    assert same_as_undisturbed(plan)


def test_an_unseeded_run_goes_on_with_the_worlds_it_began_with(folder: Path) -> None:
    first = lc.plan(counted, X, checkpoint=folder, **SMALL)
    second = lc.plan(counted, X, checkpoint=folder, **SMALL)
    assert first.worlds.packed.tobytes() == second.worlds.packed.tobytes()
    assert first.certificate == second.certificate
    assert len(CALLS) == 17


OPTIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "units": (TABLE, {"unit": "who"}),
    "unit labels": (X, {"unit": np.repeat(np.arange(12), 2)}),
    "strata": (TABLE, {"strata": "town"}),
    "given worlds": (X, {"worlds": MASKS}),
    "thirds": (X, {"rate": 1 / 3, "worlds": 18}),
    "clip": (X, {"clip": (-0.1, 0.1)}),
    "clip of each": (X, {"clip": ([-0.1, -0.2], [0.1, 0.2])}),
    "weights": (X, {"weights": [1.0, 2.0]}),
    "floor": (X, {"floor": 0.01}),
    "several caps": (X, {"cap": [CAP, lc.any_inference(0.1, 0.3)]}),
    "confidence": (X, {"mode": "confidence", "worlds": 64, "confidence": 0.9}),
    "empirical": (X, {"mode": "empirical", "worlds": 64}),
    "a table with text": (TABLE, {}),
    "a sparse matrix": (sp.csr_array(X), {}),
    "lists": (X.tolist(), {}),
}


def dense(x: Any) -> Any:
    return counted(x.toarray() if sp.issparse(x) else np.asarray(x))


@pytest.mark.parametrize("name", OPTIONS)
def test_whatever_is_asked_the_stored_plan_is_the_same_again_with_and_without_the_data(name: str, folder: Path) -> None:
    data, options = OPTIONS[name]
    first = lc.plan(dense, data, checkpoint=folder, **(SMALL | options))
    released = first.release()
    calls = len(CALLS)
    for again in (lc.plan(dense, data, checkpoint=folder, **(SMALL | options)), stored_plan(folder)):
        assert again.certificate == first.certificate
        assert again.outputs.tobytes() == first.outputs.tobytes()
        assert again.exposure.tobytes() == first.exposure.tobytes()
        value = again.release()
        assert value.value.tobytes() == released.value.tobytes()
        assert value.certificate == released.certificate
        assert [end.tobytes() for end in value.interval(0.9)] == [end.tobytes() for end in released.interval(0.9)]
    assert len(CALLS) == calls, "neither a world nor the secret runs again"


def ridge(x: Any) -> Any:
    CALLS.append(0)
    return Ridge().fit(x[:, 1:2], x[:, 2])


def test_a_model_comes_back(folder: Path) -> None:
    first = lc.plan(ridge, X, checkpoint=folder, drop=["n_iter_"], **SMALL).release().value
    again = stored_plan(folder).release().value
    assert isinstance(again, Ridge)
    assert pickle.dumps(again) == pickle.dumps(first)


# Other runs


OTHERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "data": (lambda at: lc.plan(counted, X + 1e-9, checkpoint=at, **SEEDED), "the data"),
    "the order of rows": (lambda at: lc.plan(counted, X[::-1], checkpoint=at, **SEEDED), "the data"),
    "units": (lambda at: lc.plan(counted, X, unit=np.arange(24), checkpoint=at, **SEEDED), "the data"),
    "function": (lambda at: lc.plan(doubled, X, checkpoint=at, **SEEDED), "the function"),
    "worlds": (lambda at: lc.plan(counted, X, checkpoint=at, **(SEEDED | {"worlds": 18})), "the settings"),
    "seed": (lambda at: lc.plan(counted, X, checkpoint=at, **(SEEDED | {"seed": 8})), "the settings"),
    "no seed": (lambda at: lc.plan(counted, X, checkpoint=at, **SMALL), "the settings"),
    "draws": (lambda at: lc.plan(counted, X, checkpoint=at, **(SEEDED | {"draws": 300})), "the settings"),
    "confidence": (lambda at: lc.plan(counted, X, confidence=0.9, checkpoint=at, **SEEDED), "the settings"),
    "strata": (lambda at: lc.plan(counted, X, strata=np.arange(24) % 2, checkpoint=at, **SEEDED), "the settings"),
    "clip": (lambda at: lc.plan(counted, X, clip=(0, 1), checkpoint=at, **SEEDED), "the settings"),
    "drop": (lambda at: lc.plan(counted, X, drop=["a_"], checkpoint=at, **SEEDED), "the settings"),
    "public": (lambda at: lc.plan(counted, X, public=["names"], checkpoint=at, **SEEDED), "the settings"),
    "floor": (lambda at: lc.plan(counted, X, floor=0.1, checkpoint=at, **SEEDED), "the settings"),
    "mode": (
        lambda at: lc.plan(counted, X, mode="empirical", checkpoint=at, **(SEEDED | {"worlds": 64})),
        "the settings",
    ),
    "everything": (lambda at: lc.plan(doubled, X + 1, checkpoint=at, **SMALL), "the data, the function, the settings"),
}


def test_a_checkpoint_of_another_run_is_refused_by_what_differs_and_left_alone(folder: Path) -> None:
    lc.plan(counted, X, checkpoint=folder, **SEEDED)
    before = contents(folder)
    CALLS.clear()
    for call, words in OTHERS.values():
        with pytest.raises(lc.InputError, match=words) as caught:
            call(folder)
        if "," not in words:
            assert not {"the data", "the function", "the settings"} - {words} & set(str(caught.value).split(": "))
        assert contents(folder) == before
    assert not CALLS


def test_a_released_checkpoint_of_another_run_is_refused_before_anything_is_drawn(folder: Path) -> None:
    lc.plan(counted, X, checkpoint=folder, **SMALL).release()
    with pytest.raises(lc.InputError, match="the data"):
        lc.release(counted, X + 1, checkpoint=folder, **SMALL)


MEANWHILE: list[Callable[[], Any]] = []  # done while `begun_meanwhile` runs for the first time


def begun_meanwhile(x: Any) -> Any:
    if MEANWHILE:
        MEANWHILE.pop()()
    return counted(x)


def test_a_run_that_begins_while_another_is_in_its_first_world_never_takes_its_answers(folder: Path) -> None:
    """The second is told to wait. When it comes again, the first one's answers are those of other worlds and data."""

    def second() -> lc.Plan:
        return lc.plan(begun_meanwhile, X * [1, 3, 3], checkpoint=folder, **(SMALL | {"worlds": 18}))

    def too_early() -> None:
        with pytest.raises(lc.InputError):
            second()

    MEANWHILE.append(too_early)
    lc.plan(begun_meanwhile, X, checkpoint=folder, **(SMALL | {"worlds": 18}))
    try:
        plan = second()
    except lc.InputError:
        return  # refused: the folder holds the other run
    for world, found in enumerate(plan.outputs):
        assert np.allclose(found, 3 * X[plan.worlds.mask(world), 1:3].mean(axis=0))


def test_a_run_that_failed_before_it_had_an_answer_may_be_begun_otherwise(folder: Path) -> None:
    with pytest.raises(AttributeError):
        lc.plan(lambda x: x.nothing, X, checkpoint=folder, **SMALL)
    plan = lc.plan(counted, X, checkpoint=folder, **SMALL)
    assert stored_plan(folder).certificate == plan.certificate


@pytest.mark.parametrize("worlds", [16, "doubling"])
@pytest.mark.usefixtures("small_pools")
def test_a_run_does_not_go_on_in_other_worlds_than_it_began_with(
    worlds: Any, folder: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """A version of numpy or leakcap that draws others: answers that are stored are not those of these worlds."""
    monkeypatch.setattr(task, "SAVED", -1.0)
    options = SMALL | {"worlds": worlds, "checkpoint": folder}
    (tmp_path / "stop").write_text("ValueError 6")
    with pytest.raises(ValueError, match=r"^$"):
        lc.plan(stopping, X, **options)
    (tmp_path / "stop").unlink()
    before, calls = contents(folder), (tmp_path / "log").read_text()
    with monkeypatch.context() as patch:
        for module in (requests, doubling):
            patch.setattr(module, "draw_worlds", lambda n, m, rng, *a, **k: draw_worlds(n, m, rng.spawn(1)[0], *a, **k))
        with pytest.raises(lc.InputError, match="cannot be drawn again: use the versions"):
            lc.plan(stopping, X, **options)
    assert contents(folder) == before
    assert (tmp_path / "log").read_text() == calls
    lc.plan(stopping, X, **options)


def test_noise_that_was_found_is_remembered_for_its_own_outputs_alone(folder: Path) -> None:
    """A calibration that belongs to other coordinates is not used."""
    first = lc.plan(counted, X, checkpoint=folder, **SEEDED)
    stored = Checkpoint.stored(folder)
    _, noise = stored.kept("noise-0")
    stored.keep("noise-0", ("of something else", replace(noise, deviations=noise.deviations / 100)))
    again = lc.plan(counted, X, checkpoint=folder, **SEEDED)
    assert again.noise.std == first.noise.std
    assert again.certificate == first.certificate


def test_a_stored_plan_trusts_no_stored_figure(folder: Path) -> None:
    """`leakcap check` recomputes them."""
    first = lc.plan(counted, X, checkpoint=folder, **SEEDED)
    stored = Checkpoint.stored(folder)
    mark, noise = stored.kept("noise-0")
    stored.keep("noise-0", (mark, replace(noise, deviations=noise.deviations / 100)))
    assert stored_plan(folder).noise.std == first.noise.std


# Caps


def test_every_list_of_caps_has_attempts_of_its_own_for_ever(folder: Path) -> None:
    """Attempts share one failure probability: none may stand for two different statements."""
    asked = [lc.mutual_information(nats) for nats in (0.3, 0.2, 0.25)]
    first = [lc.plan(counted, X, checkpoint=folder, **(SMALL | {"cap": cap})).certificate for cap in asked]
    blocks = [(one.attempt - 1) // MAX_ATTEMPTS for one in first]
    assert blocks == [0, 1, 2]
    assert len({one.gamma_used for one in first}) == 3
    assert all(low.gamma_used > high.gamma_used for low, high in pairwise(first))
    for cap, certificate in reversed(list(zip(asked, first, strict=True))):
        assert lc.plan(counted, X, checkpoint=folder, **(SMALL | {"cap": cap})).certificate == certificate
    plan = lc.plan(counted, X, checkpoint=folder, **SMALL)
    assert plan.recap(asked[2]).certificate == first[2]
    assert (plan.recap(lc.mutual_information(0.1)).certificate.attempt - 1) // MAX_ATTEMPTS == 3
    assert len(CALLS) == 17


def test_released_under_one_cap_a_checkpoint_is_not_released_under_another(folder: Path) -> None:
    value = lc.plan(counted, X, checkpoint=folder, **SMALL).release().value
    stored = row(Vault.existing(folder), "release")
    tighter = SMALL | {"cap": lc.mutual_information(0.1)}
    with pytest.raises(lc.AlreadyReleased, match="other caps"):
        lc.release(counted, X, checkpoint=folder, **tighter)
    with pytest.raises(lc.AlreadyReleased, match="other caps"):
        lc.plan(counted, X, checkpoint=folder, **SMALL).recap(lc.mutual_information(0.1)).release()
    assert row(Vault.existing(folder), "release") == stored
    assert (lc.plan(counted, X, checkpoint=folder, **SMALL).release().value == value).all()


def test_the_stored_plan_of_a_release_is_that_of_its_caps_whatever_was_asked_later(folder: Path) -> None:
    released = lc.plan(counted, X, checkpoint=folder, **SMALL).release()
    lc.plan(counted, X, checkpoint=folder, **(SMALL | {"cap": lc.mutual_information(0.1)}))  # asked, never released
    assert stored_plan(folder).certificate == released.certificate
