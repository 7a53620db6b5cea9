"""From certified noise to a certificate: what arithmetic adds is in the figures, and the rest is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding
from leakcap.obfuscation import certified, encoded, mixing
from leakcap.obfuscation import encoder as encoding
from leakcap.obfuscation.masking import STEP, encoding_distance
from tests.refusals import refusal
from tests.unit.obfuscation.pools import FEW, NAMES, pool

Encoder = lc.obfuscation.Encoder
X, y = pool()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Certification that always finds the same, and notes what it was asked."""
    noted: list[Any] = []

    def bounds_of(release: Any, **more: Any) -> Any:
        noted.append({"release": release, **more})
        success = np.full(180, 0.55)
        success[7] = 0.5987
        return SimpleNamespace(
            success=success,
            worst=0.5987,
            mean_success=0.55,
            alarms=(0.01,),
            recognised=np.array([[0.02, 0.03, 0.01]]),
            draws=256,
            again=700,
        )

    def found(release: Any, cap: float, **more: Any) -> Any:
        bounds = bounds_of(release, cap=cap, **more)
        return SimpleNamespace(obfuscated=SimpleNamespace(noise_std=0.07), bounds=bounds, attempts=2)

    monkeypatch.setattr(certified, "noise_for_cap", found)
    monkeypatch.setattr(certified, "certify_units", bounds_of)
    return noted


def test_the_certificate_states_what_was_certified_and_what_arithmetic_adds(asked: list[Any]) -> None:
    encoder = Encoder(12, **FEW, cap=0.6, confidence=0.999)
    encoder.encode(X, y)
    certificate, distance = encoder.certificate, encoding_distance(encoder.design, 0.07)
    assert isinstance(certificate, ObfuscationCertificate) and certificate.is_guarantee and certificate.noise == 0.07
    assert certificate.membership_success == 0.5987 + distance > 0.5987
    assert certificate.mean_success == 0.55 + distance
    assert certificate.true_positives == ((0.01, 0.03 + 2 * distance),), "of the unit that is recognised best"
    told = 2 * (0.5987 + distance) - 1  # about the unit that is told best; 48 of 60 rows of every class are drawn
    assert certificate.claims == (0.5, 0.8, pytest.approx(0.8 * (1 + 0.2 * told / 0.5), rel=1e-9))
    assert asked[0]["cap"] == 0.6 - certified.RESERVE and asked[0]["attempts"].gamma == pytest.approx(0.001)
    release = asked[0]["release"]
    assert release.public is None and (np.linalg.norm(release.pool, axis=1) <= 1).all()
    assert "256 draws for every row, 700 more for rows near the cap; attempt 2" in " ".join(str(certificate).split())
    again = ObfuscationCertificate.from_json(certificate.to_json())
    assert again == certificate and (again.draws, again.again, again.attempts) == (256, 700, 2)


PUBLIC = {"cap": 0.6, "public": (X + 1, y)}


