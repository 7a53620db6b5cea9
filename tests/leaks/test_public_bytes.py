"""Rule 6: with the released value held fixed, every public artefact is byte-identical whichever world was secret.

Method: the plan's source of randomness is replaced by one that picks the world we choose and then just the noise
that leads from there to one agreed grid point (with a different remainder below the grid for every world). Whatever
still differs between two such releases tells the world. Each check has a planted twin: a release path that leaks
must be caught by the same check. Nothing here is statistical: there are no false alarms.
"""

from __future__ import annotations

import copy
import functools
import gc
import itertools
import pickle
import sys
import types
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakcap as lc
from leakcap import modes
from leakcap.modes import finite
from leakcap.noise import Noise, Subspace
from leakcap.releases import LEVELS, Token
from leakcap.simulate import Node, Outputs, Pool
from leakcap.worlds import Units, Worlds

rng = np.random.default_rng(20240613)
X = rng.normal(size=(24, 3)) + np.array([0.0, 5.0, -2.0])
Y = X @ [1.0, -2.0, 0.5] + rng.normal(size=24)
CLASS = np.arange(24) % 2
TABLE = pd.DataFrame(X, columns=["a", "b", "c"]).assign(group=CLASS)
SMALL = {"cap": lc.mutual_information(0.3), "worlds": 16, "draws": 256}
JITTERS = (-0.4, 0.0, 0.4, -0.1, 0.3)  # where inside its grid cell the noisy coordinate lies
NUMBERS = itertools.count()
Pair = namedtuple("Pair", "mean spread")


@dataclass
class Answer:
    mean: Any
    spread: Any


def constant_column_mean(x: np.ndarray) -> np.ndarray:
    """A constant column, whose masked mean has world-dependent low-order bits, a negative zero, and a real output."""
    bits = int(1e6 * abs(x[:, 0].sum())) % 40  # as rounding might leave them, but surely not alike in several worlds
    return np.array([0.1 * (1 + 2.0**-52 * bits), -0.0, x[:, 1].mean()])


@dataclass(frozen=True)
class Case:
    fn: Callable[..., Any]
    data: tuple[Any, ...] = (X,)
    options: tuple[tuple[str, Any], ...] = ()


LINEAR_MODELS = (("drop", ("n_iter_",)),)
CASES = {
    "number": Case(lambda x: x[:, 0].mean()),
    "array": Case(lambda x: x.mean(axis=0)),
    "float32": Case(lambda x: x.mean(axis=0).astype(np.float32)),
    "counts": Case(lambda x: (x > [0.0, 5.0, -2.0]).sum(axis=0)),
    "whole number": Case(lambda x: int((x[:, 0] > 0).sum())),
    "dict": Case(lambda x: {"mean": x.mean(axis=0), "n": len(x), "inner": {"max": x.max()}}),
    "tuple": Case(lambda x: (x.mean(axis=0), [x.std(), x.min()])),
    "named tuple": Case(lambda x: Pair(x.mean(), x.std())),
    "dataclass": Case(lambda x: Answer(x.mean(axis=0), float(x.std()))),
    "frame": Case(lambda t: t.groupby("group").mean(), (TABLE,)),
    "series": Case(lambda t: t.mean(), (TABLE,)),
    "constants": Case(lambda x: np.array([1.5, -0.0, 7.0])),
    "nearly constants": Case(constant_column_mean),
    "floor": Case(lambda x: np.r_[x.mean(axis=0), 1.0], options=(("floor", 0.05),)),
    "equal weights": Case(lambda x: x.mean(axis=0) * [1.0, 1e-3, 1e-9], options=(("weights", "equal"),)),
    "clipped": Case(lambda x: x.mean(axis=0), options=(("clip", (-1.0, 4.9)),)),
    "thirds": Case(lambda x: x.mean(axis=0), options=(("rate", 1 / 3), ("worlds", 18))),
    "turned": Case(lambda x: x.mean(axis=0), options=(("cap", lc.membership(0.75)),)),
    "seeded": Case(lambda x: x.mean(axis=0), options=(("seed", 5),)),
    "ridge": Case(lambda x, y: Ridge().fit(x, y), (X, Y), LINEAR_MODELS),
    "logistic": Case(lambda x, y: LogisticRegression().fit(x, y), (X, CLASS), LINEAR_MODELS),
    "kmeans": Case(
        lambda x: KMeans(2, n_init=1, init=X[:2].copy(), random_state=0).fit(x),
        options=(("drop", ("labels_", "n_iter_", "_tol")),),
    ),
    "pipeline": Case(lambda x, y: make_pipeline(StandardScaler(), Ridge()).fit(x, y), (X, Y), LINEAR_MODELS),
}
every_case = pytest.mark.parametrize("name", CASES)


