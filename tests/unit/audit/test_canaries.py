"""Canaries are planted and kept, their key is its owner's alone, and mistakes are answered in our own words."""

from __future__ import annotations

import json
import pickle
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

import leakcap as lc
from leakcap.audit import CanaryKey, memorised, plant
from leakcap.audit.attacks.memorisation import largest_lower_end
from tests.refusals import refusal

Y = np.random.default_rng(0).integers(4, size=80)
X = np.random.default_rng(1).normal(size=(80, 3))
SECRET = "whitebeam"  # a label that no message may show
WORDS = np.array(["ash", "birch", "cedar", "elder"])


@pytest.mark.parametrize("y", [Y, Y.tolist(), pd.Series(Y), WORDS[Y], WORDS[Y].astype(object), Y.astype(np.uint8)])
def test_so_many_labels_change_and_no_other(y: Any) -> None:
    labels, key = plant(y, 30)
    changed = np.flatnonzero(np.asarray(labels) != np.asarray(y))
    assert changed.tolist() == key.rows.tolist() and len(changed) == 30
    assert {type(one) for one in labels.tolist()} == {type(one) for one in np.asarray(y).tolist()}


def test_two_classes_are_drawn_by_a_coin() -> None:
    y = np.zeros(400, dtype=int)
    labels, key = plant(y, 300, classes=[0, 1])
    assert key.candidates == 2 and 100 < (labels != y).sum() < 200
    assert (key.planted != key.decoys).all()
    assert len(memorised(np.eye(2)[labels], key).counts) == 3  # there is one game
    assert memorised(np.eye(2)[labels], key).epsilon_lower > 3


def test_longer_names_of_classes_are_not_cut() -> None:
    labels, _ = plant(["a", "b"] * 20, 40, classes=["a", "b", "a longer name"])
    assert set(labels) <= {"a", "b", "a longer name"} and "a longer name" in labels


def test_without_a_seed_no_two_plantings_are_alike() -> None:
    keys = [plant(Y, 40)[1] for _ in range(2)]
    assert keys[0].rows.tolist() != keys[1].rows.tolist()
    alike = [plant(Y, 40, seed=3)[1] for _ in range(2)]
    assert alike[0].planted.tolist() == alike[1].planted.tolist()


def test_a_key_is_kept_for_its_owner(tmp_path: Path) -> None:
    key = plant(WORDS[Y], 30)[1]
    key.save(tmp_path / "key.json")
    assert stat.S_IMODE((tmp_path / "key.json").stat().st_mode) == 0o600
    again = CanaryKey.load(tmp_path / "key.json")
    assert again.classes == key.classes and again.labels == 80
    for name in ("rows", "planted", "decoys", "truths"):
        assert getattr(again, name).tolist() == getattr(key, name).tolist()
    refusal(lambda: key.save(tmp_path / "key.json"), "never overwritten")
    (tmp_path / "key.json").chmod(0o644)
    refusal(lambda: CanaryKey.load(tmp_path / "key.json"), "others may read")
    refusal(lambda: CanaryKey.load(tmp_path / "none.json"), "no key of canaries")


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [5, 5, 9]},
        {"rows": [1, 2, 80]},
        {"planted": [0, 1, 9]},
        {"decoys": [0, 1]},
        {"truths": "x"},
        {"format": "other"},
        {"labels": 3.5},
        {"classes": [0]},
        {"classes": [None, 1, 2, 3]},
        {"more": 1},
    ],
)
def test_what_is_no_key_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    held = {"format": "leakcap canaries 1", "labels": 80, "classes": [0, 1, 2, 3], "rows": [1, 2, 3]}
    held |= {"planted": [0, 1, 2], "decoys": [1, 2, 3], "truths": [3, 0, 0]}
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    for path, content in ((good, held), (bad, held | change)):
        path.write_text(json.dumps(content))
        path.chmod(0o600)
    assert CanaryKey.load(good).count == 3
    refusal(lambda: CanaryKey.load(bad), "no key of canaries")


