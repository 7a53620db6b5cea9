"""Trees of public form, and trees that are learnt in rounds of one session."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.linear_model import Ridge as PlainRidge

import leakcap as lc
from leakcap.errors import UselessReleaseWarning
from leakcap.estimators import DecisionTreeClassifier, HistGradientBoostingClassifier, Private, RandomForestClassifier
from leakcap.estimators.base import planned
from leakcap.estimators.boosting import BoostedTrees
from leakcap.estimators.data import Rows
from leakcap.estimators.leaf_values import fitted_leaves
from leakcap.estimators.public_trees import Leading, PublicTrees, SummingTrees, even_ladder, quantile_ladder
from leakcap.estimators.rounds import RoundRows
from leakcap.kernels.forest import leaves_of
from leakcap.sessions import desk

IRIS, KINDS = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
MANY, TWO = make_classification(6000, 8, n_informative=4, n_clusters_per_class=1, class_sep=1.5, random_state=0)
IN_ROUNDS = [DecisionTreeClassifier, HistGradientBoostingClassifier]
EVERY = [*IN_ROUNDS, RandomForestClassifier]
BITS: dict[str, Any] = {"cap": lc.membership(0.6), "random_state": 0, "options": {"design": "bits"}}
POOL: dict[str, Any] = {"cap": lc.pool_membership(0.6), "random_state": 0, "options": {"bounds": (-5, 5)}}


def trees_of(count: int = 7, depth: int = 3) -> PublicTrees:
    return PublicTrees.drawn(quantile_ladder(IRIS, 9), count, depth, np.random.default_rng(0))


def test_a_row_is_in_one_leaf_of_each_tree() -> None:
    trees = trees_of()
    inside = trees.inside(IRIS)
    assert inside.shape == (150, 7 * 8)
    assert np.linalg.norm(inside, axis=1) == pytest.approx(1)
    assert ((inside > 0).reshape(150, 7, 8).sum(axis=2) == 1).all()
    row, tree = IRIS[17], 4
    node = 0
    while node < 7:
        node = 2 * node + 1 + int(row[trees.nodes[tree, node]] >= trees.thresholds[tree, node])
    assert inside[17, tree * 8 + node - 7] > 0


def test_no_label_has_a_part_in_the_form() -> None:
    for settings in (BITS, POOL | {"classes": [0, 1, 2]}):
        one, other = (RandomForestClassifier(5, **settings).fit(IRIS, kinds) for kinds in (KINDS, KINDS[::-1]))
        assert np.array_equal(one.nodes_, other.nodes_) and np.array_equal(one.thresholds_, other.thresholds_)
        assert not np.array_equal(one.votes_, other.votes_)


def test_ladders() -> None:
    assert even_ladder(np.zeros(2), np.array([10.0, 20.0]), 4) == pytest.approx(
        np.array([[2, 4, 6, 8], [4, 8, 12, 16]])
    )
    shares = (MANY[:, None] < quantile_ladder(MANY, 3).T).mean(axis=0)
    assert shares == pytest.approx(np.tile([[0.25], [0.5], [0.75]], 8), abs=1e-3)


def test_values_of_leaves_are_the_scores_along_the_directions() -> None:
    """Against scikit-learn's ridge on the same columns: the forest adds up to what it predicts."""
    trees = trees_of()
    leading = Leading.of(trees.places(IRIS), 56, 5)
    columns = leading.of_rows(trees.places(IRIS))
    assert columns.shape == (150, 5)
    assert columns.mean(axis=0) == pytest.approx(0, abs=1e-12)
    covariance = columns.T @ columns
    assert covariance == pytest.approx(np.diag(np.diag(covariance)), abs=1e-9)
    assert (np.diff(np.diag(covariance)) <= 0).all()
    kinds = np.eye(3)[KINDS]
    solved = PlainRidge(2.0).fit(columns, kinds)
    made = SummingTrees.of(trees, leading.values(solved.coef_, solved.intercept_, 7), np.arange(3))
    assert made.scores(IRIS) == pytest.approx(solved.predict(columns))


