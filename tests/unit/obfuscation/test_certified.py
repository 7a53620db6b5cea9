"""From certified noise to a certificate: what arithmetic adds is in the figures, and the rest is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.certificates.obfuscation import ObfuscationCertificate
from leakcap.obfuscation import certified
from leakcap.obfuscation.masking import encoding_distance
from tests.refusals import refusal
from tests.unit.obfuscation.pools import FEW, pool

Encoder = lc.obfuscation.Encoder
X, y = pool()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Certification that always finds the same, and notes what it was asked."""
    noted: list[Any] = []

    def found(pool: Any, labels: Any, design: Any, **more: Any) -> Any:
        noted.append({"pool": pool, "labels": labels, "design": design, **more})
        bounds = SimpleNamespace(
            worst=0.5987, mean_success=0.55, alarms=(0.01,), recognised=np.array([[0.02, 0.03, 0.01]])
        )
        return SimpleNamespace(obfuscated=SimpleNamespace(noise_std=0.07), bounds=bounds)

    monkeypatch.setattr(certified, "_searched", found)
    return noted


def test_the_certificate_states_what_was_certified_and_what_arithmetic_adds(asked: list[Any]) -> None:
    encoder = Encoder(12, **FEW, cap=0.6, confidence=0.999)
    encoder.encode(X, y)
    certificate, distance = encoder.certificate, encoding_distance(encoder.design, 0.07)
    assert isinstance(certificate, ObfuscationCertificate) and certificate.is_guarantee and certificate.noise == 0.07
    assert certificate.membership_success == 0.5987 + distance > 0.5987
    assert certificate.mean_success == 0.55 + distance
    assert certificate.true_positives == ((0.01, 0.03 + 2 * distance),), "of the unit that is recognised best"
    assert asked[0]["cap"] == 0.6 - certified.RESERVE and asked[0]["gamma"] == pytest.approx(0.001)
    assert asked[0]["public"] is None and (np.linalg.norm(asked[0]["pool"], axis=1) <= 1).all()


def test_columns_are_certified_in_the_order_of_their_blocks(asked: list[Any]) -> None:
    encoder = Encoder(12, **FEW, cap=0.6, blocks=(2, 3), public=(X.reshape(-1, 2, 6)[::2], y[::2]))
    encoder.encode(X.reshape(-1, 2, 6).transpose(0, 1, 2), y)
    order = np.concatenate(encoder.key.columns)
    assert np.array_equal(asked[0]["pool"], encoder.key.rule(X)[:, order]) and asked[0]["public"].shape == (180, 12)


def test_arithmetic_that_takes_more_than_was_kept_for_it_is_refused(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certified, "RESERVE", 1e-12)
    encoder = Encoder(12, **FEW, cap=0.6)
    refusal(lambda: encoder.encode(X, y), "computed accurately enough", lc.NumericalError)


def test_caps_next_to_a_coin_flip_are_refused(asked: list[Any]) -> None:
    refusal(lambda: Encoder(12, **FEW, cap=0.5004).encode(X, y), "choose a cap above", lc.CapError)
    assert asked == []
