"""Compiled loops over people's rows: what each person brings to each group, and what that costs and adds.

A person's rows stand together, and are added up by group in small tables that serve one person after the other.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["entries", "in_unit_order", "swept"]


@compiled(set())
def _own(first, rows, sums, cells, terms):  # type: ignore[no-untyped-def]
    """Groups and terms of whoever has row `first`: the row after their last, and how many groups they are in.

    The first term counts rows. `sums` is 0 before and after.
    """
    units, codes, least, groups, whole = rows
    row, found = first, 0
    while row < len(units) and units[row] == units[first]:
        code = codes[row] - least
        cell = groups[code] if 0 <= code < len(groups) else -1
        if cell >= 0:
            if sums[cell, 0] == 0:
                cells[found] = cell
                found += 1
            sums[cell, 0] += 1
            for column in range(len(whole)):
                sums[cell, column + 1] += whole[column, row]
        row += 1
    for at in range(found):
        for term in range(terms.shape[1]):
            terms[at, term] = sums[cells[at], term]
            sums[cells[at], term] = 0
    return row, found


@compiled(set())
def _values(found, terms, parts, scales, values):  # type: ignore[no-untyped-def]
    """A person's numbers in each group: a term in its unit, and where `parts` says so a multiple of another."""
    for at in range(found):
        for number in range(len(parts)):
            one, other = parts[number, 0], parts[number, 1]
            values[at, number] = terms[at, one] / scales[number, 0] * scales[number, 1]
            if other >= 0:
                values[at, number] += terms[at, other] * scales[number, 2]


@compiled(set())
def swept(rows, making, deviations, grains, pays, coins, squares, total):  # type: ignore[no-untyped-def]
    """Everybody's squared distance in deviations; the total, in grains, of payers whose coin says so.

    The same is done whatever the coins say: what they decide is a factor of 1 or 0. Where there are many groups hardly
    anybody has two rows in one: `seen`, a bit for each group, says who has, and the others need no adding up.
    """
    units, codes, least, groups, whole = rows
    parts, scales = making
    numbers, size = deviations.shape[1], len(units)
    seen, sums = (
        np.zeros(len(deviations) // 64 + 1, np.uint64),
        np.zeros((len(deviations), len(whole) + 1), whole.dtype),
    )
    cells, terms = np.empty(size, np.int64), np.empty((size, len(whole) + 1), whole.dtype)
    values = np.empty((size, numbers))
    row = 0
    while row < len(units):
        start, unit, alone = row, units[row], True
        while row < len(units) and units[row] == unit:
            code = codes[row] - least
            cell = groups[code] if 0 <= code < len(groups) else -1
            cells[row - start] = cell
            alone = alone and cell >= 0
            if alone:
                bit = np.uint64(1) << np.uint64(cell & 63)
                alone = seen[cell >> 6] & bit == 0
                seen[cell >> 6] |= bit
            row += 1
        found = row - start
        for at in range(found):
            seen[cells[at] >> 6] = 0  # what is in no group clears the last word, which has to be 0 as well
        if not alone:
            _, found = _own(start, rows, sums, cells, terms)
            _values(found, terms, parts, scales, values)
        square, some, factor = 0.0, False, np.int64(pays[unit]) * np.int64(coins[unit])
        for at in range(found):
            own = 0.0
            for number in range(numbers):
                if alone:
                    one, other = parts[number, 0], parts[number, 1]
                    term = np.float64(whole[one - 1, start + at]) if one else 1.0
                    value = term / scales[number, 0] * scales[number, 1]
                    if other >= 0:
                        value += (np.float64(whole[other - 1, start + at]) if other else 1.0) * scales[number, 2]
                else:
                    value = values[at, number]
                far = value / deviations[cells[at], number]
                own += far * far
                some = some or far != 0
                total[cells[at], number] += np.int64(far * grains) * factor  # cut towards 0
            square += own
        # Whose numbers are tiny would have a charge of 0 by underflow, and yet be in the sum.
        squares[unit] = np.finfo(np.float64).tiny if square == 0 and some else square


@compiled(set())
def entries(rows, making, groups, entry_units, entry_cells, entry_values):  # type: ignore[no-untyped-def]
    """What everybody brings, one entry for each person and group; how many there are."""
    units, whole, size = rows[0], rows[4], len(rows[0])
    sums = np.zeros((groups, len(whole) + 1), whole.dtype)
    cells, terms = np.empty(size, np.int64), np.empty((size, len(whole) + 1), whole.dtype)
    row, count = 0, 0
    while row < len(units):
        unit = units[row]
        row, found = _own(row, rows, sums, cells, terms)
        _values(found, terms, making[0], making[1], entry_values[count:])
        for at in range(found):
            entry_units[count], entry_cells[count] = unit, cells[at]
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
