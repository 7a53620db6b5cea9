"""Mechanisms asked for with something wrong."""

from __future__ import annotations

import numpy as np
import pytest

from leakcap import labels
from leakcap.errors import InputError

GOOD = {"epsilon": 1.0, "n_classes": 3}


@pytest.mark.parametrize("epsilon", [0, -1, np.inf, np.nan, "1", None, True, 1e-9])
@pytest.mark.parametrize(
    "kind", [labels.KRR, labels.UnaryBits, labels.Laplace, labels.Gaussian, labels.SubsetSelection]
)
def test_a_wrong_epsilon_is_refused(kind, epsilon):
    with pytest.raises(InputError, match="epsilon"):
        kind(epsilon=epsilon, n_classes=3)


@pytest.mark.parametrize("more", [{"n_classes": 1}, {"n_classes": 0}, {"n_classes": 2.5}, {}, {"classes": ["a"]}])
def test_fewer_than_two_classes_are_refused(more):
    with pytest.raises(InputError, match="class"):
        labels.KRR(1.0, **more)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0, 1, 3], "from 0 to 2"),
        ([-1, 0], "from 0 to 2"),
        ([0.5, 1], "from 0 to 2"),
        ([0, np.nan], "missing"),
        ([None, 1], "missing"),
        ([0, np.inf], "from 0 to 2"),
        (["a", "b"], "classes="),
        (np.array(["a", 1], dtype=object), "classes="),
        ([], "at least one"),
        ([[0, 1], [1, 2]], "one column"),
        (1, "one column"),
        (np.array([{}], dtype=object), "whole numbers"),
        (np.array([10**400, 1], dtype=object), "whole numbers"),
        (np.ma.array([0, 1], mask=[True, False]), "missing"),
        ([[0], [0, 1]], "one column"),
    ],
)
def test_wrong_labels_are_refused_and_not_quoted(y, words):
    with pytest.raises(InputError, match=words):
        labels.KRR(**GOOD).privatize(y)


def test_errors_keep_no_label_behind_them():
    with pytest.raises(InputError) as caught:
        labels.KRR(1.0, 3).privatize(np.array([b"a secret", 1], dtype=object))
    assert caught.value.__context__ is None


@pytest.mark.parametrize("names", [[1, "a"], [2**53 + 1, 0.5], ["a\0", "b"], [True, "x"]])
def test_names_of_several_types_come_back_as_they_are(names):
    mechanism = labels.KRR(40.0, classes=names)
    seen = mechanism.privatize(np.array([*names, names[0]], dtype=object))
    assert seen.tolist() == [*names, names[0]]
    assert mechanism.scores(seen).argmax(axis=1).tolist() == [0, 1, 0]


@pytest.mark.parametrize("names", ["yes", {"a", "b"}, [["a"], ["b"]], [("a",), ("b",)]])
def test_classes_without_an_order_or_a_name_are_refused(names):
    with pytest.raises(InputError, match="classes="):
        labels.KRR(1.0, classes=names)


def test_epsilon_is_read_only():
    with pytest.raises(AttributeError):
        labels.KRR(1.0, 3).epsilon = 0.1


@pytest.mark.parametrize("prior", [0.5, "a", [[0.5, 0.5], [1.0]], [], [0.7, 0.7]])
def test_a_prior_that_is_none_is_refused(prior):
    for made in (lambda: labels.auto(1.0, prior=prior), lambda: labels.RRWithPrior(1.0, prior)):
        with pytest.raises(InputError, match="prior"):
            made()


def test_names_may_come_one_by_one():
    assert labels.auto(1.0, classes=(name for name in "abc")).classes == ("a", "b", "c")


def test_names_stand_for_classes():
    mechanism = labels.KRR(12.0, classes=["no", "yes", "unknown"])
    seen = mechanism.privatize(["yes", "no", "unknown"] * 10)
    assert (seen == np.array(["yes", "no", "unknown"] * 10)).mean() > 0.9
    assert mechanism.posterior(["yes"], np.zeros(3)).argmax() == 1
    with pytest.raises(InputError, match="not among"):
        mechanism.privatize(["Yes"])
    with pytest.raises(InputError, match="missing"):
        mechanism.privatize(["yes", None])
    for wrong in (["a", "a"], ["a", float("nan")]):
        with pytest.raises(InputError, match="different names"):
            labels.KRR(1.0, classes=wrong)


def test_labels_of_every_usual_type_are_taken():
    pandas = pytest.importorskip("pandas")
    y = [0, 2, 1, 1]
    krr = labels.KRR(40.0, 3)
    for given in (y, np.array(y, dtype=np.uint8), np.array(y, dtype=float), np.array(y)[:, None], pandas.Series(y)):
        assert krr.privatize(given).tolist() == y  # at epsilon 40 a label is replaced once in 10^17 draws
    assert labels.KRR(40.0, classes=["a", "b"]).privatize(pandas.Categorical(["b", "a"])).tolist() == ["b", "a"]
    assert labels.KRR(40.0, 2).privatize(np.array([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("mechanism", "observed"),
    [
        (labels.UnaryBits(1.0, 3), [[0, 1]]),
        (labels.UnaryBits(1.0, 3), [0, 1, 2]),
        (labels.Laplace(1.0, 3), [[0, 1, np.nan]]),
        (labels.UnaryBits(1.0, 3), [[0.5, 0, 1]]),
        (labels.SubsetSelection(1.0, 4, size=2), [[1, 1, 1, 0]]),
        (labels.SubsetSelection(1.0, 4, size=2), [[2, 0, 0, 0]]),
        (labels.KRR(1.0, 3), [3]),
        (labels.RRWithPrior(1.0, [0.96, 0.02, 0.01, 0.01]), [3]),
    ],
)
def test_observations_of_another_mechanism_are_refused(mechanism, observed):
    with pytest.raises(InputError):
        mechanism.posterior(observed, np.zeros(mechanism.n_classes))


def test_a_prior_for_other_rows_is_refused():
    mechanism = labels.RRWithPrior(1.0, np.full((5, 3), 1 / 3))
    with pytest.raises(InputError, match="5 rows"):
        mechanism.privatize([0, 1])
    for wrong in ([0.5, 0.6], [-0.1, 1.1], [np.nan, 1]):
        with pytest.raises(InputError, match="prior"):
            labels.RRWithPrior(1.0, wrong)
