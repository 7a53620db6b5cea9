"""A small network as a teacher: hundreds of them are trained at once, each on the labels of its own part."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from leakcap.errors import InputError, NumericalError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats, Ints
from leakcap.kernels.gpu.device import load
from leakcap.kernels.gpu.networks import Networks, class_scores, spread_of
from leakcap.simulate.teaching import generator_of

__all__ = ["MLPTeacher", "network_votes"]

AT_ONCE = 2**25  # numbers of gathered rows and of scores


class MLPTeacher(ClassifierMixin, BaseEstimator):
    """A network of dense layers for a few labels, trained by full steps of gradient descent; it needs torch.

    Columns are brought to mean 0 and deviation 1 by all rows that it is given, labelled or not. As the teacher of
    `PATE` hundreds of them are trained at once, on a GPU if there is one.

    It promises nothing about the labels that it is given: privacy comes from the noise on its votes.

    Args:
        hidden: neurons of each hidden layer.
        steps: of training, each over all labelled rows.
        rate: of learning.
        device: "cuda" or "cpu"; a GPU if there is one.
        random_state: seed of the first weights.

    Attributes:
        classes_: those of the labelled rows.
        layers_: `(weights, biases)` of each layer, for rows as they are given.

    Examples:
        >>> import leakcap as lc
        >>> lc.labels.MLPTeacher(hidden=(32,), steps=100)
        MLPTeacher(hidden=(32,), steps=100)
    """

    def __init__(
        self,
        hidden: Sequence[int] = (64,),
        *,
        steps: int = 200,
        rate: float = 0.1,
        device: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.steps = steps
        self.rate = rate
        self.device = device
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> MLPTeacher:
        """Learn from all rows; those with the label -1 have none.

        Args:
            X: features.
            y: labels, -1 where there is none.

        Returns:
            The classifier itself, fitted.

        Raises:
            InputError: a setting is out of range, or no row has a label.
            NumericalError: training diverged.
            MissingExtra: torch is not installed.
        """
        how = networks_of(self)
        table, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        known = np.asarray(labels != -1)
        if not known.any():
            raise InputError("no row has a label: -1 stands for rows without one")
        self.classes_, codes = np.unique(labels[known], return_inverse=True)
        draws, classes = [generator_of(self.random_state)], len(self.classes_)
        layers, sound = how.learnt(table[known][None], codes[None], draws, classes=classes, spread=spread_of(table))
        if not sound.all():
            raise NumericalError("training diverged: choose a smaller rate")
        self.layers_ = [(weight[0], bias[0]) for weight, bias in layers]
        return self

    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """A score for every class.

        Args:
            X: features, as given to the fit.

        Returns:
            `(rows, classes)`; with two classes that of the second less that of the first.
        """
        scores = self._scores(X)
        return np.asarray(scores[:, 1] - scores[:, 0]) if len(self.classes_) == 2 else scores

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """The network's probability of every class.

        Args:
            X: features, as given to the fit.

        Returns:
            `(rows, classes)`, in the order of `classes_`.
        """
        scores = self._scores(X)
        grown = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(grown / grown.sum(axis=1, keepdims=True))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The class of the largest score.

        Args:
            X: features, as given to the fit.

        Returns:
            A class for each row.
        """
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _scores(self, X: npt.ArrayLike) -> Floats:
        check_is_fitted(self)
        found = validate_data(self, X, dtype=np.float64, reset=False)
        for place, (weight, bias) in enumerate(self.layers_):
            found = (np.maximum(found, 0) if place else found) @ weight + bias
        return np.asarray(found)


def networks_of(teacher: MLPTeacher) -> Networks:
    """How such a teacher learns; settings that make no sense are refused."""
    if not isinstance(teacher.hidden, Sequence):
        raise InputError("hidden must list the neurons of each hidden layer, such as (64,)")
    device = teacher.device or ("cuda" if load().cuda.is_available() else "cpu")
    hidden = tuple(checks.count(hidden=size) for size in teacher.hidden)
    return Networks(hidden, checks.count(steps=teacher.steps), checks.positive(rate=teacher.rate), device)


def network_votes(
    teacher: MLPTeacher,
    features: Floats,
    codes: Ints,
    asked: Floats,
    *,
    parts: Sequence[Ints],
    seeds: Sequence[int],
    classes: int,
    whole: bool,
) -> Ints:
    """`(asked, classes)`: how many teachers, one a part, name each class for each row, all of them trained at once.

    Guarantee: a network learns from its own part of the labels and from nothing that another part's labels move. One
    whose training diverges has no vote.

    Args:
        teacher: their settings.
        features: `(n, d)`, all rows.
        codes: `(n,)`, their classes as numbers from 0.
        asked: `(rows, d)` to vote on.
        parts: rows of each teacher.
        seeds: of each teacher's first weights, where the teacher has no seed of its own.
        classes: how many; one that a part has no row of is never named by it.
        whole: take the spread of columns from all rows, not from each teacher's own.
    """
    how, votes = networks_of(teacher), np.zeros((len(asked), classes), dtype=np.int64)
    spread = spread_of(features) if whole else None
    for places in _alike(parts, features.shape[1] + len(asked)):
        rows = np.stack([parts[place] for place in places])
        own = features[rows]
        draws = [_draws(teacher, seeds[place]) for place in places]
        layers, sound = how.learnt(own, codes[rows], draws, classes=classes, spread=spread or spread_of(own))
        layers = [(weight[sound], bias[sound]) for weight, bias in layers]
        for some, scores in class_scores(layers, asked, how.device):
            named = scores.argmax(axis=2)
            for place in range(classes):
                votes[some, place] += (named == place).sum(axis=0)
    return votes


def _draws(teacher: MLPTeacher, seed: int) -> np.random.RandomState:
    """As a copy of the teacher would draw, with the process's generator begun by this seed."""
    own = teacher.random_state
    return np.random.RandomState(seed) if own is None else generator_of(copy.deepcopy(own))


def _alike(parts: Sequence[Ints], columns: int) -> list[list[int]]:
    """Places of parts of one size, as many at a time as memory likes."""
    order = sorted(range(len(parts)), key=lambda place: len(parts[place]))
    found = []
    for size, group in groupby(order, key=lambda place: len(parts[place])):
        places, some = list(group), max(1, AT_ONCE // max(1, size * columns))
        found += [places[first : first + some] for first in range(0, len(places), some)]
    return found
