"""What each kernel computes, in plain NumPy and one world at a time: slow, and easy to believe."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.ground.arrays import Floats
from leakcap.worlds import Worlds


def means(table: Floats, worlds: Worlds) -> Floats:
    """`(m, d)`: column means; 0 in a world without rows."""
    found = np.zeros((worlds.m, table.shape[1]))
    for w in range(worlds.m):
        rows = table[worlds.mask(w)]
        if len(rows):
            found[w] = rows.mean(axis=0)
    return found


def covariances(table: Floats, worlds: Worlds) -> Floats:
    """`(m, d, d)`: covariances, divided by the rows less one; 0 in a world of fewer than two rows."""
    found = np.zeros((worlds.m, table.shape[1], table.shape[1]))
    for w in range(worlds.m):
        rows = table[worlds.mask(w)]
        if len(rows) > 1:
            found[w] = np.cov(rows, rowvar=False)
    return found


def grams(table: Floats, worlds: Worlds) -> Floats:
    """`(m, d, d)`: sums of products of columns."""
    masks = [worlds.mask(w) for w in range(worlds.m)]
    return np.stack([table[mask].T @ table[mask] for mask in masks])


def variances(table: Floats, worlds: Worlds) -> Floats:
    """`(m, d)`: column variances, divided by the rows less one; 0 in a world of fewer than two rows."""
    found = np.zeros((worlds.m, table.shape[1]))
    for w in range(worlds.m):
        rows = table[worlds.mask(w)]
        if len(rows) > 1:
            found[w] = rows.var(axis=0, ddof=1)
    return found


def ridge(features: Floats, targets: Floats, worlds: Worlds, alpha: float = 1.0) -> Floats:
    """`(m, d + 1)`: coefficients and intercept of least squares with extra rows for the penalty; zeros without rows."""
    d = features.shape[1]
    found = np.zeros((worlds.m, d + 1))
    for w in range(worlds.m):
        rows, wanted = features[worlds.mask(w)], targets[worlds.mask(w)]
        if len(rows):
            left = np.vstack([rows - rows.mean(axis=0), np.sqrt(alpha) * np.eye(d)])
            found[w, :d] = np.linalg.lstsq(left, np.concatenate([wanted - wanted.mean(), np.zeros(d)]))[0]
            found[w, d] = wanted.mean() - rows.mean(axis=0) @ found[w, :d]
    return found


def pca(features: Floats, worlds: Worlds, components: int) -> Floats:
    """`(m, 1 + components, d)`: means and principal directions by singular values, turned towards the pool's."""
    towards = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)[2][:components]
    found = np.empty((worlds.m, 1 + components, features.shape[1]))
    for w in range(worlds.m):
        rows = features[worlds.mask(w)]
        found[w, 0] = rows.mean(axis=0)
        directions = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:components]
        left, _, right = np.linalg.svd(directions @ towards.T)
        found[w, 1:] = (left @ right).T @ directions
    return found


def forest(
    features: Floats,
    labels: npt.NDArray[np.intp],
    worlds: Worlds,
    *,
    nodes: npt.NDArray[np.intp],
    thresholds: Floats,
    classes: int,
    smoothing: float = 0.0,
    penalties: npt.ArrayLike | None = None,
    class_weight: npt.ArrayLike | str | None = None,
    share_of: str = "leaf",
) -> Floats:
    """`(m, trees, inner + leaves * classes)`: a plain forest on the rows of each world."""
    shape: dict[str, Any] = {"nodes": nodes, "thresholds": thresholds, "classes": classes, "pool": worlds.n}
    steady: dict[str, Any] = {"smoothing": smoothing, "penalties": penalties, "class_weight": class_weight}
    masks = [worlds.mask(w) for w in range(worlds.m)]
    found = [plain_forest(features[mask], labels[mask], **shape, **steady, share_of=share_of) for mask in masks]
    return np.array(found)


