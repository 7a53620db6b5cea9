"""Networks that teach: trained at once they vote as each by itself, and a label moves one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import leakcap as lc
from leakcap.errors import InputError, NumericalError
from leakcap.kernels.gpu import ensemble_apart
from leakcap.kernels.gpu.networks import Networks
from leakcap.labels.learning.teachers import votes_of

rng = np.random.default_rng(3)
CODES = rng.integers(4, size=230)
TABLE = rng.standard_normal((230, 6)) * [1, 1, 50, 1, 1, 0.01] + [0, 0, 1000, 0, 0, 0]
TABLE[:, 0] += 2 * CODES
TABLE[:, 2] += 60 * (CODES % 2)
PARTS = np.array_split(rng.permutation(230), 11)  # of two sizes
CODES[PARTS[0]] = 2  # a part of one class
CODES[PARTS[1]] = np.arange(len(PARTS[1])) % 2  # and one of two
SEEDS = list(range(20, 31))


class Alone(lc.labels.MLPTeacher):
    """Not known to the kernel: trained one by one."""


def votes(teacher: Any, codes: Any = CODES, *, whole: bool = False, rows: Any = TABLE) -> Any:
    given: dict[str, Any] = {"parts": PARTS, "seeds": SEEDS, "asked": np.arange(100), "classes": 4}
    return votes_of(teacher, rows, codes, **given, whole=whole)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("settings", [{}, {"hidden": (), "random_state": 1}, {"hidden": (9, 7), "random_state": 4}])
def test_networks_at_once_vote_as_each_by_itself(settings: dict[str, Any], whole: bool, device: str) -> None:
    settings = {"hidden": (12,), "steps": 40, "device": device} | settings
    found = votes(lc.labels.MLPTeacher(**settings), whole=whole)
    assert (found == votes(Alone(**settings), whole=whole)).all()
    assert (found.sum(axis=1) == 11).all()
    assert (found.argmax(axis=1) == CODES[:100]).mean() > 0.4  # chance is .25
    other = votes(lc.labels.MLPTeacher(**settings | {"steps": 2}), whole=whole)
    assert (found != other).any()  # the twin: other training is seen


@pytest.mark.parametrize("whole", [False, True])
def test_a_label_moves_one_network_alone(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    teacher = lc.labels.MLPTeacher((12,), steps=40, rate=1.0, device="cpu")
    part = PARTS[5]
    other = CODES.copy()
    other[part] = (other[part] + 1) % 4  # all labels of one part: its votes move, whatever a single label does
    before, after = votes(teacher, whole=whole), votes(teacher, other, whole=whole)
    assert 0 < np.abs(before - after).sum(axis=1).max() <= 2
    single = CODES.copy()
    single[part[0]] = (single[part[0]] + 1) % 4
    assert np.abs(before - votes(teacher, single, whole=whole)).sum(axis=1).max() <= 2

    honest = Networks.learnt

    def of_neighbours(self: Any, rows: Any, codes: Any, draws: Any, **how: Any) -> Any:
        """The twin: half of each network's labels are those of another part."""
        mixed = codes.copy()
        mixed[:, ::2] = np.roll(codes, 1, axis=0)[:, ::2]
        return honest(self, rows, mixed, draws, **how)

    monkeypatch.setattr(Networks, "learnt", of_neighbours)
    assert np.abs(votes(teacher, whole=whole) - votes(teacher, other, whole=whole)).sum(axis=1).max() > 2


def test_a_network_that_fails_has_no_vote_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wild = {"hidden": (12, 12), "rate": 1e30, "steps": 20, "device": "cpu"}
    with pytest.raises(NumericalError, match="smaller rate"):
        lc.labels.MLPTeacher(**wild).fit(TABLE, CODES)
    found = votes(lc.labels.MLPTeacher(**wild))
    assert (found == votes(Alone(**wild))).all()
    assert (found.sum(axis=1) == 1).all() and (found[:, 2] == 1).all()  # the part of one class has nothing to learn

    honest = Networks.learnt

    def one_fails(self: Any, *given: Any, **how: Any) -> Any:
        layers, sound = honest(self, *given, **how)
        return layers, sound & (np.arange(len(sound)) > 0)

    teacher = lc.labels.MLPTeacher((12,), steps=40, device="cpu")
    all_of_them = votes(teacher)
    monkeypatch.setattr(Networks, "learnt", one_fails)
    some = votes(teacher)  # one of either size
    assert (some.sum(axis=1) == 9).all() and (some <= all_of_them).all()
    assert capfd.readouterr() == ("", "")


