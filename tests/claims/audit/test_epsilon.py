"""Epsilon from rates, and from one run: never said to be larger than it is too often."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy import optimize, sparse

from leakcap.audit import statistics as st
from leakcap.errors import InputError
from tests.claims.audit.chances import highest_roc, joint_chances


@cache
def epsilon_table(delta, alpha, members=8, others=12):
    return np.array(
        [[st.epsilon_lower(a, members, b, others, delta, alpha) for b in range(others + 1)] for a in range(members + 1)]
    )


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
def test_epsilon_is_never_said_to_be_larger_than_it_is_too_often(epsilon, delta):
    for alpha in (0.3, 0.05):
        found = epsilon_table(delta, alpha)
        for fpr in (0.0, 1e-3, 0.02, 0.1, 1 / (1 + math.exp(epsilon)), 0.5, 0.9):
            law = joint_chances(8, 12, highest_roc(epsilon, delta)(fpr), fpr)
            assert law[found > epsilon].sum() <= alpha


def test_the_ratio_of_the_rates_that_were_seen_is_caught():
    seen = np.array([[math.log(max(a, 0.5) / 10 / (max(b, 0.5) / 16)) for b in range(17)] for a in range(11)])
    assert joint_chances(10, 16, highest_roc(1.0, 0.0)(0.1), 0.1)[seen > 1.0].sum() > 0.3


def test_epsilon_has_sound_ends():
    assert st.epsilon_lower(5, 10, 5, 10, 0.0, 0.05) == 0 and st.epsilon_lower(10, 10, 0, 10, 1.0, 0.05) == 0
    assert st.epsilon_p_value(5, 10, 5, 10, 0.0, 0.0) == 1
    assert 2.5 < st.epsilon_lower(100, 100, 0, 100, 0.0, 0.05) < math.log(100)
    at = st.epsilon_lower(80, 100, 20, 100, 0.01, 1e-3)
    assert st.epsilon_p_value(80, 100, 20, 100, at, 0.01) <= 1.02e-3
    assert st.epsilon_p_value(80, 100, 20, 100, at + 0.05, 0.01) > 1e-3
    assert st.epsilon_p_value(80, 100, 20, 100, 800.0, 0.01) == 1


def largest_chance(coins, epsilon, delta, wins, *, sides=2):
    """The most likely `wins(guess, coins)` can be, over all (epsilon, delta)-private mechanisms: a linear program.

    A mechanism is a law over guesses (a side, or abstain, per coin) for every state of the coins, or dice.
    """
    states = list(itertools.product(range(sides), repeat=coins))
    guesses = list(itertools.product((*range(sides), None), repeat=coins))
    size, slots = len(guesses), len(states) * coins * (sides - 1)
    law = {state: place * size for place, state in enumerate(states)}
    variables = len(states) * size + slots * size  # the laws, and how much each exceeds e^epsilon times its neighbour
    rows, columns, entries, limits = [], [], [], []
    for slot, (state, coin, turn) in enumerate(itertools.product(states, range(coins), range(1, sides))):
        other = tuple((side + turn) % sides if place == coin else side for place, side in enumerate(state))
        excess = len(states) * size + slot * size
        for g in range(size):
            row = len(limits)
            rows += [row] * 3
            columns += [law[state] + g, law[other] + g, excess + g]
            entries += [1.0, -math.exp(epsilon), -1.0]
            limits.append(0.0)
        rows += [len(limits)] * size
        columns += range(excess, excess + size)
        entries += [1.0] * size
        limits.append(delta)
    whole = sparse.lil_matrix((len(states), variables))
    gain = np.zeros(variables)
    for place, state in enumerate(states):
        whole[place, law[state] : law[state] + size] = 1.0
        for g, guess in enumerate(guesses):
            gain[law[state] + g] = wins(guess, state) / len(states)
    bounds = sparse.csr_matrix((entries, (rows, columns)), shape=(len(limits), variables))
    found = optimize.linprog(-gain, bounds, limits, whole.tocsr(), np.ones(len(states)), bounds=(0, None))
    assert found.status == 0
    return -found.fun


def right_and_made(guess, state):
    made = [(g, s) for g, s in zip(guess, state, strict=True) if g is not None]
    return sum(g == s for g, s in made), len(made)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.5, 0.01), (1.0, 0.05), (0.0, 0.02)])
def test_no_private_mechanism_beats_the_one_run_p_value(epsilon, delta):
    for guesses in (1, 2, 3):
        for right in range(1, guesses + 1):
            best = largest_chance(
                3, epsilon, delta, lambda g, s, v=right, r=guesses: right_and_made(g, s)[1] == r
                and right_and_made(g, s)[0] >= v
            )  # fmt: skip
            p = st.one_run(right, guesses, epsilon, delta, bits=3)
            assert best <= p + 1e-7
            assert best == pytest.approx(p, rel=1e-6)  # and some mechanism attains it
            if delta > 0:  # the twin that forgets delta
                assert best > st.one_run(right, guesses, epsilon) + 1e-3


@pytest.mark.parametrize(("sides", "dice"), [(3, 2), (5, 1), (4, 2)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.8, 0.03)])
def test_no_private_mechanism_names_more_dice_than_the_p_value_says(epsilon, delta, sides, dice):
    for guesses, right in ((1, 1), (dice, 1), (dice, dice)):
        best = largest_chance(
            dice, epsilon, delta, lambda g, s, v=right, r=guesses: right_and_made(g, s)[1] == r
            and right_and_made(g, s)[0] >= v, sides=sides
        )  # fmt: skip
        p = st.one_run(right, guesses, epsilon, delta, bits=dice, candidates=sides)
        assert best <= p + 1e-7
        assert best == pytest.approx(p, rel=1e-6)  # and some mechanism attains it
        # The twins: a factor of two in the odds, and one side too many.
        assert best > st.one_run(right, guesses, max(epsilon - math.log(2), 0.0), delta, dice, candidates=sides) + 1e-3
        assert best > st.one_run(right, guesses, epsilon, delta, bits=dice, candidates=sides + 1) + 1e-3


def test_dice_are_judged_by_the_epsilon_that_explains_them():
    # All named among ten: p^r = alpha with p = e^epsilon / (e^epsilon + 9).
    p = 0.01 ** (1 / 40)
    found = st.one_run_epsilon(40, 40, 0.01, candidates=10)
    assert found == pytest.approx(math.log(9 * p / (1 - p)), abs=1e-6)
    assert st.one_run_epsilon(4, 40, 0.01, candidates=10) == 0  # as many as by chance
    with pytest.raises(InputError, match="candidates"):
        st.one_run(3, 4, 1.0, candidates=1)


def test_the_attacker_may_choose_how_many_to_guess_without_delta():
    for level in (0.1, 0.4, 0.6):
        best = largest_chance(
            3, 0.7, 0.0, lambda g, s, a=level: st.one_run(*right_and_made(g, s), 0.7) <= a
        )  # fmt: skip
        assert best <= level + 1e-9


def test_one_run_inverts_and_has_sound_ends():
    assert st.one_run(0, 0, 1.0) == 1 and st.one_run_epsilon(0, 0, 0.05) == 0
    assert st.one_run(3, 3, 0.0) == 0.125
    assert st.one_run_epsilon(10, 40, 0.05) == 0
    for right, guesses, delta in [(30, 35, 0.0), (40, 40, 0.0), (700, 1000, 1e-5), (1000, 1000, 1e-6)]:
        found = st.one_run_epsilon(right, guesses, 0.01, delta, bits=2000)
        assert found > 0.3
        assert st.one_run(right, guesses, found, delta, 2000) <= 0.01
        assert st.one_run(right, guesses, found + 1e-3, delta, 2000) > 0.01
    # All right: p^r = alpha.
    p = 0.01 ** (1 / 40)
    assert st.one_run_epsilon(40, 40, 0.01) == pytest.approx(math.log(p / (1 - p)), abs=1e-6)
    # Too small for doubles: the price of delta remains, at most delta * bits / right / (1 - fall).
    assert st.one_run(10_000, 10_000, 0.01, 1e-9, 10_000) == pytest.approx(1e-9, rel=1e-6)


def test_one_run_asks_for_what_it_needs():
    with pytest.raises(InputError, match="bits="):
        st.one_run(5, 6, 1.0, delta=1e-5)
    with pytest.raises(InputError, match="nobody guessed"):
        st.one_run(5, 6, 1.0, delta=1e-5, bits=5)
    with pytest.raises(InputError, match="right ones"):
        st.one_run(7, 6, 1.0)
