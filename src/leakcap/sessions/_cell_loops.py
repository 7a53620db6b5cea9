"""Compiled loops over people's rows: what each person brings to each group, and what that costs and adds.

A person's rows stand together. They are taken as they stand where no two are of one group, and added up by group
otherwise, in small tables that serve one person after the other.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["entries", "in_unit_order", "swept"]

CUT = 1 - 1e-12  # what is cut to a length is a little shorter, whatever rounding does


@compiled(set())
def _own(first, rows, places, cells, terms):  # type: ignore[no-untyped-def]
    """Groups and terms of whoever has row `first`: the row after their last, and how many groups they are in.

    The first term counts rows.
    """
    end, found = _groups_of(first, rows, places, cells)
    if found < end - first:
        _add_up(first, end, found, rows, places, terms)
        return end, found
    whole = rows[4]
    for at in range(found):
        terms[0, at] = 1
    for column in range(len(whole)):
        for at in range(found):
            terms[column + 1, at] = whole[column, first + at]
    return end, found


@compiled(set())
def _groups_of(first, rows, places, cells):  # type: ignore[no-untyped-def]
    """Groups of whoever has row `first`, each once: the row after their last, and how many groups they are in.

    `places` says of each group where it stands among a person's, counted from their first row: what is lower is of
    somebody before, so that nothing has to be cleared.
    """
    units, codes, least, groups, _ = rows
    unit, row, found, codes_there = units[first], first, 0, np.uint64(len(groups))
    while row < len(units) and units[row] == unit:
        code = np.uint64(np.int64(codes[row]) - least)  # below the first one is beyond the last one
        if code < codes_there and groups[code] >= 0:
            cell = np.uint32(groups[code])
            if places[cell] < first:
                places[cell] = first + found
                cells[found] = cell
                found += 1
        row += 1
    return row, found


@compiled(set())
def _add_up(first, end, found, rows, places, terms):  # type: ignore[no-untyped-def]
    """Terms of whoever has these rows, several of which are of one group or of none."""
    _, codes, least, groups, whole = rows
    terms[:, :found] = 0
    for row in range(first, end):
        code = np.uint64(np.int64(codes[row]) - least)
        if code < np.uint64(len(groups)) and groups[code] >= 0:
            at = places[groups[code]] - first
            terms[0, at] += 1
            for column in range(len(whole)):
                terms[column + 1, at] += whole[column, row]


@compiled(set())
def _room(rows, groups):  # type: ignore[no-untyped-def]
    """Small tables for one person after the other: places, cells, terms."""
    size, whole = len(rows[0]), rows[4]
    return np.full(groups, -1, np.int32), np.empty(size, np.uint32), np.empty((len(whole) + 1, size), whole.dtype)


@compiled(set())
def _far(cell, at, number, terms, making, deviations):  # type: ignore[no-untyped-def]
    """One number of a person in one group, in deviations."""
    parts, scales = making
    value = terms[parts[number, 0], at] / scales[number, 0] * scales[number, 1]
    if parts[number, 1] >= 0:
        value += terms[parts[number, 1], at] * scales[number, 2]
    return value / deviations[cell, number]


@compiled(set())
def swept(rows, making, deviations, most, grains, pays, coins, squares, total):  # type: ignore[no-untyped-def]
    """Everybody's squared distance in deviations; the total, in grains, of payers whose coin says so.

    Whoever is further than `most` is brought back to it. The same is done whatever the coins say: what they decide is a
    factor of 1 or 0.
    """
    parts, scales = making
    places, cells, terms = _room(rows, len(deviations))
    own, row, units = np.empty(len(cells)), 0, rows[0]
    while row < len(units):
        unit = units[row]
        row, found = _own(row, rows, places, cells, terms)
        factor = np.int64(pays[unit]) * np.int64(coins[unit])
        own[:found] = 0
        for number in range(len(parts)):
            one, other = parts[number, 0], parts[number, 1]
            unit_of, by, by_other = scales[number, 0], scales[number, 1], scales[number, 2]
            for at in range(found):
                value = terms[one, at] / unit_of * by
                if other >= 0:
                    value += terms[other, at] * by_other
                far = value / deviations[cells[at], number]
                own[at] += far * far
                total[cells[at], number] += np.int64(far * grains) * factor  # cut towards 0
        square = 0.0
        for at in range(found):
            square += own[at]
        if square > most:
            part = np.sqrt(most / square) * CUT
            for at in range(found):
                for number in range(len(parts)):
                    far = _far(cells[at], at, number, terms, making, deviations)
                    total[cells[at], number] += (np.int64(far * part * grains) - np.int64(far * grains)) * factor
            square = most
        squares[unit] = square if square else _least(found, cells, terms, making, deviations)


@compiled(set())
def _least(found, cells, terms, making, deviations):  # type: ignore[no-untyped-def]
    """Whose numbers are tiny would have a charge of 0 by underflow, and yet bring something: the least there is."""
    for at in range(found):
        for number in range(len(making[0])):
            if _far(cells[at], at, number, terms, making, deviations) != 0:
                return np.finfo(np.float64).tiny
    return 0.0


@compiled(set())
def entries(rows, making, groups, entry_units, entry_cells, entry_values):  # type: ignore[no-untyped-def]
    """What everybody brings, one entry for each person and group; how many there are."""
    parts, scales = making
    places, cells, terms = _room(rows, groups)
    row, count, units = 0, 0, rows[0]
    while row < len(units):
        unit = units[row]
        row, found = _own(row, rows, places, cells, terms)
        for at in range(found):
            entry_units[count], entry_cells[count] = unit, cells[at]
            for number in range(len(parts)):
                entry_values[count, number] = terms[parts[number, 0], at] / scales[number, 0] * scales[number, 1]
                if parts[number, 1] >= 0:
                    entry_values[count, number] += terms[parts[number, 1], at] * scales[number, 2]
            count += 1
    return count


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
