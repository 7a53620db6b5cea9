"""An encoder that certifies by torch, from the pool to the predictions: the figures are those by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.planning.released import forget_released
from tests.unit.obfuscation.pools import FEW, accuracy, pool

torch = pytest.importorskip("torch")

from leakcap.kernels.gpu.mixed_rows import MixedRows  # noqa: E402

X, y = pool()
SETTINGS: dict[str, dict[str, Any]] = {
    "whole": {"noise": 0.3, "draws": 64},
    "blocks": {"noise": 0.4, "draws": 16, "blocks": 2},
    "public rows": {"noise": 0.3, "draws": 64, "public": (X[::6], y[::6])},
}
PRIVATE = np.arange(len(X)) % 6 > 0  # public rows are in no pool
MEAN, WORST = 0.02, 0.15  # relative: means of a pool are known to half a hundredth, the largest bound to a twentieth


def certified(backend: str | None, setting: str) -> Any:
    forget_released()
    encoder = lc.obfuscation.Encoder(12, **FEW, **SETTINGS[setting], confidence=0.999, backend=backend)
    encoder.encode(X[PRIVATE], y[PRIVATE])
    return encoder.certificate


def beyond_a_coin(name: str, *certificates: Any) -> list[float]:
    return [getattr(one, name) - 0.5 for one in certificates]


@pytest.mark.parametrize("setting", SETTINGS)
def test_certified_figures_agree_with_those_by_numpy(device: str, setting: str) -> None:
    """False alarm: means of 16 draws were apart by less than a sixth of what is allowed."""
    both = certified(None, setting), certified(f"torch:{device}", setting)
    ours, theirs = beyond_a_coin("mean_success", *both)
    assert theirs == pytest.approx(ours, rel=MEAN)
    ours, theirs = beyond_a_coin("membership_success", *both)
    assert theirs == pytest.approx(ours, rel=WORST)


@pytest.mark.parametrize("setting", ["whole", "public rows"])
def test_the_comparison_sees_a_law_that_is_another(device: str, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    """The twin: there, the variance of what is added is a tenth larger."""
    real = MixedRows.swap_products
    monkeypatch.setattr(
        MixedRows, "swap_products", lambda self, *given, noise, **more: real(self, *given, noise=1.1 * noise, **more)
    )
    ours, theirs = beyond_a_coin("mean_success", certified(None, setting), certified(f"torch:{device}", setting))
    assert theirs != pytest.approx(ours, rel=MEAN)


def test_a_cap_is_kept_and_the_model_works(device: str) -> None:
    """From cap to labels: about the noise that numpy finds, a certificate, and predictions with the owner's key."""
    noises = []
    for backend in (None, f"torch:{device}"):
        forget_released()
        encoder = lc.obfuscation.Encoder(12, **FEW, cap=0.9, draws=128, confidence=0.999, backend=backend)
        encoded = encoder.encode(X, y)
        assert encoder.certificate.kind == "obfuscation" and encoder.certificate.membership_success <= 0.9
        noises.append(encoder.certificate.noise)
    assert noises[1] == pytest.approx(noises[0], rel=0.1)
    assert accuracy(encoder, encoded) > 0.7  # a third by chance; seen: 0.91 to 0.99
