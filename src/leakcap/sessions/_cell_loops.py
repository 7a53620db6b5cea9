"""Compiled loops over people's rows: what each person brings to each group, and what that costs and adds.

A person's rows stand together. Rows of some people are worked on at once, in one short loop after the other: which of
them belong to one group of one person, what they add up to, and what becomes of it.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["entries", "in_unit_order", "swept"]

CUT = 1 - 1e-12  # what is cut to a length is a little shorter, whatever rounding does
TOGETHER = 4096  # rows: all that is known of them stays in the fast memory


@compiled(set())
def _end(first, units):  # type: ignore[no-untyped-def]
    """The row behind those that are worked on together from `first` on: the last person's rows are all among them."""
    end = min(first + TOGETHER, len(units))
    while end < len(units) and units[end] == units[end - 1]:
        end += 1
    return end


@compiled(set())
def _room(rows, groups):  # type: ignore[no-untyped-def]
    """For `_gathered`: the last place of each group, the place of each row; whose a place is, its group, its terms."""
    units, whole = rows[0], rows[4]
    most, end = 0, 0
    while end < len(units):
        first, end = end, _end(end, units)
        most = max(most, end - first)
    last, terms = np.full(groups, -1, np.int32), np.empty((len(whole) + 1, most + 1), whole.dtype)
    return last, np.empty(most, np.uint32), np.empty(most, np.int32), np.empty(most, np.uint32), terms


@compiled(set())
def _gathered(first, end, rows, room):  # type: ignore[no-untyped-def]
    """Groups and terms of everybody who has these rows, in places; how many there are. The first term counts rows.

    A place is for one person in one group. `last` says of each group which place it had last, counted from row 0: what
    lies before a person's own first place is of somebody before, so that nothing has to be cleared. Rows in no group go
    to a place behind all others.
    """
    last, place_of, whose, cells, terms = room
    units, codes, least, groups, whole = rows[0][first:end], rows[1][first:end], rows[2], rows[3], rows[4]
    codes_there, nowhere, counts = np.uint64(len(groups)), len(units), terms[0]
    unit, own, place = units[0], first, first
    for row in range(len(units)):
        if units[row] != unit:
            unit, own = units[row], place
        code = np.uint64(np.int64(codes[row]) - least)  # below the first one is beyond the last one
        if code < codes_there and groups[code] >= 0:
            cell = np.uint32(groups[code])
            if last[cell] < own:
                at = np.uint32(place - first)
                last[cell], whose[at], cells[at], counts[at] = place, unit, cell, 1
                place += 1
            else:
                at = np.uint32(last[cell] - first)
                counts[at] += 1
            place_of[row] = at
        else:
            place_of[row] = nowhere
    for column in range(len(whole)):
        added, of_row = terms[column + 1], whole[column, first:end]
        added[: place - first] = 0
        for row in range(len(of_row)):
            added[place_of[row]] += of_row[row]
    return place - first


@compiled(set())
def _numbers(number, count, terms, making, values):  # type: ignore[no-untyped-def]
    """One number in the first `count` places."""
    parts, scales = making
    term, other = terms[parts[number, 0]], parts[number, 1]
    unit_of, by, by_other = scales[number, 0], scales[number, 1], scales[number, 2]
    for at in range(count):
        values[at] = term[at]
    if unit_of != 1 or by != 1:
        for at in range(count):
            values[at] = np.divide(values[at], unit_of) * by
    if other >= 0:
        more = terms[other]
        for at in range(count):
            values[at] += more[at] * by_other


@compiled(set())
def _in_deviations(number, count, cells, deviations, values):  # type: ignore[no-untyped-def]
    """The same number in deviations, of which there is a row for each group, or one for all."""
    if len(deviations) == 1:
        deviation = deviations[0, number]
        for at in range(count):
            values[at] = np.divide(values[at], deviation)
    else:
        for at in range(count):
            values[at] = np.divide(values[at], deviations[cells[at], number])


