"""`leakcap check --public`: who issued the files, that none was exchanged, and that the figures agree."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.custody import keys
from leakcap.custody.signing import own_signer
from leakcap.planning.released import forget_released
from tests.unit.cli.running import leakcap

RELEASE = ("--fn", "mean", "--columns", "a,b", "--alone", "-q")
ORDERS = {
    "bits": ("release", *RELEASE, "--cap", "membership=0.8", "--design", "bits"),
    "worlds": ("release", *RELEASE, "--cap", "mi=0.3", "--worlds", "16", "--draws", "256"),
    "pool": ("release", *RELEASE, "--cap", "pool=0.8", "--bounds", "0,100"),
    "session": ("release", *RELEASE[:-2], "-q", "--session", "--cap", "0.8", "--bounds", "0,100", "--name", "clinic"),
    "labels": ("labels", "--column", "sick", "--epsilon", "1", "--classes", "no,yes", "-q"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One release of each kind, the issuer's public key, and that of somebody else."""
    place = tmp_path_factory.mktemp("public")
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"a": rng.normal(40, 9, 60), "b": rng.normal(50, 9, 60), "sick": rng.choice(["no", "yes"], 60)}
    )
    table.to_csv(place / "people.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        patch.setenv("LEAKCAP_LEDGER", f"sqlite:///{place}/ledger.db")
        patch.setenv("LEAKCAP_KEY", str(place / "keys" / "vault.key"))
        for name, (command, *options) in ORDERS.items():
            forget_released()
            assert leakcap(command, str(place / "people.csv"), *options, "--out", str(place / name)) == 0
        shutil.copy(place / "keys" / "signing.pub", place / "issuer.pub")
        patch.setenv("LEAKCAP_KEY", str(place / "others" / "vault.key"))
        own_signer()
        shutil.copy(place / "others" / "signing.pub", place / "other.pub")
        yield place


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "bits" / "public", tmp_path / "public")
    return tmp_path / "public"


def check(folder: Path, *options: str) -> int:
    return leakcap("check", "--public", str(folder / "certificate.json"), *options)


def said(capsys: Any) -> str:
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("kind", ORDERS)
def test_what_was_issued_and_not_changed_holds(kind: str, made: Path, capsys: Any) -> None:
    key = made / "issuer.pub"
    assert check(made / kind / "public", "--signer", str(key)) == 0
    told = said(capsys)
    assert "yes SHA256SUMS was signed with this key" in told and "NO " not in told
    assert "Issued by the holder of key" in told and "That they are true is their word." in told
    assert "Not checked, because only the custodian's plan can tell" in told


def test_the_key_may_be_given_as_its_digits(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKCAP_KEY", str(made / "keys" / "vault.key"))
    assert check(made / "bits" / "public", "--signer", own_signer().public.hex()) == 0


def test_without_a_key_it_says_that_nothing_shows_who_wrote_it(made: Path, capsys: Any) -> None:
    assert check(made / "bits" / "public") == 0
    told = said(capsys)
    assert "Not checked: who issued it" in told and "Anybody could have written them" in told
    assert "Issued by" not in told


def test_page_and_record_name_the_key(made: Path) -> None:
    public = made / "bits" / "public"
    key = json.loads((public / "answer.json").read_text())["signed_with"]
    page = (public / "certificate.html").read_text()
    assert len(key) == 32 and key in page and "· signed</p>" in page


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def other_answer(public: Path) -> None:
    lines = (public / "answer.csv").read_text().splitlines()
    lines[1] = lines[1].replace(lines[1].split(",")[1], "41.5")
    (public / "answer.csv").write_text("\n".join(lines) + "\n")


def other_figure(public: Path) -> None:
    record = json.loads((public / "certificate.json").read_text())
    record["capped"][0]["certified"] = 0.51
    (public / "certificate.json").write_text(json.dumps(record, indent=1, sort_keys=True))


TAMPERED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a byte of the answer": (lambda public: flip(public / "answer.csv"), "answer.csv is NOT the file that was signed"),
    "another answer": (other_answer, "answer.csv is NOT the file that was signed"),
    "an edited conversion": (other_figure, "certificate.json is NOT the file that was signed"),
    "a byte of the page": (
        lambda public: flip(public / "certificate.html"),
        "certificate.html is NOT the file that was signed",
    ),
    "a byte of the list": (lambda public: flip(public / "SHA256SUMS"), "SHA256SUMS was NOT signed with this key"),
    "a byte of the signature": (lambda public: flip(public / "SHA256SUMS.sig"), "SHA256SUMS was NOT signed with this"),
    "no signature": (lambda public: (public / "SHA256SUMS.sig").unlink(), "unsigned: SHA256SUMS.sig is not beside"),
    "no list": (lambda public: (public / "SHA256SUMS").unlink(), "unsigned: SHA256SUMS is not beside"),
    "an answer that is gone": (
        lambda public: (public / "answer.csv").unlink(),
        "answer.csv was signed, and is NOT here",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_what_was_tampered_with_is_refused(name: str, copied: Path, made: Path, capsys: Any) -> None:
    tamper, words = TAMPERED[name]
    tamper(copied)
    assert check(copied, "--signer", str(made / "issuer.pub")) == 1
    told = said(capsys)
    assert f"NO {words}" in told and "It does not hold. Do not rely on these files." in told


def test_another_key_than_the_issuers_is_refused(made: Path, capsys: Any) -> None:
    assert check(made / "bits" / "public", "--signer", str(made / "other.pub")) == 1
    assert "was NOT signed with this key" in said(capsys)


def test_a_renamed_certificate_is_not_the_signed_one(copied: Path, made: Path, capsys: Any) -> None:
    (copied / "certificate.json").rename(copied / "other.json")
    code = leakcap("check", "--public", str(copied / "other.json"), "--signer", str(made / "issuer.pub"))
    assert code == 1 and "other.json is NOT among the files that were signed" in said(capsys)


def test_files_of_two_releases_by_one_issuer_do_not_mix(copied: Path, made: Path, capsys: Any) -> None:
    """Each signed, and not together."""
    for name in ("answer.csv", "answer.json"):
        shutil.copy(made / "pool" / "public" / name, copied / name)
    assert check(copied, "--signer", str(made / "issuer.pub")) == 1
    assert "answer.csv is NOT the file that was signed" in said(capsys)
    for name in ("SHA256SUMS", "SHA256SUMS.sig"):
        shutil.copy(made / "pool" / "public" / name, copied / name)
    assert check(copied, "--signer", str(made / "issuer.pub")) == 1
    assert "certificate.json is NOT the file that was signed" in said(capsys)


def test_signed_files_cannot_change_places(copied: Path, made: Path, capsys: Any) -> None:
    """Each of them was signed, under another name."""
    one, other = ((copied / name).read_bytes() for name in ("answer.csv", "README.txt"))
    (copied / "answer.csv").write_bytes(other), (copied / "README.txt").write_bytes(one)
    assert check(copied, "--signer", str(made / "issuer.pub")) == 1
    told = said(capsys)
    assert "answer.csv is NOT the file that was signed" in told and "README.txt is NOT the file" in told


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (other_figure, "its figure is NOT the one of the record"),
        (other_answer, "answer.csv does NOT belong to this certificate and answer"),
        (lambda public: flip(public / "certificate.html"), "certificate.html does NOT belong to this certificate"),
    ],
)
def test_what_disagrees_is_seen_without_any_key(tamper: Any, words: str, copied: Path, capsys: Any) -> None:
    tamper(copied)
    assert check(copied) == 1
    assert f"NO {words}" in said(capsys)


