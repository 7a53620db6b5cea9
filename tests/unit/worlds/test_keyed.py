"""Numbers by name and key: the published function, the same for a name whoever else is there."""

from __future__ import annotations

import numpy as np
import pytest
from pandas.util import hash_array
from scipy.stats import binom, chisquare

from leakcap.errors import InputError
from leakcap.worlds import Units
from leakcap.worlds._siphash_loops import siphash
from leakcap.worlds.keyed import TOGETHER, keyed_bits, keyed_blocks, keyed_numbers, keyed_words, keyed_worlds

KEY, OTHER = bytes(range(16)), bytes(range(1, 17))
MANY = np.arange(20_000)
FALSE_ALARM = 1e-6  # of every statistical test here
# vectors_sip64 of the authors' reference: of the texts 00, 00 01 and so on under the key 00 01 ... 0f, low byte first
VECTORS = {
    0: "310e0edd47db6f72",
    1: "fd67dc93c539f874",
    2: "5a4fa9d909806c0d",
    3: "2d7efbd796666785",
    4: "b7877127e09427cf",
    5: "8da699cd64557618",
    6: "cee3fe586e46c9cb",
    7: "37d1018bf50002ab",
    8: "6224939a79f5f593",
    15: "e545be4961ca29a1",
}


def test_it_is_the_published_function() -> None:
    """SipHash-2-4 of its authors' key and text, and the one-to-one step that pandas takes after it."""
    x = 0xA129CA6149BE45E5
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    text = bytes(range(15)).decode("latin-1")
    assert keyed_numbers([text], KEY).tolist() == [x ^ (x >> 31)]


@pytest.mark.parametrize("length", VECTORS)
def test_siphash_gives_its_authors_numbers(length: int) -> None:
    text, found = np.zeros(length + 8, dtype=np.uint8), np.empty(1, dtype=np.uint64)
    text[:length] = np.arange(length)
    low, high = np.frombuffer(KEY, dtype="<u8")
    siphash(text, np.array([length]), low, high, False, found)
    assert found.astype("<u8").tobytes().hex() == VECTORS[length]


@pytest.mark.parametrize("length", range(40))
def test_it_is_what_pandas_makes_of_texts_of_every_length(length: int) -> None:
    """So it was computed before: coins of accounts that are open must not change."""
    rng = np.random.default_rng(length)
    texts = np.array(["".join(map(chr, rng.integers(32, 127, length))) for _ in range(20)], dtype=object)
    key = rng.bytes(16)
    theirs = hash_array(texts, encoding="latin-1", hash_key=key.decode("latin-1"), categorize=False)
    assert np.array_equal(keyed_numbers(texts, key), theirs)


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


@pytest.mark.parametrize("m", [2, 64, 126, 128, 130, 1024])
@pytest.mark.parametrize("n", [1, 7, 8, 101])
def test_every_unit_is_in_exactly_half_of_the_keyed_worlds(n: int, m: int) -> None:
    worlds = keyed_worlds(np.arange(n), KEY, m)
    masks = worlds.masks()
    assert masks.shape == (m, n) and (masks.sum(axis=0) == m // 2).all()
    assert np.array_equal(masks[: m // 2], ~masks[m // 2 :])
    assert worlds.sizes().tolist() == masks.sum(axis=1).tolist()


def test_keyed_worlds_are_the_bits_of_keyed_words() -> None:
    names = np.arange(77)
    words, masks = keyed_words(names, KEY, 65), keyed_worlds(names, KEY, 130).masks()
    for world in (0, 1, 63, 64):
        assert np.array_equal(masks[world], (words[world // 64] >> np.uint64(world % 64)) & np.uint64(1))


def test_keyed_worlds_of_parts_are_those_of_the_whole() -> None:
    names = np.random.default_rng(2).permutation(3 * TOGETHER // 2)
    whole = keyed_worlds(names, KEY, 8).masks()
    for part in (names[:5], names[5:TOGETHER], names[TOGETHER:][::-1]):
        places = np.argsort(names)[part]
        assert np.array_equal(keyed_worlds(part, KEY, 8).masks(), whole[:, places])
        assert np.array_equal(keyed_worlds(part.astype(str), KEY, 8).masks(), whole[:, places])


def law(masks: np.ndarray) -> float:
    """The least p-value, times how many there are: of sizes, and of how often pairs of worlds, and of units, agree."""
    worlds, units = masks.shape
    alike = (2.0 * masks - 1) @ (2.0 * masks - 1).T / 2 + units / 2
    agreeing = alike[np.triu_indices(worlds, 1)]
    of_units = (2.0 * masks - 1).T @ (2.0 * masks - 1) / 2 + worlds / 2
    counts = [(masks.sum(axis=1), units), (agreeing, units), (of_units[np.triu_indices(units, 1)], worlds)]
    tails = [2 * np.minimum(binom.cdf(found, of, 0.5), binom.sf(found - 1, of, 0.5)) for found, of in counts]
    return float(min(min(one.min() * one.size, 1.0) for one in tails) * len(tails))


def test_keyed_worlds_have_the_law_of_independent_fair_coins() -> None:
    """Neighbours among ids, whose letters hardly differ; worlds of several words."""
    for names in (np.arange(800), np.arange(800) * 10**9, np.array([f"person {n}" for n in range(800)])):
        assert law(keyed_worlds(names, KEY, 512).masks()[:256]) > FALSE_ALARM


def test_planted_laws_are_caught() -> None:
    rng = np.random.default_rng(3)
    fair = rng.integers(0, 2, size=(256, 800)).astype(bool)
    assert law(fair) > FALSE_ALARM
    again = fair.copy()
    again[64:128] = again[:64]  # one key for all words
    shared = fair.copy()
    shared[:, 1] = shared[:, 0]  # a cohort of two
    assert max(law(again), law(shared), law(rng.random((256, 800)) < 0.6)) < FALSE_ALARM


def test_an_odd_number_of_worlds_is_refused() -> None:
    with pytest.raises(InputError, match="multiple of 2: use 4"):
        keyed_worlds(MANY, KEY, 3)