@compiled(set())
def swept(rows, making, deviations, most, grains, pays, coins, squares, total):  # type: ignore[no-untyped-def]
    """Everybody's squared distance in deviations; the total, in grains, of payers whose coin says so.

    Whoever is further than `most` is brought back to it. The same is done whatever the coins say: what they decide is a
    factor of 1 or 0.
    """
    room = _room(rows, len(total))
    whose, cells, terms = room[2:]
    own, far, factors = np.empty(len(cells)), np.empty(len(cells)), np.empty(len(cells), np.int64)
    end = 0
    while end < len(rows[0]):
        first, end = end, _end(end, rows[0])
        count = _gathered(first, end, rows, room)
        own[:count] = 0
        for at in range(count):
            factors[at] = np.int64(pays[whose[at]]) * np.int64(coins[whose[at]])
        for number in range(len(making[0])):
            _numbers(number, count, terms, making, far)
            _in_deviations(number, count, cells, deviations, far)
            for at in range(count):
                own[at] += far[at] * far[at]
            for at in range(count):
                total[cells[at], number] += np.int64(far[at] * grains) * factors[at]  # cut towards 0
        at = 0
        while at < count:
            start, unit, square = at, whose[at], 0.0
            while at < count and whose[at] == unit:
                square += own[at]
                at += 1
            if square > most:
                _cut(start, at, np.sqrt(most / square) * CUT, room, making, deviations, grains, factors, total)
                square = most
            squares[unit] = square if square else _least(start, at, room, making, deviations)


@compiled(set())
def _far(at, number, room, making, deviations):  # type: ignore[no-untyped-def]
    """One number in one place, in deviations."""
    parts, scales = making
    cells, terms = room[3:]
    value = terms[parts[number, 0], at] / scales[number, 0] * scales[number, 1]
    if parts[number, 1] >= 0:
        value += terms[parts[number, 1], at] * scales[number, 2]
    return value / deviations[cells[at] if len(deviations) > 1 else 0, number]


@compiled(set())
def _cut(start, end, part, room, making, deviations, grains, factors, total):  # type: ignore[no-untyped-def]
    """Bring back to a part of it what one person brings in these places."""
    cells = room[3]
    for at in range(start, end):
        for number in range(len(making[0])):
            far = _far(at, number, room, making, deviations)
            total[cells[at], number] += (np.int64(far * part * grains) - np.int64(far * grains)) * factors[at]


@compiled(set())
def _least(start, end, room, making, deviations):  # type: ignore[no-untyped-def]
    """Whose numbers are tiny would have a charge of 0 by underflow, and yet bring something: the least there is."""
    for at in range(start, end):
        for number in range(len(making[0])):
            if _far(at, number, room, making, deviations) != 0:
                return np.finfo(np.float64).tiny
    return 0.0


@compiled(set())
def entries(rows, making, groups, entry_units, entry_cells, entry_values):  # type: ignore[no-untyped-def]
    """What everybody brings, one entry for each person and group; how many there are."""
    room = _room(rows, groups)
    whose, cells, terms = room[2:]
    values, done, end = np.empty(len(cells)), 0, 0
    while end < len(rows[0]):
        first, end = end, _end(end, rows[0])
        count = _gathered(first, end, rows, room)
        for at in range(count):
            entry_units[done + at], entry_cells[done + at] = whose[at], cells[at]
        for number in range(len(making[0])):
            _numbers(number, count, terms, making, values)
            for at in range(count):
                entry_values[done + at, number] = values[at]
        done += count
    return done


@compiled(set())
def in_unit_order(units, people):  # type: ignore[no-untyped-def]
    """The rows person by person, each person's in the order in which they stand."""
    start = np.zeros(people + 1, np.int64)
    for unit in units:
        start[unit + 1] += 1
    for unit in range(people):
        start[unit + 1] += start[unit]
    order = np.empty(len(units), np.int64)
    for row in range(len(units)):
        order[start[units[row]]] = row
        start[units[row]] += 1
    return order
