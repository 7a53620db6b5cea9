"""`leakcap obfuscate check`: whether what lies in the two folders of an encoding belongs together and is closed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding, encoding_from_json
from leakcap.certificates.signatures import LIST, SIGNATURE, digests_in
from leakcap.cli.obfuscate import KEY_FILE
from leakcap.cli.terminal import Terminal, plain
from leakcap.errors import InputError
from leakcap.obfuscation import Key

__all__ = ["run_check"]

FILES = {"features.npy", "labels.npy", "network.txt", "certificate.json", "certificate.txt", "page.html"}


def run_check(folder: Path, quiet: bool = False, json: bool = False) -> bool:
    """Print what was checked and the verdict; False if anything does not hold."""
    terminal = Terminal(quiet, json)
    try:
        certificate = encoding_from_json((folder / "server" / "certificate.json").read_text())
    except (OSError, UnicodeError):
        certificate = None
    if certificate is None:
        raise InputError(f"{folder} holds no encoded set: give the folder that --out named")
    claims = [*_server(folder / "server", certificate), *_owner(folder / "owner" / KEY_FILE, certificate)]
    for holds, words in claims:
        terminal.say(f"{'[green]yes[/green]' if holds else '[bold red]NO[/bold red] '} {plain(words)}")
    all_hold = all(holds for holds, _ in claims)
    if not certificate.is_guarantee:
        terminal.say("Nothing is claimed about this set: see server/certificate.txt")
    terminal.result(
        {"holds": all_hold, "guarantee": certificate.is_guarantee, "findings": [list(one) for one in claims]}
    )
    return all_hold


def _server(folder: Path, certificate: ObfuscationCertificate | UnclaimedEncoding) -> Iterator[tuple[bool, str]]:
    present = {one.name for one in folder.iterdir()}
    yield present >= FILES, "all files for the server are there"
    yield present <= FILES | {LIST, SIGNATURE}, "nothing else lies beside them"
    if LIST in present:
        digests = digests_in((folder / LIST).read_bytes())
        same = all(
            name in present and hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
            for name, digest in digests.items()
        )
        yield same and set(digests) >= FILES, "they are as they were written"
    features, labels = _array(folder / "features.npy"), _array(folder / "labels.npy")
    size = certificate.rows_released, certificate.mask_dim
    fits = features is not None and features.shape == size and bool(np.isfinite(features).all())
    yield fits, "the encoded rows are of the sizes that the certificate says"
    shares = labels is not None and labels.ndim == 2 and len(labels) == size[0]
    yield shares and labels.shape[1] >= certificate.classes, "so are their labels"


def _owner(path: Path, certificate: ObfuscationCertificate | UnclaimedEncoding) -> Iterator[tuple[bool, str]]:
    try:
        key = Key.load(path)
    except InputError as error:
        yield False, str(error)
        return
    yield True, "the key opens, and nobody else may read it"
    yield key.id == certificate.id, "it is the key of this encoded set"


def _array(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
