"""The signing key: a file of its own, its owner's alone, never made or exchanged without a word."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from leakcap.certificates.signatures import is_signed, public_key
from leakcap.custody import keys
from leakcap.custody.signing import Signer, own_signer, public_half, signing_key_file
from leakcap.errors import InputError

FILES: dict[str, str | bytes] = {"certificate.json": "{}", "answer.csv": b"a\n1\n"}


@pytest.fixture(autouse=True)
def _own_place(own_key: Path) -> None:
    assert signing_key_file() == own_key.with_name("signing.key")


def test_it_is_made_once_and_says_where_it_lies_and_what_to_do_with_its_public_half() -> None:
    first, second = own_signer(), own_signer()
    assert first.public == second.public and first.fingerprint == second.fingerprint
    told = first.news()
    for words in (str(signing_key_file()), str(public_half()), first.fingerprint, "by another way than the release"):
        assert words in told
    assert second.news() == ""
    assert stat.S_IMODE(signing_key_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(public_half().stat().st_mode) == 0o644
    assert public_key(public_half().read_text()) == first.public
    assert not keys.key_file().exists(), "it is no part of the key that opens checkpoints"


def test_equal_files_get_equal_signatures_and_others_do_not() -> None:
    signer = own_signer()
    signed, again = signer.signed(FILES), own_signer().signed(FILES)
    assert signed == again and set(signed) == {*FILES, "SHA256SUMS", "SHA256SUMS.sig"}
    listed, signature = signed["SHA256SUMS"], signed["SHA256SUMS.sig"]
    assert isinstance(listed, bytes) and isinstance(signature, bytes)
    assert is_signed(listed, signature, signer.public)
    other = signer.signed(FILES | {"answer.csv": b"a\n2\n"})
    assert other["SHA256SUMS.sig"] != signature


def test_without_the_extra_nothing_is_signed_or_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "can_seal", lambda: False)
    signer = own_signer()
    assert signer.fingerprint == signer.news() == "" and signer.public == b""
    assert signer.signed(FILES) == FILES
    assert not signing_key_file().exists()


def test_another_file_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKCAP_SIGNING_KEY", str(tmp_path / "hsm" / "office.key"))
    own_signer()
    assert (tmp_path / "hsm" / "office.key").exists() and (tmp_path / "hsm" / "office.pub").exists()


def test_a_key_that_others_may_read_is_refused() -> None:
    own_signer()
    signing_key_file().chmod(0o640)
    with pytest.raises(InputError, match="others may read the signing key"):
        own_signer()


def test_a_key_that_somebody_else_may_have_written_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    own_signer()
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(InputError, match="somebody else"):
        own_signer()


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_a_damaged_key_is_refused_and_stays(content: bytes) -> None:
    own_signer()
    signing_key_file().write_bytes(content)
    with pytest.raises(InputError, match="holds no Ed25519 key"):
        own_signer()
    assert signing_key_file().read_bytes() == content


def test_a_lost_key_is_not_replaced_silently() -> None:
    own_signer()
    signing_key_file().unlink()
    with pytest.raises(InputError, match="bring the key back"):
        own_signer()
    assert not signing_key_file().exists()


def test_a_public_half_that_is_not_its_own_is_refused() -> None:
    own_signer()
    kept = public_half().read_text()
    signing_key_file().unlink(), public_half().unlink()
    own_signer()
    public_half().write_text(kept)
    with pytest.raises(InputError, match="not the public half"):
        own_signer()


def test_the_public_half_is_written_again() -> None:
    before = own_signer()
    public_half().unlink()
    assert own_signer().public == before.public == public_key(public_half().read_text())


def test_processes_that_start_together_share_one_key() -> None:
    found: list[Signer] = []
    threads = [threading.Thread(target=lambda: found.append(own_signer())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.public for one in found}) == 1 and len(found) == 8
    assert sum(one.made for one in found) == 1


def test_what_is_shown_of_a_signer_holds_no_key() -> None:
    signer = own_signer()
    private = signing_key_file().read_text().split("-----")[2].strip()
    assert private not in repr(signer) and private not in repr(signer.signed(FILES))
    assert "Ed25519PrivateKey" not in repr(signer)
