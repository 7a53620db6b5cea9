"""Rule 6 for encoded sets: with the encoded set fixed, nothing that goes to the server tells what was sampled.

Method: two runs have the same encoded set from different samples, mixings and keys (`agreed`). Everything that the
server gets is compared. Twins show that each file is looked at. Nothing is statistical.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.cli import obfuscate
from leakcap.custody import folders
from leakcap.obfuscation import encoded as drawing
from leakcap.obfuscation import encoder as encoding
from leakcap.planning.released import forget_released
from tests.leaks.obfuscation.agreed import AGREED, CAPPED, agree, certify_alike, mark_of, server_files
from tests.refusals import texts_of
from tests.unit.obfuscation.pools import FEW, pool


def test_every_byte_for_the_server_is_the_same_whatever_was_sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    agree(monkeypatch, drawn)
    first, second = (server_files(tmp_path, place, monkeypatch) for place in ("one", "two"))
    assert first == second and set(first) >= {"features.npy", "labels.npy", "certificate.json", "page.html"}
    assert set(first[""][1]) == set(first) - {""}, "every file was seen when it was written"
    assert not np.array_equal(*drawn), "the samples differ"
    assert (tmp_path / "one/owner/encoding.key").read_bytes() != (tmp_path / "two/owner/encoding.key").read_bytes()


@pytest.mark.parametrize("told", ["certificate", "advice", "order"])
def test_the_check_sees_a_sample_that_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    """The twins: the first row that was drawn is mentioned in a file."""
    drawn: list[Any] = []
    agree(monkeypatch, drawn)
    if told == "certificate":
        real = encoding.certificate_of
        words = lambda facts: {**facts, "rows_are": f"{facts['rows_are']} {mark_of(drawn[-1])}"}  # noqa: E731
        monkeypatch.setattr(encoding, "certificate_of", lambda c, facts, *more: real(c, words(facts), *more))
    elif told == "order":
        plain = folders.Folders.publish
        turned = lambda files: dict(sorted(files.items(), reverse=bool(len(drawn) % 2)))  # noqa: E731
        monkeypatch.setattr(folders.Folders, "publish", lambda self, files: plain(self, turned(files)))
    else:
        advised = obfuscate.advice
        monkeypatch.setattr(obfuscate, "advice", lambda *given: f"{advised(*given)}{mark_of(drawn[-1])}")
    assert server_files(tmp_path, "one", monkeypatch) != server_files(tmp_path, "two", monkeypatch)


IN_BLOCKS = {"noise": 0.5, "draws": 24, "blocks": "2"}


@pytest.mark.parametrize(
    "how",
    [CAPPED, IN_BLOCKS, pytest.param({**CAPPED, "blocks": "2"}, marks=pytest.mark.slow)],
    ids=["cap", "blocks", "blocks under a cap"],
)
def test_under_a_cap_every_byte_is_the_same_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    """Noise that is found, or certified, is a number of the pool and the rules: with those draws fixed, always it."""
    drawn: list[Any] = []
    agree(monkeypatch, drawn)
    certify_alike(monkeypatch)
    first, second = (server_files(tmp_path, place, monkeypatch, **how) for place in ("one", "two"))
    assert first == second and b'"kind": "obfuscation"' in first["certificate.json"][2]
    assert not np.array_equal(*drawn), "the samples differ"


def test_the_check_sees_noise_that_depends_on_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a millionth of the noise is told by the first row that was drawn."""
    drawn: list[Any] = []
    agree(monkeypatch, drawn)
    certify_alike(monkeypatch)
    real = encoding.certificate_of
    more = lambda facts: {**facts, "noise": facts["noise"] * (1 + 1e-6 * drawn[-1].std())}  # noqa: E731
    monkeypatch.setattr(encoding, "certificate_of", lambda c, facts, *rest: real(c, more(facts), *rest))
    first, second = (server_files(tmp_path, place, monkeypatch, **CAPPED) for place in ("one", "two"))
    assert first["certificate.json"] != second["certificate.json"]


def owner_page_bytes(folder: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> bytes:
    server_files(folder, place, monkeypatch)
    page = folder / place / "owner" / "before-and-after.html"
    refuse_open(page)
    return page.read_bytes()


def refuse_open(page: Path) -> None:
    """It is the owner's alone, and it lies nowhere else."""
    assert stat.S_IMODE(page.stat().st_mode) == 0o600 and stat.S_IMODE(page.parent.stat().st_mode) == 0o700
    others = [one for one in page.parents[1].rglob("*") if one.is_file() and one != page]
    shown = page.read_bytes()
    assert not any(shown in one.read_bytes() or one.samefile(page) for one in others)
    assert not any(b"CUSTODIAN ONLY" in one.read_bytes() for one in others)


def test_the_owners_page_knows_neither_the_sample_nor_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the encoded set fixed it is the same, whatever was sampled, mixed and masked: rows of the pool are all."""
    drawn: list[Any] = []
    agree(monkeypatch, drawn)
    first, second = (owner_page_bytes(tmp_path, place, monkeypatch) for place in ("one", "two"))
    assert first == second and not np.array_equal(*drawn)
    assert f"{AGREED[0, 0]:.4f}".lstrip("-").encode() in first, "the encoded rows are on it"


@pytest.mark.parametrize("told", ["mask", "sample"])
def test_the_check_sees_a_page_that_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    """The twins: a number of the mask, or of the sample, is in the page's HTML, where nobody looks."""
    drawn: list[Any] = []
    agree(monkeypatch, drawn)
    masks, shown, made = [], obfuscate.owner_page, obfuscate.Key.save
    monkeypatch.setattr(obfuscate.Key, "save", lambda key, *given: (masks.append(key.mask[0]), made(key, *given)))
    hidden = lambda: masks[-1][0, 0] if told == "mask" else drawn[-1].tolist()  # noqa: E731
    monkeypatch.setattr(obfuscate, "owner_page", lambda *given: f"{shown(*given)}<!-- {hidden()} -->")
    first, second = (owner_page_bytes(tmp_path, place, monkeypatch) for place in ("one", "two"))
    assert first != second


@pytest.mark.parametrize("fault", ["open to others", "in an open folder", "beside the encoded set", "linked there"])
def test_the_check_sees_a_page_that_others_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """The twins."""
    owner_page_bytes(tmp_path, "one", monkeypatch)
    page, server = tmp_path / "one/owner/before-and-after.html", tmp_path / "one/server"
    if fault == "open to others":
        page.chmod(0o644)
    elif fault == "in an open folder":
        page.parent.chmod(0o755)
    elif fault == "beside the encoded set":
        (server / "shown.html").write_bytes(page.read_bytes())
    else:
        (server / "shown.html").hardlink_to(page)
    with pytest.raises(AssertionError):
        refuse_open(page)


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
