"""Runs that are stopped and go on: the same answer, no stored world twice, and one release for ever."""

from __future__ import annotations

import errno
import functools
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import leakcap as lc
from leakcap import planning, releases
from leakcap.modes.finite import OneOfTheWorlds
from leakcap.noise.calibrate import TRIES
from leakcap.planning import stored_plan
from leakcap.simulate import task
from leakcap.simulate.checkpoint import Checkpoint
from leakcap.simulate.identity import fingerprint

rng = np.random.default_rng(99)
X = np.column_stack([2.0 ** np.arange(24), rng.normal(size=(24, 2))])  # the first column says which rows took part
TABLE = pd.DataFrame(X, columns=["id", "a", "b"]).assign(town=["here", "there"] * 12, who=np.repeat(np.arange(12), 2))
MASKS = np.vstack([np.eye(4, dtype=bool), ~np.eye(4, dtype=bool)]).repeat(6, axis=1)
CAP = lc.mutual_information(0.3)
SMALL: dict[str, Any] = {"cap": CAP, "worlds": 16, "draws": 256}
SEEDED: dict[str, Any] = SMALL | {"seed": 7}
CALLS: list[int] = []


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "keys" / "key"))
    monkeypatch.setenv("CHECKPOINT_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("CHECKPOINT_STOP", str(tmp_path / "stop"))
    releases._released_before.clear()
    CALLS.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "plan"


def signature(x: Any) -> int:
    return int(np.asarray(x)[:, 0].sum())


def counted(x: Any) -> Any:
    CALLS.append(signature(x))
    return np.asarray(x)[:, 1:3].astype(float).mean(axis=0)


def doubled(x: Any) -> Any:
    return 2 * counted(x)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


def stored_signatures(folder: Path) -> set[int]:
    """Which worlds' answers are stored, by the rows in them."""
    stored = Checkpoint.stored(folder)
    frame, _ = stored.kept("frame")
    worlds = frame.possible(stored.entropy)
    done = {int(world) for some, _ in stored.rows() for world in some}
    if stored.kept("form") is not None:
        done |= {0, worlds.m // 2}
    return {signature(X[worlds.mask(world)]) for world in done}


@functools.cache
def undisturbed() -> tuple[str, bytes, bytes]:
    """Certificate, outputs and released value of a seeded run without a checkpoint."""
    plan = lc.plan(counted, X, **SEEDED)
    return plan.certificate.to_json(), plan.outputs.tobytes(), plan.release().value.tobytes()


def same_as_undisturbed(plan: lc.Plan) -> bool:
    return undisturbed() == (plan.certificate.to_json(), plan.outputs.tobytes(), plan.release().value.tobytes())


# Stopped, and going on


def stopping(x: Any) -> Any:
    """Writes down every world it is asked about; after so many it stops, while the file that says so is there."""
    log, stop = Path(os.environ["CHECKPOINT_LOG"]), Path(os.environ["CHECKPOINT_STOP"])
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{signature(x)}\n".encode())
    os.close(handle)
    if stop.exists():
        kind, limit = stop.read_text().split()
        if len(log.read_text().split()) > int(limit):
            raise {"ValueError": ValueError, "KeyboardInterrupt": KeyboardInterrupt, "SystemExit": SystemExit}[kind]
    return x[:, 1:3].mean(axis=0)


STOPS: list[Any] = [
    ("serial", "ValueError", lc.OutputError),
    ("serial", "KeyboardInterrupt", KeyboardInterrupt),
    ("serial", "SystemExit", lc.OutputError),
    ("threads", "ValueError", lc.OutputError),
    pytest.param("processes", "ValueError", lc.OutputError, marks=pytest.mark.slow),  # see tests/kills too
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
    with pytest.raises(lc.OutputError):
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
    with pytest.raises(lc.OutputError):
        lc.plan(lambda x: x.nothing, X, checkpoint=folder, **SMALL)
    plan = lc.plan(counted, X, checkpoint=folder, **SMALL)
    assert stored_plan(folder).certificate == plan.certificate


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
    blocks = [(one.attempt - 1) // TRIES for one in first]
    assert blocks == [0, 1, 2]
    assert len({one.gamma_used for one in first}) == 3
    assert all(low.gamma_used > high.gamma_used for low, high in pairwise(first))
    for cap, certificate in reversed(list(zip(asked, first, strict=True))):
        assert lc.plan(counted, X, checkpoint=folder, **(SMALL | {"cap": cap})).certificate == certificate
    plan = lc.plan(counted, X, checkpoint=folder, **SMALL)
    assert plan.recap(asked[2]).certificate == first[2]
    assert (plan.recap(lc.mutual_information(0.1)).certificate.attempt - 1) // TRIES == 3
    assert len(CALLS) == 17


def test_released_under_one_cap_a_checkpoint_is_not_released_under_another(folder: Path) -> None:
    value = lc.plan(counted, X, checkpoint=folder, **SMALL).release().value
    stored = (folder / "release").read_bytes()
    tighter = SMALL | {"cap": lc.mutual_information(0.1)}
    with pytest.raises(lc.AlreadyReleased, match="other caps"):
        lc.release(counted, X, checkpoint=folder, **tighter)
    with pytest.raises(lc.AlreadyReleased, match="other caps"):
        lc.plan(counted, X, checkpoint=folder, **SMALL).recap(lc.mutual_information(0.1)).release()
    assert (folder / "release").read_bytes() == stored
    assert (lc.plan(counted, X, checkpoint=folder, **SMALL).release().value == value).all()


def test_the_stored_plan_of_a_release_is_that_of_its_caps_whatever_was_asked_later(folder: Path) -> None:
    released = lc.plan(counted, X, checkpoint=folder, **SMALL).release()
    lc.plan(counted, X, checkpoint=folder, **(SMALL | {"cap": lc.mutual_information(0.1)}))  # asked, never released
    assert stored_plan(folder).certificate == released.certificate


# One release


def test_two_plans_of_one_checkpoint_release_the_same_value(folder: Path) -> None:
    one, two = (lc.plan(counted, X, checkpoint=folder, **SMALL) for _ in range(2))
    first, second = one.release(), two.release()
    assert first.value.tobytes() == second.value.tobytes()
    for plan in (one, two):
        with pytest.raises(lc.AlreadyReleased):
            plan.release()


@pytest.mark.filterwarnings("ignore::leakcap.RepeatedReleaseWarning")
def test_plans_that_release_at_the_same_moment_release_the_same_value(folder: Path, monkeypatch: Any) -> None:
    """Both have drawn a secret and noise of their own before either has stored anything."""
    plans = [lc.plan(counted, X, checkpoint=folder, **SMALL) for _ in range(4)]
    start, drawn, found = threading.Barrier(4, timeout=30), [], []
    vector = OneOfTheWorlds.vector

    def together(self: Any, randomness: Any) -> Any:
        own = vector(self, randomness)
        drawn.append(own)
        start.wait()
        return own

    monkeypatch.setattr(OneOfTheWorlds, "vector", together)
    threads = [threading.Thread(target=lambda one=one: found.append(one.release().value)) for one in plans]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len({one.tobytes() for one in drawn}) == 4
    assert len(found) == 4
    assert len({one.tobytes() for one in found}) == 1


@pytest.mark.slow
def test_processes_that_release_at_the_same_moment_release_the_same_value(folder: Path) -> None:
    lc.plan(counted, X, checkpoint=folder, **SMALL)
    code = (
        "import sys, time; from leakcap.planning import stored_plan\n"
        "plan = stored_plan(sys.argv[1]); print('ready', flush=True); sys.stdin.readline()\n"
        "print(plan.release().value.tobytes().hex())"
    )
    command = [sys.executable, "-c", code, str(folder)]
    running = []
    for _ in range(4):  # one after the other: opening a plan takes the lock for a moment, and does not wait for it
        running.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert running[-1].stdout.readline() == "ready\n"
    for one in running:
        one.stdin.write("\n")
        one.stdin.flush()
    answers = {one.communicate(timeout=60)[0] for one in running}
    assert len(answers) == 1
    assert len(answers.pop()) == 2 * 2 * 8 + 1  # two floats in hexadecimal, and a line end


def test_a_release_that_could_not_be_stored_is_not_seen(folder: Path, monkeypatch: Any) -> None:
    plan = lc.plan(counted, X, checkpoint=folder, **SMALL)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)
        with pytest.raises((OSError, lc.LeakcapError)):
            plan.release()
    with pytest.raises(lc.AlreadyReleased):
        plan.release()  # spent: a secret was drawn
    assert stored_plan(folder).released_certificate is None
    releases._released_before.clear()
    assert lc.release(counted, X, checkpoint=folder, **SMALL).value.shape == (2,)


def test_a_run_that_starts_does_not_sweep_away_the_release_another_is_storing(folder: Path, monkeypatch: Any) -> None:
    plan = lc.plan(counted, X, checkpoint=folder, **SMALL)
    link = os.link

    def meanwhile(source: Any, target: Any) -> None:
        if Path(target).name == "release":
            with Checkpoint.stored(folder).alone():
                pass
        link(source, target)

    monkeypatch.setattr(os, "link", meanwhile)
    plan.release()


# Without data


def test_an_unfinished_run_is_no_stored_plan(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    for place in (tmp_path / "nowhere", tmp_path / "log"):
        with pytest.raises(lc.InputError, match="no checkpoint"):
            stored_plan(place)
    monkeypatch.setattr(task, "SAVED", -1.0)
    (tmp_path / "stop").write_text("ValueError 5")
    with pytest.raises(lc.OutputError):
        lc.plan(stopping, X, checkpoint=folder, **SMALL)
    with pytest.raises(lc.InputError, match="has not finished"):
        stored_plan(folder)


def test_a_fresh_world_needs_the_data_unless_it_was_released(folder: Path) -> None:
    options = SMALL | {"mode": "confidence", "worlds": 64, "confidence": 0.9}
    plan = lc.plan(counted, X, checkpoint=folder, **options)
    with pytest.raises(lc.InputError, match="with the data"):
        stored_plan(folder).release()
    assert stored_plan(folder).released_certificate is None
    value = plan.release().value
    assert (stored_plan(folder).release().value == value).all()


def test_forgetting_a_plan_removes_its_folder(folder: Path) -> None:
    plan = lc.plan(counted, X, checkpoint=folder, **SMALL)
    plan.release()
    plan.forget()
    assert not folder.exists()
    lc.plan(counted, X, **SMALL).forget()  # nothing to forget is no error


@pytest.mark.filterwarnings("ignore::leakcap.RepeatedReleaseWarning")
def test_a_plan_that_was_forgotten_by_another_releases_nothing_new(folder: Path) -> None:
    """What was released is not known any more: a second value, with a secret of its own, must not come out."""
    one, two = (lc.plan(counted, X, checkpoint=folder, **SMALL) for _ in range(2))
    one.release()
    one.forget()
    with pytest.raises((OSError, lc.LeakcapError)):
        two.release()


# Functions


@dataclass
class Scaled:
    factor: float

    def __call__(self, x: Any) -> Any:
        return self.factor * counted(x)

    def method(self, x: Any) -> Any:
        return self.factor * counted(x)


def with_default(x: Any, factor: float = 2.0, *, shift: float = 0.0) -> Any:
    return factor * counted(x) + shift


def scaling(factor: float) -> Callable[[Any], Any]:
    return lambda x: factor * counted(x)


def wrapped(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def inner(*given: Any) -> Any:
        return fn(*given)

    return inner


def knows_a_module() -> Callable[[Any], Any]:
    import math

    return lambda x: math.sqrt(2) * counted(x)


FUNCTIONS: dict[str, Any] = {
    "a function": lambda: counted,
    "a lambda": lambda: lambda x: counted(x) + 1,
    "a partial": lambda: functools.partial(with_default, factor=3.0),
    "a partial of a lambda": lambda: functools.partial(lambda x, f: f * counted(x), f=3.0),
    "a bound method": lambda: Scaled(2.0).method,
    "a callable": lambda: Scaled(2.0),
    "a closure": lambda: scaling(3.0),
    "a decorated function": lambda: wrapped(counted),
    "numpy's": lambda: np.mean,
    "a closure with a module in it": knows_a_module,
}


@pytest.mark.parametrize("make", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_functions_of_all_kinds_are_known_again(make: Any, folder: Path) -> None:
    for _ in range(2):
        lc.plan(make(), X, checkpoint=folder, **SMALL)
    assert len(CALLS) in (0, 17)


def written(text: str, **names: Any) -> Callable[..., Any]:
    """A function as if read from a file that was changed in between."""
    space: dict[str, Any] = dict(names)
    exec(text, space)
    space["fn"].__module__ = "analysis"
    return space["fn"]


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "constants": (written("def fn(x): return x + 1"), written("def fn(x): return x + 2")),
    "kinds of constants": (written("def fn(x): return x + 1"), written("def fn(x): return x + 1.0")),
    "sets": (written("def fn(x): return x in {1, 2}"), written("def fn(x): return x in {1, 3}")),
    "inner functions": (
        written("def fn(x): return [y + 1 for y in x]"),
        written("def fn(x): return [y + 2 for y in x]"),
    ),
    "names": (written("def fn(x): return x.mean()"), written("def fn(x): return x.median()")),
    "operations": (written("def fn(x): return x + 1"), written("def fn(x): return x - 1")),
    "defaults": (written("def fn(x, a=1): return a"), written("def fn(x, a=2): return a")),
    "keyword defaults": (written("def fn(x, *, a=1): return a"), written("def fn(x, *, a=2): return a")),
    "arguments": (functools.partial(with_default, factor=2.0), functools.partial(with_default, factor=3.0)),
    "methods of other objects": (Scaled(2.0).method, Scaled(3.0).method),
    "callables": (Scaled(2.0), Scaled(3.0)),
    "what was captured": (scaling(2.0), scaling(3.0)),
    "what was wrapped": (
        wrapped(written("def fn(x): return x + 1")),
        wrapped(written("def fn(x): return x + 2")),
    ),
    "functions": (np.mean, np.median),
    "data": (X, X + 1e-12),
    "shapes": (np.zeros((2, 3)), np.zeros((3, 2))),
    "types": (np.zeros(3), np.zeros(3, dtype=np.float32)),
    "a cell of a table": (TABLE, TABLE.assign(town=["here"] * 24)),
    "names of columns": (TABLE, TABLE.rename(columns={"a": "c"})),
    "sparse": (sp.csr_array(X), sp.csr_array(X + 1)),
    "lists": ([1.0, 2.0], [1.0, 3.0]),
    "text": (["a", "bc"], ["ab", "c"]),
    "numbers and text": ([1], ["1"]),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_fingerprints_differ_where_anything_differs(name: str) -> None:
    one, other = DIFFERENT[name]
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)


def test_a_function_is_the_same_wherever_it_stands_in_its_file() -> None:
    one, other = written("def fn(x):\n  return x + 1"), written("\n\n# moved\n\ndef fn(x):\n\n  return x + 1")
    assert fingerprint(one) == fingerprint(other)


def test_a_changed_helper_is_another_function() -> None:
    one, other = (written(f"def help(x): return x + {k}\ndef fn(x): return help(x)") for k in (1, 2))
    assert fingerprint(one) != fingerprint(other)


SCRIPT = """
import functools, sys
import numpy as np, pandas as pd, scipy.sparse as sp
import leakcap as lc
from leakcap import stats
from leakcap.simulate.identity import fingerprint

X = np.arange(24.0).reshape(12, 2)
table = pd.DataFrame(X, columns=["a", "b"]).assign(town=[f"t{i % 3}" for i in range(12)], on=[True, False] * 6)
read = pd.read_csv(sys.argv[1])
names = {"anna", "berta", "carl", "dora"}
def fn(x, known=frozenset({"anna", "berta", "carl"})):
    return x in {"anna", "berta", "carl", "dora"} and names
def outer(captured):
    return lambda x: captured
for thing in (
    X, table, read, read[read["b"] > 3].reset_index(drop=True), sp.csr_array(X), list(map(tuple, X)), names, fn,
    outer(names), outer({"b": 1, "a": names}), functools.partial(stats.quantile, q=(0.25, 0.5)), np.mean,
    lc.membership(0.6), (lc.mutual_information(0.3), lc.any_inference(0.1, 0.3)), np.array(["x", None], dtype=object),
):
    print(fingerprint(thing))
"""


def test_fingerprints_are_the_same_in_every_process(tmp_path: Path) -> None:
    """Texts are hashed differently in each: sets and dicts of them come in another order."""
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "table.csv")]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    ]
    one, other = (process.communicate(timeout=120)[0].split() for process in running)
    assert len(one) == 15
    assert one == other


Nameless = make_dataclass("Nameless", ["mean"])


def test_an_answer_whose_form_cannot_be_stored_is_a_clear_error(folder: Path) -> None:
    with pytest.raises(lc.InputError, match="define its classes and functions in a module"):
        lc.plan(lambda x: Nameless(x.mean()), X, checkpoint=folder, **SMALL)


def test_data_and_tasks_that_cannot_be_pickled_are_a_clear_error(folder: Path) -> None:
    records = [threading.Lock() for _ in range(24)]
    with pytest.raises(lc.InputError, match="pickled"):
        lc.plan(lambda x: 1.0, records, checkpoint=folder, **SMALL)
    task = lc.task(lambda masks: masks[:, :1], 0.9)
    with pytest.raises(lc.InputError, match=r"stored|pickled"):
        lc.plan(counted, X, checkpoint=folder, **(SMALL | {"cap": task}))


# Alone


def test_a_second_run_in_the_same_folder_is_told_to_wait(folder: Path) -> None:
    lc.plan(counted, X, checkpoint=folder, **SMALL)
    with Checkpoint.stored(folder).alone(), pytest.raises(lc.InputError, match="another process"):
        lc.plan(counted, X, checkpoint=folder, **SMALL)
    lc.plan(counted, X, checkpoint=folder, **SMALL)


def test_the_lock_falls_with_the_process_that_holds_it(folder: Path) -> None:
    lc.plan(counted, X, checkpoint=folder, **SMALL)
    code = (
        "import sys, time; from pathlib import Path; from leakcap.simulate.checkpoint import Checkpoint\n"
        "with Checkpoint.stored(Path(sys.argv[1])).alone(): print('held', flush=True); time.sleep(100)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "held\n"
    with pytest.raises(lc.InputError, match="another process"):
        lc.plan(counted, X, checkpoint=folder, **SMALL)
    other.send_signal(signal.SIGKILL)
    other.wait(30)
    lc.plan(counted, X, checkpoint=folder, **SMALL)


def test_the_lock_is_free_after_a_function_that_failed(folder: Path) -> None:
    with pytest.raises(lc.OutputError):
        lc.plan(lambda x: x.nothing, X, checkpoint=folder, **SMALL)
    with Checkpoint.stored(folder).alone():
        pass


# Damage


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a released, seeded run, and the key they were sealed with."""
    place = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKCAP_KEY", str(place / "keys" / "key"))
        lc.plan(counted, X, checkpoint=place / "plan", **SEEDED).release()
    return contents(place / "plan") | {"key": (place / "keys" / "key").read_bytes()}


def restored(finished: dict[str, bytes], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder.parent / "keys").mkdir(exist_ok=True)
    for name, content in finished.items():
        path = folder.parent / "keys" / "key" if name == "key" else folder / name
        path.write_bytes(content)
        path.chmod(0o600)


NAMES = ["start", "frame", "form", "whole pool", "caps", "noise-0", "worlds-0000001", "release"]


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_a_clear_error_and_never_another_result(
    name: str, finished: dict[str, bytes], folder: Path
) -> None:
    restored(finished, folder)
    content = finished[name]
    for damaged in (content[:-1], content[:-20] + b"x" * 20, b"", b"x" * len(content), finished["start"] + b"x"):
        (folder / name).write_bytes(damaged)
        if name != "noise-0":  # computed anew
            with pytest.raises(lc.InputError, match="damaged"):
                stored_plan(folder).release()
        if name != "frame":  # written anew
            with pytest.raises(lc.InputError, match="damaged"):
                lc.plan(counted, X, checkpoint=folder, **SEEDED).release()
    restored(finished, folder)
    assert same_as_undisturbed(stored_plan(folder))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "release"])
def test_a_file_that_is_gone_is_a_clear_error_or_made_again_the_same(
    name: str, finished: dict[str, bytes], folder: Path
) -> None:
    restored(finished, folder)
    (folder / name).unlink()
    try:
        again = stored_plan(folder)
    except lc.InputError:
        again = lc.plan(counted, X, checkpoint=folder, **SEEDED)
    assert same_as_undisturbed(again)


def test_what_a_killed_process_left_half_written_is_swept(finished: dict[str, bytes], folder: Path) -> None:
    restored(finished, folder)
    part = folder / ".worlds-0000003.123.abcd.part"
    part.write_bytes(b"half")
    lc.plan(counted, X, checkpoint=folder, **SEEDED)
    assert not part.exists()


def test_a_plan_stored_by_another_version_is_a_clear_error(folder: Path) -> None:
    lc.plan(counted, X, checkpoint=folder, **SEEDED)
    stored = Checkpoint.stored(folder)
    stored._vault.write("frame", b"cleakcap.frame\nFormerFrame\n.")  # a pickle that names a class of the past
    with pytest.raises(lc.InputError):
        stored_plan(folder)


# A full disk


@pytest.mark.parametrize("after", [2, 4, 6, 9])
def test_a_disk_that_fills_up_stops_the_run_which_then_goes_on(after: int, folder: Path, monkeypatch: Any) -> None:
    written_files = [0]
    real = os.fsync

    def fills(handle: int) -> None:
        written_files[0] += 1
        if written_files[0] > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(task, "SAVED", -1.0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fills)
        with pytest.raises((OSError, lc.LeakcapError)):
            lc.plan(counted, X, checkpoint=folder, **SEEDED)
    assert not list(folder.glob(".*"))
    assert same_as_undisturbed(lc.plan(counted, X, checkpoint=folder, **SEEDED))


def test_a_certificate_is_the_same_with_and_without_a_checkpoint(folder: Path) -> None:
    assert same_as_undisturbed(lc.plan(counted, X, checkpoint=folder, **SEEDED))
    assert planning.release(counted, X, checkpoint=folder, **SEEDED).value.tobytes() == undisturbed()[2]
