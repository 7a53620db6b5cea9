"""Compiled loops of sampled swaps. One thread each."""

from __future__ import annotations

import math

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["add_told", "pair_up", "two_lists"]


@compiled(set())
def two_lists(mask, members):  # type: ignore[no-untyped-def]
    """Outsiders and insiders among `members`, `(2, n)`, and how many there are of each."""
    lists, ends = np.empty((2, len(members) + 1), np.int32), np.zeros(2, np.intp)
    for unit in members:  # both are written and one is kept: there is nothing to guess about
        inside = np.intp(mask[unit])
        lists[0, ends[0]], lists[1, ends[1]] = unit, unit
        ends[0] += 1 - inside
        ends[1] += inside
    return lists, ends


@compiled(set())
def pair_up(mask, members, begin, turns, start, pairs, whose):  # type: ignore[no-untyped-def]
    """Pair the units of one stratum across a world's border, from pair number `start`; returns the number after them.

    Insiders and outsiders are two lists. The longer is turned to `begin`, the shorter to each of `turns` and repeated,
    and they are laid side by side: `pairs`, `(2, p)`, holds who goes and who comes, `whose`, `(t, n)`, everybody's own
    pair.
    """
    lists, ends = two_lists(mask, members)
    long = np.intp(ends[1] >= ends[0])
    length, short = ends[long], ends[1 - long]
    for turn in range(len(turns)):
        first, second = begin, turns[turn]
        own = whose[turn]
        for number in range(length):
            one = lists[long, first]
            other = lists[1 - long, second]
            pairs[1 - long, start + number] = one
            pairs[long, start + number] = other
            own[one] = start + number
            if number < short:
                own[other] = start + number
            first = first + 1 if first + 1 < length else 0
            second = second + 1 if second + 1 < short else 0
        start += length
    return start


@compiled(set())
def add_told(answers, scale, whose, rounding, base, stake, total, squares, capital):  # type: ignore[no-untyped-def]
    """Add what the swaps of units in one world tell, on average, to their sums, squares and capitals.

    `answers`, `(1 + p, r)`, are those without a swap and after each; `scale` is one over the noise deviations. A swap
    tells `Phi(D / 2) - 1/2`; short ways count by five terms of its series, which ends with one that adds.
    """
    told = np.empty(len(answers) - 1)
    for pair in range(len(told)):
        square = 0.0
        for i in range(len(scale)):
            step = 0.5 * scale[i] * (answers[1 + pair, i] - answers[0, i])
            square += step * step
        half = math.sqrt(square)
        if square < 1.0:
            series = 1 - square * (1 / 6 - square * (1 / 40 - square * (1 / 336 - square / 3456)))
            told[pair] = 0.3989422804014327 * half * series * (1 + 1e-15)
        else:
            told[pair] = 0.5 * math.erf(half * 0.7071067811865476)
    for place in range(whose.shape[1]):
        x = 0.0
        for turn in range(len(whose)):
            x += told[whose[turn, place]]
        x /= len(whose)
        total[place] += x
        squares[place] += x * x
        if len(base):
            capital[place] *= base[place] - stake[place] * min(x + rounding, 0.5)
