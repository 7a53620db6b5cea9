"""Rule 6 for encoded sets: with the encoded set fixed, nothing that goes to the server tells what was sampled.

Method: the mixed and masked rows are replaced by agreed ones after everything else was drawn for real, so that two runs
have the same encoded set from different samples, mixings and keys. Everything that the server gets is compared; the
key's id, which is drawn by itself, is agreed on too. Twins show that each file is looked at. Nothing is statistical.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.cli import obfuscate
from leakcap.obfuscation import encoded as drawing
from leakcap.obfuscation import encoder as encoding
from leakcap.planning.released import forget_released
from tests.refusals import texts_of
from tests.unit.obfuscation.pools import FEW, pool

AGREED = np.random.default_rng(0).normal(size=(180, 12))
SHARES = np.random.default_rng(1).dirichlet(np.ones(3), size=180)


def agree(monkeypatch: pytest.MonkeyPatch, drawn: list[Any]) -> None:
    """The encoded set, and the id, are the same in every run; what was sampled is noted."""
    sampled, encoded = drawing.sampled_rows, encoding.draw_encoded

    def noted(*given: Any) -> Any:
        found = sampled(*given)
        drawn.append(np.sort(np.concatenate(found)))
        return found

    monkeypatch.setattr(drawing, "sampled_rows", noted)
    monkeypatch.setattr(drawing.secrets, "token_hex", lambda size: "0" * 2 * size)
    monkeypatch.setattr(encoding, "draw_encoded", lambda *given, **more: ((AGREED, SHARES), encoded(*given, **more)[1]))


def table(folder: Path) -> Path:
    X, y = pool()
    lines = ["label," + ",".join(f"c{i}" for i in range(12))]
    lines += [f"{label}," + ",".join(map(repr, row.tolist())) for label, row in zip(y, X, strict=True)]
    (folder / "pool.csv").write_text("\n".join(lines) + "\n")
    return folder / "pool.csv"


def server_files(folder: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, bytes]]:
    monkeypatch.setenv("LEAKCAP_LEDGER", f"sqlite:///{folder / place}.db")
    order = obfuscate.EncodeOrder(
        data=table(folder), label="label", out=folder / place, noise=0.01, draws=0, mix=3, rows_released=180
    )
    obfuscate.run_encode(order, quiet=True)
    server = folder / place / "server"
    return {one.name: (one.stat().st_mode, one.read_bytes()) for one in server.iterdir()}


def test_every_byte_for_the_server_is_the_same_whatever_was_sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    agree(monkeypatch, drawn)
    first, second = (server_files(tmp_path, place, monkeypatch) for place in ("one", "two"))
    assert first == second and set(first) >= {"features.npy", "labels.npy", "certificate.json", "page.html"}
    assert not np.array_equal(*drawn), "the samples differ"
    assert (tmp_path / "one/owner/encoding.key").read_bytes() != (tmp_path / "two/owner/encoding.key").read_bytes()


@pytest.mark.parametrize("told", ["certificate", "advice"])
def test_the_check_sees_a_sample_that_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    """The twins: the first row that was drawn is mentioned in a file."""
    drawn: list[Any] = []
    agree(monkeypatch, drawn)
    if told == "certificate":
        real = encoding.certificate_of
        words = lambda facts: {**facts, "rows_are": f"{facts['rows_are']} {drawn[-1].sum()}"}  # noqa: E731
        monkeypatch.setattr(encoding, "certificate_of", lambda c, facts, *more: real(c, words(facts), *more))
    else:
        advised = obfuscate.advice
        monkeypatch.setattr(obfuscate, "advice", lambda *given: f"{advised(*given)}{drawn[-1].sum()}")
    assert server_files(tmp_path, "one", monkeypatch) != server_files(tmp_path, "two", monkeypatch)


def test_what_the_encoder_keeps_and_says_is_the_same_whatever_was_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    agree(monkeypatch, drawn)
    seen = []
    for _ in range(2):
        forget_released()
        made = lc.obfuscation.Encoder(12, **FEW, draws=0, noise=0.1)
        made.encode(*pool())
        public = repr(made), made.notes, made.design, made.certificate.to_json(), made.certificate.to_html()
        seen.append((*public, str(made.certificate), made.certificate._repr_html_()))
    assert seen[0] == seen[1] and not np.array_equal(*drawn)


def test_nothing_of_the_sample_or_the_mixing_outlives_the_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the encoder, and not in the key: every array that is kept has the size of the mask or smaller."""
    made = lc.obfuscation.Encoder(12, **FEW, draws=0, noise=0.1)
    made.encode(*pool())
    assert kept_arrays(made) <= 12 * 12
    made.sample = np.arange(144 + 1)  # the twin
    assert kept_arrays(made) > 12 * 12


def kept_arrays(thing: Any, seen: set[int] | None = None) -> int:
    """The size of the largest array that can be reached from an object of ours."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.size
    inside = list(thing) if isinstance(thing, (tuple, list)) else list(getattr(thing, "__dict__", {}).values())
    return max((kept_arrays(one, seen) for one in inside), default=0)


def test_a_crash_while_encoding_quotes_nothing_and_spends(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = pool()
    place = os.environ["LEAKCAP_LEDGER"]

    def breaks(*given: Any, **more: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(drawing, "mixed_rows", breaks)
    made = lc.obfuscation.Encoder(12, **FEW, draws=0, noise=0.1, ledger=place)
    with pytest.raises(MemoryError) as caught:
        made.encode(X, y)
    assert repr(float(X[0, 0])) not in texts_of(caught.value)
    monkeypatch.undo()
    with pytest.raises(lc.AlreadyReleased):
        lc.obfuscation.Encoder(12, **FEW, draws=0, noise=0.1, ledger=place).encode(X, y)