def plain_forest(
    rows: Floats,
    labels: npt.NDArray[np.intp],
    *,
    nodes: npt.NDArray[np.intp],
    thresholds: Floats,
    classes: int,
    smoothing: float = 0.0,
    penalties: npt.ArrayLike | None = None,
    class_weight: npt.ArrayLike | str | None = None,
    share_of: str = "leaf",
    pool: int | None = None,
) -> Floats:
    """`(trees, inner + leaves * classes)`: each node tries all its thresholds and keeps the best.

    `pool` is how many rows there are outside of this world too; weights of classes are rounded by it.
    """
    from leakcap.kernels.forest.entry import class_scales, counted_logs, steadied
    from leakcap.kernels.forest.state import SMOOTHING_PARTS

    scale = class_scales(np.bincount(labels, minlength=classes)[None], class_weight, pool or len(rows))[0].astype(int)
    logs = counted_logs(int(scale[labels].sum()))
    unit = max(1, int(scale[labels].sum()) // max(1, len(rows)))  # what a row counts on average
    ladder = np.asarray(thresholds)
    near, extra = steadied(smoothing, penalties, shape=ladder.shape, size=len(logs), classes=classes, row_unit=unit)

    def count(kinds: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        own = np.bincount(kinds, minlength=classes)
        return own if class_weight is None else own * scale

    def entropy(kinds: npt.NDArray[np.intp]) -> int:
        """Of the classes of some rows, times what the rows count."""
        own = count(kinds)
        size = len(kinds) if class_weight is None else own.sum()
        return int(logs[size] - logs[own].sum())

    def cheapest(values: Floats, kinds: npt.NDArray[np.intp], feature: int) -> int:
        """The number of the threshold at which the rows are cut."""
        cut = []
        for threshold in ladder[feature]:
            right = values >= threshold
            cut.append(entropy(kinds[~right]) + entropy(kinds[right]))
        uncut = entropy(kinds)
        around = [uncut, *cut, uncut]
        costs = []
        for v, own in enumerate(cut):
            penalty = unit * int(extra[feature, v]) if extra.size else 0
            costs.append((SMOOTHING_PARTS - near) * own + near * (around[v] + around[v + 2]) + penalty)
        return int(np.argmin(costs))

    def tree(of_node: npt.NDArray[np.intp]) -> Floats:
        inner = len(of_node)
        chosen = np.zeros(inner)
        at = [np.arange(len(rows))]  # the rows at each node, level by level
        for a in range(inner):
            values, kinds = rows[at[a], of_node[a]], labels[at[a]]
            chosen[a] = ladder[of_node[a], cheapest(values, kinds, of_node[a])]
            right = values >= chosen[a]
            at += [at[a][~right], at[a][right]]
        return np.concatenate([chosen, leaves(at, inner).ravel()])

    def leaves(at: list[npt.NDArray[np.intp]], inner: int) -> Floats:
        counts = np.array([count(labels[here]) for here in at])
        if share_of == "world":
            equal = np.full((inner + 1, classes), 1 / (classes * (inner + 1)))
            return np.asarray(counts[inner:] / counts[0].sum()) if counts[0].any() else equal
        shares = np.full((inner + 1, classes), 1 / classes)
        for leaf in range(inner + 1):
            a = inner + leaf
            while a > 0 and not counts[a].any():
                a = (a - 1) // 2
            if counts[a].any():
                shares[leaf] = counts[a] / counts[a].sum()
        return shares

    return np.array([tree(of_node) for of_node in np.asarray(nodes)])


def linear_svm(
    features: Floats, labels: npt.NDArray[np.intp], worlds: Worlds, C: float = 1.0, intercept_scaling: float = 1.0
) -> Floats:
    """`(m, classes, d + 1)`, one row for two classes: the dual problem, which is least squares with signs held."""
    from scipy.optimize import nnls

    table = np.column_stack([features, np.full(len(features), intercept_scaling)])
    classes = np.unique(labels)
    rows = classes if len(classes) > 2 else classes[1:]
    found = np.zeros((worlds.m, len(rows), table.shape[1]))
    for w in range(worlds.m):
        here = worlds.mask(w)
        held = np.eye(here.sum()) / np.sqrt(2 * C)
        for k, one in enumerate(rows):
            signed = table[here] * np.where(labels[here] == one, 1.0, -1.0)[:, None]
            if len(signed):
                left = np.vstack([signed.T, held])
                right = np.concatenate([np.zeros(table.shape[1]), np.full(len(signed), np.sqrt(2 * C))])
                found[w, k] = nnls(left, right)[0] @ signed
    found[:, :, -1] *= intercept_scaling
    return found


def logistic(features: Floats, labels: npt.NDArray[np.intp], worlds: Worlds, C: float = 1.0) -> Floats:
    """`(m, classes, d + 1)`, one row for two classes; classes without rows get coefficients 0 and intercept -30."""
    count = int(labels.max()) + 1
    table = np.column_stack([features, np.ones(len(features))])
    found = np.zeros((worlds.m, count, table.shape[1]))
    for w in range(worlds.m):
        here = worlds.mask(w)
        present = np.unique(labels[here])
        if len(present):
            found[w, :, -1] = -30.0
            # Two opposite rows are penalised half as much as their difference.
            own = (labels[here][:, None] == present).astype(float)
            found[w, present] = _softmax_regression(table[here], own, C / 2 if count == 2 else C)
    return found[:, 1:] - found[:, :1] if count == 2 else found


def _softmax_regression(x: Floats, own: Floats, C: float) -> Floats:
    """A trust region on the loss as it is written down; a square holds the sum of the intercepts, else free, at 0."""
    from scipy.optimize import minimize
    from scipy.special import log_softmax, softmax

    shape = (own.shape[1], x.shape[1])
    penalty = np.append(np.ones(x.shape[1] - 1), 0.0)

    def loss(flat: Floats) -> float:
        weights = flat.reshape(shape)
        fit = -C * float((own * log_softmax(x @ weights.T, axis=1)).sum())
        return fit + float((penalty * weights**2).sum()) / 2 + float(weights[:, -1].sum()) ** 2 / 2

    def slope(flat: Floats) -> Floats:
        weights = flat.reshape(shape)
        found = C * (softmax(x @ weights.T, axis=1) - own).T @ x + penalty * weights
        found[:, -1] += weights[:, -1].sum()
        return np.asarray(found.ravel())

    def curvature(flat: Floats) -> Floats:
        share = softmax(x @ flat.reshape(shape).T, axis=1)
        bend = np.einsum("ik,kl->ikl", share, np.eye(shape[0])) - np.einsum("ik,il->ikl", share, share)
        found = C * np.einsum("ikl,ia,ib->kalb", bend, x, x, optimize=True)
        found += np.einsum("kl,ab->kalb", np.eye(shape[0]), np.diag(penalty))
        found[:, -1, :, -1] += 1
        return np.asarray(found.reshape(len(flat), len(flat)))

    start = np.zeros(shape[0] * shape[1])
    best = minimize(loss, start, jac=slope, hess=curvature, method="trust-exact", options={"gtol": 1e-6}).x
    for _ in range(3):  # of Newton's method, as near as rounding lets it come
        best = best - np.linalg.solve(curvature(best), slope(best))
    return np.asarray(best.reshape(shape))


def quantiles(table: Floats, worlds: Worlds, q: Floats) -> Floats:
    """`(m, len(q), d)`: numpy's quantiles of the rows of each world; 0 in a world without rows."""
    found = np.zeros((worlds.m, len(q), table.shape[1]))
    for w in range(worlds.m):
        rows = table[worlds.mask(w)]
        if len(rows):
            found[w] = np.quantile(rows, q, axis=0)
    return found


def kmeans(features: Floats, worlds: Worlds, start: Floats, iterations: int = 300, tolerance: float = 1e-4) -> Floats:
    """`(m, k, d)`: Lloyd's algorithm in each world; an empty cluster takes the row farthest from its centre."""
    return np.array([_lloyd(features[worlds.mask(w)], start, iterations, tolerance) for w in range(worlds.m)])


def _lloyd(rows: Floats, start: Floats, iterations: int, tolerance: float) -> Floats:
    limit = tolerance * float(rows.var(axis=0).mean())
    centres, labels = start, np.full(len(rows), -1)
    for _ in range(iterations):
        distances = ((rows[:, None] - centres) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        owners = nearest.copy()
        for empty in np.setdiff1d(np.arange(len(start)), nearest):
            far = distances.min(axis=1).argmax()
            distances[far], owners[far] = 0.0, empty
        means = np.array([rows[owners == c].mean(axis=0) for c in range(len(start))])
        shift, centres = float(((means - centres) ** 2).sum()), means
        if np.array_equal(nearest, labels) or shift <= limit:
            break
        labels = nearest
    return centres