KEPT: dict[str, list[Any]] = {name: [] for name in CASES}  # what the function returned, in the order of calls


@functools.cache
def planned(name: str) -> lc.Plan:
    case = CASES[name]

    def remembering(*data: Any) -> Any:
        KEPT[name].append(case.fn(*data))
        return KEPT[name][-1]

    return lc.plan(remembering, *case.data, **(SMALL | dict(case.options)))


def new_token() -> Token:
    """The right to release once more, as if the data were new."""
    number = f"{__name__} {next(NUMBERS)}"
    return Token(lambda: number)


class Rigged:
    """Randomness that chooses `world` as the secret and ends at `point`, `jitter` of a step beside it."""

    def __init__(self, noise: Noise, step: float, world: int, point: np.ndarray, jitter: float) -> None:
        space = noise.space
        target = (point + jitter) * step
        self.world = world
        self.queue = [target - space.coordinates[world] / noise.deviations]
        self.queue.append(np.random.default_rng(3).standard_normal(len(space.centre)))  # noise outside the subspace

    def below(self, n: int) -> int:
        assert self.world < n
        return self.world

    def normals(self, size: int) -> np.ndarray:
        drawn = self.queue.pop(0)
        assert len(drawn) == size
        return drawn


def rigged_release(plan: lc.Plan, world: int, point: np.ndarray, jitter: float) -> lc.Release:
    """The plan's own `release()`, with the secret and the released grid point of our choice."""
    mechanism = plan._mechanism
    kept = plan._randomness, plan._token
    plan._randomness = Rigged(mechanism.noise, mechanism.step, world, point, jitter)
    plan._token = new_token()
    try:
        return plan.release()
    finally:
        plan._randomness, plan._token = kept


def points_of(plan: lc.Plan) -> list[np.ndarray]:
    """The origin, where the sign of zero could tell a side, and an arbitrary grid point."""
    rank = plan.noise.space.rank
    return [np.zeros(rank), np.random.default_rng(1).integers(-900, 900, size=rank).astype(float)]


def public_artefacts(release: lc.Release) -> dict[str, bytes]:
    """Everything that leaves the custodian with a release, as bytes."""
    certificate = release.certificate
    found = {
        "pickled release": pickle.dumps(release),
        "pickled value": pickle.dumps(release.value),
        "pickled certificate": pickle.dumps(certificate),
        "deep copy": pickle.dumps(copy.deepcopy(release)),
        "repr": repr(release).encode(),
        "str": str(release).encode(),
        "repr of the value": repr(release.value).encode(),
        "certificate text": str(certificate).encode(),
        "certificate repr": repr(certificate).encode(),
        "certificate JSON": certificate.to_json().encode(),
    }
    if release._widths:
        found["intervals"] = b"".join(end.tobytes() for level in LEVELS for end in release.interval(level))
    return found


