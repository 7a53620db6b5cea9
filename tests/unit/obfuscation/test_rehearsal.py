"""What an owner hears before anything is spent: whether a server will learn anything, and which sizes teach more."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge

import leakcap as lc
from leakcap.errors import UselessReleaseWarning
from leakcap.noise.entropy import Seeded
from leakcap.obfuscation import rehearsal
from leakcap.obfuscation.design import Sizes
from leakcap.obfuscation.pools import EncodablePool
from leakcap.obfuscation.rehearsal import rehearsed
from leakcap.obfuscation.rows import RowRule
from leakcap.obfuscation.whitening import Whitening
from tests.refusals import refusal
from tests.unit.obfuscation.pools import FEW, pool

Encoder = lc.obfuscation.Encoder
X, y = pool()


def test_noise_that_leaves_nothing_is_said_before_anything_is_spent(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'ledger.db'}"
    encoder = Encoder(12, **FEW, draws=0, noise=30.0, ledger=place)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UselessReleaseWarning)
        with pytest.raises(UselessReleaseWarning) as told:
            encoder.encode(X, y)
    words = str(told.value)
    assert "% right by a linear model" in words and "33 % by chance" in words and "suggest(X, y)" in words
    sound = Encoder(12, **FEW, draws=0, noise=0.01, ledger=place)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UselessReleaseWarning)
        sound.encode(X, y)  # the ledger knows of nothing before, and there is nothing to warn of


@pytest.mark.parametrize("noise", [0.01, 0.7, 5.0])
def test_a_rehearsal_tells_what_models_of_real_encodings_reach(noise: float) -> None:
    digits, classes = load_digits(return_X_y=True)
    half = digits[::2], classes[::2]
    sizes = Sizes.of(mask_dim=64, mix=3, rows_sampled=None, rows_released=800, blocks=1)
    expected = rehearsed(EncodablePool.of(*half, rule=RowRule(), blocks=1, sizes=sizes), noise).accuracy
    encoder = Encoder(64, mix=3, rows_released=800, noise=noise, draws=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoded = encoder.encode(*half)
    best = max(
        float(np.mean(encoder.predict(Ridge(size).fit(*encoded), digits[1::2]) == classes[1::2]))
        for size in (0.1, 10, 1000)
    )
    assert abs(best - expected) < 0.12


def test_a_small_pool_is_rehearsed_several_times() -> None:
    """36 rows are left to be asked about: estimates of one rehearsal swing, those of eight do so little."""
    sizes = Sizes.of(mask_dim=12, mix=3, rows_sampled=None, rows_released=180, blocks=1)
    made = EncodablePool.of(X, y, rule=RowRule(), blocks=1, sizes=sizes)
    several = [rehearsed(made, 0.6, seed=seed).accuracy for seed in range(24)]
    single = [rehearsal._once(made, 0.6, None, Seeded(seed)).accuracy for seed in range(24)]
    assert np.std(several) < 0.7 * np.std(single)
    assert abs(np.mean(several) - np.mean(single)) < 4 * np.std(single) / np.sqrt(24)
    assert rehearsal._asked_at_most(made) == 36


def test_whitened_rows_are_predicted_by_the_key_and_the_certificate_says_whose_mean_it_was(tmp_path: Path) -> None:
    skewed = X @ np.diag(10.0 ** np.linspace(-1, 1, 12)) + 50
    encoder = Encoder(12, **FEW, draws=0, noise=0.02, whiten=12)
    model = Ridge(0.01).fit(*encoder.encode(skewed, y))
    assert np.mean(encoder.predict(model, skewed) == y) > 0.6  # a third by chance
    encoder.save_key(tmp_path / "key")
    again = lc.obfuscation.Key.load(tmp_path / "key")
    assert again.predict(model, skewed).tolist() == encoder.predict(model, skewed).tolist()
    assert "whitened by all rows of the pool, to 12 components" in " ".join(str(encoder.certificate).split())
    refusal(lambda: again.encode(skewed[:, :5]), "those that were encoded have 12")


def test_whitening_does_not_look_at_who_is_drawn_and_leaves_unit_covariance() -> None:
    found = Whitening.of(X, 5)
    white = found(X)
    assert np.allclose(white.mean(axis=0), 0) and np.allclose(white.T @ white / len(X), np.eye(5))
    order = np.random.default_rng(1).permutation(len(X))
    assert np.allclose(np.abs(Whitening.of(X[order], 5)(X)), np.abs(white)), "whichever way the pool is written"
    flat = np.concatenate([X[:, :3], X[:, :3]], axis=1)
    assert Whitening.of(flat, 6).turn.shape == (6, 3), "components without variance are none"
    huge = Whitening.of(X * 1e200, 5)(X * 1e200)
    assert np.allclose(np.abs(huge), np.abs(white))


def test_whitening_that_cannot_be_is_refused() -> None:
    refusal(lambda: Encoder(12, noise=0.1, whiten=13, **FEW).encode(X, y), "so many components or fewer")
    refusal(lambda: Encoder(12, noise=0.1, whiten=3, blocks=2), "leave one of them out")


def test_suggestions_find_more_to_learn_and_spend_nothing() -> None:
    encoder = Encoder(12, mix=1, rows_released=90, cap=0.6, draws=200, confidence=0.99)
    noisy = X + np.random.default_rng(5).normal(size=X.shape)
    found = encoder.suggest(noisy, y, settings=3)
    assert len(found.tried) == 3 and found.best.accuracy == max(one.accuracy for one in found.tried)
    asked = next(one for one in found.tried if one.arguments["mix"] == 1 and "whiten" not in one.arguments)
    assert found.best.accuracy >= asked.accuracy and "cap=0.6)" in str(found)
    encoder._refuse_spent()
    kept = Encoder(**found.best.arguments, cap=0.6, draws=200, confidence=0.99)
    kept.encode(noisy, y)
    assert 0.6 < kept.certificate.noise / found.best.noise < 1.6, "what encode certifies is what was said"
    refusal(lambda: Encoder(12, noise=0.1).suggest(X, y), "give cap=")