def test_a_key_shows_sizes_alone() -> None:
    key = plant(Y, 30, seed=0)[1]
    assert repr(key) == str(key) == "CanaryKey(30 canaries among 80 labels of 4 classes)"
    refusal(lambda: pickle.dumps(key), "not pickled")


@pytest.mark.parametrize(
    ("y", "count", "words"),
    [
        (Y, 81, "plant fewer"),
        (Y, 0, "count"),
        (Y, 2.5, "count"),
        ([], 1, "one column"),
        (np.ones((4, 2)), 1, "one column"),
        ([SECRET] * 9, 3, "leave no wrong one"),
        ([SECRET, None, "other"] * 9, 3, "missing"),
        ([1.0, np.nan, 2.0], 1, "missing"),
        (np.array([SECRET, 7] * 9, dtype=object), 3, "name all classes"),
    ],
)
def test_labels_that_cannot_be_planted_are_refused_without_a_quote(y: Any, count: Any, words: str) -> None:
    refusal(lambda: plant(y, count), words, private=(SECRET,))


def test_labels_outside_the_classes_are_refused_without_a_quote() -> None:
    refusal(lambda: plant([SECRET, "b"] * 4, 2, classes=["a", "b"]), "list every possible class", private=(SECRET,))
    refusal(lambda: plant([(1, 2), (3, 4)] * 4, 2), "one column")
    refusal(lambda: plant(X[:, 0], 2), "measurements", private=(str(X[0, 0]),))
    refusal(lambda: plant(Y, 2, classes=4), "names of all classes")
    refusal(lambda: plant(Y, 2, seed="a"), "seed")


@pytest.fixture(scope="module")
def planted() -> tuple[Any, CanaryKey]:
    return plant(Y, 40, seed=2)


def test_every_kind_of_model_is_asked_alike(planted: tuple[Any, CanaryKey]) -> None:
    labels, key = planted
    model = KNeighborsClassifier(1).fit(X, labels)
    whole = memorised(model, key, X).counts
    table = model.predict_proba(X)
    assert memorised(table, key).counts == whole
    assert memorised(table[key.rows], key).counts == whole
    assert memorised(model.predict_proba, key, X).counts == whole
    assert memorised(table.tolist(), key).counts == whole
    frame = pd.DataFrame(X)
    assert memorised(lambda rows: model.predict_proba(rows.to_numpy()), key, frame).counts == whole


def test_models_with_other_columns_are_put_in_order(planted: tuple[Any, CanaryKey]) -> None:
    labels, key = planted

    class Turned:
        classes_ = np.array([3, 1, 0, 2])

        def decision_function(self, rows: Any) -> Any:
            return np.eye(4)[labels][key.rows][:, self.classes_]

    class Named(Turned):
        decision_function: Any = None

        def __getattribute__(self, name: str) -> Any:
            if name == "decision_function":
                raise AttributeError
            return super().__getattribute__(name)

        def predict(self, rows: Any) -> Any:
            return labels[key.rows]

    for model in (Turned(), Named()):
        assert memorised(model, key, X).counts[0].right == 40
    few = LinearSVC().fit(X[labels != 3], labels[labels != 3])  # a class that it never saw
    assert memorised(few, key, X).counts[0].guesses == 40


def test_columns_of_a_table_are_read_by_their_names(planted: tuple[Any, CanaryKey]) -> None:
    labels, key = planted
    scores = np.eye(4)[labels]
    for names in ([3, 1, 0, 2], ["3", "1", "0", "2"]):
        turned = pd.DataFrame(scores[:, [3, 1, 0, 2]], columns=names)
        assert memorised(turned, key).counts[0].right == 40
    elsewhere = CanaryKey(80, (3, 1, 0, 2), key.rows, key.planted, decoys=key.decoys, truths=key.truths)
    assert memorised(pd.DataFrame(scores), elsewhere).counts[0].right == 40  # numbered by pandas: by place


