"""`leakcap check --public`: what a reader can check who has the published files alone, and a key from elsewhere."""

from __future__ import annotations

import hashlib
import json as json_text
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leakcap.audit.conversions import CheckedClaim, conversions
from leakcap.certificates.labels import LabelCertificate
from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding, encoding_from_json
from leakcap.certificates.release import Certificate
from leakcap.certificates.session import SessionCertificate
from leakcap.certificates.signatures import LIST, SIGNATURE, digests_in, fingerprint, is_signed, public_key
from leakcap.cli.terminal import Terminal, plain
from leakcap.errors import InputError
from leakcap.report.release.files import answer_in, public_texts
from leakcap.version import __version__

__all__ = ["run_public"]

CERTIFICATE = "certificate.json"
NOT_SEEN = (
    "Not checked, because only the custodian's plan can tell: that these figures were found on the data, and that the "
    "answer was released under them (leakcap check --custodian)"
)
NOBODY = "Not checked: who issued it. With the issuer's public key, got by another way than these files: --signer KEY"
AnyCertificate = Certificate | LabelCertificate | SessionCertificate | ObfuscationCertificate | UnclaimedEncoding


def run_public(path: Path, signer: str | None, quiet: bool = False, json: bool = False) -> bool:
    """Print what was checked, what could not be, and the verdict; False if anything does not hold."""
    terminal = Terminal(quiet, json)
    key = None if signer is None else _key(signer)
    path = path / CERTIFICATE if path.is_dir() else path
    record = _bytes(path)
    if record is None:
        raise InputError(f"{path} cannot be read: give the certificate.json of a release, or the folder it lies in")
    certificate = _certificate(record)
    claims = [*([] if key is None else _signed(path, key)), *conversions(certificate)]
    if isinstance(certificate, Certificate):
        claims += _files_beside(path, certificate, key)
    holds = all(claim.holds for claim in claims)
    for claim in claims:
        terminal.say(f"{'[green]yes[/green]' if claim.holds else '[bold red]NO[/bold red] '} {plain(claim.words)}")
    for words in (*([NOBODY] if key is None else []), NOT_SEEN):
        terminal.say(plain(words))
    terminal.say(f"[bold]{_verdict(certificate, holds, key)}[/bold]")
    told = {"holds": holds, "guarantee": certificate.is_guarantee, "signer": "" if key is None else fingerprint(key)}
    terminal.result({**told, "findings": [asdict(claim) for claim in claims]})
    return holds


def _verdict(certificate: AnyCertificate, holds: bool, key: bytes | None) -> str:
    if not holds:
        return "It does not hold. Do not rely on these files."
    if not certificate.is_guarantee:
        return f"The figures agree with each other, but a certificate of kind {certificate.kind} is no guarantee."
    if key is None:
        return "The figures agree with each other. Anybody could have written them: nothing shows who did."
    return f"Issued by the holder of key {fingerprint(key)}, and unchanged since. That they are true is their word."


def _signed(path: Path, key: bytes) -> Iterator[CheckedClaim]:
    """Whether the holder of the key signed the files beside the certificate, and they are still those."""
    listed, signature = _bytes(path.with_name(LIST)), _bytes(path.with_name(SIGNATURE))
    if listed is None or signature is None:
        yield CheckedClaim(False, f"unsigned: {LIST if listed is None else SIGNATURE} is not beside the certificate")
        return
    if not is_signed(listed, signature, key):
        yield CheckedClaim(False, f"{LIST} was NOT signed with this key, {fingerprint(key)}, or was changed since")
        return
    yield CheckedClaim(True, f"{LIST} was signed with this key, {fingerprint(key)}")
    digests = digests_in(listed)
    if path.name not in digests:
        yield CheckedClaim(False, f"{path.name} is NOT among the files that were signed")
    found = {name: _bytes(path.with_name(name)) for name in digests}
    gone = [name for name, content in found.items() if content is None]
    digested = {name: hashlib.sha256(content).hexdigest() for name, content in found.items() if content is not None}
    changed = [name for name, digest in digested.items() if digest != digests[name]]
    for name in gone:
        yield CheckedClaim(False, f"{name} was signed, and is NOT here: without it the others may mislead")
    for name in changed:
        yield CheckedClaim(False, f"{name} is NOT the file that was signed: it was changed or exchanged")
    same = ", ".join(name for name in digests if name not in (*gone, *changed))
    if same:
        yield CheckedClaim(True, f"as they were signed: {same}")


def _files_beside(path: Path, certificate: Certificate, key: bytes | None) -> Iterator[CheckedClaim]:
    """Whether answer and page are those of this certificate: they follow from it and from the answer's own record."""
    told = _bytes(path.with_name("answer.json"))
    if told is None:
        return
    answer, signed_with = answer_in(told.decode("utf-8", errors="replace"))
    if key is not None and signed_with != fingerprint(key):
        yield CheckedClaim(False, "answer.json names another key than this one, or none")
    if certificate.leakcap_version != __version__:
        return  # other versions choose other words
    made = public_texts(certificate, answer, signed_with)
    for name in ("answer.json", "answer.csv", "certificate.html"):
        content = _bytes(path.with_name(name))
        if content is not None:
            same = content == made[name].encode()
            words = "says what certificate and answer say" if same else "does NOT belong to this certificate and answer"
            yield CheckedClaim(same, f"{name} {words}")


def _certificate(record: bytes) -> AnyCertificate:
    text = record.decode("utf-8", errors="replace")
    try:
        given: Any = json_text.loads(text)
    except ValueError:
        given = None
    entries = given if isinstance(given, dict) else {}
    if "epsilon" in entries:
        return LabelCertificate.from_json(text)
    if "rows_released" in entries:
        return encoding_from_json(text)
    return (SessionCertificate if "square" in entries else Certificate).from_json(text)


def _key(signer: str) -> bytes:
    """A key from its file, or from its digits."""
    path = Path(signer)
    content = _bytes(path) if len(signer) < 1024 else None
    return public_key(signer if content is None else content.decode("ascii", errors="replace"))


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (OSError, ValueError):
        return None
