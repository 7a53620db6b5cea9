"""K-Means on a device finds scikit-learn's centres in every world."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

from leakcap.errors import InputError
from leakcap.kernels.gpu import kmeans
from leakcap.worlds import draw_worlds

rng = np.random.default_rng(3)
# Whole tenths of a centimetre lie equally near to two centres, and rounding decides: a little noise does.
X = load_iris().data + 1e-3 * rng.normal(size=(150, 4))


def plain(table: np.ndarray, start: np.ndarray, tolerance: float = 1e-4, iterations: int = 300) -> np.ndarray:
    fit = KMeans(len(start), init=start, n_init=1, tol=tolerance, max_iter=iterations).fit(table)
    return np.asarray(fit.cluster_centers_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("rate", "clusters", "tolerance", "iterations"), [(0.5, 3, 1e-4, 300), (1 / 3, 5, 0.0, 300), (0.75, 4, 1e-4, 2)]
)
def test_centres_equal_a_plain_fit_in_every_world(
    rate: float, clusters: int, tolerance: float, iterations: int, device: str
) -> None:
    worlds = draw_worlds(150, 12, np.random.default_rng(1), rate)
    start = X[rng.choice(150, clusters, replace=False)]
    found = kmeans(X, worlds, start, tolerance=tolerance, iterations=iterations, device=device)
    for world, centres in zip(worlds.masks(), found, strict=True):
        assert np.abs(centres - plain(X[world], start, tolerance, iterations)).max() < 1e-9


def test_an_empty_cluster_takes_a_far_row_as_scikit_learns_does(device: str) -> None:
    worlds = draw_worlds(150, 8, np.random.default_rng(2))
    start = np.vstack([X[:2], X.mean(axis=0) + 1e6, X.mean(axis=0) - 1e6])
    found = kmeans(X, worlds, start, device=device)
    for world, centres in zip(worlds.masks(), found, strict=True):
        assert np.abs(centres - plain(X[world], start)).max() < 1e-9


def test_tiles_change_nothing(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = draw_worlds(150, 10, np.random.default_rng(4))
    whole = kmeans(X, worlds, X[:3], device=device)
    monkeypatch.setattr(import_module("leakcap.kernels.gpu.kmeans"), "tile_bytes", lambda _: 8 * 30 * 16)
    assert np.allclose(kmeans(X, worlds, X[:3], device=device), whole, atol=1e-12)


def test_fewer_different_rows_than_clusters_gives_centres_on_the_rows(device: str) -> None:
    table = np.repeat([[0.0], [4.0]], 6, axis=0)
    worlds = draw_worlds(12, 6, np.random.default_rng(5))
    found = kmeans(table, worlds, np.array([[0.0], [1.0], [4.0]]), device=device)
    assert np.isin(found, [0.0, 4.0]).all()


def test_bad_input_is_told(device: str) -> None:
    worlds = draw_worlds(10, 4, np.random.default_rng(0))
    with pytest.raises(InputError, match="fewer rows"):
        kmeans(X[:10], worlds, X[:6], device=device)
    with pytest.raises(InputError, match="start"):
        kmeans(X[:10], worlds, X[:2, :3], device=device)
