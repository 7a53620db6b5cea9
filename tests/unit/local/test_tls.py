"""Wires that nobody else reads: certificates of one authority on both sides."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import PartiesError
from leakcap.local import together
from leakcap.local.parties import law
from tests.authorities import new_key, pem_of, signed
from tests.parties import free_places, in_forks, small_question
from tests.refusals import refusal


def folder_of(path, name, authority, trusted):
    key = new_key()
    path.mkdir()
    (path / "party.crt").write_bytes(signed(name, key, authority))
    (path / "party.key").write_bytes(pem_of(key))
    (path / "parties.crt").write_bytes(trusted)
    return path


@pytest.fixture
def folders(tmp_path):
    """Of three parties whose authority is the same, and of one with another."""
    ours, theirs = ("ours", new_key()), ("theirs", new_key())
    trusted = signed("ours", ours[1], ours, authority=True)
    found = [folder_of(tmp_path / f"party{number}", f"party{number}", ours, trusted) for number in range(3)]
    return [*found, folder_of(tmp_path / "stranger", "stranger", theirs, trusted)]


def part(places, number, tls, seconds=20.0):
    law._coins = lambda numbers: 64
    return together(np.full((4, 2), 0.5), small_question(), join=places, party=number + 1, tls=tls, seconds=seconds)


def test_parties_with_certificates_of_one_authority_find_an_answer(folders):
    places = free_places(3)
    found = in_forks([partial(part, places, number, folders[number]) for number in range(3)])
    assert all(np.array_equal(one.value, found[0].value) for one in found)


def test_a_party_with_another_authority_is_no_party(folders):
    places = free_places(3)
    used = [folders[0], folders[1], folders[3]]
    found = in_forks([partial(part, places, number, tls, 3.0) for number, tls in enumerate(used)])
    assert all(isinstance(one, PartiesError) and "Nothing was opened" in str(one) for one in found)


def test_a_party_without_tls_is_no_party(folders):
    places = free_places(3)
    used = [folders[0], None, folders[2]]
    found = in_forks([partial(part, places, number, tls, 3.0) for number, tls in enumerate(used)])
    assert all(isinstance(one, PartiesError) and "Nothing was opened" in str(one) for one in found)


def test_a_folder_without_certificates_is_refused(tmp_path):
    call = {"join": free_places(3), "party": 1, "tls": tmp_path}
    refusal(lambda: together(np.ones((1, 2)), small_question(), **call), "party.crt", lc.InputError)