def test_a_simulation_is_never_called_a_guarantee(copied: Path, capsys: Any) -> None:
    record = json.loads((copied / "certificate.json").read_text()) | {"kind": "simulation"}
    for path in copied.iterdir():
        path.unlink()
    (copied / "certificate.json").write_text(json.dumps(record))
    assert check(copied) == 0
    assert "is no guarantee" in said(capsys)


def test_what_cannot_be_used_is_told(copied: Path, made: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(copied, "--signer", "no key") == 2
    assert "public Ed25519 key" in capsys.readouterr().err
    assert check(copied, "--signer", str(made / "keys" / "signing.key")) == 2
    assert "private half" in capsys.readouterr().err
    assert leakcap("check", str(copied / "certificate.json")) == 2
    assert leakcap("check", str(copied / "certificate.json"), "--public", "--custodian", str(made / "bits")) == 2
    assert leakcap("check", str(copied / "certificate.json"), "--signer", "x", "--custodian", str(made / "bits")) == 2
    assert leakcap("check", "--public", str(copied / "nowhere.json")) == 2
    (copied / "certificate.json").write_text("{}")
    assert check(copied) == 2
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    shutil.copy(made / "bits" / "public" / "certificate.json", copied / "certificate.json")
    capsys.readouterr()
    assert check(copied, "--signer", str(made / "issuer.pub")) == 2
    assert "leakcap[vault]" in capsys.readouterr().err


def test_without_the_extra_a_release_says_that_it_is_unsigned(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(keys, "can_seal", lambda: False)
    forget_released()
    command, *options = ORDERS["bits"]
    assert leakcap(command, str(made / "people.csv"), *options, "--out", str(tmp_path / "out")) == 0
    public = tmp_path / "out" / "public"
    assert not (public / "SHA256SUMS").exists() and "· unsigned</p>" in (public / "certificate.html").read_text()
    assert check(public) == 0
    capsys.readouterr()
    assert check(public, "--signer", str(made / "issuer.pub")) == 1
    assert "unsigned: SHA256SUMS is not beside the certificate" in said(capsys)


def test_an_unusable_key_costs_no_release(made: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "keys" / "vault.key"))
    own_signer()
    (tmp_path / "keys" / "signing.key").chmod(0o644)
    command, *options = ORDERS["bits"]
    assert leakcap(command, str(made / "people.csv"), *options, "--out", str(tmp_path / "out")) == 2
    assert "others may read the signing key" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_key_is_never_made_without_a_word(made: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "keys" / "vault.key"))
    command, *options = ORDERS["bits"]
    forget_released()
    assert leakcap(command, str(made / "people.csv"), *options, "--out", str(tmp_path / "one")) == 0
    told = capsys.readouterr()
    assert "a signing key was made" in told.err and told.out == ""  # also where little is said
    forget_released()
    assert leakcap(command, str(made / "people.csv"), *options, "--out", str(tmp_path / "two")) == 0
    assert "signing key" not in capsys.readouterr().err


def test_json_says_all_of_it(made: Path, capsys: Any) -> None:
    assert check(made / "bits" / "public", "--signer", str(made / "issuer.pub"), "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["holds"] is facts["guarantee"] is True and len(facts["signer"]) == 32
    assert len(facts["findings"]) > 8 and all(one["holds"] for one in facts["findings"])


@pytest.mark.parametrize("name", ["release.json", "certificate.json"])
def test_a_listed_file_that_was_changed_is_not_loaded(copied: Path, name: str) -> None:
    assert lc.load(copied).certificate.membership_success <= 0.8
    place = copied / name
    place.write_text(place.read_text() + "\n")
    with pytest.raises(lc.InputError, match="not the file that SHA256SUMS lists"):
        lc.load(copied)
