"""`leakcap obfuscate check`: whether what lies in the two folders of an encoding belongs together and is closed."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding, encoding_from_json
from leakcap.certificates.signatures import LIST, SIGNATURE, digests_in
from leakcap.cli.obfuscate import KEY_FILE, SENT
from leakcap.cli.terminal import Terminal, plain
from leakcap.errors import InputError
from leakcap.obfuscation import Key

__all__ = ["run_check"]

ReadCertificate: TypeAlias = ObfuscationCertificate | UnclaimedEncoding | None  # None: it cannot be read
Claim: TypeAlias = tuple[bool, str]

FILES = {"features.npy", "labels.npy", "network.txt", "certificate.json", "certificate.txt", "page.html"}


def run_check(folder: Path, quiet: bool = False, json: bool = False) -> bool:
    """Print what was checked and the verdict; False if anything does not hold."""
    terminal = Terminal(quiet, json)
    server, owner = folder / "server", folder / "owner"
    if not server.is_dir():
        raise InputError(f"{folder} holds no encoded set: give the folder that --out named")
    certificate = _certificate(server / "certificate.json")
    claims = [*_server(server, certificate), *_as_written(server, owner / SENT), *_owner(owner, certificate)]
    for holds, words in claims:
        terminal.say(f"{'[green]yes[/green]' if holds else '[bold red]NO[/bold red] '} {plain(words)}")
    all_hold, guarantee = all(holds for holds, _ in claims), certificate is not None and certificate.is_guarantee
    if not guarantee:
        terminal.say("Nothing is claimed about this set: see server/certificate.txt")
    terminal.result({"holds": all_hold, "guarantee": guarantee, "findings": [list(one) for one in claims]})
    return all_hold


def _certificate(path: Path) -> ReadCertificate:
    try:
        return encoding_from_json(path.read_text())
    except (OSError, UnicodeError, InputError):
        return None


def _server(folder: Path, certificate: ReadCertificate) -> Iterator[Claim]:
    present = {one.name for one in folder.iterdir()}
    yield present >= FILES, "all files for the server are there"
    yield present <= FILES | {LIST, SIGNATURE}, "nothing else lies beside them"
    if certificate is None:
        yield False, "the certificate can be read"
        return
    features, labels = _array(folder / "features.npy"), _array(folder / "labels.npy")
    size = certificate.rows_released, certificate.mask_dim
    fits = features is not None and features.shape == size and bool(np.isfinite(features).all())
    yield fits, "the encoded rows are of the sizes that the certificate says"
    shares = labels is not None and labels.ndim == 2 and len(labels) == size[0]
    yield shares and labels.shape[1] >= certificate.classes, "so are their labels"


def _as_written(server: Path, sent: Path) -> Iterator[Claim]:
    """By the owner's own list, which nobody can change together with the files; by the server's where there is none."""
    for path, words in ((sent, "they are as they were sent"), (server / LIST, "they are as their list says")):
        listed = _read(path)
        if listed is not None:
            yield _same(server, listed), words


def _same(server: Path, listed: bytes) -> bool:
    try:
        digests = digests_in(listed)
    except InputError:
        return False
    found = {name: _read(server / name) for name in digests}
    same = all(one is not None and hashlib.sha256(one).hexdigest() == digests[name] for name, one in found.items())
    return same and set(digests) >= FILES


def _owner(folder: Path, certificate: ReadCertificate) -> Iterator[Claim]:
    if not folder.is_dir():
        yield False, "the owner's folder is gone: bring the key back from a copy, without it the model says nothing"
        return
    closed = not any(stat.S_IMODE(one.stat().st_mode) & 0o077 for one in (folder, *folder.iterdir()))
    yield closed, "nobody else may read what lies in owner/"
    try:
        key = Key.load(folder / KEY_FILE)
    except InputError as error:
        yield False, str(error)
        return
    yield True, "the key opens, and nobody else may read it"
    if certificate is not None:
        yield key.id == certificate.id, "it is the key of this encoded set"


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _array(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