@pytest.mark.parametrize("settings", [{"noise": 0.3, "draws": 2}, {"cap": 0.6}, {"cap": 0.6, "blocks": 3}, PUBLIC])
def test_the_law_that_is_certified_is_the_law_that_is_drawn(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    """Sizes, means, masks and noise, from what the release itself was drawn with: no figure is of another encoding."""
    seen: dict[str, list[Any]] = {}
    for room, name in ((encoded, "sampled_rows"), (mixing, "mixed_places"), (encoded, "masks"), (encoded, "on_grid")):
        note(monkeypatch, room, name, seen)
    monkeypatch.setattr(encoding, "warn_if_useless", lambda *given, **more: None)  # rehearsals draw by themselves
    encoder = Encoder(12, **FEW, **settings)
    Z, _ = encoder.encode(X, y)
    release, noise = asked[0]["release"], settings.get("noise") or 0.07
    law = release.law
    assert [len(one) for one in seen["sampled_rows"][0]] == [law.sampled] * law.classes
    places = seen["mixed_places"][-1]  # with public rows these are mixed before
    assert places.shape == (len(law.pairs), 2 * law.mix) and len(Z) == len(law.pairs)
    halves = np.searchsorted(NAMES, y)[places].reshape(len(places), 2, law.mix)
    assert (halves == law.pairs[:, :, None]).all(), "rows of the two classes of every pair, as often"
    assert all(one.shape[1] == law.columns for masks in seen["masks"] for one in masks)
    means = [release.pool[places].mean(axis=1)]
    means += [] if release.public is None else [release.public(np.random.default_rng())]
    assert len(means) == len(seen["masks"])
    parts = [
        zip(np.array_split(one, release.blocks, axis=1), seen["masks"][at], strict=True) for at, one in enumerate(means)
    ]
    assert seen["given"][0] == pytest.approx(sum(np.hstack([rows @ one for rows, one in some]) for some in parts))
    steps = Z / (STEP * noise)
    assert np.abs(steps - np.rint(steps)).max() < 1e-6 and np.gcd.reduce(np.rint(steps).astype(int).ravel()) == 1
    assert encoder.certificate.noise == noise


def note(monkeypatch: pytest.MonkeyPatch, room: Any, name: str, seen: dict[str, list[Any]]) -> None:
    """What a function returned, call by call; of the last step what it was given."""
    real = getattr(room, name)

    def noted(*given: Any) -> Any:
        if name == "on_grid":
            seen["given"] = [given[0].copy()]
        seen.setdefault(name, []).append(real(*given))
        return seen[name][-1]

    monkeypatch.setattr(room, name, noted)


def test_claims_are_right_no_more_often_than_their_rate_and_total_variation_allow() -> None:
    """By brute force over all tests of a pair of laws on six outcomes: who claims as often is right no more often."""
    rng = np.random.default_rng(3)
    for rate in (0.02, 0.5, 0.8):
        for _ in range(20):
            drawn, left = rng.dirichlet(np.ones(6), size=2)
            told = np.abs(drawn - left).sum() / 2
            for event in range(1, 64):
                said = np.array([event >> place & 1 for place in range(6)])
                right, wrong = rate * (drawn @ said), (1 - rate) * (left @ said)
                bound = certified.claims_right(np.array([told]), np.array([rate]), right + wrong)
                assert right / (right + wrong) <= bound
    assert certified.claims_right(np.array([0.2, 0.1]), np.array([0.5, 0.8]), 0.5) == pytest.approx(0.832)


def test_noise_that_was_given_is_certified_and_nothing_is_claimed_without_draws() -> None:
    encoder = Encoder(12, **FEW, noise=0.8, draws=300, confidence=0.999)
    encoder.encode(X, y)
    certificate = encoder.certificate
    assert isinstance(certificate, ObfuscationCertificate) and certificate.noise == 0.8
    assert 0.5 < certificate.mean_success <= certificate.membership_success < 0.62
    assert 0 < certificate.draws <= 300 and certificate.again == 0
    for noise, draws in ((0.8, 0), (1e-7, 100)):
        bare = Encoder(12, **FEW, noise=noise, draws=draws)
        bare.encode(X + draws + 1, y)  # another pool
        assert isinstance(bare.certificate, UnclaimedEncoding), "none was asked for, and too little for arithmetic"
    refusal(lambda: Encoder(12, **FEW, cap=0.6, draws=0), "certified by draws")


def test_the_backend_and_the_watcher_reach_the_certification(asked: list[Any]) -> None:
    seen: list[Any] = []
    encoder = Encoder(12, **FEW, cap=0.6, backend="torch:cuda", progress=seen.append)
    encoder.encode(X, y)
    assert asked[0]["release"].backend == "torch:cuda"
    for done in (1, 2, 3):
        asked[0]["tick"](done, 3)
    assert [(one.done, one.total, one.stage) for one in seen] == [(done, 3, "certificate") for done in (1, 2, 3)]
    refusal(lambda: Encoder(12, **FEW, cap=0.6, backend="cuda"), "torch:cuda")


def test_progress_rises_to_the_end() -> None:
    """A real certification: draws are counted from 1, and never beyond those that it may take."""
    seen: list[Any] = []
    Encoder(12, **FEW, noise=0.3, draws=20, progress=seen.append).encode(X, y)
    done = [one.done for one in seen]
    assert done and done == sorted(set(done)) and done[-1] <= 20 and {one.total for one in seen} == {20}


def test_columns_are_certified_in_the_order_of_their_blocks(asked: list[Any]) -> None:
    encoder = Encoder(12, **FEW, cap=0.6, blocks=(2, 3), public=(X.reshape(-1, 2, 6)[::2] + 1, y[::2]))
    encoder.encode(X.reshape(-1, 2, 6).transpose(0, 1, 2), y)
    order = np.concatenate(encoder.key.columns)
    release = asked[0]["release"]
    assert np.array_equal(release.pool, encoder.key.rule(X)[:, order])
    assert release.public(np.random.default_rng(0)).shape == (180, 12)


def test_arithmetic_that_takes_more_than_was_kept_for_it_is_refused(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certified, "RESERVE", 1e-12)
    encoder = Encoder(12, **FEW, cap=0.6)
    refusal(lambda: encoder.encode(X, y), "computed accurately enough", lc.NumericalError)


def test_caps_next_to_a_coin_flip_are_refused(asked: list[Any]) -> None:
    refusal(lambda: Encoder(12, **FEW, cap=0.5004).encode(X, y), "choose a cap above", lc.CapError)
    assert asked == []
