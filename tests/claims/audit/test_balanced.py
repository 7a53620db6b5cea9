"""The balanced success of two shares, against exact sums over every split."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from leakcap.audit import statistics as st
from tests.claims.audit.chances import joint_chances


@cache
def balanced_tables(members, others, alpha):
    """Ends of the interval for all outcomes (right among members, right among others)."""
    return np.array(
        [[st.Balanced(a, members, b, others).interval(alpha) for b in range(others + 1)] for a in range(members + 1)]
    )


def test_the_balanced_interval_covers_exactly():
    for (members, others), alpha in itertools.product([(6, 5), (9, 2)], (0.5, 0.05)):
        ends = balanced_tables(members, others, alpha)
        for tpr, tnr in itertools.product(np.linspace(0, 1, 11), repeat=2):
            law, truth = joint_chances(members, others, tpr, tnr), (tpr + tnr) / 2
            assert law[ends[..., 0] > truth + 1e-12].sum() <= alpha / 2
            assert law[ends[..., 1] < truth - 1e-12].sum() <= alpha / 2


def excess_of_balanced(p_of, members, others, bound):
    """How much likelier than a, at most, p-values up to a are, over all splits of the bound into two rates."""
    found = np.array([[p_of(a, b) for b in range(others + 1)] for a in range(members + 1)])
    worst = -1.0
    for tpr in np.linspace(max(0, 2 * bound - 1), min(1, 2 * bound), 21):
        law = joint_chances(members, others, tpr, 2 * bound - tpr)
        order = np.argsort(found, axis=None)
        ranked, total = found.ravel()[order], np.cumsum(law.ravel()[order])
        last = np.append(ranked[1:] > ranked[:-1], True)
        worst = max(worst, float((total - ranked)[last].max()))
    return worst


@pytest.mark.parametrize("bound", [0.3, 0.5, 0.55, 0.8, 0.95])
def test_balanced_p_values_are_valid_for_every_split(bound):
    for members, others in [(8, 8), (15, 4)]:
        assert (
            excess_of_balanced(
                lambda a, b, m=members, o=others: st.Balanced(a, m, b, o).p_value(bound), members, others, bound
            )
            < 1e-12
        )


def test_wrong_balanced_p_values_are_caught():
    def pooled(a, b):  # counts all trials alike: always saying "member" wins where members are many
        return st.p_value(a + b, 19, 0.55)

    def bare_product(a, b):  # of the two p-values, as if it were one
        return st.p_value(a, 8, 0.55) * st.p_value(b, 8, 0.55)

    assert excess_of_balanced(pooled, 15, 4, 0.55) > 0.1
    assert excess_of_balanced(bare_product, 8, 8, 0.55) > 0.1


def test_balanced_is_exact_at_its_ends_and_beats_the_union_of_two_intervals():
    assert st.Balanced(9, 9, 7, 7).interval(0.05)[1] == 1 and st.Balanced(0, 9, 0, 7).interval(0.05)[0] == 0
    assert st.Balanced(9, 9, 7, 7).p_value(1.0) == 1 and st.Balanced(1, 9, 0, 7).p_value(0.0) < 1e-300
    assert st.Balanced(0, 9, 0, 7).p_value(0.0) == 1
    assert st.Balanced(0, 9, 7, 7).estimate == 0.5
    for alpha in (0.05, 1e-6):
        low, high = st.Balanced(550, 1000, 560, 1000).interval(alpha)
        one, other = st.interval(550, 1000, alpha / 2), st.interval(560, 1000, alpha / 2)
        assert low > (one[0] + other[0]) / 2 and high < (one[1] + other[1]) / 2


def test_a_share_of_nothing_leaves_the_other_share_its_say():
    """At balanced success .4 and TPR 0 the FPR is at least .2: no accusation in 50 trials speaks against it."""
    assert st.Balanced(0, 50, 50, 50).p_value(0.4) == pytest.approx(4 * 0.8**50, rel=0.02)
