"""Private random forests: thresholds and the votes of the leaves, both with noise."""

from __future__ import annotations

import functools
import secrets
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from leakcap import checks, kernels
from leakcap.errors import InputError
from leakcap.estimators.base import COMMON, Mechanism, Rows
from leakcap.estimators.classification import PrivateClassifier
from leakcap.estimators.trees import Ground, Rulers, VotingTrees, drawn_nodes, drawn_rungs
from leakcap.worlds import Units, Worlds

__all__ = ["RandomForestClassifier"]

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
MOST = 2**20  # votes: more numbers than anyone releases


@dataclass(eq=False, repr=False)
class RandomForestClassifier(PrivateClassifier):
    __doc__ = f"""A random forest with private thresholds, and private votes in the leaves.

    The trees are complete, and the feature of each level is drawn beforehand, without the data. In each world every
    node takes the threshold of least entropy. What leaves, with noise, is every threshold (as a share of the pool's
    rows, so that an error counts by the rows it moves) and for every leaf and class its share of the world's rows;
    all predictions come from these. scikit-learn's trees choose their features too: these need more trees to be as
    good, and far less noise.

    Args:
        n_estimators: how many trees.
        max_depth: of each; it has `2**max_depth` leaves.
        n_thresholds: among how many a node chooses, evenly spaced inside the range of its feature.
        smoothing: weight of the two neighbours' entropy in the cost of a threshold.
        penalty: what a threshold at an end of its range costs against one in the middle, in nats for each row of the
            pool. Without it a few rows that are out of place decide how nodes of one class are cut, and most of the
            noise is there to hide them.
        splits: "entropy", or "random": thresholds drawn without the data. They are public; only votes leave.
        ranges: `(low, high)`, a number or one for each column: where thresholds may lie. None takes the lowest and
            the highest values of the pool, which are single people's: declare the ranges if you can.
        class_weight: None, a dict, or "balanced": in each world by its own counts.
    {COMMON}"""

    n_estimators: int = 10
    _: KW_ONLY
    max_depth: int = 5
    n_thresholds: int = 40
    smoothing: float = 0.5
    penalty: float = 0.01
    splits: str = "entropy"
    ranges: Any = None
    class_weight: Any = None
    _knobs: ClassVar[tuple[str, ...]] = ("penalty",)

    def predict_proba(self, X: Any) -> Any:
        """Shares of the classes, by the released votes: positive, and they add to 1."""
        return self._asked("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Their logarithms."""
        return np.log(self.predict_proba(X))

    def _mechanism(self, rows: Rows) -> Mechanism:
        features, codes, classes = rows.features, rows.target, rows.classes
        assert codes is not None and classes is not None
        ground = self._ground(features, classes)
        known = ["The classes that occur."]
        if self.ranges is None:
            known.append("The range of the thresholds: the lowest and the highest value of each column.")
        weight = None if rows.weight is None else rows.weight / rows.weight.mean()
        if ground.drawn is not None:
            rulers = None
        else:
            if weight is None:
                pool = ground.grown(features, codes, Worlds.everybody(len(features)))[0][0]
            else:
                pool = ground.grown_by_weight(features, codes, weight)[0]
            rulers = Rulers.of(features, ground, pool)
            known.append("The unit of each threshold: how the pool's rows lie along each node of the pool's forest.")
        return Mechanism(
            functools.partial(_forest if weight is None else _weighted_forest, ground=ground, rulers=rulers),
            (features, codes) if weight is None else (features, codes, weight),
            functools.partial(_build, ground=ground, rulers=rulers, classes=classes),
            self._accuracy(rows),
            tuple(known),
        )

    def _structure(self) -> np.random.Generator:
        """What trees look like is public: it does not depend on the data. Settings that are compared share it."""
        seed = self._seed()
        return np.random.default_rng(
            self.__dict__.setdefault("_drawn", secrets.randbits(128)) if seed is None else seed
        )

    def _ground(self, features: Floats, classes: npt.NDArray[Any]) -> Ground:
        checks.count(n_estimators=self.n_estimators)
        checks.count(max_depth=self.max_depth)
        checks.count(n_thresholds=self.n_thresholds)
        checks.nonnegative(penalty=self.penalty)
        checks.choice(("entropy", "random"), splits=self.splits)
        if self.max_depth > 20 or self.n_estimators * 2**self.max_depth * len(classes) > MOST:
            raise InputError(f"the leaves of all trees would have over {MOST} votes: lower max_depth or n_estimators")
        low, high = _ends(self.ranges, features)
        steps = np.linspace(0, 1, self.n_thresholds + 2)[1:-1]
        rng = self._structure()
        nodes = drawn_nodes(len(low), self.n_estimators, self.max_depth, rng)
        # Differs from the paper: thresholds cost by their distance from the middle of the range, not from its low end.
        costs = self.penalty * len(features) * np.abs(2 * steps - 1)
        return Ground(
            nodes,
            low[:, None] + (high - low)[:, None] * steps,
            np.tile(costs, (len(low), 1)) if self.penalty else None,
            checks.probability(smoothing=self.smoothing),
            _weight_of(self.class_weight, classes),
            len(classes),
            len(features),
            drawn_rungs(nodes.shape, self.n_thresholds, rng) if self.splits == "random" else None,
        )


def _ends(ranges: Any, features: Floats) -> tuple[Floats, Floats]:
    """The lower and the upper end of every column's range."""
    d = features.shape[1]
    if ranges is None:
        low, high = features.min(axis=0), features.max(axis=0)
        return low, np.where(low < high, high, low + 1)
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (d,)) for end in ranges)
    except (TypeError, ValueError):
        raise InputError(f"ranges must be (low, high), each a number or one for each of the {d} columns") from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InputError("ranges must be finite, and each low end below its high end")
    return low, high