def telling_artefacts(plan: lc.Plan, worlds: int = 5) -> set[str]:
    """Names of the public artefacts that are not the same for all secrets, the released grid point held fixed."""
    telling = set()
    chosen = np.linspace(0, plan.worlds.m - 1, worlds).astype(int)
    for point in points_of(plan):
        seen = [
            public_artefacts(rigged_release(plan, int(world), point, jitter))
            for world, jitter in zip(chosen, JITTERS, strict=True)
        ]
        telling |= {name for name in seen[0] if len({artefact[name] for artefact in seen}) > 1}
    return telling


# Bytes


@every_case
def test_public_artefacts_are_byte_identical_whichever_world_was_secret(name: str) -> None:
    assert not telling_artefacts(planned(name))


def test_the_check_sees_another_grid_point() -> None:
    plan = planned("array")
    point = points_of(plan)[1]
    one, two = (public_artefacts(rigged_release(plan, 3, point + shift, 0.0)) for shift in (0, 1))
    assert one["pickled value"] != two["pickled value"]
    assert one["certificate JSON"] == two["certificate JSON"]


def own_output_plus_noise(noise: Noise, coordinates: np.ndarray, step: float, randomness: Any) -> np.ndarray:
    """The planted leak: the same grid point in exact arithmetic, but reached from the world's own output."""
    space = noise.space
    world = int(np.flatnonzero((space.coordinates == coordinates).all(axis=1))[0])
    point = np.rint((coordinates / noise.deviations + randomness.normals(space.rank)) / step)
    return space.outputs[world] + space.lift(point * step * noise.deviations - coordinates)


def noise_off_the_grid(noise: Noise, coordinates: np.ndarray, step: float, randomness: Any) -> np.ndarray:
    """The planted leak: rebuilt, but what the grid would have cut off is left in."""
    shifted = coordinates + noise.deviations * randomness.normals(noise.space.rank)
    return noise.space.centre + noise.space.lift(shifted)


