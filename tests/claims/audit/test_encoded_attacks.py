"""Attacks on encoded sets win where there is something to win, are at chance where there is not, and keep to bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits

import leakcap as lc
from leakcap.audit.encoded.attacker import EncodedAttacker
from leakcap.audit.encoded.bayes import bayes
from leakcap.audit.encoded.chosen_plaintexts import chosen_plaintexts
from leakcap.audit.encoded.game import EncodedGame
from leakcap.audit.encoded.insider import insider
from leakcap.audit.encoded.known_plaintext import AlignedMask, known_plaintext
from leakcap.audit.encoded.similarity import matched
from leakcap.audit.encoded.swapped import swapped_likelihoods
from leakcap.certificates.obfuscation import CHOSEN_PLAINTEXTS
from leakcap.noise.entropy import Seeded
from leakcap.obfuscation.certified import obfuscation_of
from leakcap.obfuscation.one_unit import Statements, look_at_units

IGNORED = ("UselessReleaseWarning", "RepeatedReleaseWarning")
pytestmark = [pytest.mark.filterwarnings(f"ignore::leakcap.errors.{one}") for one in IGNORED]


def made(each: int, columns: int, noise: float, **sizes: Any) -> tuple[Any, Any, Any]:
    """An encoder of two classes that has encoded, and its pool."""
    codes = np.repeat([0, 1], each)
    X = np.random.default_rng(each).normal(size=(len(codes), columns)) + np.eye(2, columns)[codes]
    encoder = lc.obfuscation.Encoder(columns, noise=noise, **{"draws": 0, **sizes})
    encoder.encode(X, codes)
    return encoder, X, codes


def attacker_on(encoder: Any, X: Any, y: Any, simulated: int = 20) -> EncodedAttacker:
    game = EncodedGame.of(encoder, X, y)
    return EncodedAttacker(game, np.arange(len(X)), simulated, rng=np.random.default_rng(1))


def digits(classes: int, each: int) -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == one)[:each] for one in range(classes)])
    return X[rows], y[rows]


@pytest.mark.parametrize("share", [1.0, 1.1])
def test_swapped_likelihoods_are_those_of_normal_columns(share: float) -> None:
    """The oracle factorises every swap by itself; with a change that is a tenth off it must disagree."""
    rng = np.random.default_rng(0)
    pool, weights = rng.normal(size=(6, 3)), rng.random(size=(5, 6))
    released, change = rng.normal(size=(5, 4)), rng.normal(size=(2, 3))
    base, gains = swapped_likelihoods(weights @ pool, released, weights[:, :2], share * change, columns=2, variance=0.3)
    for place in range(2):
        other = pool.copy()
        other[place] += change[place]
        for release in range(2):
            columns = released[:, 2 * release : 2 * release + 2].T
            sides = [
                stats.multivariate_normal(cov=mean @ mean.T / 2 + 0.3 * np.eye(5)).logpdf(columns).sum()
                for mean in (weights @ pool, weights @ other)
            ]
            right = np.isclose(gains[release, place], sides[1] - sides[0])
            assert right == (share == 1.0)
            assert np.isclose(base[release] - 5 * np.log(2 * np.pi), sides[0])


def insider_success(attacker: EncodedAttacker, releases: int) -> np.ndarray:
    """One value a release, whose mean is the insider's balanced success about everybody."""
    trials = [attacker.game.trial(Seeded(one)) for one in range(releases)]
    right = (insider(attacker, trials, 20) > 0) == attacker.inside(trials)
    rates = attacker.game.law.rates
    return (right * np.where(attacker.inside(trials), 0.5 / rates, 0.5 / (1 - rates))).mean(axis=1)


def test_the_insider_reaches_the_closest_pairs_that_are_certified() -> None:
    """Within five errors, of both means: once in a million. Of half the noise the insider gets more."""
    encoder, X, y = made(12, 4, 0.3, mix=2, rows_sampled=12, rows_released=16)
    attacker = attacker_on(encoder, X, y)
    seen = insider_success(attacker, 200)
    told = look_at_units(
        Statements(obfuscation_of(attacker.game.pool, public=None, noise=0.3)), 200, np.random.default_rng(2)
    )
    pairs = 0.5 + 0.5 * told.mean[0].mean()
    error = seen.std() / np.sqrt(len(seen)) + 0.5 * np.sqrt(told.variance[0].mean() / told.draws)
    assert abs(seen.mean() - pairs) < 5 * error < 0.1
    half = obfuscation_of(attacker.game.pool, public=None, noise=0.15)
    more = look_at_units(Statements(half), 200, np.random.default_rng(2))
    assert 0.5 + 0.5 * more.mean[0].mean() - seen.mean() > 5 * error


def test_the_best_possible_attacker_stays_below_the_certified_bound() -> None:
    encoder, X, y = made(3, 2, 0.3, mix=1, rows_sampled=4, rows_released=4, draws=512)
    found = lc.audit.encoded(encoder, X, y, attacks=["bayes"], targets=6, releases=400)
    assert found.verdict != "refuted"
    first = found.findings[0]
    assert first.interval[0] > 0.53, "it wins something"
    assert first.measured < encoder.certificate.mean_success


