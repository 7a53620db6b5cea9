"""A signed list of files: in the forms that other programs know, and refused where anything differs."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from leakcap.certificates.signatures import digests_in, fingerprint, is_signed, list_of_files, public_key, public_pem
from leakcap.custody.signing import Signer
from leakcap.errors import InputError

# RFC 8032, section 7.1, test 3.
SECRET = bytes.fromhex("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7")
PUBLIC = bytes.fromhex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025")
SIGNED = bytes.fromhex(
    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
    "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
)
FILES = {"certificate.json": b"{}", "answer.csv": b"a\n1\n"}


def test_signatures_are_those_of_the_standard() -> None:
    assert is_signed(bytes.fromhex("af82"), SIGNED, PUBLIC)
    assert not is_signed(bytes.fromhex("af83"), SIGNED, PUBLIC)
    assert not is_signed(bytes.fromhex("af82"), SIGNED[:-1] + b"\0", PUBLIC)
    assert not is_signed(bytes.fromhex("af82"), SIGNED[:-1], PUBLIC)
    assert not is_signed(bytes.fromhex("af82"), SIGNED, bytes(32))


def test_a_list_names_every_file_once_and_says_its_digest() -> None:
    listed = list_of_files(FILES)
    assert digests_in(listed) == {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    assert listed == list_of_files(dict(reversed(FILES.items()))), "whatever order they were written in"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"0" * 64 + b"  a\n",
        list_of_files(FILES).replace(b"  ", b" "),
        list_of_files(FILES) + b"0" * 64 + b"  ../../etc/passwd\n",
        list_of_files(FILES) + b"0" * 64 + b"  .hidden\n",
        list_of_files(FILES) + b"0" * 64 + b"  answer.csv\n",  # twice: which of them counts?
        list_of_files(FILES) + b"\n",
        list_of_files({}),
    ],
)
def test_what_is_no_list_of_ours_is_refused(text: bytes) -> None:
    with pytest.raises(InputError, match="no list of the files"):
        digests_in(text)


def test_a_public_key_is_read_from_its_file_or_its_digits() -> None:
    pem = public_pem(PUBLIC)
    assert load_pem_public_key(pem.encode()).public_bytes_raw() == PUBLIC
    for text in (pem, PUBLIC.hex(), f" {PUBLIC.hex()}\n", f"Our key:\n{pem}"):
        assert public_key(text) == PUBLIC
    assert len(fingerprint(PUBLIC)) == 32 and fingerprint(PUBLIC) != fingerprint(SECRET)


@pytest.mark.parametrize("text", ["", "no key", "00" * 31, "00" * 33, public_pem(PUBLIC)[:-40], public_pem(b"short")])
def test_what_is_no_public_key_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="public Ed25519 key"):
        public_key(text)


def test_a_private_key_is_refused_with_a_warning() -> None:
    with pytest.raises(InputError, match="private half"):
        public_key("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")


@pytest.mark.skipif(not shutil.which("openssl") or not shutil.which("sha256sum"), reason="no openssl, no sha256sum")
def test_other_programs_check_the_list_and_its_signature(tmp_path: Path) -> None:
    signer = Signer(Ed25519PrivateKey.from_private_bytes(SECRET))
    for name, content in signer.signed(FILES).items():
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    (tmp_path / "signing.pub").write_text(public_pem(PUBLIC))
    verify = "openssl pkeyutl -verify -pubin -inkey signing.pub -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig"
    for command in ("sha256sum --check --strict SHA256SUMS", verify):
        assert subprocess.run(command.split(), cwd=tmp_path, capture_output=True, check=False).returncode == 0
    (tmp_path / "answer.csv").write_bytes(b"a\n2\n")
    checked = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, capture_output=True, check=False)
    assert checked.returncode == 1