def _weight_of(class_weight: Any, classes: npt.NDArray[Any]) -> Floats | str | None:
    if class_weight is None or isinstance(class_weight, str):
        return None if class_weight is None else checks.choice(("balanced",), class_weight=class_weight)
    if not isinstance(class_weight, dict):
        raise InputError("class_weight must be None, 'balanced', or a dict of a number for each class")
    return np.array([checks.nonnegative(class_weight=class_weight.get(one, 1.0)) for one in classes.tolist()])


def _numbers(rungs: Numbers, votes: Floats, rulers: Rulers | None) -> dict[str, Floats]:
    """The answers of worlds: thresholds, where they are chosen, then votes."""
    return {"votes": votes} if rulers is None else {"thresholds": rulers.read(rungs), "votes": votes}


def _all_forests(
    data: tuple[Any, ...], units: Units, worlds: Worlds, *, ground: Ground, rulers: Rulers | None
) -> Floats:
    features, codes = data
    parts = _numbers(*ground.grown(features, codes, worlds.over_rows(units)), rulers)
    return np.concatenate([part.reshape(worlds.m, -1) for part in parts.values()], axis=1)


@kernels.offers(_all_forests)
def _forest(features: Floats, codes: Numbers, *, ground: Ground, rulers: Rulers | None) -> dict[str, Floats]:
    rungs, votes = ground.grown(features, codes, Worlds.everybody(len(features)))
    return _numbers(rungs[0], votes[0], rulers)


def _weighted_forest(
    features: Floats, codes: Numbers, weight: Floats, *, ground: Ground, rulers: Rulers | None
) -> dict[str, Floats]:
    return _numbers(*ground.grown_by_weight(features, codes, weight), rulers)


def _build(
    value: dict[str, Floats], *, ground: Ground, rulers: Rulers | None, classes: npt.NDArray[Any]
) -> VotingTrees:
    if rulers is not None:
        thresholds = rulers.find(value["thresholds"])
    else:
        assert ground.drawn is not None
        thresholds = ground.ladder[ground.nodes, ground.drawn]
    return VotingTrees.of(ground.nodes, thresholds, np.asarray(value["votes"]), classes)