@pytest.mark.parametrize("design", ["worlds", "bits"])
def test_the_whole_pools_leaves_are_those_of_ridge(design: str) -> None:
    trees = trees_of()
    made = fitted_leaves(Rows(IRIS, KINDS, np.arange(3)), trees, alpha=2.0, most=5, design=design)
    answer = made.answer(*made.data) if design == "worlds" else {"scores": made.answer.answer["scores"]}
    leading = Leading.of(trees.places(IRIS), 56, 5)
    columns = leading.of_rows(trees.places(IRIS))
    wanted = PlainRidge(2.0).fit(columns, np.eye(3)[KINDS]).predict(columns)
    assert made.build(answer).scores(IRIS) == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("settings", [BITS, POOL | {"classes": [0, 1]}], ids=["coins", "pool"])
def test_they_learn(kind: Any, settings: dict[str, Any]) -> None:
    """At a cap of .60 on 3,000 rows, scored on 3,000 others; scikit-learn's own reach .93 to .97."""
    model = kind(**settings).fit(MANY[::2], TWO[::2])
    assert model.score(MANY[1::2], TWO[1::2]) > 0.8
    shares = model.predict_proba(MANY)
    assert (shares > 0).all() and shares.sum(axis=1) == pytest.approx(1)
    assert model.certificate_.kind in ("simulation", "session")


@pytest.mark.parametrize("kind", IN_ROUNDS)
def test_they_are_estimators_like_others(kind: Any) -> None:
    table = pd.DataFrame(IRIS, columns=list("abcd"))
    model = kind(**BITS).fit(table.assign(who=np.arange(150) // 2), NAMES[KINDS], unit="who")
    assert list(model.feature_names_in_) == list("abcd") and model.n_features_in_ == 4
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(table), model.predict(table))
    assert set(model.predict(table)) <= set(NAMES)
    assert clone(model).get_params().keys() == model.get_params().keys() and not hasattr(clone(model), "votes_")
    assert np.array_equal(kind(**BITS).fit(IRIS, NAMES[KINDS]).votes_, kind(**BITS).fit(IRIS, NAMES[KINDS]).votes_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table.rename(columns={"a": "z"}))


@pytest.mark.parametrize("kind", EVERY)
def test_in_a_session_the_same_fit_again_costs_nothing(kind: Any) -> None:
    table = pd.DataFrame(MANY, columns=[f"x{i}" for i in range(8)]).assign(target=TWO)
    session = lc.Session(table, cap=0.6, seed=1)
    first = session.fit(kind(), target="target", share=0.3)
    spent = session.spent.share
    again = session.fit(kind(), target="target", share=0.3)
    assert 0.2 < spent <= 0.3 + 1e-9 and session.spent.share == spent
    assert np.array_equal(first.votes_, again.votes_) and np.array_equal(first.nodes_, again.nodes_)
    assert first.score(table.drop(columns="target"), TWO) > 0.8
    declared = session.fit(kind(classes=[0, 1]), target="target", bounds=(-8, 8), share=0.3)
    assert set(declared.classes_) == {0, 1}


@pytest.mark.parametrize("kind", IN_ROUNDS)
def test_the_clock_covers_all_rounds(kind: Any) -> None:
    text = str(kind(**BITS).fit(MANY, TWO).certificate_)
    assert "60.00 %" in text and "100 % of the clock" in text


@pytest.mark.parametrize("kind", IN_ROUNDS)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cap": None}, "say what may leak"),
        ({"worlds": 64}, "leave out worlds"),
        ({"strata": "y"}, "leave out worlds"),
        ({"options": {"design": "worlds"}}, "design='bits'"),
        ({"options": {"draws": 3}}, "design='bits'"),
        ({"pool_public": ("scaled",)}, "leave out pool_public"),
        ({"n_thresholds": 0}, "n_thresholds"),
        ({"max_depth": 0}, "max_depth"),
        ({"cap": lc.pool_membership(0.6)}, "classes there may be"),
        ({"cap": lc.pool_membership(0.6), "classes": [0, 1, 2]}, "bounds"),
        ({"cap": lc.mutual_information(1)}, "caps"),
    ],
)
def test_what_rounds_do_not_take_is_refused(kind: Any, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(lc.LeakcapError, match=message):
        kind(**(BITS | wrong)).fit(IRIS, KINDS)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": 1e308}, "range of numbers"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_trees": 0}, "n_trees"),
        ({"max_depth": 25}, "lower max_depth"),
        ({"n_trees": 2**20}, "lower max_depth"),
    ],
)
def test_settings_of_boosting_are_refused_before_anything_is_asked(wrong: dict[str, Any], message: str) -> None:
    table = pd.DataFrame(IRIS, columns=list("abcd")).assign(target=KINDS)
    session = lc.Session(table, cap=0.6, seed=1)
    with pytest.raises(lc.InputError, match=message):
        session.fit(HistGradientBoostingClassifier(**wrong), target="target")
    assert not session.history


