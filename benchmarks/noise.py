"""Noise against the papers' rule at the same membership cap (total root mean square; larger ratios are better)."""

from __future__ import annotations

import time

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

import leakcap as lc
from benchmarks.records import record


def papers_rule(outputs, cap):
    """Noise of PAC-Private Algorithms for this cap: MI from the cap, then e_i = sqrt(v_i) sum sqrt(v_j) / (2 MI).

    With A = I (the papers' own choice), and with A from an SVD, which needs less.
    """
    mi = lc.convert.mutual_information(cap, 0.5)
    by_coordinate = outputs.std(axis=0).sum() / np.sqrt(2 * mi)
    spectrum = np.linalg.svd(outputs - outputs.mean(axis=0), compute_uv=False) / np.sqrt(len(outputs))
    return by_coordinate, spectrum.sum() / np.sqrt(2 * mi)


def scaled_iris():
    X = load_iris(return_X_y=True)[0]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


def main() -> None:
    X = scaled_iris()
    rows = np.random.default_rng(0).choice(150, 100, replace=False)
    start = X[rows][np.random.default_rng(1).choice(100, 3, replace=False)]

    def centres(X):
        return KMeans(3, init=start, n_init=1).fit(X).cluster_centers_

    cases = [
        ("Iris mean", "iris-mean-1024", lambda X: X.mean(axis=0), X, 0.60, 1024),
        ("Iris mean", "iris-mean-16384", lambda X: X.mean(axis=0), X, 0.60, 16384),
        ("Iris K-Means, 100 rows", "iris-k-means", centres, X[rows], 0.55, 1024),
    ]
    heads = f"{'papers (A=I)':>14}{'ratio':>8}{'papers (SVD)':>14}{'ratio':>8}{'s':>7}"
    print(f"{'what':24}{'cap':>6}{'worlds':>8}{'ours':>10}{heads}")
    for what, name, fn, data, cap, worlds in cases:
        for weights in (None, "equal"):
            began = time.perf_counter()
            plan = lc.plan(fn, data, cap=lc.membership(cap), worlds=worlds, weights=weights)
            ours, (plain, svd) = plan.noise.std, papers_rule(plan.outputs, cap)
            print(
                f"{what + (', equal weights' if weights else ''):24}"[:24]
                + f"{cap:>6}{worlds:>8}{ours:>10.4f}{plain:>14.3f}{plain / ours:>8.1f}{svd:>14.3f}{svd / ours:>8.1f}"
                + f"{time.perf_counter() - began:>7.1f}"
            )
            if not weights:
                record(f"noise-{name}", f"{plain / ours:.1f} times less, {svd / ours:.1f} against the rule with an SVD")