def test_the_process_draws_on_as_if_no_network_had_been() -> None:
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    expected = torch.rand(3), np.random.random(3)  # noqa: NPY002
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    votes(lc.labels.MLPTeacher((5,), steps=3, device="cpu"))
    assert torch.equal(torch.rand(3), expected[0]) and (np.random.random(3) == expected[1]).all()  # noqa: NPY002


def test_what_the_kernel_cannot_take_goes_through_the_loop() -> None:
    import pandas as pd

    teacher = lc.labels.MLPTeacher((12,), steps=40, device="cpu")
    frame = pd.DataFrame(TABLE)
    assert (votes(teacher, rows=frame) == votes(teacher)).all()


def test_training_apart_is_plain_training_and_one_that_diverges_changes_no_other(device: str) -> None:
    rows, answers = TABLE[: 11 * 20].reshape(11, 20, 6) / 100, CODES[: 11 * 20].reshape(11, 20)
    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 4)).double()
    start = {name: 0.3 * rng.standard_normal((11, *value.shape)) for name, value in module.named_parameters()}
    loss = torch.nn.CrossEntropyLoss(reduction="none")
    how: dict[str, Any] = {"start": start, "steps": 15, "rate": 0.2, "together": 4, "device": device}
    found = ensemble_apart(module, loss, rows, answers, **how)
    for place in range(11):
        module.load_state_dict({name: torch.tensor(value[place]) for name, value in start.items()})
        optimiser = torch.optim.SGD(module.parameters(), lr=0.2)
        for _ in range(15):
            optimiser.zero_grad()
            loss(module(torch.tensor(rows[place])), torch.tensor(answers[place])).mean().backward()
            optimiser.step()
        for name, value in module.named_parameters():
            assert found[name][place] == pytest.approx(value.detach().numpy(), rel=1e-9, abs=1e-12)
    wild = rows.copy()
    wild[5] = np.inf
    other = ensemble_apart(module, loss, wild, answers, **how)
    assert not np.isfinite(other["0.weight"][5]).all()
    kept = np.arange(11) != 5
    assert all((other[name][kept] == found[name][kept]).all() for name in start)


def test_votes_of_networks_make_a_student() -> None:
    table = rng.standard_normal((1200, 2))
    inside = (np.hypot(*table.T) < 1.1).astype(int)  # no line tells these apart
    teacher = lc.labels.MLPTeacher((16,), steps=100, rate=0.5, device="cpu")
    settings: dict[str, Any] = {"n_teachers": 40, "epsilon": 4.0, "queries": 60, "n_classes": 2, "random_state": 0}
    model = lc.labels.PATE(teacher, teacher, **settings, semi_supervised=True).fit(table, inside)
    assert model.score(table, inside) > 0.8
    lines = lc.labels.PATE(LogisticRegression(), LogisticRegression(), **settings).fit(table, inside)
    assert lines.score(table, inside) < 0.7 and lines.certificate_ == model.certificate_


def test_a_network_learns_from_rows_without_labels_and_tells_probabilities() -> None:
    known = np.where(np.arange(len(CODES)) < 60, CODES, -1)
    teacher = lc.labels.MLPTeacher((12,), steps=60, device="cpu", random_state=0).fit(TABLE, known)
    told = teacher.predict_proba(TABLE)
    assert told.sum(axis=1) == pytest.approx(np.ones(len(TABLE)))
    assert (teacher.classes_[told.argmax(axis=1)] == teacher.predict(TABLE)).all()
    with pytest.raises(InputError, match="no row has a label"):
        lc.labels.MLPTeacher(device="cpu").fit(TABLE, np.full(len(TABLE), -1))


@pytest.mark.parametrize(
    "settings", [{"hidden": (0,)}, {"hidden": 5}, {"steps": 0}, {"rate": -1.0}, {"device": "somewhere"}]
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        lc.labels.MLPTeacher(**{"device": "cpu"} | settings).fit(TABLE, CODES)


def test_scikit_learns_checks_pass_but_for_the_class_that_stands_for_no_label() -> None:
    from sklearn.utils import estimator_checks

    if not hasattr(estimator_checks, "estimator_checks_generator"):
        pytest.skip("tags differ before scikit-learn 1.6")
    from tests.claims.estimators.test_conformance import outcomes

    assert set(outcomes(lc.labels.MLPTeacher((8,), steps=60, device="cpu"))) == {"check_classifiers_classes"}
