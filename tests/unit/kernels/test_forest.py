"""A forest in all worlds at once is the forest that each world would grow."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import leakcap as lc
from leakcap.datasets import dry_bean
from leakcap.kernels import reference
from leakcap.kernels.forest import entry as trees
from leakcap.kernels.forest.entry import counted_logs, forest, predict_forest
from leakcap.worlds import Worlds, draw_worlds, given_worlds, independent_worlds

IRIS, KINDS = load_iris(return_X_y=True)


def ladder(table: np.ndarray, candidates: int = 100) -> np.ndarray:
    """Evenly spaced thresholds inside each feature's range."""
    return np.linspace(table.min(axis=0), table.max(axis=0), candidates + 2)[1:-1].T


def structure(features: int, count: int, depth: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, features, size=(count, 2**depth - 1))


@given(
    st.integers(4, 150),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 20),
    st.integers(1, 5),
    st.integers(1, 10),
    st.integers(0, 2**31),
)
@settings(max_examples=60)
def test_a_forest_equals_a_plain_fit_in_every_world_to_the_last_bit(
    n: int, d: int, classes: int, depth: int, candidates: int, values: int, pairs: int, seed: int
) -> None:
    """Few different values and small classes: many costs are equal, and nodes stay empty."""
    draw = np.random.default_rng(seed)
    table = draw.integers(0, 2**values, size=(n, d)).astype(float)
    labels = draw.integers(0, classes, size=n)
    worlds = draw_worlds(n, 2 * pairs, draw)
    shape = {
        "nodes": structure(d, 2, depth, seed),
        "thresholds": np.sort(draw.integers(-1, 2**values + 2, size=(d, candidates)) / 1.0),
        "classes": classes,
    }
    assert np.array_equal(forest(table, labels, worlds, **shape), reference.forest(table, labels, worlds, **shape))


@given(
    st.integers(4, 120),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 20),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.sampled_from([None, 0.0, 0.1, 3.0, 30.0]),
    st.sampled_from([None, "balanced", "given"]),
    st.sampled_from(["leaf", "world"]),
    st.integers(0, 2**31),
)
@settings(max_examples=60)
def test_steadied_and_weighted_forests_equal_plain_ones_to_the_last_bit(
    n: int,
    d: int,
    classes: int,
    depth: int,
    candidates: int,
    smoothing: float,
    penalty: float | None,
    weight: str | None,
    share_of: str,
    seed: int,
) -> None:
    draw = np.random.default_rng(seed)
    table, labels = draw.integers(0, 9, size=(n, d)).astype(float), draw.integers(0, classes, size=n)
    worlds = draw_worlds(n, 6, draw)
    given_weight = draw.random(classes) + 0.01
    shape = {
        "nodes": structure(d, 2, depth, seed),
        "thresholds": np.sort(draw.integers(-1, 11, size=(d, candidates)) / 1.0),
        "classes": classes,
        "smoothing": smoothing,
        "penalties": None if penalty is None else penalty * draw.random((d, candidates)),
        "class_weight": given_weight if weight == "given" else weight,
        "share_of": share_of,
    }
    assert np.array_equal(forest(table, labels, worlds, **shape), reference.forest(table, labels, worlds, **shape))


@pytest.mark.parametrize("rate", [1 / 3, 0.75])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_worlds_of_other_rates_and_labels_without_any_pattern(rate: float, noise: float) -> None:
    """Without a pattern all worlds cut differently, and go on apart."""
    draw = np.random.default_rng(5)
    labels = np.where(draw.random(150) < noise, draw.permutation(KINDS), KINDS)
    worlds = draw_worlds(150, 24, draw, rate)
    shape = {"nodes": structure(4, 2, 4), "thresholds": ladder(IRIS, 20), "classes": 3}
    assert np.array_equal(forest(IRIS, labels, worlds, **shape), reference.forest(IRIS, labels, worlds, **shape))


def test_unpaired_worlds_of_a_number_that_is_no_multiple_of_eight() -> None:
    worlds = independent_worlds(150, 13, np.random.default_rng(3))
    shape = {"nodes": structure(4, 1, 3), "thresholds": ladder(IRIS), "classes": 3}
    assert np.array_equal(forest(IRIS, KINDS, worlds, **shape), reference.forest(IRIS, KINDS, worlds, **shape))