@pytest.mark.parametrize("leak", [own_output_plus_noise, noise_off_the_grid])
@pytest.mark.parametrize("name", ["array", "dict", "frame", "nearly constants", "equal weights", "ridge"])
def test_a_planted_leak_in_the_release_path_is_caught(name: str, leak: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(finite, "released_vector", leak)
    assert {"pickled release", "pickled value"} <= telling_artefacts(planned(name))


def test_a_planted_leak_in_dropped_directions_alone_is_caught(monkeypatch: Any) -> None:
    def leak(noise: Noise, coordinates: np.ndarray, step: float, randomness: Any) -> np.ndarray:
        world = int(np.flatnonzero((noise.space.coordinates == coordinates).all(axis=1))[0])
        value = released(noise, coordinates, step, randomness)
        value[0] = noise.space.outputs[world][0]  # the mean of a constant column: it differs in the last bit only
        return value

    plan = planned("nearly constants")
    assert np.ptp(plan.outputs[:, 0]) < 1e-15
    released = finite.released_vector
    monkeypatch.setattr(finite, "released_vector", leak)
    assert "pickled release" in telling_artefacts(plan)


def test_a_planted_remark_about_the_world_is_caught() -> None:
    plan = planned("array")
    plain = plan.certificate
    found = set()
    try:
        for world in (0, 8):  # a world and its complement
            plan.certificate = replace(plain, declared_public=(f"the first unit: {plan.worlds.mask(world)[0]}",))
            found.add(public_artefacts(rigged_release(plan, world, points_of(plan)[1], 0.0))["pickled release"])
    finally:
        plan.certificate = plain
    assert len(found) == 2


def test_a_fresh_world_leaves_no_trace_beside_the_released_point() -> None:
    """Confidence mode runs the function on the secret world itself: failures, other forms and extremes included."""

    def moody(x: np.ndarray) -> Any:
        mood = int(x[:, 0].sum() * 1e6) % 4 if armed else 0
        if mood == 1:
            raise ValueError("no answer here")
        return {0: x.mean(axis=0), 2: x.mean(axis=0)[:2], 3: x.mean(axis=0) * 1e6}[mood]

    armed = False
    plan = lc.plan(moody, X, cap=lc.membership(0.9), worlds=64, mode="confidence", confidence=0.9)
    armed = True
    mechanism = plan._mechanism
    space, deviations = mechanism.noise.space, mechanism.noise.deviations
    point = np.arange(space.rank) * 17.0 - 5

    class RiggedFresh:
        def __init__(self, world: int, jitter: float) -> None:
            answer = mechanism.rerun(mechanism.draw(self.source(world)))
            at = np.zeros(space.rank) if answer is None else space.project(answer)
            self.start = np.clip(at, mechanism.low, mechanism.high) / deviations
            self.world, self.jitter, self.kind = world, jitter, answer is None

        @staticmethod
        def source(world: int) -> Any:
            return types.SimpleNamespace(bits=lambda: np.random.default_rng(world))

        def bits(self) -> np.random.Generator:
            return np.random.default_rng(self.world)

        def normals(self, size: int) -> np.ndarray:
            assert size == space.rank
            return (point + self.jitter) * finite.GRID - self.start

    rigged = [RiggedFresh(world, jitter) for world in range(3) for jitter in JITTERS]
    rigged += [RiggedFresh(world, 0.2) for world in range(3, 15)]
    assert {one.kind for one in rigged} == {True, False}, "some fresh worlds fail, some do not"
    seen = set()
    for one in rigged:
        plan._randomness, plan._token = one, new_token()
        seen.add(tuple(public_artefacts(plan.release()).values()))
    assert len(seen) == 1


EXTREMES = {
    "huge": lambda x: np.array([1.7e308, -1.7e308, 1.7e308]),
    "infinite": lambda x: np.full(3, np.inf),
    "no number": lambda x: np.full(3, np.nan),
    "too large for a float": lambda x: np.array([10**400, 0, 0], dtype=object),
    "cannot be an array": lambda x: Spiteful(),
    "raises": lambda x: x.no_such_attribute,
    "our own error": lambda x: lc.membership(float(x[0, 0])),
    "leaves the program": lambda x: sys.exit(),
    "text": lambda x: "777123.25",
    "warns": lambda x: warnings.warn("777123.25", stacklevel=1) or x.mean(axis=0),
}


class Spiteful:
    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise RuntimeError("777123.25")


CALLED: list[str] = []  # what the function of `fresh_plan` does from now on


@functools.cache
def fresh_plan() -> lc.Plan:
    def fn(x: np.ndarray) -> Any:
        return EXTREMES[CALLED[-1]](x) if CALLED else x.mean(axis=0)

    return lc.plan(fn, X, cap=lc.membership(0.9), worlds=64, mode="confidence", confidence=0.9, seed=11)


@pytest.mark.parametrize("name", EXTREMES)
def test_whatever_happens_in_the_fresh_world_a_finite_answer_comes_out_without_a_word(name: str) -> None:
    """A failure or a warning there would tell about the secret: only some worlds have it."""
    plan = fresh_plan()
    plan._token = new_token()
    CALLED.append(name)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            value = plan.release().value
    finally:
        CALLED.clear()
    assert value.shape == (3,)
    assert np.isfinite(value).all()
    assert not heard


# Texts around a release


def test_the_custodians_own_texts_do_not_change_when_the_secret_is_drawn() -> None:
    plan = planned("frame")
    texts = set()
    for world in (0, 5, 13):
        rigged_release(plan, world, points_of(plan)[1], 0.1)
        texts.add((repr(plan), str(plan.summary()), repr(plan.noise), repr(plan.worlds), plan.certificate.to_json()))
    assert len(texts) == 1


def test_the_refusal_of_a_second_release_and_the_warning_say_nothing_about_the_secret() -> None:
    errors, warned = set(), set()
    for world in (0, 9):
        plan = lc.plan(lambda x: x.mean(axis=0), X + 1000 + world, **SMALL)
        mechanism = plan._mechanism
        for again in (plan, lc.plan(lambda x: x.mean(axis=0), X + 1000 + world, **SMALL)):
            again._randomness = Rigged(again.noise, mechanism.step, world, points_of(again)[1], 0.0)
            if again is plan:
                again.release()
            else:
                with pytest.warns(lc.RepeatedReleaseWarning) as caught:
                    again.release()
                warned.add(str(caught[0].message))
            with pytest.raises(lc.AlreadyReleased) as refused:
                again.release()
            errors.add(str(refused.value))
    assert len(errors) == len(warned) == 1


@every_case
def test_the_certificate_is_complete_before_the_release_and_unchanged_by_it(name: str) -> None:
    plan = planned(name)
    before = plan.certificate.to_json(), pickle.dumps(plan.certificate)
    release = rigged_release(plan, 1, points_of(plan)[1], 0.2)
    assert release.certificate is plan.certificate
    assert (release.certificate.to_json(), pickle.dumps(release.certificate)) == before


# References


CUSTODIAN = (lc.Plan, Worlds, Outputs, Noise, Subspace, Node, Pool, Units, Token, Rigged)
CUSTODIAN += (modes.OneOfTheWorlds, modes.FreshWorld, modes.StoppingRule, modes.Settings, np.random.Generator)


def reachable(root: Any) -> Iterator[Any]:
    """Every object that can be reached from `root`, code apart: closures and defaults count, globals do not."""
    seen: dict[int, Any] = {}
    todo = [root]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, (type, types.ModuleType)):
            continue
        seen[id(one)] = one
        yield one
        if isinstance(one, types.FunctionType):
            todo += [one.__closure__, one.__defaults__, one.__kwdefaults__, one.__dict__]
        else:
            todo += gc.get_referents(one)
        if isinstance(one, np.ndarray):
            todo.append(one.base)


