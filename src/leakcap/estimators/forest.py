"""Private random forests: values of the leaves of public trees, or thresholds and votes, with noise."""

from __future__ import annotations

import functools
import math
import secrets
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from leakcap import kernels
from leakcap.errors import InputError
from leakcap.estimators.class_sums import OfDeclaredClasses
from leakcap.estimators.classifiers import Probabilities
from leakcap.estimators.computation import Computation
from leakcap.estimators.data import Rows
from leakcap.estimators.leaf_values import LeafCounts, counted_forest, fitted_leaves
from leakcap.estimators.public_trees import PublicTrees, even_ladder, quantile_ladder
from leakcap.estimators.settings import seed_of
from leakcap.estimators.trees import Rulers, Skeleton, VotingTrees, drawn_nodes, drawn_rungs
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.worlds import Units, Worlds

__all__ = ["RandomForestClassifier"]

MAX_VOTES = 2**20  # votes in a forest: more numbers than anyone releases


@dataclass(eq=False, repr=False)
class RandomForestClassifier(Probabilities, OfDeclaredClasses):
    """A random forest: private values in the leaves of public trees; or, by choice, private thresholds and votes.

    The trees are complete, and the features of their nodes are drawn beforehand, without the data. By default so are
    thresholds, among the pool's quantiles or within declared `ranges`, and no label has a part in them. What is learnt
    are scores of the classes as sums of values of leaves, fitted by least squares along the few directions in which
    the leaves of the pool's rows differ most: few numbers, so little noise. With `options={"design": "bits"}` a coin
    for everybody moves the pool's own fit. Under a pool cap trees come from declared bounds, and leaves hold counts.

    With `splits="entropy"` every node takes, in each world, the threshold of least entropy, and thresholds and votes
    leave with noise: far more numbers.

    Args:
        n_estimators: number of trees.
        max_depth: depth of each tree, which has `2**max_depth` leaves.
        n_thresholds: number of thresholds that a node chooses from: quantiles of its feature in the pool; evenly spaced
            inside its range where `ranges` are given, and for other `splits`.
        alpha: for public splits, strength of the penalty on values of leaves, in rows. A larger one needs less noise.
        n_directions: for public splits, along how many directions values are fitted; "auto": two thirds of the root of
            the number of rows, from 4 to 64.
        smoothing: weight of the two neighbours' entropy in the cost of a threshold, from 0 to 1.
        penalty: what a threshold at an end of its range costs against one in the middle, in nats for each row of the
            pool. Without it a few rows that are out of place decide how nodes of one class are cut, and most of the
            noise is there to hide them.
        splits: "public", as above; "entropy"; or "random": thresholds drawn without the data, and votes of leaves.
        ranges: `(low, high)`, each a number or one for each column: where thresholds may lie. None takes the lowest and
            the highest values of the pool, which belong to single people, or for public splits the pool's quantiles:
            declare the ranges if you can.
        classes: under a pool cap, the classes there may be, known without the data. Rows of others count nowhere.
        class_weight: None, a dict of a weight for each class, or "balanced": in each world by the world's own counts.
        cap: what may be learnt about who took part, such as `lc.membership(0.55)`; one cap or a list. `fit` needs it.
        worlds: number of possible worlds in which the fit is simulated; "auto": 1,024, up to 4,096 with a kernel.
        strata: "y" for worlds that hold every class in proportion, or the name of a column; `fit` also takes an array.
        random_state: None for a release. A number makes the fit a simulation, and its certificate says so.
        pool_public: in words, what was done to the data by looking at all of them, such as `("columns scaled",)`.
        options: further arguments of `leakcap.plan`, such as `{"workers": 2, "progress": True}`.

    Attributes:
        nodes_: `(trees, 2**depth - 1)`, the feature of every node, level by level.
        thresholds_: of the same shape, released: a row goes right where its value is at or above.
        votes_: `(trees, 2**depth, classes)`, released: what each leaf adds to the score of each class; for other splits
            shares of all rows, of which noise may have taken some below 0.
        classes_: the classes that occur in the pool, or those declared.
        estimator_: the plain scikit-learn estimator that holds the released numbers and nothing else.
        certificate_: what the release guarantees; may be published.
        plan_: the plan of the last fit. Custodian side: it is never saved or copied with the estimator.

    Examples:
        >>> import leakcap as lc
        >>> from sklearn.datasets import make_blobs
        >>> X, y = make_blobs(200, centers=2, random_state=0)
        >>> settings = {"cap": lc.membership(0.9), "worlds": 16, "random_state": 0, "options": {"draws": 512}}
        >>> RandomForestClassifier(3, max_depth=2, **settings).fit(X, y).votes_.shape
        (3, 4, 2)
    """

    n_estimators: int = 64
    _: KW_ONLY
    max_depth: int = 4
    n_thresholds: int = 16
    alpha: float = 10.0
    n_directions: Any = "auto"
    smoothing: float = 0.5
    penalty: float = 0.01
    splits: str = "public"
    ranges: Any = None
    class_weight: Any = None
    classes: Any = None
    _knobs: ClassVar[tuple[str, ...]] = ("alpha", "penalty")

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the shares of the classes, by the released votes.

        Args:
            X: rows and columns, as given to `fit`.

        Returns:
            `(rows, classes)`, in the order of `classes_`.
        """
        return np.log(self.predict_proba(X))

    def _computation(self, rows: Rows) -> Computation:
        checks.choice(("public", "entropy", "random"), splits=self.splits)
        if self.splits == "public":
            return self._fitted_leaves(rows, "worlds")
        features, codes, classes = rows.features, rows.target, rows.classes
        assert codes is not None and classes is not None
        skeleton = self._skeleton(features, classes)
        known = ["The classes that occur."]
        if self.ranges is None:
            known.append("The range of the thresholds: the lowest and the highest value of each column.")
        weight = None if rows.weight is None else rows.weight / rows.weight.mean()
        if skeleton.drawn is not None:
            rulers = None
        else:
            if weight is None:
                pool = skeleton.grown(features, codes, Worlds.everybody(len(features)))[0][0]
            else:
                pool = skeleton.grown_by_weight(features, codes, weight)[0]
            rulers = Rulers.of(features, skeleton, pool)
            known.append("The unit of each threshold: how the pool's rows lie along each node of the pool's forest.")
        return Computation(
            answer=functools.partial(_forest if weight is None else _weighted_forest, skeleton=skeleton, rulers=rulers),
            data=(features, codes) if weight is None else (features, codes, weight),
            build=functools.partial(_build, skeleton=skeleton, rulers=rulers, classes=classes),
            utility=self._accuracy(rows),
            pool_public=tuple(known),
        )

    def _sums_of_half(self, rows: Rows) -> Computation:
        if self.splits != "public":
            raise InputError("with a coin for everybody the form of trees is public: leave out splits")
        return self._fitted_leaves(rows, "bits")

    def _sums_of_all(self, rows: Rows) -> Computation:
        if self.splits != "public" or self.ranges is not None or self.class_weight is not None:
            raise InputError("under a pool cap trees come from declared bounds: leave out splits, ranges, class_weight")
        classes = rows.classes
        assert classes is not None
        self._refuse_size(len(classes))
        answer = LeafCounts(self._drawer(), self.n_thresholds, self._column_names(), classes=len(classes))
        build = functools.partial(counted_forest, classes=classes)
        return Computation(answer, (rows.features, rows.target), build, utility=self._accuracy(rows), weights=None)

    def _fitted_leaves(self, rows: Rows, design: str) -> Computation:
        """Values of leaves, in worlds or where a coin decides about everybody."""
        features, classes = rows.features, rows.classes
        assert classes is not None
        self._refuse_size(len(classes))
        known = ["The classes that occur."]
        if self.ranges is None:
            ladder = quantile_ladder(features, self.n_thresholds)
            known.append("Where thresholds may lie: at quantiles of the pool's columns.")
        else:
            ladder = even_ladder(*_ends(self.ranges, features), self.n_thresholds)
        made = fitted_leaves(
            replace(rows, weight=self._row_weights(rows)),
            self._drawer()(ladder),
            alpha=checks.positive(alpha=self.alpha),
            most=self._directions(len(features)),
            design=design,
        )
        return replace(made, utility=self._accuracy(rows), pool_public=(*made.pool_public, *known))

    def _directions(self, rows: int) -> int:
        if self.n_directions == "auto":
            return min(max(round(2 / 3 * math.sqrt(rows)), 4), 64)
        return checks.count(n_directions=self.n_directions)

    def _row_weights(self, rows: Rows) -> Floats | None:
        """Of rows and their classes together; None where all are 1."""
        assert rows.target is not None and rows.classes is not None
        weight = _weight_of(self.class_weight, rows.classes)
        if weight is None:
            return rows.weight
        if isinstance(weight, str):
            raise InputError("class_weight='balanced' is for other splits: give a weight for each class")
        return (1.0 if rows.weight is None else rows.weight) * np.asarray(weight)[rows.target]

    def _drawer(self) -> Callable[[Floats], PublicTrees]:
        """The same trees for the same ladder: what a session has answered once is of the same trees the next time."""
        seed = seed_of(self.random_state) or 0
        return lambda ladder: PublicTrees.drawn(ladder, self.n_estimators, self.max_depth, np.random.default_rng(seed))

    def _refuse_size(self, classes: int) -> None:
        checks.count(n_estimators=self.n_estimators)
        checks.count(max_depth=self.max_depth)
        checks.count(n_thresholds=self.n_thresholds)
        if self.max_depth > 20 or self.n_estimators * 2**self.max_depth * classes > MAX_VOTES:
            raise InputError(
                f"the leaves of all trees would have over {MAX_VOTES} votes: lower max_depth or n_estimators"
            )

    def _structure(self) -> np.random.Generator:
        """The source of the trees' form: public, since it does not depend on the data. Compared settings share it."""
        seed = seed_of(self.random_state)
        return np.random.default_rng(
            self.__dict__.setdefault("_drawn", secrets.randbits(128)) if seed is None else seed
        )

    def _skeleton(self, features: Floats, classes: npt.NDArray[Any]) -> Skeleton:
        checks.nonnegative(penalty=self.penalty)
        self._refuse_size(len(classes))
        low, high = _ends(self.ranges, features)
        steps = np.linspace(0, 1, self.n_thresholds + 2)[1:-1]
        rng = self._structure()
        nodes = drawn_nodes(len(low), self.n_estimators, self.max_depth, rng)
        # Differs from the paper: thresholds cost by their distance from the middle of the range, not from its low end.
        costs = self.penalty * len(features) * np.abs(2 * steps - 1)
        return Skeleton(
            nodes=nodes,
            ladder=low[:, None] + (high - low)[:, None] * steps,
            penalties=np.tile(costs, (len(low), 1)) if self.penalty else None,
            smoothing=checks.probability(smoothing=self.smoothing),
            class_weight=_weight_of(self.class_weight, classes),
            classes=len(classes),
            pool=len(features),
            drawn=drawn_rungs(nodes.shape, self.n_thresholds, rng) if self.splits == "random" else None,
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


def _numbers(rungs: Ints, votes: Floats, rulers: Rulers | None) -> dict[str, Floats]:
    """The answers of worlds: thresholds, where they are chosen, then votes."""
    return {"votes": votes} if rulers is None else {"thresholds": rulers.read(rungs), "votes": votes}


def _all_forests(
    data: tuple[Any, ...], units: Units, worlds: Worlds, *, skeleton: Skeleton, rulers: Rulers | None
) -> Floats:
    features, codes = data
    parts = _numbers(*skeleton.grown(features, codes, worlds.over_rows(units)), rulers)
    return np.concatenate([part.reshape(worlds.m, -1) for part in parts.values()], axis=1)


@kernels.offers(_all_forests)
def _forest(features: Floats, codes: Ints, *, skeleton: Skeleton, rulers: Rulers | None) -> dict[str, Floats]:
    rungs, votes = skeleton.grown(features, codes, Worlds.everybody(len(features)))
    return _numbers(rungs[0], votes[0], rulers)


def _weighted_forest(
    features: Floats, codes: Ints, weight: Floats, *, skeleton: Skeleton, rulers: Rulers | None
) -> dict[str, Floats]:
    return _numbers(*skeleton.grown_by_weight(features, codes, weight), rulers)


def _build(
    value: dict[str, Floats], *, skeleton: Skeleton, rulers: Rulers | None, classes: npt.NDArray[Any]
) -> VotingTrees:
    if rulers is not None:
        thresholds = rulers.find(value["thresholds"])
    else:
        assert skeleton.drawn is not None
        thresholds = skeleton.ladder[skeleton.nodes, skeleton.drawn]
    return VotingTrees.of(skeleton.nodes, thresholds, np.asarray(value["votes"]), classes)