@pytest.mark.parametrize("design", ["worlds", "bits"])
def test_a_forest_of_constant_columns_is_refused(design: str) -> None:
    with pytest.raises(lc.InputError, match="no column tells rows apart"):
        RandomForestClassifier(3, cap=0.6, options={"design": design}).fit(np.ones((150, 2)), KINDS)


def test_weights_of_rows_are_refused() -> None:
    with pytest.raises(lc.InputError, match="sample_weight"):
        DecisionTreeClassifier(**BITS).fit(IRIS, KINDS, sample_weight=np.ones(150))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"splits": "entropy"}, "leave out splits"),
        ({"alpha": 0.0}, "alpha"),
        ({"n_directions": 0}, "n_directions"),
        ({"class_weight": "balanced"}, "for other splits"),
        ({"classes": [0, 1, 2]}, "pool cap"),
        (POOL | {"classes": [0, 1, 2], "ranges": (0, 8)}, "leave out splits, ranges"),
        (POOL, "classes there may be"),
    ],
)
def test_what_a_forest_does_not_take_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(lc.InputError, match=message):
        RandomForestClassifier(**(BITS | wrong)).fit(IRIS, KINDS)


def test_weights_of_classes_move_a_forest() -> None:
    found = {}
    unsure = np.where(np.random.default_rng(0).random(1000) < 0.3, 1 - TWO[:1000], TWO[:1000])
    for weight in (None, {0: 20.0}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UselessReleaseWarning)
            model = RandomForestClassifier(class_weight=weight, **(BITS | {"cap": lc.membership(0.99)}))
            found[weight is None] = (model.fit(MANY[:1000], unsure).predict(MANY) == 0).mean()
    assert found[False] > found[True] + 0.1


def test_rows_of_one_person_count_together() -> None:
    """Under a pool cap with two rows a person, noise is twice as large."""
    whose = np.arange(150) // 2
    options = {"bounds": (0, 8), "rows_per_unit": 2}
    settings = POOL | {"classes": [0, 1, 2]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessReleaseWarning)
        alone = RandomForestClassifier(3, **(settings | {"options": {"bounds": (0, 8)}})).fit(IRIS, KINDS)
        pairs = RandomForestClassifier(3, **(settings | {"options": options})).fit(IRIS, KINDS, unit=whose)
    assert pairs.plan_.noise.deviations == pytest.approx(2 * alone.plan_.noise.deviations)


def heard(model: Any, monkeypatch: pytest.MonkeyPatch, **given: Any) -> list[float]:
    """The share of people who pay for each question of a fit."""
    found, plain = [], desk.paying

    def listening(*question: Any) -> Any:
        payment = plain(*question)
        found.append(float(payment.pays.mean()))
        return payment

    monkeypatch.setattr(desk, "paying", listening)
    model.fit(IRIS, KINDS, **given)
    return found