def test_a_tree_of_one_feature_predicts_as_scikit_learns_does() -> None:
    """With every midpoint among the thresholds both choose the same splits, and the same shares in the leaves."""
    draw = np.random.default_rng(8)
    table = draw.permutation(400)[:, None] + 0.0
    labels = np.digitize(table[:, 0] + draw.normal(scale=60, size=400), [100, 170, 300])
    worlds = draw_worlds(400, 20, draw)
    nodes = np.zeros((1, 7), dtype=int)
    found = forest(table, labels, worlds, nodes=nodes, thresholds=np.arange(0.5, 400)[None], classes=4)
    for w in range(worlds.m):
        mask = worlds.mask(w)
        theirs = DecisionTreeClassifier(criterion="entropy", max_depth=3).fit(table[mask], labels[mask])
        assert predict_forest(found[w], table[mask], nodes, 4) == pytest.approx(theirs.predict_proba(table[mask]))


def test_a_stump_is_as_pure_as_scikit_learns() -> None:
    worlds = draw_worlds(150, 16, np.random.default_rng(2))
    middles = np.sort(np.unique(IRIS) + 0.05)
    for feature in range(4):
        shape = {"nodes": [[feature]], "thresholds": np.tile(middles, (4, 1)), "classes": 3}
        found = forest(IRIS, KINDS, worlds, **shape)
        for w in range(worlds.m):
            x, y = IRIS[worlds.mask(w), feature], KINDS[worlds.mask(w)]
            theirs = DecisionTreeClassifier(criterion="entropy", max_depth=1).fit(x[:, None], y).tree_
            left, right = (y[x < found[w, 0, 0]], y[x >= found[w, 0, 0]])
            ours = sum(-np.log2(np.mean(side == k)) for side in (left, right) for k in side)
            assert ours == pytest.approx(theirs.impurity[1:] @ theirs.n_node_samples[1:])


def test_the_lowest_of_equal_thresholds_is_taken() -> None:
    """Rows at 0, 1, 2, 3 with classes 0, 1, 1, 0: cutting off the first is as good as cutting off the last."""
    everyone = given_worlds(np.array([[1] * 4, [0] * 4], dtype=bool), 4)
    shape = {"nodes": [[0]], "thresholds": [[0.25, 0.5, 1.5, 2.5, 2.75]], "classes": 2}
    found = forest(np.arange(4.0)[:, None], [0, 1, 1, 0], everyone, **shape)
    assert np.array_equal(found[0, 0], [0.25, 1, 0, 1 / 3, 2 / 3])


EVERYONE = given_worlds(np.array([[1] * 8, [0] * 8], dtype=bool), 8)
STEP = {"nodes": [[0]], "thresholds": [[0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]], "classes": 2}


def test_smoothing_prefers_a_threshold_whose_neighbours_are_good_too() -> None:
    """Costs of the seven cuts by hand, for classes 1 0 0 0 1 1 1 1 in a row."""
    labels = np.array([1, 0, 0, 0, 1, 1, 1, 1])

    def entropy(part: np.ndarray) -> float:
        shares = np.bincount(part, minlength=2) / max(len(part), 1)
        return -len(part) * sum(p * np.log(p) for p in shares if p)

    costs = [entropy(labels), *(entropy(labels[:k]) + entropy(labels[k:]) for k in range(1, 8)), entropy(labels)]
    for w in (0.0, 0.4, 0.9):
        smooth = [(1 - w) * costs[k] + w * (costs[k - 1] + costs[k + 1]) for k in range(1, 8)]
        found = forest(np.arange(8.0)[:, None], labels, EVERYONE, **STEP, smoothing=w)[0, 0, 0]
        assert found == STEP["thresholds"][0][int(np.argmin(smooth))]


def test_a_penalty_is_paid_only_where_the_entropy_falls_by_more() -> None:
    """Cutting between 4 and 4 rows of two classes saves 8 log 2 = 5.55 nats."""
    table, labels = np.arange(8.0)[:, None], np.array([0] * 4 + [1] * 4)
    free, steep = np.zeros((1, 7)), np.full((1, 7), 5.5)
    steep[0, 5] = 0  # cutting at 5.5 instead costs 6 log 6 - 4 log 4 - 2 log 2 = 3.82 nats more
    assert forest(table, labels, EVERYONE, **STEP, penalties=free)[0, 0, 0] == 3.5
    assert forest(table, labels, EVERYONE, **STEP, penalties=steep)[0, 0, 0] == 5.5
    assert forest(table, labels, EVERYONE, **STEP, penalties=steep * 3.8 / 5.5)[0, 0, 0] == 3.5
    assert forest(table, labels, EVERYONE, **STEP, penalties=steep)[1, 0, 0] == 5.5, "of a world without rows, too"


