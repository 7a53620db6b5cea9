"""Compiled loops of sampled swaps. One thread each."""

from __future__ import annotations

import math

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["add_told", "pair_up"]


@compiled(set())
def pair_up(mask, members, turns, start, pairs, whose):  # type: ignore[no-untyped-def]
    """Pair the units of one stratum across a world's border, from pair number `start`; returns the number after it.

    Insiders and outsiders are two lists. The longer is turned by one of `turns`, the shorter by the other and repeated,
    and they are laid side by side: `pairs`, `(2, p)`, holds who goes and who comes, `whose` everybody's own pair.
    """
    lists, ends = np.empty((2, len(members) + 1), np.intp), np.zeros(2, np.intp)  # outsiders, insiders
    for unit in members:  # both are written and one is kept: there is nothing to guess about
        inside = np.intp(mask[unit])
        lists[0, ends[0]], lists[1, ends[1]] = unit, unit
        ends[0] += 1 - inside
        ends[1] += inside
    long = np.intp(ends[1] >= ends[0])
    length, short = ends[long], ends[1 - long]
    first, second = turns
    for number in range(length):
        one = lists[long, first]
        other = lists[1 - long, second]
        pairs[1 - long, start + number] = one
        pairs[long, start + number] = other
        whose[one] = start + number
        if number < short:
            whose[other] = start + number
        first = first + 1 if first + 1 < length else 0
        second = second + 1 if second + 1 < short else 0
    return start + length


@compiled(set())
def add_told(lengths, own, rounding, base, stake, total, squares, capital):  # type: ignore[no-untyped-def]
    """Add what swaps of these lengths tell, `Phi(D / 2) - 1/2`, to sums, squares and capitals of their units."""
    told = np.empty(len(lengths))
    for pair in range(len(lengths)):
        told[pair] = 0.5 * math.erf(lengths[pair] / (2 * math.sqrt(2.0)))
    for unit in range(len(own)):
        x = told[own[unit]]
        total[unit] += x
        squares[unit] += x * x
        if len(base):
            capital[unit] *= base[unit] - stake[unit] * min(x + rounding, 0.5)
