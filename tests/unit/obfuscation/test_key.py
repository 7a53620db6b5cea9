"""The key: sealed, its owner's alone, and nothing in it that a prediction does not need."""

from __future__ import annotations

import os
import stat
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import leakcap as lc
from leakcap.custody import keys
from leakcap.obfuscation.key import MAGIC, SALT
from tests.refusals import refusal
from tests.unit.obfuscation.pools import FEW, pool

Key = lc.obfuscation.Key
X, y = pool()


@pytest.fixture
def encoded(own_key: Path, tmp_path: Path) -> tuple[lc.obfuscation.Encoder, Ridge, Path]:
    encoder = lc.obfuscation.Encoder(12, **FEW, draws=0, noise=0.001)
    model = Ridge(0.01).fit(*encoder.encode(X, y))
    path = tmp_path / "encoding.key"
    encoder.save_key(path)
    return encoder, model, path


def test_a_saved_key_predicts_alike(encoded: tuple[lc.obfuscation.Encoder, Ridge, Path]) -> None:
    encoder, model, path = encoded
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert np.array_equal(Key.load(path).predict(model, X), encoder.predict(model, X))
    assert Key.load(path).id == encoder.certificate.id
    refusal(lambda: encoder.save_key(path), "never overwritten")


def test_a_key_with_voters_and_blocks_comes_back(own_key: Path, tmp_path: Path) -> None:
    encoder = lc.obfuscation.Encoder(12, **FEW, draws=0, noise=0.001, public=(X, y), blocks=2)
    model = Ridge(0.01).fit(*encoder.encode(X + 1, y))
    encoder.save_key(tmp_path / "key of it")
    assert np.array_equal(Key.load(tmp_path / "key of it").predict(model, X), encoder.predict(model, X))


def test_every_part_of_the_key_is_needed_to_predict_and_none_tells_the_sample(
    encoded: tuple[lc.obfuscation.Encoder, Ridge, Path],
) -> None:
    encoder, _, _ = encoded
    kept = {one.name for one in fields(Key)}
    assert kept == {"id", "classes", "rule", "columns", "mask", "order", "voters", "recipe"}
    numbers = sum(one.size for one in encoder.key.mask)
    assert numbers == 12 * 12 and len(encoder.key._content()) < 8 * numbers + 400
    held = vars(encoder)
    assert not any(isinstance(one, np.ndarray) and len(one) > 12 for one in held.values())


def test_without_its_key_a_model_says_nothing(encoded: tuple[lc.obfuscation.Encoder, Ridge, Path]) -> None:
    """Guesses by other keys: the mean of 40 is a third within five deviations (one in a million)."""
    encoder, model, _ = encoded
    with pytest.warns(lc.RepeatedReleaseWarning):
        others = [other_key() for _ in range(40)]
    shares = [np.mean(one.predict(model, X) == y) for one in others]
    assert abs(np.mean(shares) - 1 / 3) < 5 * np.std(shares) / 40**0.5
    assert np.mean(encoder.predict(model, X) == y) > 0.9


def other_key() -> lc.obfuscation.Key:
    other = lc.obfuscation.Encoder(12, **FEW, draws=0, noise=0.001)
    other.encode(X, y)
    return other.key


def test_altered_keys_are_refused(encoded: tuple[lc.obfuscation.Encoder, Ridge, Path]) -> None:
    _, _, path = encoded
    stored = path.read_bytes()
    for place in (len(MAGIC), len(MAGIC) + SALT, len(MAGIC) + SALT + 20, len(stored) - 1):
        path.write_bytes(stored[:place] + bytes([stored[place] ^ 1]) + stored[place + 1 :])
        refusal(lambda: Key.load(path), "does not open|installed")
    for content in (b"", stored[:-1], stored[: len(MAGIC) + 5], b"x" + stored):
        path.write_bytes(content)
        refusal(lambda: Key.load(path), "does not open|no key of an encoding")
    refusal(lambda: Key.load(path.with_name("gone")), "no key of an encoding")


def test_foreign_keys_are_refused(
    encoded: tuple[lc.obfuscation.Encoder, Ridge, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, path = encoded
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "somebody else's"))
    refusal(lambda: Key.load(path), "sealed by somebody else's key")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620])
def test_keys_that_others_may_read_or_write_are_refused(
    encoded: tuple[lc.obfuscation.Encoder, Ridge, Path], mode: int
) -> None:
    _, _, path = encoded
    os.chmod(path, mode)
    refusal(lambda: Key.load(path), "others may read")


def test_a_sealed_key_shows_nothing_of_the_mask(encoded: tuple[lc.obfuscation.Encoder, Ridge, Path]) -> None:
    encoder, _, path = encoded
    if not keys.can_seal():
        pytest.skip("sealing needs the vault extra")
    stored = path.read_bytes()
    assert encoder.key.mask[0][0].astype("<f8").tobytes() not in stored and b"birch" not in stored
