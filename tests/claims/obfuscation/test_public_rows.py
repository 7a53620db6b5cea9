"""Learnable noise: public rows, masked and added, are part of the noise of both laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from leakcap.errors import InputError
from leakcap.obfuscation import pairs
from leakcap.obfuscation.chi_squares import told_apart
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.one_unit import Statements
from leakcap.obfuscation.pairs import AddedNoise, products
from leakcap.obfuscation.sampled import draw_mixed, draw_swaps
from leakcap.obfuscation.whole import certify_whole
from tests.claims.obfuscation.cases import law, rows

POOL, RULES = rows(12, 3, 20), law([6, 6], 3, 2, [[0, 1], [1, 0]], columns=4)


def fixed(rng):
    return np.array([[0.6, 0.0, 0.3], [0.0, -0.7, 0.2]])


def test_public_rows_are_a_covariance_of_the_noise():
    """Factors with public rows are those with that covariance, entered by hand."""
    obfuscated = Obfuscated(POOL, RULES, 0.3, public=fixed)
    found = obfuscated.draw_factors(np.random.default_rng(1), swaps=1)
    rng = np.random.default_rng(1)
    mixed = draw_mixed(RULES, rng)
    swaps = draw_swaps(RULES, mixed.rows, 1, rng)
    before = mixed.weights @ POOL[mixed.rows]
    noise = fixed(None) @ fixed(None).T / 4 + 0.09 * np.eye(2)
    for unit in range(len(POOL)):
        rows = POOL[mixed.rows]
        rows[swaps.places[0, unit]] = POOL[swaps.joins[0, unit]]
        after = mixed.weights @ rows
        laws = [one @ one.T / 4 + noise for one in (before, after)]
        with_unit, without = laws if swaps.inside[unit] else laws[::-1]
        logs = np.log(eigh(without, with_unit, eigvals_only=True))
        assert [-found.narrower[0, unit, 0], found.wider[0, unit, 0]] == pytest.approx(logs, abs=1e-6)


def test_public_rows_of_few_columns_are_factored_alike(monkeypatch):
    rules = law([9, 9], 5, 2, [[0, 1], [1, 0], [0, 0]] * 6, columns=7)
    pool, mixed = rows(18, 3, 21), draw_mixed(rules, np.random.default_rng(5))
    noise = AddedNoise(0.01, 7, rows(18, 3, 22) / 2)
    found = products(pool, mixed, noise)
    monkeypatch.setattr(pairs, "NARROW", 1000)
    whole = products(pool, mixed, noise)
    assert found.weight == pytest.approx(whole.weight, rel=1e-9)
    assert found.across == pytest.approx(whole.across, rel=1e-9, abs=1e-9)
    assert found.turn @ found.turn.T == pytest.approx(whole.turn @ whole.turn.T, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("backend", [None, "torch:cpu"])
def test_public_rows_hide_more_than_noise_alone(backend):
    if backend:
        pytest.importorskip("torch")
    means = []
    for public in (None, fixed):
        rng, one = np.random.default_rng(2), Obfuscated(POOL, RULES, 0.3, public=public, backend=backend)
        draws = [one.draw_factors(rng, swaps=1) for _ in range(60)]
        means.append(np.mean([told_apart(found.wider[..., 0], found.narrower[..., 0], 4) for found in draws]))
    assert means[1] < 0.9 * means[0]


def test_public_rows_count_in_what_is_said_of_the_whole_sample():
    rng = np.random.default_rng(3)
    plain, public = (
        certify_whole(Obfuscated(POOL, RULES, 0.3, public=some), draws=200, gamma=1e-3, rng=rng)
        for some in (None, fixed)
    )
    assert 0 < public.estimates[0] < plain.estimates[0] and public.estimates[1] > 0


@pytest.mark.parametrize("wrong", [np.ones((2, 3)), np.zeros((3, 3)), np.full((2, 3), np.nan)])
def test_public_rows_of_another_shape_or_outside_the_ball_are_refused(wrong):
    statements = Statements(Obfuscated(POOL, RULES, 0.3, public=lambda rng: wrong))
    with pytest.raises(InputError):
        statements.of_draw(np.random.default_rng(4), swaps=1)