def arrays_of(root: Any) -> list[np.ndarray]:
    return [one for one in reachable(root) if isinstance(one, np.ndarray) and one.dtype != object and one.size]


def custodian_objects_in(root: Any, plan: lc.Plan, *private: Any) -> list[str]:
    """What a public object must not lead to: custodian types, and memory of outputs, masks, noise or data."""
    mechanism = plan._mechanism
    hidden = [plan.outputs, plan.worlds.packed, mechanism.exposure, mechanism.noise.deviations]
    hidden += [mechanism.noise.space.coordinates, mechanism.noise.space.outputs, mechanism.noise.space.centre]
    hidden += [one for part in private for one in arrays_of(part)]
    found = [type(one).__name__ for one in reachable(root) if isinstance(one, CUSTODIAN)]
    found += ["shared memory" for one in arrays_of(root) if any(np.shares_memory(one, other) for other in hidden)]
    return found


@every_case
def test_public_objects_lead_to_no_custodian_object(name: str) -> None:
    plan = planned(name)
    release = rigged_release(plan, 2, points_of(plan)[1], 0.0)
    assert not custodian_objects_in(release, plan, *CASES[name].data)
    assert not custodian_objects_in(plan.certificate, plan)


def test_the_walk_finds_planted_references() -> None:
    plan = planned("array")
    release = rigged_release(plan, 2, points_of(plan)[1], 0.0)
    outputs = plan.outputs
    planted = [
        replace(release, value=lambda: plan),
        replace(release, value={"a": [plan.worlds]}),
        replace(release, value=outputs[3:4]),
        replace(release, value=Answer(plan.noise.space.centre[:1], 0.0)),
        replace(release, value=functools.partial(print, plan._simulation.node)),
        replace(release, value=lambda table=outputs: table),
    ]
    assert all(custodian_objects_in(one, plan) for one in planted)


def shared_with(own: Any, value: Any) -> list[str]:
    """Parts of a released value that are, or share memory with, parts of what the function returned in a world."""
    theirs = {id(one) for one in reachable(own)}
    objects = [one for one in reachable(value) if isinstance(one, (BaseEstimator, pd.DataFrame, pd.Series, Answer))]
    blocks = arrays_of(own)
    return [type(one).__name__ for one in objects if id(one) in theirs] + [
        "memory" for one in arrays_of(value) if any(np.shares_memory(one, block) for block in blocks)
    ]


