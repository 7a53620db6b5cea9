"""Two encodings of one pool that have the encoded set in common, and all that their servers can see of them.

The mixed and masked rows are replaced by agreed ones after everything else was drawn for real; the key's id, which is
drawn by itself, is agreed on too.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from leakcap.cli import obfuscate
from leakcap.custody import folders
from leakcap.obfuscation import certified
from leakcap.obfuscation import encoded as drawing
from leakcap.obfuscation import encoder as encoding
from tests.unit.obfuscation.pools import pool

__all__ = ["AGREED", "CAPPED", "agree", "certify_alike", "mark_of", "pictures", "server_files"]

CAPPED: dict[str, Any] = {"cap": "membership=0.90", "draws": 64}
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


def mark_of(sample: Any) -> int:
    """Seven digits that a planted fault tells of a sample: two samples have them in common once in ten million."""
    return int.from_bytes(hashlib.sha256(sample.tobytes()).digest()[:8], "big") % 10**7


def table(folder: Path) -> Path:
    X, y = pool()
    lines = ["label," + ",".join(f"c{i}" for i in range(12))]
    lines += [f"{label}," + ",".join(map(repr, row.tolist())) for label, row in zip(y, X, strict=True)]
    (folder / "pool.csv").write_text("\n".join(lines) + "\n")
    return folder / "pool.csv"


def pictures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The same rows as files in folders by class, and an embedding of the owner's: squares of two by six numbers."""
    for place, (row, label) in enumerate(zip(*pool(), strict=True)):
        (folder / "pictures" / label).mkdir(parents=True, exist_ok=True)
        (folder / "pictures" / label / f"{place}.raw").write_bytes(row.tobytes())
    (folder / "embedding_for_leaks.py").write_text(
        "import numpy as np\n\n\ndef squares(files):\n"
        "    return [np.frombuffer(one.read_bytes()).reshape(2, 6) for one in files]\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    return {"data": folder / "pictures", "embedding": "embedding_for_leaks:squares"}


def server_files(folder: Path, place: str, monkeypatch: pytest.MonkeyPatch, **how: Any) -> dict[str, Any]:
    """Everything that can be seen in it: names, kinds, modes, bytes, order, and times that are not of this run."""
    monkeypatch.setenv("LEAKCAP_LEDGER", f"sqlite:///{folder / place}.db")
    made_of = {} if "data" in how else {"data": table(folder), "label": "label"}
    how = how if "cap" in how else {"noise": 0.01, "draws": 0, **how}
    order = obfuscate.EncodeOrder(out=folder / place, mix=3, rows_released=180, **made_of, **how)
    began = time.time()
    with monkeypatch.context() as watched:
        written = in_order(watched)
        obfuscate.run_encode(order, quiet=True)
    server = folder / place / "server"
    ended = time.time()
    seen = {one.name: one.stat() for one in server.iterdir()}
    odd = {name: one.st_mtime for name, one in seen.items() if not began - 1 <= one.st_mtime <= ended + 1}
    found = {name: (one.st_mode, one.st_nlink, (server / name).read_bytes()) for name, one in seen.items()}
    return {**found, "": (server.stat().st_mode, written, odd)}


def in_order(watched: pytest.MonkeyPatch) -> list[str]:
    """The names of the files for the server, as they are opened: times tell in which order they were written."""
    written: list[str] = []
    opened = os.open

    def noted(path: Any, *given: Any, **more: Any) -> int:
        written.extend([Path(path).name] if ".public." in str(path) else [])
        return opened(path, *given, **more)

    watched.setattr(folders, "os", SimpleNamespace(**{**vars(os), "open": noted}))
    return written


def certify_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws that certify, and the rehearsal, are the same in every run: they are never the release's own."""
    monkeypatch.setattr(certified, "source_of", lambda seed: np.random.default_rng(5))
    rehearsed = encoding.warn_if_useless
    monkeypatch.setattr(encoding, "warn_if_useless", lambda *given, **more: rehearsed(*given, **{**more, "seed": 6}))