def test_sparse_scores_and_tensors_are_tables(planted: tuple[Any, CanaryKey]) -> None:
    labels, key = planted

    class Tensor:
        """As torch's are: one that remembers its gradient is no array until it is detached."""

        def __array__(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("requires grad")

        def detach(self) -> Any:
            return self

        def cpu(self) -> Any:
            return np.eye(4)[labels]

    for scores in (csr_matrix(np.eye(4)[labels]), Tensor()):
        assert memorised(scores, key).counts[0].right == 40


def test_a_model_may_abstain_on_some_rows_and_not_on_all(planted: tuple[Any, CanaryKey]) -> None:
    labels, key = planted
    named = labels[key.rows].astype(object)
    named[:20] = None
    assert memorised(Naming(named), key, X).counts[0].right >= 20
    refusal(lambda: memorised(Naming(np.full(40, None)), key, X), "none of its own classes")
    refusal(lambda: memorised(Naming(labels[key.rows].astype(str)), key, X), "none of its own classes")


class Naming:
    """Names these classes, whatever it is asked."""

    classes_ = np.arange(4)

    def __init__(self, named: Any) -> None:
        self.named = named

    def predict(self, rows: Any) -> Any:
        return self.named


class Scoring(Naming):
    """Believes the same of every row."""

    def __init__(self, classes: Any, columns: int) -> None:
        self.classes_, self.columns = classes, columns

    def predict_proba(self, rows: Any) -> Any:
        return np.ones((len(rows), self.columns))


def test_more_audits_with_one_key_share_the_errors(planted: tuple[Any, CanaryKey]) -> None:
    labels, key = planted
    one, ten = (memorised(np.eye(4)[labels], key, epsilon=1.0, looks=looks) for looks in (1, 10))
    assert ten.epsilon_lower < one.epsilon_lower and one.counts == ten.counts
    direct = largest_lower_end(one.counts, 0.0, 0.05 / 10)
    assert ten.epsilon_lower == direct
    close = min(count.p_value(1.0, 0.0) for count in one.counts)
    assert memorised(np.eye(4)[labels], key, epsilon=1.0, alpha=7 * close).verdict == "refuted"
    assert memorised(np.eye(4)[labels], key, epsilon=1.0, alpha=7 * close, looks=10).verdict != "refuted"


def test_scores_that_are_infinite_count_as_far(planted: tuple[Any, CanaryKey]) -> None:
    labels, key = planted
    with np.errstate(divide="ignore"):
        scores = np.log(np.eye(4)[labels])
    assert memorised(scores, key).counts[0].right == 40


def certified(labels: int = 80, classes: int = 4) -> Any:
    return lc.labels.KRR(epsilon=1.0, n_classes=classes).certificate(labels=labels)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda key: memorised(KNeighborsClassifier(1).fit(X, Y), key), "give the rows as well"),
        (lambda key: memorised(KNeighborsClassifier(1).fit(X, Y), key, X[:9]), "a row for each of the 80 labels"),
        (lambda key: memorised(np.ones((41, 4)), key), "in the order of the key"),
        (lambda key: memorised(np.ones((40, 3)), key), "a column for each of the 4 classes"),
        (lambda key: memorised(np.full((40, 4), np.nan), key), "not numbers"),
        (lambda key: memorised([[SECRET] * 4] * 40, key), "table of numbers"),
        (lambda key: memorised(lambda rows: np.ones((3, 4)), key, X), "each of the 40 canaries"),
        (lambda key: memorised(KNeighborsClassifier(1).fit(X, Y + 1), key, X), "plant with classes="),
        (lambda key: memorised(SECRET, key, X), "fitted classifier"),
        (lambda key: memorised(np.ones((40, 4)), key, shares=()), "list of shares"),
        (lambda key: memorised(np.ones((40, 4)), key, shares=(0.0,)), "above 0"),
        (lambda key: memorised(np.ones((40, 4)), key, shares=(0.5, 0.5)), "different"),
        (lambda key: memorised(np.ones((40, 4)), key, epsilon=-1.0), "epsilon"),
        (lambda key: memorised(np.ones((40, 4)), key, delta=2.0), "delta"),
        (lambda key: memorised(np.ones((40, 4)), key, alpha=0.0), "alpha"),
        (lambda key: memorised(np.ones((40, 4)), key, certificate=1.0), "that of private labels"),
        (lambda key: memorised(np.ones((40, 4)), key, certificate=certified(labels=79)), "of the training on"),
        (lambda key: memorised(np.ones((40, 4)), key, certificate=certified(classes=5)), "of 5 classes"),
        (lambda key: memorised(np.ones((40, 4)), None), "audit.plant gave"),
        (lambda key: memorised(key, np.ones((40, 4))), "audit.plant gave"),
        (lambda key: memorised(np.ones((40, 4)), key, shares=0.5), "list of shares"),
        (lambda key: memorised(np.ones((40, 4)), key, looks=0), "looks"),
        (lambda key: memorised(np.ones((40, 4)) * 1j, key), "table of numbers"),
        (lambda key: memorised(np.ma.masked_array(np.ones((40, 4)), mask=np.eye(40, 4)), key), "not numbers"),
        (lambda key: memorised([[10**400] * 4] * 40, key), "table of numbers"),
        (lambda key: memorised(lambda rows: None, key, X), "table of numbers"),
        (lambda key: memorised(lambda rows: np.ones((40, 4)), key, {"a": 1}), "a row for each of the 80 labels"),
        (lambda key: memorised(lambda rows: np.ones((40, 4)), key, [[1], [1, 2]] * 40), "a row for each of the 80"),
        (lambda key: memorised(Naming(2), key, X), "table of numbers"),
        (lambda key: memorised(Scoring([0, 1, 2, 3, 3], 5), key, X), "twice"),
        (lambda key: memorised(Scoring([[0, 1], [2, 3]], 4), key, X), "one of them"),
    ],
)
def test_what_does_not_fit_together_is_refused(planted: tuple[Any, CanaryKey], call: Any, words: str) -> None:
    refusal(lambda: call(planted[1]), words, private=(SECRET,))


