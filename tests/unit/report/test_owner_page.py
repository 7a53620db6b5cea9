"""The owner's page of an encoding: rows before and after, in words that hold, and nothing that runs or is fetched."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from leakcap.report.obfuscation.owner import attacker_gets, owner_page
from leakcap.report.obfuscation.rows_shown import EncodedRows, PoolRows, as_picture, first_of_each
from tests.unit.certificates.encodings import claimed, unclaimed
from tests.unit.report.seen import visible_words
from tests.unit.report.test_page import read

EVIL = '"\'><b onclick="x">hostile</b><script>alert("1")</script>'
RNG = np.random.default_rng(3)
ENCODED, SHARES = RNG.normal(size=(40, 12)), np.eye(3)[np.arange(40) % 3]


def table(words: str = "a word") -> pd.DataFrame:
    return pd.DataFrame({"age": [41.5, 62.0, 17.25, 80.0], words: [words] * 4, "kind": ["ash", "birch"] * 2})


def page(certificate=None, words: str = "a word") -> str:
    rows = PoolRows.of_table(table(words), "kind", first_of_each(table()["kind"]))
    return owner_page(certificate or claimed(), rows, EncodedRows.of(ENCODED, SHARES, (1, 1)), words)


def png(text: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(re.search(r"base64,([^\"]+)\"", text)[1])))


def test_rows_stand_on_it_before_and_after() -> None:
    seen = " ".join(visible_words(page()))
    assert all(word in seen for word in ("41.5", "17.25", "ash", "birch", "age"))
    assert f"{abs(ENCODED[0, 0]):.4f}" in seen and "class 0" in seen
    assert "CUSTODIAN ONLY" in seen and "400 rows of two classes" in seen


def test_it_says_what_the_attacker_gets_beside_a_blind_guess() -> None:
    told = " ".join(attacker_gets(claimed(claims=(0.01, 0.8, 0.9012)))).replace("\u00a0", " ")
    assert "a coin gets 50 right" in told and "at most 60 right" in told and "at most 57 on average" in told
    assert "1 % false alarms, it recognises at most 41 of 1,000" in told and "Blind guesses recognise 10." in told
    assert "0.1 % false alarms, it recognises at most 8 of 1,000" in told and "Blind guesses recognise 1." in told
    assert "at most 91 of 100 such claims are right. Of blind claims 80 are." in told
    assert "Not secure against chosen plaintexts" in page() and "Whoever may choose what is encoded" in page()


def test_without_a_claim_no_figure_is_given() -> None:
    seen = " ".join(visible_words(page(unclaimed())))
    assert "No claim" in seen and "it may be all of them" in seen
    assert "at most" not in seen and "chosen plaintexts" in seen
    assert "at most" in " ".join(visible_words(page(claimed()))), "the check sees a figure"


@pytest.mark.parametrize("certificate", [claimed(EVIL), unclaimed(EVIL)])
def test_words_of_others_stay_words(certificate) -> None:
    made = page(certificate, EVIL)
    assert "<script" not in made and "&lt;script&gt;" in made
    assert not any(name.startswith("on") for _, name, _ in read(made).attributes)


def test_it_fetches_nothing() -> None:
    made = page()
    assert "default-src 'none'" in made
    assert not re.search(r"(?:src|href)=\"(?!data:image/)", made) and "url(" not in made and "@import" not in made


def test_rows_are_chosen_by_place_as_many_of_every_class() -> None:
    assert first_of_each(["b", "a", "b", "a", "b"]) == [1, 3, 0, 2, 4]
    assert first_of_each(np.arange(20)) == list(range(6))


def test_numbers_become_a_picture_that_others_read() -> None:
    found = np.asarray(png(as_picture(np.array([[0.0, 1.0, 2.0], [2.0, 0.0, 1.0]]), "words")))
    assert found.tolist() == [[0, 128, 255], [255, 0, 128]]
    colours = np.asarray(png(as_picture(np.array([[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]]), "words")))
    assert colours.tolist() == [[[0, 0, 255], [255, 0, 0]]]
    assert png(as_picture(np.zeros((3, 3)), "all alike")).size == (3, 3)
    assert max(png(as_picture(np.zeros((2000, 3)), "tall")).size) <= 256


def test_blocks_are_patches_of_the_picture() -> None:
    """Four blocks of four numbers: each a square of one shade."""
    row = np.repeat([0.0, 1.0, 2.0, 3.0], 4)[None]
    (picture,) = EncodedRows.of(row, np.ones((1, 1)), (2, 2)).pictures
    assert np.asarray(png(picture)).tolist() == [[0, 0, 85, 85]] * 2 + [[170, 170, 255, 255]] * 2


def test_picture_files_are_shown_as_they_are_and_others_by_their_rows(tmp_path: Path) -> None:
    Image.fromarray(np.eye(4, dtype=np.uint8) * 255).save(tmp_path / "a.png")
    (tmp_path / "b.svg").write_text("<svg onload='alert(1)'/>")
    (tmp_path / "c.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(2**18))
    files = [tmp_path / name for name in ("a.png", "b.svg", "c.png", "gone.png")]
    rows = np.array([np.zeros((4, 4)), np.eye(4), np.eye(4), np.eye(4)])
    found = PoolRows.of_pictures(files, rows, ["x", "y", "y", "y"], range(4))
    assert all(np.asarray(png(one)).tolist() == (np.eye(4) * 255).tolist() for one in found.pictures)
    assert not any("svg" in one for one in found.pictures)
    shown = owner_page(unclaimed(), found, EncodedRows.of(ENCODED, SHARES, (1, 1)))
    assert shown.count("<img") == 4 + 6
