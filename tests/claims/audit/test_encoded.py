"""The audit of encoded sets says "refuted" where the encoding is not the certified one, and not where it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import leakcap as lc
import leakcap.obfuscation.encoded as release_path
from leakcap.noise.entropy import Seeded
from leakcap.obfuscation.masking import masks, on_grid
from leakcap.obfuscation.mixing import sampled_rows

# Small pools teach a server little, and the same one is encoded by several tests.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::leakcap.errors.{one}")
    for one in ("UselessReleaseWarning", "RepeatedReleaseWarning")
]
SMALL = {"targets": 16, "releases": 120, "simulated": 10}  # drawn as a release is: no seed


def small_pool(classes: int = 2, each: int = 30, columns: int = 8) -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    codes = np.repeat(np.arange(classes), each)
    return rng.normal(size=(len(codes), columns)) + 2 * np.eye(classes, columns)[codes], codes


@pytest.fixture(scope="module")
def certified() -> Any:
    encoder = lc.obfuscation.Encoder(8, mix=3, rows_sampled=30, rows_released=40, noise=0.42, draws=256)
    encoder.encode(*small_pool())
    assert 0.55 < encoder.certificate.membership_success < 0.75, "a case in which something is promised"
    return encoder


def test_a_certified_encoding_is_not_refuted_and_its_insider_comes_near(certified: Any) -> None:
    found = lc.audit.encoded(certified, *small_pool(), **SMALL)
    assert found.holds
    bound = certified.certificate.membership_success
    best = {one.attack: one for one in found.findings if one.certified is not None and not one.named}
    assert best["insider"].certified == bound
    assert best["insider"].interval[0] > 0.5, "and it is an attack that learns something"


def less_noise(share: float) -> Callable[..., Any]:
    return lambda values, noise, randomness: on_grid(values, share * noise, randomness)


def planted(monkeypatch: Any, fault: str) -> None:
    kept: dict[str, Any] = {}

    def once(name: str, make: Any) -> Callable[..., Any]:
        return lambda *given: kept.setdefault(name, make(*given))

    faults = {
        "no noise": ("on_grid", less_noise(0.0)),
        "a tenth of the noise": ("on_grid", less_noise(0.1)),
        "half of the noise": ("on_grid", less_noise(0.5)),
        "one noise for all": ("on_grid", lambda values, noise, _: on_grid(values, noise, Seeded(5))),
        "one mask for all": ("masks", once("mask", masks)),
        "one sample for all": ("sampled_rows", once("sample", sampled_rows)),
    }
    monkeypatch.setattr(release_path, *faults[fault])


SIZE = "size of the noise, in units of the certified one"
SEEN_BY = {
    "no noise": SIZE,
    "a tenth of the noise": SIZE,
    "half of the noise": SIZE,
    "one noise for all": "noise that follows that of the trial before",
    "one mask for all": "mask that was there before",
    "one sample for all": SIZE,  # what is taken out is not what was drawn, and the rest too large
}


@pytest.mark.parametrize("fault", SEEN_BY)
def test_planted_faults_are_refuted(certified: Any, monkeypatch: Any, fault: str) -> None:
    planted(monkeypatch, fault)
    found = lc.audit.encoded(certified, *small_pool(), attacks=["law of the encoding"], **SMALL)
    assert found.verdict == "refuted"
    assert SEEN_BY[fault] in [one.question for one in found.findings if one.verdict == "refuted"]


class InOrder:
    """Randomness that leaves a list of so many rows as it is: their order was forgotten."""

    def __init__(self, source: Any, rows: int) -> None:
        self._source, self._rows = source, rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def bits(self) -> Any:
        return InOrder(self._source.bits(), self._rows)

    def permutation(self, x: Any) -> Any:
        return np.arange(x) if isinstance(x, int) and x == self._rows else self._source.permutation(x)


def test_a_forgotten_order_of_rows_is_refuted(certified: Any, monkeypatch: Any) -> None:
    def in_order(pool: Any, randomness: Any, **how: Any) -> Any:
        return release_path.draw_encoded(pool, InOrder(randomness, 40), **how)

    monkeypatch.setattr(sys.modules["leakcap.audit.encoded.game"], "draw_encoded", in_order)
    found = lc.audit.encoded(certified, *small_pool(), attacks=["law of the encoding"], **SMALL)
    refuted = [one.question for one in found.findings if one.verdict == "refuted"]
    assert refuted == ["order of labels that was there before"]


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_the_insider_alone_refutes_too_little_noise(certified: Any, monkeypatch: Any, share: float) -> None:
    monkeypatch.setattr(release_path, "on_grid", less_noise(share))
    found = lc.audit.encoded(certified, *small_pool(), attacks=["insider"], **SMALL)
    assert found.verdict == "refuted"


def test_nothing_is_compared_with_a_certificate_that_claims_nothing() -> None:
    encoder = lc.obfuscation.Encoder(8, mix=3, rows_sampled=30, rows_released=40, noise=0.42, draws=0)
    encoder.encode(*small_pool())
    found = lc.audit.encoded(encoder, *small_pool(), attacks=["insider"], **SMALL)
    assert found.verdict == "no promise" and all(one.certified is None for one in found.findings)


def test_all_rows_are_compared_with_the_certified_average(certified: Any, monkeypatch: Any) -> None:
    how = {"attacks": ["insider"], "targets": None, "releases": 200, "seed": 1}
    found = lc.audit.encoded(certified, *small_pool(), **how).findings[0]
    mean = certified.certificate.mean_success
    assert found.certified == mean < certified.certificate.membership_success
    assert found.verdict != "refuted" and mean - 0.06 < found.measured < mean
    monkeypatch.setattr(release_path, "on_grid", less_noise(0.5))
    assert lc.audit.encoded(certified, *small_pool(), **how).findings[0].verdict == "refuted"


def test_another_pool_is_refused(certified: Any) -> None:
    X, y = small_pool(3)
    with pytest.raises(lc.errors.InputError, match="not the pool that was encoded"):
        lc.audit.encoded(certified, X, y, **SMALL)