@pytest.mark.parametrize("name", ["array", "frame", "series", "dataclass", "ridge", "logistic", "kmeans", "pipeline"])
def test_a_released_value_is_fresh_and_shares_nothing_with_any_worlds_own_answer(name: str) -> None:
    plan, kept = planned(name), KEPT[name]
    value = rigged_release(plan, 0, points_of(plan)[1], 0.0).value
    assert len(kept) >= plan.worlds.m
    assert all(value is not own for own in kept)
    assert not [part for own in kept for part in shared_with(own, value)]
    assert shared_with(kept[0], [kept[0]]), "the check must see the planted twin: a world's own answer, released"


def test_an_attribute_that_drags_a_worlds_rows_along_is_refused() -> None:
    """A bound method of an object with the rows in it looks like a plain function with a name."""

    class Rows:
        def __init__(self, rows: np.ndarray) -> None:
            self.rows = rows

        def lookup(self, i: int) -> Any:
            return self.rows[i]

    Rows.lookup.__qualname__ = "Rows.lookup"

    class Model(BaseEstimator):
        def fit(self, x: np.ndarray) -> Model:
            self.mean_ = x.mean(axis=0)
            self.lookup_ = Rows(x).lookup
            return self

    with pytest.raises(lc.OutputError, match="lookup_"):
        lc.plan(lambda x: Model().fit(x), X, **SMALL)


def test_an_attribute_changed_in_place_between_worlds_is_seen_to_vary() -> None:
    """One object fitted again and again: comparing it with itself would find it equal in all worlds."""

    class Model(BaseEstimator):
        def fit(self, x: np.ndarray) -> Model:
            if not hasattr(self, "counts_"):
                self.counts_ = np.zeros(3, dtype=int)
            self.counts_[:] = (x * 1e6).sum(axis=0)
            self.mean_ = x.mean(axis=0)
            return self

    model = Model()
    with pytest.raises(lc.OutputError, match="counts_"):
        lc.plan(model.fit, X, **SMALL)


def test_labels_a_table_does_not_show_do_not_leave_with_it() -> None:
    """A MultiIndex keeps unused levels, which may hold data and do not count when two of them are compared."""

    def fn(x: np.ndarray) -> pd.Series:
        hidden = pd.MultiIndex(levels=[["mean", "var"], [1.0, 777123.25 + x[0, 0]]], codes=[[0, 1], [0, 0]])
        return pd.Series([x.mean(), x.var()], index=hidden)

    try:
        value = lc.plan(fn, X, seed=1, **SMALL).release().value
    except lc.OutputError:
        return  # refusing is as good
    assert list(value.index.levels[1]) == [1.0]


def test_keys_that_only_pretend_to_be_equal_are_refused() -> None:
    class Key:
        def __init__(self, row: np.ndarray) -> None:
            self.row = row

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Key)

        def __hash__(self) -> int:
            return 1

    with pytest.raises(lc.OutputError):
        lc.plan(lambda x: {Key(x[0]): x.mean()}, X, **SMALL)


# Custodian objects stay


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deep copy"])
def test_a_plan_is_neither_pickled_nor_copied(way: Callable[[Any], Any]) -> None:
    with pytest.raises(lc.LeakcapError, match="custodian"):
        way(planned("array"))


@every_case
def test_a_release_survives_pickling_with_its_public_side_only(name: str) -> None:
    plan = planned(name)
    release = rigged_release(plan, 4, points_of(plan)[1], 0.0)
    again = pickle.loads(pickle.dumps(release))
    assert again.certificate == release.certificate
    assert repr(again) == repr(release)
    assert set(vars(again)) == {"value", "certificate", "names", "_vector", "_widths"}
