"""Logistic regression in all worlds at once: softmax over the classes, coefficients penalised, intercepts not.

The worlds' solutions lie around the pool's, and so do their curvatures. All worlds therefore take quasi-Newton steps
together, from the pool's solution and with the pool's curvature, each correcting it by what its own gradients showed
(limited-memory BFGS). A step needs one gradient over the rows of each world, and the last gradient is the proof that
the world has arrived. A world that does not arrive is finished by Newton's method with a line search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from leakcap.errors import NumericalError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine, one_blas_thread
from leakcap.kernels.linear.newton import Numbers, coded, gradients, in_threads
from leakcap.kernels.moments.sums import masked_sums, sums_of
from leakcap.kernels.rows import table_of
from leakcap.worlds import Worlds

__all__ = ["ABSENT", "logistic"]

ABSENT = -30.0  # intercept of a class without rows, beside others of mean zero: a probability of about 1e-13
ERROR = 1e-7  # largest relative error of a world's weights, judged by the step that its gradient asks for
USUAL = 10  # steps that a world needs where the pool tells much about it
STEPS = 100  # together; what has not arrived by then goes on alone
ALONE = 300  # steps of Newton's method
FEW = 3  # worlds for which the pool is not worth a fit
PAIRS = 20  # steps that a world remembers
MEMORY_SHARE = 1 / 8  # of what may be used: steps that the worlds fitted together remember, and a copy of them
BLOCK = 4096  # rows whose products are made together


def logistic(
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    worlds: Worlds,
    *,
    C: float = 1.0,
    classes: npt.ArrayLike | None = None,
    memory: int = Machine().memory,
) -> Floats:
    """`(m, classes, d + 1)`: coefficients, then the intercept, of scikit-learn's `LogisticRegression` in each world.

    The minimiser of `|coefficients|^2 / 2 + C sum(-log p)`, p being a row's softmax probability of its own class, to
    a relative error below 1e-6, mostly 1e-8. The intercepts, which are free up to a common number, have mean zero, as
    in scikit-learn. Two classes have one row, which speaks for the second: `p = 1 / (1 + exp(-score))`.

    A class without rows in a world would have an intercept of minus infinity: its coefficients are 0 and its intercept
    is -30; the others are fitted without it. With two classes, the one intercept is then 30 or -30. In a world
    without rows everything is 0.

    So many worlds are fitted together as `memory`, in bytes, has room for what they remember.
    """
    weight = checks.positive(C=C)
    table = table_of(features, worlds)
    code, count = coded(labels, classes, len(table))
    if count == 2:
        weight /= 2  # two rows of a softmax, opposite halves of the one row, are penalised half as much as it is
    centre = table.mean(axis=0)
    scale = np.where(np.ptp(table, axis=0) > 0, table.std(axis=0), 1.0)
    data = np.column_stack([(table - centre) / scale, np.ones(len(table))])
    penalty = np.append(scale**-2.0, 0.0)
    there = masked_sums(np.eye(count)[code], worlds) > 0.5
    answer = np.zeros((worlds.m, count, data.shape[1]))
    with one_blas_thread():
        for pattern in np.unique(there, axis=0):
            which, kept = np.flatnonzero((there == pattern).all(axis=1)), np.flatnonzero(pattern)
            if len(kept):
                answer[np.ix_(which, np.flatnonzero(~pattern), np.array([-1]))] = ABSENT
            if len(kept) > 1:
                place = np.full(count, -1)
                place[kept] = np.arange(len(kept))
                answer[np.ix_(which, kept)] = _Model(
                    data=data, code=place[code], classes=len(kept), weight=weight, penalty=penalty, memory=memory
                ).fit(worlds, which)
    answer[:, :, :-1] /= scale
    answer[:, :, -1] -= answer[:, :, :-1] @ centre
    return answer[:, 1:] - answer[:, :1] if count == 2 else answer


@dataclass(frozen=True)
class _Model:
    """Softmax regression on some classes; rows of other classes have the code -1 and are in none of the worlds.

    Weights are `(classes, d)`; they add up to zero over the classes, as gradients and so all steps do.
    """

    data: Floats
    code: Numbers
    classes: int
    weight: float
    penalty: Floats
    memory: int = Machine().memory

    def fit(self, worlds: Worlds, which: npt.NDArray[np.intp]) -> Floats:
        """`(worlds, classes, d)`: the minimiser in each of these worlds."""
        found = np.empty((len(which), self.classes, self.data.shape[1]))
        rest = np.flatnonzero(~self._most(found, worlds, which))

        def finish(some: npt.NDArray[np.intp]) -> None:
            for at in rest[some]:
                here = worlds.mask(int(which[at]))
                found[at], _ = self.alone(self.data[here], self.code[here], self.weight)

        if len(rest):
            in_threads(finish, len(rest), together=1)
        return found

    def _most(self, found: Floats, worlds: Worlds, which: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Fit the worlds that can be fitted from the pool, and say which those are."""
        arrived = np.zeros(len(which), dtype=np.bool_)
        if len(which) < FEW:
            return arrived
        rows = self.code >= 0
        rate = worlds.sizes()[which].mean() / rows.sum()
        start, curvature = self.alone(self.data[rows], self.code[rows], self.weight * rate)
        try:
            inverse = np.asarray(np.linalg.inv(self._fixed(curvature)), dtype=np.float64)
        except np.linalg.LinAlgError:  # too flat for steps from here
            return arrived
        columns = np.ascontiguousarray(self.data.T)
        slopes = self._slopes_at(start, worlds, which)
        step = max(1, int(MEMORY_SHARE * self.memory) // (8 * 2 * 2 * PAIRS * start.size))
        for first in range(0, len(which), step):
            some = slice(first, first + step)
            found[some], arrived[some] = self._together(start, slopes[some], inverse, columns, worlds, which[some])
        return arrived

    def _slopes_at(self, start: Floats, worlds: Worlds, which: npt.NDArray[np.intp]) -> Floats:
        """`(worlds, classes, d)`: gradients at one point for all worlds, as sums of what each row gives."""
        apart = _probabilities(self.data @ start.T, self.code)[1]
        d = self.data.shape[1]

        def make(some: slice | npt.NDArray[np.intp]) -> Floats:
            return (apart[some, :-1, None] * self.data[some, None, :]).reshape(-1, (self.classes - 1) * d)

        if len(which) < worlds.m:
            worlds = Worlds(
                packed=worlds.packed[which], n=worlds.n, share=worlds.share, paired=False, design=worlds.design
            )
        sums = sums_of(make, (self.classes - 1) * d, worlds).reshape(len(which), self.classes - 1, d)
        return self._whole(sums, start)

    def _whole(self, slopes: Floats, weights: Floats) -> Floats:
        """Gradients of all classes and of the penalty, from those of all classes but the last."""
        return self.weight * np.append(slopes, -slopes.sum(axis=1, keepdims=True), axis=1) + self.penalty * weights

    def _together(
        self,
        start: Floats,
        slopes: Floats,
        inverse: Floats,
        columns: Floats,
        worlds: Worlds,
        which: npt.NDArray[np.intp],
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Quasi-Newton steps of many worlds, and which of them arrived."""
        shape = (len(which), *start.shape)
        weights, slope = np.broadcast_to(start, shape).reshape(len(which), -1).copy(), slopes.reshape(len(which), -1)
        arrived = np.zeros(len(which), dtype=np.bool_)
        memory: list[tuple[Floats, Floats]] = []
        going = np.arange(len(which))
        highest, before = np.full(len(which), np.inf), np.full(len(which), np.inf)
        for done in range(STEPS):
            move = -_direction(slope[going], [(s[going], y[going]) for s, y in memory], inverse)
            length = np.linalg.norm(move, axis=1)
            # Steps that shrink by a factor r add up to the first over 1 - r. A world that has needed many is one whose
            # curvature the pool's tells little about: there the next step must be smaller to be believed.
            ahead = length / np.maximum(1 - length / before[going], 0.01) * max(1, done / USUAL)
            near = ahead <= ERROR * np.linalg.norm(weights[going], axis=1)
            before[going] = length
            arrived[going[near]] = True
            weights[going[near]] += move[near]  # the step is known, and what it asks for is true
            height = np.einsum("ij,ij->i", slope[going] @ inverse, slope[going])
            highest[going] = np.minimum(highest[going], 100 * height)
            on = ~near & (height <= highest[going])  # not for NaN
            going, move = going[on], move[on]
            if not len(going):
                break
            weights[going] += move
            now = weights[going].reshape(-1, *start.shape)
            fresh = self._whole(
                gradients(
                    columns,
                    self.code,
                    worlds=worlds,
                    weights=now[:, :-1] - now[:, -1:],
                    loss="softmax",
                    which=which[going],
                ),
                now,
            ).reshape(len(going), -1)
            steps, turns = np.zeros_like(weights), np.zeros_like(weights)
            steps[going], turns[going] = move, fresh - slope[going]
            memory = [*memory[1 - PAIRS :], (steps, turns)]
            slope[going] = fresh
        return weights.reshape(shape), arrived

    def alone(self, data: Floats, code: Numbers, weight: float) -> tuple[Floats, Floats]:
        """The minimiser on some rows, and the curvature there: Newton's method with a line search.

        From zero, where the loss is bent most: far out it may be too flat for a step to be known.
        """

        def value_at(weights: Floats) -> tuple[float, Floats, Floats]:
            share, apart, loss = _probabilities(data @ weights.T, code)
            return weight * float(loss.sum()) + float((self.penalty * weights**2).sum()) / 2, share, apart

        weights, before = np.zeros((self.classes, data.shape[1])), np.inf
        value, share, apart = value_at(weights)
        for _ in range(ALONE):
            slope = weight * apart.T @ data + self.penalty * weights
            curvature = _curvature(data, share, weight, self.penalty)
            step = -_solve(self._fixed(curvature), slope.ravel()).reshape(slope.shape)
            gain = -float((slope * step).sum())
            left = float(np.linalg.norm(step)) / max(float(np.linalg.norm(weights)), 1e-300)
            if left <= ERROR * 1e-3 or gain <= 1e-25 * value or (left <= 10 * ERROR and gain >= before / 4):
                return weights, curvature  # as near as rounding lets it come
            length, before = 1.0, gain
            found, share, apart = value_at(weights + step)
            # Armijo's condition, where the gain is not lost in the digits of the value.
            while gain > 1e-10 * value and found > value - 1e-4 * length * gain and length > 1e-12:
                length /= 2
                found, share, apart = value_at(weights + length * step)
            weights, value = weights + length * step, found
        raise _trouble()

    def _fixed(self, curvature: Floats) -> Floats:
        """The curvature made positive where it is zero: along a common change of all classes, which no step makes."""
        d = self.data.shape[1]
        common = np.kron(np.ones((self.classes, self.classes)), np.diag(np.diag(curvature)[:d] + 1e-300))
        return np.asarray(curvature + common / self.classes)


def _probabilities(scores: Floats, code: Numbers) -> tuple[Floats, Floats, Floats]:
    """Softmax of each row, the same less one for its own class, and minus the logarithm of that class's probability.

    Probabilities near one keep all digits of what they lack.
    """
    place = code[:, None]
    apart = scores - np.take_along_axis(scores, place, axis=1)
    top = apart.max(axis=1, keepdims=True)
    found = np.exp(apart - top)
    others = found.copy()
    np.put_along_axis(others, place, 0.0, axis=1)
    rest, total = others.sum(axis=1, keepdims=True), found.sum(axis=1, keepdims=True)
    np.put_along_axis(others, place, -rest, axis=1)
    loss = np.where(top > 0, top + np.log(total), np.log1p(rest))
    return found / total, others / total, loss[:, 0]


def _curvature(data: Floats, share: Floats, weight: float, penalty: Floats) -> Floats:
    """Second derivatives, `(classes * d, classes * d)`: a pair of classes bends where rows may belong to both."""
    n, d = data.shape
    classes = share.shape[1]
    found = np.zeros((classes, d, classes, d))
    weighted = np.empty((min(BLOCK, n), d))
    for k, j in zip(*np.triu_indices(classes, 1), strict=True):
        both, block = share[:, k] * share[:, j], np.zeros((d, d))
        for start in range(0, n, BLOCK):
            some = data[start : start + BLOCK]
            block += np.multiply(some, both[start : start + BLOCK, None], out=weighted[: len(some)]).T @ some
        block *= weight
        found[k, :, j] = found[j, :, k] = -block
        found[k, :, k] += block
        found[j, :, j] += block
    whole = found.reshape(classes * d, classes * d)
    whole[np.diag_indices(classes * d)] += np.tile(penalty, classes)
    return whole


def _solve(left: Floats, right: Floats) -> Floats:
    """Solution of positive definite equations; unknowns of any size, and some that the equations barely hold."""
    size = np.sqrt(np.diag(left))
    try:
        root = cho_factor(left / np.outer(size, size) + 1e-13 * np.eye(len(left)))
    except np.linalg.LinAlgError:
        raise _trouble() from None
    return np.asarray(cho_solve(root, right / size) / size)


def _direction(slope: Floats, memory: list[tuple[Floats, Floats]], inverse: Floats) -> Floats:
    """Slopes times the inverse curvature as each world knows it (two loops over its remembered steps)."""
    found = slope.copy()
    used = []
    for step, turn in reversed(memory):
        bend = np.einsum("ij,ij->i", step, turn)
        share = np.where(bend > 0, np.einsum("ij,ij->i", step, found) / np.where(bend > 0, bend, 1), 0.0)
        found -= share[:, None] * turn
        used.append((step, turn, bend, share))
    found = found @ inverse
    for step, turn, bend, share in reversed(used):
        back = np.where(bend > 0, np.einsum("ij,ij->i", turn, found) / np.where(bend > 0, bend, 1), 0.0)
        found += (share - back)[:, None] * step
    return found


def _trouble() -> NumericalError:
    return NumericalError("a logistic regression did not converge: bring the columns to one scale, or make C smaller")
