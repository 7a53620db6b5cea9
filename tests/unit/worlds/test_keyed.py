"""Numbers by name and key: the published function, the same for a name whoever else is there."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from leakcap.errors import InputError
from leakcap.worlds import Units
from leakcap.worlds.keyed import keyed_bits, keyed_blocks, keyed_numbers

KEY, OTHER = bytes(range(16)), bytes(range(1, 17))
MANY = np.arange(20_000)


def test_it_is_the_published_function() -> None:
    """SipHash-2-4 of its authors' key and text, and the one-to-one step that pandas takes after it."""
    x = 0xA129CA6149BE45E5
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    text = bytes(range(15)).decode("latin-1")
    assert keyed_numbers([text], KEY).tolist() == [x ^ (x >> 31)]


def test_a_name_keeps_its_number_whoever_else_is_there() -> None:
    names = np.array(["Ann", "Bo", "Zoë", "李", "\udc80"])
    whole = keyed_numbers(names, KEY)
    assert np.array_equal(keyed_numbers(names[2:], KEY), whole[2:])
    assert len(set(whole.tolist())) == 5
    assert not (keyed_numbers(names, OTHER) == whole).any()


@pytest.mark.parametrize("names", [[7, 12], np.array([7, 12], dtype="uint8"), [7.0, 12.0], ["7", "12"]])
def test_whole_numbers_and_their_digits_are_one_name(names: list[object]) -> None:
    assert np.array_equal(keyed_numbers(names, KEY), keyed_numbers(np.array(["7", "12"], dtype=object), KEY))


def test_parts_of_numbers_are_names_too() -> None:
    assert len(set(keyed_numbers([0.5, 0.25, 1.0], KEY).tolist())) == 3


@pytest.mark.parametrize("key", [b"", b"short", bytes(17)])
def test_a_key_of_another_length_is_refused(key: bytes) -> None:
    with pytest.raises(InputError, match="16 bytes"):
        keyed_numbers(MANY, key)


def test_coins_and_blocks_are_fair() -> None:
    coins = keyed_bits(MANY, KEY)
    assert chisquare(np.bincount(coins)).pvalue > 1e-6
    assert chisquare(np.bincount(keyed_blocks(MANY, KEY, 7), minlength=7)).pvalue > 1e-6
    pairs = 2 * coins[:-1] + coins[1:]  # of neighbours
    assert chisquare(np.bincount(pairs, minlength=4)).pvalue > 1e-6


def test_planted_coins_of_the_names_own_bits_are_caught() -> None:
    coins = MANY % 2
    assert chisquare(np.bincount(2 * coins[:-1] + coins[1:], minlength=4)).pvalue < 1e-6


def test_units_keep_the_names_they_were_given() -> None:
    assert Units.of(3, ["b", "a", "b"]).names.tolist() == ["a", "b"]
    assert Units.of(3, None).names.tolist() == [0, 1, 2]
