"""What `audit.encoded` takes, and what it says about what it does not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.audit.encoded.game import EncodedGame
from leakcap.noise.entropy import Seeded

IGNORED = ("UselessReleaseWarning", "RepeatedReleaseWarning")
pytestmark = [pytest.mark.filterwarnings(f"ignore::leakcap.errors.{one}") for one in IGNORED]
FEW = {"attacks": ["insider"], "releases": 20}


def rows() -> tuple[Any, Any]:
    codes = np.repeat(["a", "b"], 12)
    return np.random.default_rng(3).normal(size=(24, 6)) + (codes == "a")[:, None], codes


def encoder(**settings: Any) -> Any:
    sizes = {"mix": 2, "rows_sampled": 12, "rows_released": 16, "noise": 0.2, "draws": 0}
    made = lc.obfuscation.Encoder(6, **{**sizes, **settings})
    made.encode(*rows())
    return made


def test_a_trial_is_what_its_secrets_say() -> None:
    """Without noise, rows are the masked means of who was drawn, in the stated order, and as they left in another."""
    game = EncodedGame.of(encoder(noise=0.0), *rows())
    trial = game.trial(Seeded(1))
    assert np.abs(trial.rest).max() < 1e-8
    assert (np.asarray(trial.weights.sum(axis=0)).ravel()[~trial.inside] == 0).all()
    assert trial.inside.sum() == 12 and sorted(trial.order) == list(range(16))
    assert not np.array_equal(trial.order, np.arange(16))


@pytest.mark.parametrize("settings", [{"blocks": 2}, {"whiten": 4, "mask_dim": None}, {"norm": "ball", "scale": 4.0}])
def test_blocks_whitened_rows_and_balls_are_attacked_as_they_were_encoded(settings: dict[str, Any]) -> None:
    made = encoder(**{name: value for name, value in settings.items() if value is not None})
    found = lc.audit.encoded(made, *rows(), attacks=["insider", "likelihood", "law of the encoding"], releases=40)
    size = next(one for one in found.findings if one.kind == "check")
    assert found.verdict != "refuted" and abs(size.measured - 1) < 0.1


def test_the_same_seed_gives_the_same_report() -> None:
    made = encoder()
    first, second = (lc.audit.encoded(made, *rows(), **FEW, seed=seed).findings for seed in (1, 1))
    assert first == second != lc.audit.encoded(made, *rows(), **FEW, seed=2).findings


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        ([0, 0], "each once"),
        ([0, 24], "from 0 to 23"),
        ([0.5], "list of their numbers"),
        (0, "targets"),
    ],
)
def test_rows_that_cannot_be_asked_about_are_refused(targets: Any, words: str) -> None:
    with pytest.raises(lc.errors.InputError, match=words):
        lc.audit.encoded(encoder(), *rows(), targets=targets, **FEW)


def test_rows_are_asked_about_by_number_and_no_more_than_there_are() -> None:
    assert lc.audit.encoded(encoder(), *rows(), targets=25, **FEW).findings
    assert lc.audit.encoded(encoder(), *rows(), targets=[3, 1], **FEW).findings


def test_what_is_no_encoder_or_has_encoded_nothing_is_refused() -> None:
    with pytest.raises(lc.errors.InputError, match=r"give the leakcap\.obfuscation\.Encoder"):
        lc.audit.encoded(rows(), *rows(), **FEW)
    with pytest.raises(lc.errors.InputError, match="nothing was encoded yet"):
        lc.audit.encoded(lc.obfuscation.Encoder(4, noise=0.1), *rows(), **FEW)
    X, y = rows()
    with pytest.raises(lc.errors.InputError, match="public rows are not attacked"):
        lc.audit.encoded(encoder(public=(X + 1, y)), X, y, **FEW)


def test_unknown_attacks_and_too_few_sets_are_refused() -> None:
    with pytest.raises(lc.errors.InputError, match="attacks must be one of"):
        lc.audit.encoded(encoder(), *rows(), attacks=["telepathy"])
    with pytest.raises(lc.errors.InputError, match="releases"):
        lc.audit.encoded(encoder(), *rows(), releases=5)


def test_an_encoding_that_draws_something_else_is_told_of(monkeypatch: Any) -> None:
    """It draws fewer numbers than the certified one, so that its secrets cannot be played back."""
    made = encoder()
    import leakcap.obfuscation.encoded as release_path

    fixed = [np.arange(6), np.arange(12, 18)]
    monkeypatch.setattr(release_path, "sampled_rows", lambda *_: fixed)
    with pytest.raises(lc.errors.OutputError, match="other random choices"):
        lc.audit.encoded(made, *rows(), **FEW)
