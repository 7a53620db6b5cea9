"""Linear support vector machines in all worlds at once: squared hinge loss, each class against the rest.

The loss is quadratic as long as the same rows lie inside the margin. At the pool's solution these rows are the same
for all worlds, so the quadratics of all worlds are sums over the rows of each; from there only rows that cross the
margin change them. Everything happens in coordinates in which the pool's quadratic is nearly the identity: no digits
are lost to columns of different size, and a row far from the margin is seen not to cross it by its length alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from leakcap.errors import NumericalError
from leakcap.ground import checks
from leakcap.ground.arrays import Floats
from leakcap.ground.cores import Machine, one_blas_thread
from leakcap.kernels.linear.newton import Numbers, coded, gradients, in_threads
from leakcap.kernels.moments.blocks import bytes_a_world, in_blocks
from leakcap.kernels.moments.scatter import by_products, products_are_cheaper
from leakcap.kernels.moments.sums import sums_of
from leakcap.kernels.rows import table_of
from leakcap.worlds import Worlds

__all__ = ["linear_svm"]

STEPS = 25  # of Newton's method, after which a world is finished by itself
ALONE = 200  # steps with a line search
ERROR = 1e-7  # largest error of the weights, relative, in the norm of the pool's quadratic
ROWS = 2**16  # that are orthogonalised together


def linear_svm(
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    worlds: Worlds,
    *,
    C: float = 1.0,
    classes: npt.ArrayLike | None = None,
    intercept_scaling: float = 1.0,
    memory: int = Machine().memory,
) -> Floats:
    """`(m, classes, d + 1)`: coefficients, then the intercept, of scikit-learn's `LinearSVC` in each world.

    The minimiser of `|w|^2 / 2 + C sum(max(0, 1 - y f)^2)`, where the intercept is the weight of a column of value
    `intercept_scaling` and is penalised like the others. With two classes there is one row, which speaks for the
    second, as in scikit-learn. The minimiser exists and is unique in every world: a class without rows has -1 for all
    its targets, and a world without rows gets zeros. The gradient over all rows of each world is checked to vanish.
    Quadratics take the square of the columns in each world: so many worlds are taken together as fit into `memory`.
    """
    weight = 2 * checks.positive(C=C)
    scaling = checks.positive(intercept_scaling=intercept_scaling)
    table = table_of(features, worlds)
    code, count = coded(labels, classes, len(table))
    if count == 2:
        code, count = 1 - code, 1
    sizes = worlds.sizes()
    rate = sizes.mean() / len(table)
    if rate == 0:
        return np.zeros((worlds.m, count, table.shape[1] + 1))
    with one_blas_thread():
        data, back = _even(np.column_stack([table, np.full(len(table), scaling)]), weight * rate)
        prior = back.T @ back
        starts = _pool(data, code, count=count, weight=weight * rate, prior=prior)
        found, roots = np.empty((worlds.m, count, data.shape[1])), np.empty((count, *prior.shape))
        for k in range(count):
            start = _Start.at(starts[k], data, sign=np.where(code == k, 1.0, -1.0), weight=weight * rate, prior=prior)
            for numbers, some in in_blocks(worlds, memory // bytes_a_world(data.shape[1])):
                found[numbers, k] = starts[k] + _steps(start, some, weight) @ start.back.T
            roots[k] = start.root
            del start  # the next one is as large
        _check(found, np.ascontiguousarray(data.T), code=code, worlds=worlds, weight=weight, prior=prior, roots=roots)
    answer = found @ back.T
    answer[:, :, -1] *= scaling
    answer[sizes == 0] = 0.0
    return np.asarray(answer)


@dataclass(frozen=True)
class _Start:
    """The pool's solution of one class, and the rows seen from there, the nearest to crossing the margin first.

    Coordinates are those of the identity; `back` leads from there to the ones of the data.
    """

    root: Floats
    back: Floats
    prior: Floats
    pull: Floats
    length: float
    rows: Floats  # (n, d), each times its target
    columns: Floats
    slack: Floats
    size: Floats
    reach: Floats
    order: npt.NDArray[np.intp]

    @classmethod
    def at(cls, point: Floats, data: Floats, sign: Floats, weight: float, prior: Floats) -> _Start:
        slack = 1 - sign * (data @ point)
        inside = data[slack > 0]
        root = np.asarray(np.linalg.cholesky(prior + weight * inside.T @ inside), dtype=np.float64)
        back = solve_triangular(root, np.eye(len(root)), lower=True).T
        columns = back.T @ (data.T * sign)
        size = np.maximum(np.sqrt(np.einsum("ij,ij->j", columns, columns)), np.finfo(float).tiny)
        reach = np.abs(slack) / size
        order = np.argsort(reach, kind="stable")
        columns = np.ascontiguousarray(columns[:, order])
        return cls(
            root=root,
            back=back,
            prior=back.T @ prior @ back,
            pull=back.T @ (prior @ point),
            length=float(np.linalg.norm(root.T @ point)),
            rows=np.ascontiguousarray(columns.T),
            columns=columns,
            slack=slack[order],
            size=size[order],
            reach=reach[order],
            order=order,
        )


def _even(table: Floats, weight: float) -> tuple[Floats, Floats]:
    """The rows in coordinates in which `1 + weight * table.T @ table` is the identity, and the way back for weights."""
    root: Any = np.eye(table.shape[1])
    for start in range(0, len(table), ROWS):
        root = np.linalg.qr(np.vstack([root, np.sqrt(weight) * table[start : start + ROWS]]), mode="r")
    back = solve_triangular(root, np.eye(len(root)))
    return table @ back, back


def _pool(data: Floats, code: Numbers, count: int, weight: float, prior: Floats) -> Floats:
    """`(classes, d)`: solutions on the pool, each row weighing as much as it does in the worlds on average."""
    from leakcap.kernels.linear._svm_loops import minimise

    found = np.zeros((count, data.shape[1]))
    errors = np.zeros(count)

    def fit(some: npt.NDArray[np.intp]) -> None:
        for k in some:
            rows = data * np.where(code == k, 1.0, -1.0)[:, None]
            errors[k] = minimise(rows, np.ones(len(data)), weight, prior, np.zeros(len(prior)), 0.0, found[k], ALONE)

    in_threads(fit, count, together=1)
    if not errors.max() < ERROR:
        raise _trouble()
    return found


def _steps(start: _Start, worlds: Worlds, weight: float) -> Floats:
    """`(m, d)`: from the pool's solution to each world's."""
    from leakcap.kernels.linear._svm_loops import minimise, settle

    sums = _quadratics(start, worlds)
    found = np.zeros((worlds.m, len(start.prior)))
    settled = np.zeros(worlds.m, dtype=np.bool_)

    def move(some: npt.NDArray[np.intp]) -> None:
        part = slice(some[0], some[-1] + 1)
        settled[part] = settle(
            sums[part],
            weight,
            start.prior,
            start.pull,
            start.rows,
            start.columns,
            start.slack,
            start.size,
            start.reach,
            start.order,
            worlds.packed[part],
            STEPS,
            found[part],
        )

    in_threads(move, worlds.m)
    rest = np.flatnonzero(~settled)

    def finish(some: npt.NDArray[np.intp]) -> None:
        for world in rest[some]:
            here = worlds.mask(int(world))[start.order]
            rows, slack = start.rows[here], start.slack[here]
            found[world] = 0.0
            minimise(rows, slack, weight, start.prior, start.pull, start.length**2, found[world], ALONE)

    if len(rest):
        in_threads(finish, len(rest), together=1)
    return found


def _quadratics(start: _Start, worlds: Worlds) -> Floats:
    """Sums over the rows of each world that are inside the margin at the pool's solution."""
    from leakcap.kernels.linear._svm_loops import some_bits
    from leakcap.kernels.moments._products import products_of

    d = len(start.prior)
    columns = d * (d + 1) // 2 + d
    inside = np.flatnonzero(start.slack > 0)
    if not len(inside):
        return np.zeros((worlds.m, columns))
    rows, slack, places = start.rows[inside], start.slack[inside], start.order[inside]
    packed = np.zeros((worlds.m, -(-len(inside) // 8)), dtype=np.uint8)
    drawn = worlds.m // 2 if worlds.paired else worlds.m
    in_threads(lambda some: some_bits(worlds.packed[some], places, packed[some[0] : some[-1] + 1]), drawn)
    if worlds.paired:
        packed[drawn:] = ~packed[:drawn]
        packed[:, -1] &= 256 - (1 << -len(inside) % 8)  # the other world has no rows beyond the last either

    inner = Worlds(packed=packed, n=len(inside), share=worlds.share, paired=worlds.paired, design=worlds.design)
    if products_are_cheaper(len(inside), d + 1, inner):
        products = by_products(np.column_stack([rows, slack]), np.zeros(d + 1), inner)[1]
        above = np.triu_indices(d)
        return np.concatenate([products[:, above[0], above[1]], products[:, :d, d]], axis=1)

    def make(some: slice | npt.NDArray[np.intp]) -> Floats:
        out = np.empty((len(slack[some]), columns))
        products_of(rows[some], out)
        np.multiply(rows[some], slack[some, None], out=out[:, -d:])
        return out

    return sums_of(make, columns, inner)


def _check(
    found: Floats, columns: Floats, code: Numbers, worlds: Worlds, weight: float, prior: Floats, roots: Floats
) -> None:
    """The gradient over all rows of each world must vanish: what a step from here would be, beside the weights."""
    slope = weight / 2 * gradients(columns, code, worlds=worlds, weights=found, loss="hinge") + found @ prior
    for k, root in enumerate(roots):
        error = np.linalg.norm(solve_triangular(root, slope[:, k].T, lower=True), axis=0)
        size = np.linalg.norm(found[:, k] @ root, axis=1)
        if not (error <= ERROR * np.maximum(size, size.mean())).all():
            raise _trouble()


def _trouble() -> NumericalError:
    return NumericalError(
        "the support vector machines did not converge: bring the columns to one scale, or make C smaller"
    )
