"""The encoder: what leaves, what stays, and that it leaves once."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

import leakcap as lc
from leakcap.errors import LeakcapWarning, RepeatedReleaseWarning, SimulationWarning
from leakcap.planning.released import forget_released
from tests.refusals import refusal
from tests.unit.obfuscation.pools import FEW, NAMES, accuracy, pool

Encoder = lc.obfuscation.Encoder


def made(**settings: Any) -> tuple[Any, tuple[Any, Any]]:
    forget_released()
    encoder = Encoder(12, **{**FEW, "noise": 0.001, "draws": 0, **settings})
    return encoder, encoder.encode(*pool())


def test_a_model_of_the_encoded_set_predicts_at_the_owners_side() -> None:
    encoder, (Z, Y) = made()
    assert Z.shape == (180, 12) and Y.shape == (180, 3)
    assert accuracy(encoder, (Z, Y)) > 0.9


def test_labels_are_constant_up_to_names_and_order() -> None:
    _, (_, Y) = made()
    halves = np.sort(Y, axis=1)
    assert sorted(map(tuple, halves.tolist())) == [(0.0, 0.0, 1.0)] * 60 + [(0.0, 0.5, 0.5)] * 120
    assert Y.sum(axis=0).tolist() == [60.0] * 3


def test_rows_leave_in_a_random_order_and_labels_under_random_names() -> None:
    orders, names = set(), set()
    for _ in range(12):  # all alike with probability below 6^-11
        encoder, (_, Y) = made(queries="released")
        orders.add(tuple(Y.argmax(axis=1).tolist()))
        names.add(tuple(encoder.key.order.tolist()))
    assert len(orders) == 12 and len(names) > 1


@pytest.mark.parametrize("model", [LogisticRegression(max_iter=2000), KNeighborsClassifier()])
def test_classifiers_learn_from_every_row_once_for_each_class(model: Any) -> None:
    encoder, (Z, Y) = made()
    rows, classes, weights = lc.obfuscation.as_classes(Z, Y)
    if isinstance(model, LogisticRegression):
        model.fit(100 * rows, classes, sample_weight=weights)
        scaled = lambda encoded: model.predict_proba(100 * encoded)  # noqa: E731
        assert np.mean(encoder.predict(scaled, pool()[0]) == pool()[1]) > 0.9
    else:
        pure = Y.max(axis=1) == 1
        model.fit(Z[pure], Y[pure].argmax(axis=1))
        assert np.mean(encoder.predict(model, pool()[0]) == pool()[1]) > 0.8


def test_a_torch_module_predicts_and_keeps_its_mode() -> None:
    torch = pytest.importorskip("torch")
    encoder, (Z, Y) = made()
    ridge = Ridge(0.01).fit(Z, Y)
    module = torch.nn.Sequential(torch.nn.Linear(12, 3), torch.nn.Dropout(0.9))
    with torch.no_grad():
        module[0].weight.copy_(torch.as_tensor(ridge.coef_))
        module[0].bias.copy_(torch.as_tensor(ridge.intercept_))
    assert np.mean(encoder.predict(module, pool()[0]) == pool()[1]) > 0.9
    assert module.training


def test_queries_stay_unless_they_are_declared_to_leave() -> None:
    encoder, (_Z, _Y) = made()
    refusal(lambda: encoder.encode_query(pool()[0]), "further releases")
    assert not encoder.certificate.queries_leave and "None may be sent out" in plainly(encoder.certificate)
    declared, encoded = made(queries="released")
    queries = declared.encode_query(pool()[0])
    scores = Ridge(0.01).fit(*encoded).predict(queries)
    assert np.mean(declared.decode(scores) == pool()[1]) > 0.9
    assert np.array_equal(declared.encode_query(pool()[0][5:6]), queries[5:6]), "the same query encodes alike"
    assert "once queries have left" in plainly(declared.certificate)


def test_without_noise_nothing_is_claimed_and_there_is_no_figure_to_read() -> None:
    for noise in (0.0, 0.5):
        encoder, _ = made(noise=noise)
        certificate = encoder.certificate
        assert not certificate.is_guarantee and certificate.kind == "no_claim"
        assert not any("success" in name or "posit" in name for name in vars(certificate))
        assert str(certificate).startswith("NO CLAIM") and "chosen plaintexts" in plainly(certificate)


def test_an_encoder_encodes_once() -> None:
    encoder, _ = made()
    refusal(lambda: encoder.encode(*pool()), "encoded a pool already", lc.AlreadyReleased)


def test_the_ledger_refuses_a_second_set_with_another_key() -> None:
    X, y = pool()
    place = lc_ledger()
    encoder, _ = made(ledger=place, name="trees")
    assert encoder.certificate.counted
    again = Encoder(12, **FEW, draws=0, noise=0.5, ledger=place, name="trees")
    refusal(lambda: again.encode(X, y), "encoded or released before", lc.AlreadyReleased)
    under_another_name = Encoder(12, **FEW, draws=0, noise=0.5, ledger=place, name="shrubs")
    refusal(lambda: under_another_name.encode(X[::-1], y[::-1]), "known to the ledger as 'trees'")
    refusal(lambda: lc.plan(np.mean, X, cap=0.6, worlds=8, ledger=place, name="trees", seed=None).release())


def test_a_pool_is_known_by_what_its_rows_were_made_of() -> None:
    X, y = pool()
    place = lc_ledger()
    Encoder(12, **FEW, draws=0, noise=0.1, ledger=place).encode(2 * X, y, source=X)
    scaled = Encoder(12, **FEW, draws=0, noise=0.1, ledger=place)
    refusal(lambda: scaled.encode(3 * X, y, source=X), "encoded or released before", lc.AlreadyReleased)


def test_without_a_ledger_a_second_set_is_warned_of() -> None:
    made()
    with pytest.warns(RepeatedReleaseWarning):
        Encoder(12, **FEW, draws=0, noise=0.001).encode(*pool())


@pytest.mark.filterwarnings("default::leakcap.errors.SimulationWarning")
def test_a_seed_makes_a_simulation_and_says_so() -> None:
    with pytest.warns(SimulationWarning):
        encoder, (first, _) = made(seed=3)
    _, (second, _) = made(seed=3)
    assert np.array_equal(first, second) and encoder.certificate.kind == "simulation"
    assert str(encoder.certificate).startswith("SIMULATION") and "drawn from a seed" in plainly(encoder.certificate)
    refusal(encoder.certificate.to_html, "simulation")
    refusal(lambda: Encoder(12, noise=1.0, seed=1, ledger=lc_ledger()), "simulation")


def test_public_rows_teach_and_vote() -> None:
    X, y = pool(each=200)
    public = X[::2], y[::2]
    encoder = Encoder(12, mix=3, rows_released=1800, draws=0, noise=0.001, public=public, queries="released")
    Z, Y = encoder.encode(X[1::2], y[1::2])
    assert Y.shape == (1800, 6) and np.allclose(Y[:, :3].sum(axis=1), 1) and np.allclose(Y[:, 3:].sum(axis=1), 1)
    model = Ridge(0.01).fit(Z, Y)
    assert np.mean(encoder.predict(model, X) == y) > 0.9
    queries = encoder.encode_query(X[:7])
    assert queries.shape == (7, 100, 12)
    scores = model.predict(queries.reshape(-1, 12)).reshape(7, 100, 6)
    assert np.array_equal(encoder.decode(scores), encoder.predict(model, X[:7]))
    assert encoder.certificate.public_rows == 300


def test_public_rows_that_are_in_the_pool_are_warned_of() -> None:
    """One is enough. Of rows that are not in it nothing is said: a warning would fail this test."""
    X, y = pool()
    for shared, public in (
        (True, (X, y)),
        (True, (np.vstack([X[:1], X + 1]), y[[0, *range(len(y))]])),
        (False, (X + 1, y)),
    ):
        encoder = Encoder(12, **FEW, draws=0, noise=0.001, public=public)
        with pytest.warns(LeakcapWarning, match="rows of the pool, too") if shared else nullcontext():
            encoder.encode(X + (0 if shared else 3), y)
        forget_released()


def test_public_rows_have_a_mask_of_their_own() -> None:
    """With one mask for both, whoever knows the public rows would learn the mask of the private ones."""
    X, y = pool(each=200)
    encoder = Encoder(12, mix=3, rows_released=180, draws=0, noise=0.001, public=(X[::2], y[::2]))
    encoder.encode(X[1::2], y[1::2])
    key = encoder.key
    public, back = key.rule(X[::2]), np.linalg.inv(key.mask[0])

    def unmasked(rows: Any) -> Any:
        return np.abs((rows @ back)[:, None] - public).max(axis=2).min(axis=1)

    assert unmasked(key.voters).min() > 0.01
    assert unmasked(public[:100] @ key.mask[0]).max() < 1e-6  # the twin: with the private mask they are found


def test_blocks_have_masks_of_their_own() -> None:
    encoder, encoded = made(blocks=3)
    assert len(encoder.key.mask) == 3 and all(one.shape == (4, 4) for one in encoder.key.mask)
    assert accuracy(encoder, encoded) > 0.9
    X, y = pool()
    changed = X.copy()
    changed[:, :4] = 0
    scaled = Encoder(12, **FEW, draws=0, noise=0.001, blocks=3, norm="ball", scale=100.0, queries="released")
    with pytest.warns(RepeatedReleaseWarning):
        scaled.encode(X, y)
    same = scaled.encode_query(X) == scaled.encode_query(changed)
    assert same[:, 4:].all() and not same[:, :4].all()


def test_patches_of_pictures_are_blocks() -> None:
    X, y = pool()
    pictures = X.reshape(len(X), 2, 6, 1)
    encoder = Encoder(12, **FEW, draws=0, noise=0.001, blocks=(2, 3))
    encoder.encode(pictures, y)
    assert [block.tolist() for block in encoder.key.columns] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
    taller = Encoder(16, **FEW, draws=0, noise=0.001, blocks=(2, 2))
    taller.encode(np.tile(X, 2)[:, :16].reshape(-1, 4, 4), y)
    assert [block.tolist() for block in taller.key.columns][1] == [2, 3, 6, 7]


def test_a_row_is_brought_to_length_one_alone() -> None:
    from leakcap.obfuscation.rows import RowRule

    X = np.array([[3.0, 4.0], [0.0, 0.0], [1e200, 1e200], [1e-200, 0.0]])
    unit = RowRule.of("unit", 1.0)(X)
    assert np.allclose(unit, [[0.6, 0.8], [0, 0], [0.5**0.5, 0.5**0.5], [1, 0]]) and (unit**2).sum(axis=1).max() <= 1
    ball = RowRule.of("ball", 10.0)(X)
    assert np.allclose(ball, [[0.3, 0.4], [0, 0], [0.5**0.5, 0.5**0.5], [1e-201, 0]])
    for rule in (RowRule.of("unit", 1.0), RowRule.of("ball", 10.0)):
        assert np.array_equal(rule(X)[2:3], rule(X[2:3]))


def test_what_is_rounded_or_left_out_is_said() -> None:
    X, y = pool()
    encoder = Encoder(12, mix=3, rows_released=100, rows_sampled=100, draws=0, noise=0.1)
    encoder.encode(X[20:], y[20:])
    assert encoder.design.rows_sampled == 99 and encoder.design.rows_released == 99
    told = " ".join(encoder.notes)
    assert "of the largest class 27 rows are left out" in told and "rows_released is 99" in told
    assert "rows_sampled is 99" in told


def test_an_encoder_is_not_pickled_and_shows_no_secret() -> None:
    encoder, _ = made()
    refusal(lambda: pickle.dumps(encoder), "not pickled")
    refusal(lambda: pickle.dumps(encoder.key), "not pickled")
    assert repr(encoder) == "Encoder(mask_dim=12, rows_released=180, blocks=1)"
    assert "mask" not in repr(encoder.key) and "order" not in repr(encoder.key)


def test_names_of_numbers_come_back_as_numbers() -> None:
    X, y = pool()
    encoder = Encoder(12, **FEW, draws=0, noise=0.001)
    codes = 10 * np.searchsorted(NAMES, y)
    found = encoder.predict(Ridge(0.01).fit(*encoder.encode(X, codes)), X)
    assert set(found.tolist()) <= {0, 10, 20} and np.mean(found == codes) > 0.9


def plainly(certificate: Any) -> str:
    return " ".join(str(certificate).split())


def lc_ledger() -> str:
    import os

    return os.environ["LEAKCAP_LEDGER"]