def test_balanced_classes_cut_as_if_each_had_as_many_rows() -> None:
    draw = np.random.default_rng(0)
    rare, common = draw.normal(1, 1, size=(20, 1)), draw.normal(0, 1, size=(200, 1))
    table, labels = np.vstack([rare, common]), np.repeat([0, 1], [20, 200])
    often = np.vstack([np.tile(rare, (10, 1)), common]), np.repeat([0, 1], [200, 200])
    shape = {"nodes": structure(1, 1, 3), "thresholds": ladder(table, 40), "classes": 2}

    found = forest(table, labels, Worlds.everybody(220), **shape, class_weight="balanced")
    same = forest(*often, Worlds.everybody(400), **shape)
    assert found == pytest.approx(same, abs=1e-3)
    assert not np.allclose(forest(table, labels, Worlds.everybody(220), **shape), same, atol=1e-3)


def test_votes_are_shares_of_the_world() -> None:
    worlds = draw_worlds(150, 8, np.random.default_rng(2))
    shape = {"nodes": structure(4, 2, 3), "thresholds": ladder(IRIS), "classes": 3}
    votes = forest(IRIS, KINDS, worlds, **shape, share_of="world")[:, :, 7:].reshape(8, 2, 8, 3)
    for w in range(8):
        kinds = np.bincount(KINDS[worlds.mask(w)], minlength=3) / worlds.mask(w).sum()
        assert votes[w].sum(axis=1) == pytest.approx(np.tile(kinds, (2, 1)))


def test_a_world_without_rows_a_missing_class_and_nodes_that_no_row_reaches() -> None:
    table = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    labels = np.array([0, 0, 0, 1, 1])
    masks = np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 1, 1]], dtype=bool)
    worlds = given_worlds(masks, 5)
    shape = {"nodes": np.array([[0, 0, 0]]), "thresholds": np.array([[0.5, 1.5, 2.5]]), "classes": 3}
    found = forest(table, labels, worlds, **shape)
    assert np.array_equal(found, reference.forest(table, labels, worlds, **shape))
    nobody, all_rows, first, second = found[:, 0]
    assert np.array_equal(nobody, [0.5] * 3 + [1 / 3] * 12), "the lowest thresholds, and equal shares"
    assert np.array_equal(all_rows[:3], [2.5, 0.5, 0.5]), "a node of one class takes the lowest threshold"
    assert np.array_equal(all_rows[3:].reshape(4, 3), [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0]]), (
        "no row of the right side lies below 0.5: that leaf has the shares of its parent"
    )
    assert np.array_equal(first[3:].reshape(4, 3)[:, 1:], np.zeros((4, 2))), "missing classes have share 0"
    assert np.array_equal(second[3:], np.tile([0, 1, 0], 4))


def test_constant_features_and_equal_thresholds() -> None:
    table = np.column_stack([np.ones(30), np.arange(30) % 7.0])
    labels = np.arange(30) % 3
    worlds = draw_worlds(30, 8, np.random.default_rng(1))
    shape = {"nodes": structure(2, 4, 3, 2), "thresholds": np.array([[1.0] * 4, [2, 2, 2, 5]]), "classes": 3}
    assert np.array_equal(forest(table, labels, worlds, **shape), reference.forest(table, labels, worlds, **shape))


def test_more_cells_than_rows() -> None:
    draw = np.random.default_rng(6)
    table, labels = draw.normal(size=(90, 1)), draw.integers(0, 300, size=90)
    worlds = draw_worlds(90, 4, draw)
    shape = {"nodes": structure(1, 1, 2), "thresholds": ladder(table, 250), "classes": 300}
    assert np.array_equal(forest(table, labels, worlds, **shape), reference.forest(table, labels, worlds, **shape))


