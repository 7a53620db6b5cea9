"""Rule 6 for encoded pictures: with the encoded set fixed, nothing for the server tells which pictures were sampled.

Method: as for tables (`agreed`), with a folder of files and an embedding of the owner's, with and without patches.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakcap.cli import obfuscate
from tests.leaks.obfuscation.agreed import CAPPED, agree, certify_alike, mark_of, pictures, server_files


@pytest.mark.parametrize("how", [{}, {"blocks": "1,2"}, CAPPED], ids=["whole", "patches", "under a cap"])
def test_every_byte_for_the_server_is_the_same_whichever_pictures_were_sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    drawn: list[Any] = []
    agree(monkeypatch, drawn)
    certify_alike(monkeypatch)
    made_of = pictures(tmp_path, monkeypatch)
    first, second = (server_files(tmp_path, place, monkeypatch, **made_of, **how) for place in ("one", "two"))
    assert first == second and set(first) >= {"features.npy", "labels.npy", "certificate.json", "page.html"}
    assert not np.array_equal(*drawn), "the samples differ"
    assert (tmp_path / "one/owner/encoding.key").read_bytes() != (tmp_path / "two/owner/encoding.key").read_bytes()
    served = b"".join(one[2] for name, one in first.items() if name)
    assert b".raw" not in served and b"embedding_for_leaks" not in served, "neither files nor embedding are named"


@pytest.mark.parametrize("told", ["name", "size", "order", "time"])
def test_the_check_sees_a_picture_that_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    """The twins: a picture that was drawn is named in a file; a file is longer, earlier or older for what was."""
    drawn: list[Any] = []
    agree(monkeypatch, drawn)
    publish = obfuscate.Folders.publish

    def telling(self: Any, files: dict[str, Any]) -> None:
        files = dict(files)
        if told == "name":
            listed = sorted((tmp_path / "pictures").rglob("*.raw"))
            files["network.txt"] += " ".join(listed[place].name for place in drawn[-1])
        elif told == "size":
            files["features.npy"] += b"\0" * mark_of(drawn[-1])
        elif told == "order":  # by chance the same once in 40,000 times
            names = np.random.default_rng(drawn[-1]).permutation(list(files))
            files = {name: files[name] for name in names}
        publish(self, files)
        if told == "time":
            os.utime(self.public / "features.npy", (mark_of(drawn[-1]),) * 2)

    monkeypatch.setattr(obfuscate.Folders, "publish", telling)
    made_of = pictures(tmp_path, monkeypatch)
    first, second = (server_files(tmp_path, place, monkeypatch, **made_of) for place in ("one", "two"))
    assert not np.array_equal(*drawn) and first != second
