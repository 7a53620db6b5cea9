"""Releases whose secret is chosen: two of them give the same output, point and noise."""

from __future__ import annotations

import copy
import functools
import gc
import itertools
import pickle
import types
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakcap as lc
from leakcap import modes
from leakcap.noise import Noise, Subspace
from leakcap.planning.plans import LEVELS
from leakcap.planning.released import Token
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
    "matched": Case(lambda x: x.mean(axis=0), options=(("design", "matched"),)),
    "central": Case(lambda x: x.mean(axis=0), options=(("design", "central"),)),
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
    return Token(lambda: [number])


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
    mechanism = plan.releaser
    kept = plan.randomness, plan._token
    plan.randomness = Rigged(mechanism.noise, mechanism.step, world, point, jitter)
    plan._token = new_token()
    try:
        return plan.release()
    finally:
        plan.randomness, plan._token = kept


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


CUSTODIAN = (lc.Plan, Worlds, Outputs, Noise, Subspace, Node, Pool, Units, Token, Rigged)
CUSTODIAN += (modes.OneOfTheWorlds, modes.FreshWorld, modes.StoppingRule, modes.NoiseSettings, np.random.Generator)


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
    mechanism = plan.releaser
    hidden = [plan.outputs, plan.worlds.packed, mechanism.exposure, mechanism.noise.deviations]
    hidden += [mechanism.noise.space.coordinates, mechanism.noise.space.outputs, mechanism.noise.space.centre]
    hidden += [one for part in private for one in arrays_of(part)]
    found = [type(one).__name__ for one in reachable(root) if isinstance(one, CUSTODIAN)]
    found += ["shared memory" for one in arrays_of(root) if any(np.shares_memory(one, other) for other in hidden)]
    return found
