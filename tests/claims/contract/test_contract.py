"""What users rely on stays: public names and signatures, and certificates that were stored before."""

from __future__ import annotations

import json
import pickle
import pickletools
from dataclasses import fields
from pathlib import Path

import pytest

import leakcap as lc
from leakcap.certificates.labels import LabelCertificate
from leakcap.ground.cores import Machine
from leakcap.modes import NoiseSettings
from leakcap.planning.request import Request
from tests.claims.contract import public_api

STORED = Path(__file__).with_name("certificates")


def test_every_promised_name_and_signature_holds():
    assert public_api.broken(public_api.stored_api(), public_api.public_api()) == []


def test_every_public_name_is_stored():
    """`python -m tests.claims.contract.public_api` adds new ones."""
    assert set(public_api.public_api()) - set(public_api.stored_api()) == set()


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (["a", "b=1"], ["a"], 2),
        (["a", "b=1"], ["b=1", "a"], 1),
        (["a"], ["a", "b"], 1),
        (["a"], ["a", "b=1"], 0),
        (["by keyword: a=1"], ["by keyword: b=2", "by keyword: a=1"], 0),
        (["by keyword: a=1"], ["by keyword: a=2"], 1),
    ],
)
def test_changes_of_a_signature_are_told_from_additions(old, new, lost):
    kept = {"x": {"kind": "function", "signature": old}}
    assert len(public_api.broken(kept, {"x": {"kind": "function", "signature": new}})) == lost


def test_a_name_that_is_gone_is_noticed():
    stored = public_api.stored_api()
    present = public_api.public_api()
    del present["leakcap.plan"]
    assert public_api.broken(stored, present) == ["leakcap.plan is gone"]


@pytest.mark.parametrize("name", ["exact", "confidence"])
def test_a_stored_certificate_is_read_for_ever(name):
    text = (STORED / f"{name}.json").read_text()
    certificate = lc.Certificate.from_json(text)
    assert json.loads(certificate.to_json()) == json.loads(text)
    assert str(certificate) == (STORED / f"{name}.txt").read_text()


def test_a_stored_certificate_of_labels_is_read_for_ever():
    text = (STORED / "labels.json").read_text()
    certificate = LabelCertificate.from_json(text)
    assert json.loads(certificate.to_json()) == json.loads(text)
    assert str(certificate) == (STORED / "labels.txt").read_text()


REQUEST = "caps units worlds rate strata mode gamma clip settings seed design scale drawing"
NOISE = "shape floor weights draws machine seeded public pool_public not_promised mechanism kept"
NAMED = {"leakcap.planning.request Request", "leakcap.modes.interface Settings", "leakcap.ground.cores Machine"}


def test_a_run_that_an_earlier_version_began_is_known_again():
    """A checkpoint knows its run by what is pickled here: another name or entry, and every begun run is refused."""
    settings = NoiseSettings("best", 0.0, None, None, Machine(), False, (), ())
    request = Request((), 10, 64, 0.5, None, "exact", 1e-6, None, settings, None)
    opcodes = pickletools.genops(pickle.dumps(request, protocol=0))  # names of classes stand in one place in this one
    assert {told for opcode, told, _ in opcodes if opcode.name == "GLOBAL" and told.startswith("leakcap")} == NAMED
    assert [field.name for field in fields(Request)] == REQUEST.split()
    assert [field.name for field in fields(NoiseSettings)] == NOISE.split()
    assert isinstance(pickle.loads(pickle.dumps(settings)), NoiseSettings)