def test_the_answer_does_not_depend_on_threads_or_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = draw_worlds(150, 50, np.random.default_rng(4))
    shape = {"nodes": structure(4, 3, 5), "thresholds": ladder(IRIS), "classes": 3}
    once = forest(IRIS, KINDS, worlds, **shape)
    assert np.array_equal(once, forest(IRIS, KINDS, worlds, **shape))
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(5)))
    assert np.array_equal(once, forest(IRIS, KINDS, worlds, **shape))
    monkeypatch.setattr(trees, "MIN_BATCH_WORLDS", 8)
    assert np.array_equal(once, forest(IRIS, KINDS, worlds, **shape))
    monkeypatch.setattr(trees, "MAX_TREE_BITS", 1)
    assert np.array_equal(once, forest(IRIS, KINDS, worlds, **shape))


def test_a_forest_predicts_from_its_answer_alone() -> None:
    """Flat or not, and through the thresholds as they are given."""
    nodes = structure(4, 5, 4, seed=1)
    worlds = draw_worlds(150, 8, np.random.default_rng(9))
    found = forest(IRIS, KINDS, worlds, nodes=nodes, thresholds=ladder(IRIS), classes=3)
    shares = predict_forest(found[0], IRIS, nodes, 3)
    assert np.array_equal(shares, predict_forest(found[0].ravel(), IRIS, nodes, 3))
    assert shares.sum(axis=1) == pytest.approx(1)
    outside = ~worlds.mask(0)
    assert (shares.argmax(axis=1) == KINDS)[outside].mean() > 0.85
    moved = found[0].copy()
    moved[:, :15] = np.inf
    first_leaf = moved[:, 15:18].mean(axis=0)
    assert predict_forest(moved, IRIS, nodes, 3) == pytest.approx(np.tile(first_leaf, (150, 1)))


@pytest.mark.skipif("LEAKCAP_DATA" not in os.environ, reason="needs the data folder")
def test_beans_grow_the_plain_forest_and_are_told_apart() -> None:
    table = dry_bean()
    labels = np.unique(table.pop("Class"), return_inverse=True)[1]
    beans = table.to_numpy(dtype=float)
    worlds = draw_worlds(len(beans), 128, np.random.default_rng(1))
    shape = {"nodes": structure(16, 3, 5), "thresholds": ladder(beans), "classes": 7}
    found = forest(beans, labels, worlds, **shape)
    for w in (0, 64, 101):
        mask = worlds.mask(w)
        assert np.array_equal(found[w], reference.plain_forest(beans[mask], labels[mask], **shape))
        guess = predict_forest(found[w], beans[~mask], shape["nodes"], 7).argmax(axis=1)
        assert (guess == labels[~mask]).mean() > 0.8


def test_logs_count_in_whole_numbers() -> None:
    k = np.arange(1, 2001)
    assert counted_logs(2000)[1:] / 2**24 == pytest.approx(k * np.log(k), abs=2**-24)
    assert counted_logs(3)[0] == counted_logs(3)[1] == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"features": IRIS[:-1]}, "a row for each"),
        ({"features": np.where(IRIS > 7, np.nan, IRIS)}, "finite"),
        ({"labels": KINDS + 1}, "classes - 1"),
        ({"labels": KINDS / 1.0}, "whole numbers"),
        ({"nodes": [[0, 1]]}, r"2\*\*depth"),
        ({"nodes": [[4]]}, "numbers of features"),
        ({"thresholds": -ladder(IRIS)}, "ascend"),
        ({"thresholds": ladder(IRIS)[:3]}, "each feature"),
        ({"classes": 0}, "at least 1"),
        ({"smoothing": 1.5}, "from 0 to 1"),
        ({"penalties": np.zeros((4, 3))}, "one for each of the thresholds"),
        ({"penalties": np.full((4, 100), -1.0)}, "from 0"),
        ({"penalties": np.full((4, 100), 1e12)}, "lower them"),
        ({"class_weight": [1, 2]}, "each class"),
        ({"class_weight": "even"}, "balanced"),
        ({"share_of": "tree"}, "share_of"),
    ],
)
def test_bad_input_is_told(wrong: dict, message: str) -> None:
    given = {"features": IRIS, "labels": KINDS, "nodes": [[0, 1, 2]], "thresholds": ladder(IRIS), "classes": 3} | wrong
    worlds = draw_worlds(150, 4, np.random.default_rng(1))
    with pytest.raises(lc.InputError, match=message):
        forest(given.pop("features"), given.pop("labels"), worlds, **given)