def calibrated(chances: Any, inside: Any) -> bool:
    """Whether rows are in as often as is said, also among those with high chances; five errors, one in a million."""
    off = ((inside - chances) * (chances - 0.5)).mean(axis=1)
    return bool(abs(off.mean()) < 5 * off.std() / np.sqrt(len(off)))


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (1.5, False)])
def test_what_the_best_attacker_believes_is_right_as_often_as_it_says(factor: float, right: bool) -> None:
    """The twin trusts its evidence half as much again as it should."""
    encoder, X, y = made(4, 2, 0.25, mix=1, rows_sampled=4, rows_released=4)
    attacker = attacker_on(encoder, X, y)
    trials = [attacker.game.trial(Seeded(one)) for one in range(600)]
    odds = factor * np.clip(bayes(attacker, trials, 0), -50, 50)  # the rate is 1/2
    assert calibrated(1 / (1 + np.exp(-odds)), attacker.inside(trials)) == right


def test_bayes_is_refused_where_it_cannot_list_everything() -> None:
    encoder, X, y = made(30, 4, 0.3, mix=2, rows_sampled=30, rows_released=40)
    with pytest.raises(lc.errors.InputError, match="too large for the attack 'bayes'"):
        lc.audit.encoded(encoder, X, y, attacks=["bayes"], releases=20)


@pytest.mark.parametrize("attack", ["likelihood", "likelihood as printed"])
def test_the_likelihood_attacks_win_where_few_samples_are_possible(attack: str) -> None:
    encoder, X, y = made(2, 2, 0.2, mix=1, rows_sampled=2, rows_released=4)
    found = lc.audit.encoded(encoder, X, y, attacks=[attack], targets=4, releases=250, simulated=100, seed=1)
    assert found.findings[0].interval[0] > 0.55
    hidden, X, y = made(2, 2, 50.0, mix=1, rows_sampled=2, rows_released=4)
    found = lc.audit.encoded(hidden, X, y, attacks=[attack], targets=4, releases=250, simulated=100, seed=1)
    assert found.findings[0].interval[0] < 0.5, "and where noise hides everything there is nothing to win"


def random_network(X: Any, width: int = 1024, layers: int = 2) -> Any:
    """The rival: one row in, one row out, by a secret network without noise."""
    rng = np.random.default_rng(5)
    found = X / np.linalg.norm(X, axis=1, keepdims=True)
    for _ in range(layers):
        found = np.maximum(found @ rng.normal(size=(found.shape[1], width)) * np.sqrt(2 / found.shape[1]), 0)
    return found


def test_the_similarity_attack_names_the_rows_of_a_random_network() -> None:
    X, _ = digits(10, 25)
    order = np.random.default_rng(6).permutation(len(X))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert np.mean(matched(random_network(X)[order], unit) == order) > 0.9
    other = np.random.default_rng(7).permutation(X)  # the twin: columns of a row say nothing about another's
    assert np.mean(matched(random_network(X)[order], other) == order) < 0.1


def test_the_similarity_attack_is_at_chance_at_a_certified_setting() -> None:
    X, y = digits(3, 40)
    encoder = lc.obfuscation.Encoder(32, mix=5, rows_sampled=60, rows_released=90, noise=0.25, draws=128)
    encoder.encode(X, y)
    assert encoder.certificate.membership_success < 0.7
    found = lc.audit.encoded(encoder, X, y, attacks=["similarity"], releases=90, seed=1).findings[0]
    assert found.interval[0] < 0.5 < found.interval[1] < 0.56


def test_known_plaintexts_undo_an_encoding_without_noise() -> None:
    encoder, X, y = made(30, 6, 0.0, mix=2, rows_sampled=30, rows_released=60)
    attacker = attacker_on(encoder, X, y)
    trials = [attacker.game.trial(Seeded(one)) for one in range(60)]
    assert known_plaintext(attacker, trials).interval[0] > 0.8 and "No noise was added" in encoder.certificate.why
    means = np.asarray(trials[0].weights @ attacker.game.pool.rows)
    aligned = AlignedMask.of(means[:30], trials[0].values[:30], 1e-12)
    assert np.allclose(aligned.rebuilt(trials[0].values[30:]), means[30:], atol=1e-4), "all other rows are rebuilt"


def test_known_plaintexts_tell_little_under_much_noise() -> None:
    encoder, X, y = made(30, 6, 2.0, mix=2, rows_sampled=30, rows_released=60)
    attacker = attacker_on(encoder, X, y)
    found = known_plaintext(attacker, [attacker.game.trial(Seeded(one)) for one in range(60)])
    assert found.verdict == "no promise" and found.interval[0] < 0.5


def test_pools_of_unequal_difficulty_are_told_apart_and_the_certificate_says_so() -> None:
    X, y = digits(2, 100)
    encoder = lc.obfuscation.Encoder(32, mix=20, rows_sampled=160, rows_released=200, noise=0.15, draws=128)
    encoder.encode(X, y)
    assert encoder.certificate.is_guarantee and encoder.certificate.membership_success < 0.65
    found = lc.audit.encoded(encoder, X, y, attacks=["chosen plaintexts"], releases=50).findings[0]
    assert found.interval[0] > 2 / 3 and found.verdict == "no promise"
    assert CHOSEN_PLAINTEXTS in encoder.certificate.not_promised and "two times out of three" in CHOSEN_PLAINTEXTS


def test_pools_from_which_nothing_is_learnt_are_not_told_apart() -> None:
    X, y = digits(2, 100)
    encoder = lc.obfuscation.Encoder(32, mix=20, rows_sampled=160, rows_released=200, noise=5.0, draws=0)
    encoder.encode(X, y)
    found = chosen_plaintexts(attacker_on(encoder, X, y), releases=60, learn=20, randomness=Seeded(3))
    assert found.interval[0] < 0.5 < found.interval[1]