def test_a_certificate_brings_its_own_epsilon(planted: tuple[Any, CanaryKey]) -> None:
    certificate = lc.labels.KRR(epsilon=1.0, n_classes=4).certificate(labels=80)
    scores = np.ones((40, 4))
    refusal(lambda: memorised(scores, planted[1], certificate=certificate, epsilon=2.0), "leave them out")
    report = memorised(scores, planted[1], certificate=certificate)
    assert report.certified == 1.0 and report.certificate is certificate


def test_heuristics_decide_nothing(planted: tuple[Any, CanaryKey]) -> None:
    labels, key = planted
    report = memorised(np.eye(4)[labels], key, epsilon=30.0)
    rules = [one for one in report.findings if one.heuristic]
    assert {one.attack for one in rules} == {"normal rule", "appendix B"}
    assert all(one.question.endswith("a heuristic") for one in rules)
    assert all(one.verdict == "no promise" and one.certified is None for one in rules)
    assert max(one.measured for one in rules) == np.inf and report.verdict != "refuted"
    assert report.epsilon_lower < 10
    scores = memorised(10 * np.eye(4)[labels], key)  # no probabilities: thresholds mean nothing
    assert not any(one.attack.startswith("appendix B") for one in scores.findings)


def test_the_report_says_what_was_found(planted: tuple[Any, CanaryKey]) -> None:
    labels, key = planted
    refuted = memorised(np.eye(4)[labels], key, epsilon=0.1)
    assert "REFUTED: every wrong label does what the claim rules out" in refuted.sentence
    nothing = memorised(np.ones((80, 4)) / 4, key, epsilon=3.0)
    assert nothing.sentence.startswith("Not refuted: 40 canaries in one training show an epsilon of at least 0")
    assert "nothing to refute" in memorised(np.ones((80, 4)) / 4, key).sentence
    for report in (refuted, nothing, memorised(np.eye(4)[labels], key)):
        held = json.loads(report.to_json())
        assert held["epsilon_lower"] == report.epsilon_lower and len(held["counts"]) == len(report.counts) == 6
        page = report.to_html()
        assert "40 canaries in one training" in page and "a heuristic" in page
        first_screen, rest = page.split("What to do", 1)
        assert "heuristic" not in first_screen and "about " in rest
        assert report.sentence.split(":")[0] in str(report)
