"""With the answers fixed, everything about a student is the same whatever the labels were."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import leakcap as lc
from leakcap.errors import InputError
from leakcap.labels.learning.vote_costs import VoteCosts
from leakcap.labels.learning.votes import NoisedVotes
from leakcap.labels.statistics import grid_noise
from leakcap.labels.statistics.sums import SumsMechanism, class_sums
from tests.unit.labels import learning

BLOBS, KINDS = learning.BLOBS[::4], learning.KINDS[::4]


def public_bytes(labels: Any, capfd: pytest.CaptureFixture[str], keep: bool = False, prior: Any = None) -> bytes:
    model = lc.labels.PATE(
        GaussianNB(), GaussianNB(), sigma2=4.0, sigma1=4.0, threshold=5, n_teachers=10, queries=30, n_classes=3,
        random_state=0, prior=prior,
    ).fit(BLOBS, labels)  # fmt: skip
    if keep:
        model.votes_ = np.bincount(labels)
    held = io.BytesIO()
    pickle.dump(model, held)
    shown = repr(model) + repr(sorted(vars(model))) + str(model.certificate_) + "".join(capfd.readouterr())
    return held.getvalue() + shown.encode()


def test_with_the_answers_fixed_every_byte_is_the_same_whatever_the_labels(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    same = np.random.default_rng(4).integers(-1, 3, 30)
    monkeypatch.setattr(NoisedVotes, "release", lambda self, votes: same.copy())
    other = (KINDS + 1) % 3
    assert public_bytes(KINDS, capfd) == public_bytes(other, capfd) == public_bytes(np.zeros_like(KINDS), capfd)
    assert public_bytes(KINDS, capfd, keep=True) != public_bytes(np.zeros_like(KINDS), capfd, keep=True)


def test_with_sums_and_answers_fixed_every_byte_is_the_same_whatever_the_labels(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(4)
    same, sums = rng.integers(-1, 3, 30), {}
    monkeypatch.setattr(NoisedVotes, "release", lambda self, votes: same.copy())
    monkeypatch.setattr(
        SumsMechanism, "release", lambda self, rows, codes: sums.setdefault(0, class_sums(rows, codes, 3))
    )
    found = [public_bytes(kinds, capfd, prior=lc.labels.Ridge(1.0)) for kinds in (KINDS, (KINDS + 1) % 3)]
    assert found[0] == found[1]
    sums.clear()  # the twin: sums of the other labels show
    assert public_bytes((KINDS + 1) % 3, capfd, prior=lc.labels.Ridge(1.0)) != found[0]


def test_as_much_randomness_is_drawn_whatever_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    real = grid_noise.system_words
    monkeypatch.setattr(grid_noise, "system_words", lambda kind, size: drawn.append(size) or real(kind, size))
    rule = NoisedVotes(VoteCosts(6, 4, 1.0, 1.0), 50.0, 3)
    for votes in (np.zeros((6, 3), dtype=int), np.full((6, 3), 100)):
        rule.release(votes)
    assert drawn[:2] == drawn[2:]


SECRET = "a-secret-label"
NAMES = np.where(KINDS == 0, SECRET, np.where(KINDS == 1, "b", "c"))
HOLES = BLOBS.copy()
HOLES[-1, 0] = np.nan


@pytest.mark.parametrize(
    ("settings", "table", "labels"),
    [
        ({"n_teachers": len(KINDS) + 1}, BLOBS, NAMES),
        ({}, HOLES, NAMES),
        ({"prior": lc.labels.Ridge(1.0)}, HOLES, NAMES),
        ({"epsilon": 1e-4, "sigma2": None, "queries": None}, BLOBS, NAMES),
        ({"queries": len(KINDS) + 1}, BLOBS, NAMES),
        ({"threshold": 1e6, "sigma1": 4.0}, BLOBS, NAMES),  # nobody agrees
        ({"classes": ["a", "b", "c"]}, BLOBS, NAMES),  # a class that was not named
        ({}, BLOBS, NAMES[:-1]),
        ({}, BLOBS, np.stack([NAMES, NAMES], axis=1)),
        ({}, BLOBS, np.where(KINDS == 1, None, NAMES)),
    ],
)
def test_what_cannot_be_is_refused_in_our_own_words_and_quotes_no_label(settings: Any, table: Any, labels: Any) -> None:
    given = {"sigma2": 4.0, "n_teachers": 10, "queries": 30, "classes": [SECRET, "b", "c"], "random_state": 0}
    model = lc.labels.PATE(GaussianNB(), GaussianNB(), **given).set_params(**settings)
    with pytest.raises(InputError) as refused:
        model.fit(table, labels)
    assert SECRET not in str(refused.value) and len(str(refused.value)) > 30
    assert refused.value.__cause__ is None and SECRET not in repr(refused.value.__context__)


def test_the_certificate_declares_that_questions_are_public() -> None:
    given = {"sigma2": 4.0, "n_teachers": 10, "queries": 30, "n_classes": 3, "random_state": 0}
    said = " ".join(str(lc.labels.PATE(GaussianNB(), GaussianNB(), **given).fit(BLOBS, KINDS).certificate_).split())
    assert "features, parts and questions: none of them was taken from these labels" in said
    assert "has no memory of other teachers" in said