@pytest.mark.parametrize("kind", IN_ROUNDS)
def test_every_round_hears_everybody(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = heard(kind(**BITS), monkeypatch)
    assert len(found) >= 4 and set(found) == {1.0}


@pytest.mark.parametrize("kind", IN_ROUNDS)
def test_people_of_several_rows_are_heard(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = heard(kind(**BITS), monkeypatch, unit=np.arange(150) // 3)
    assert set(found) == {1.0}


def questions(model: Any, monkeypatch: pytest.MonkeyPatch, rows: Any = IRIS, kinds: Any = KINDS) -> list[Any]:
    """What the rows bring to each question of a fit: what they are inside of, and their values."""
    found, plain = [], RoundRows.asked

    def listening(asking: RoundRows, inside: Any, values: Any, **how: Any) -> Any:
        found.append((inside, values))
        return plain(asking, inside, values, **how)

    monkeypatch.setattr(RoundRows, "asked", listening)
    model.fit(rows, kinds)
    return found


def test_residuals_are_those_of_the_trees_released_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    model = HistGradientBoostingClassifier(4, n_trees=3, **BITS)
    *_, (_, last) = questions(model, monkeypatch)
    trees = PublicTrees(model.nodes_[:-3], model.thresholds_[:-3])
    before = BoostedTrees.of(trees, model.votes_[:-3], model.classes_)
    assert last == pytest.approx(np.eye(3)[KINDS] - before.predict_proba(IRIS), abs=1e-9)


def test_a_row_is_counted_in_the_leaf_where_it_is_found_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured in whole centimetres, so that many rows lie at a threshold."""
    rows = np.rint(IRIS)
    model = DecisionTreeClassifier(3, max_features=None, **BITS)
    *_, (leaves, _) = questions(model, monkeypatch, rows)
    found = leaves_of(rows, model.nodes_[0], model.thresholds_[0])
    assert np.isin(rows, model.thresholds_).any()
    assert np.array_equal(leaves.argmax(axis=1), found)


@pytest.mark.parametrize("kind", IN_ROUNDS)
def test_rows_of_no_declared_class_bring_nothing(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = questions(kind(classes=[0, 1], **POOL), monkeypatch)
    values = [values for inside, values in asked if inside.shape[1] > 1]  # but that there are so many rows
    assert len(values) >= 4
    assert all(not one[: len(KINDS)][KINDS == 2].any() for one in values)


@pytest.mark.parametrize("name", ["forest", "logistic"])
def test_a_row_without_weight_moves_nothing(name: str) -> None:
    """Where a coin decides about everybody: whoever has no weight is as safe as without the release."""
    weight = np.where(np.arange(150) % 5, 1.0, 0.0)
    asked = (
        RandomForestClassifier(4, **BITS)
        if name == "forest"
        else Private(PlainLogistic(C=0.1, max_iter=999), cap=lc.membership(0.6))
    )
    for given, moved in ((weight, weight > 0), (None, np.ones(150, dtype=bool))):
        plan, _ = planned(asked, IRIS, KINDS, cap=lc.membership(0.6), sample_weight=given)
        assert np.array_equal(plan.exposure > 0.5 + 1e-6, moved)


@pytest.mark.parametrize("kind", IN_ROUNDS)
def test_a_column_may_be_called_target(kind: Any) -> None:
    table = pd.DataFrame(IRIS, columns=["target", "target_", "c", "d"])
    assert kind(**BITS).fit(table, KINDS).predict(table).shape == (150,)


@pytest.mark.parametrize("kind", IN_ROUNDS)
def test_a_class_of_one_person_is_warned_of(kind: Any) -> None:
    with pytest.warns(lc.errors.SmallGroupWarning):
        kind(**BITS).fit(IRIS, np.where(np.arange(150) == 7, 9, KINDS))


@pytest.mark.parametrize("kind", IN_ROUNDS)
def test_other_caps_cannot_be_tried_beforehand(kind: Any) -> None:
    with pytest.raises(lc.errors.InputError, match="learns in rounds"):
        lc.estimators.privacy_utility_curve(kind(), IRIS, KINDS, caps=[0.6])


def test_empty_cells_are_refused_without_naming_other_estimators() -> None:
    with pytest.raises(lc.errors.InputError, match="SimpleImputer") as refused:
        DecisionTreeClassifier(**BITS).fit(np.where(IRIS > 7, np.nan, IRIS), KINDS)
    assert "HistGradientBoosting" not in str(refused.value)
