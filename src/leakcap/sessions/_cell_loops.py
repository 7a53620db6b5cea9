"""Compiled loops over people's rows: what each person brings to each group, and what that costs and adds.

A person's rows stand together, and are added up by group in small tables that serve one person after the other.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["entries", "in_unit_order", "swept"]


@compiled(set())
def _own(first, last, rows, seen, cells, terms, sums):  # type: ignore[no-untyped-def]
    """Groups and terms of whoever has row `first`: the row after their last, and how many groups they are in.

    The first term counts rows. Hardly anybody has two rows in one group where there are many: `seen`, a bit for each
    group, says who has, and only theirs are added up in the large table `sums`. Both are 0 before and after.
    """
    units, codes, least, groups, whole = rows
    row, found, twice = first, 0, False
    while row < last and units[row] == units[first]:
        code = codes[row] - least
        cell = groups[code] if 0 <= code < len(groups) else -1
        if cell >= 0:
            bit = np.uint64(1) << np.uint64(cell & 63)
            twice = twice or seen[cell >> 6] & bit != 0
            seen[cell >> 6] |= bit
            cells[found], terms[found, 0] = cell, 1
            for column in range(len(whole)):
                terms[found, column + 1] = whole[column, row]
            found += 1
        row += 1
    for at in range(found):
        seen[cells[at] >> 6] = 0
    if not twice:
        return row, found
    different = 0
    for at in range(found):
        cell = cells[at]
        if sums[cell, 0] == 0:
            cells[different] = cell
            different += 1
        for term in range(terms.shape[1]):
            sums[cell, term] += terms[at, term]
    for at in range(different):
        for term in range(terms.shape[1]):
            terms[at, term] = sums[cells[at], term]
            sums[cells[at], term] = 0
    return row, different


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
def swept(rows, first, last, making, deviations, grains, pays, coins, squares, total):  # type: ignore[no-untyped-def]
    """Everybody's squared distance in deviations; the total, in grains, of payers whose coin says so.

    The same is done whatever the coins say: what they decide is a factor of 1 or 0.
    """
    units, whole, most = rows[0], rows[4], last - first
    groups, numbers = deviations.shape
    seen, sums = np.zeros(groups // 64 + 1, np.uint64), np.zeros((groups, len(whole) + 1), whole.dtype)
    cells, terms = np.empty(most, np.int64), np.empty((most, len(whole) + 1), whole.dtype)
    values = np.empty((most, numbers))
    row = first
    while row < last:
        unit = units[row]
        row, found = _own(row, last, rows, seen, cells, terms, sums)
        _values(found, terms, making[0], making[1], values)
        square, some, factor = 0.0, False, np.int64(pays[unit]) * np.int64(coins[unit])
        for at in range(found):
            own = 0.0
            for number in range(numbers):
                far = values[at, number] / deviations[cells[at], number]
                own += far * far
                some = some or far != 0
                total[cells[at], number] += np.int64(far * grains) * factor  # cut towards 0
            square += own
        # Whose numbers are tiny would have a charge of 0 by underflow, and yet be in the sum.
        squares[unit] = np.finfo(np.float64).tiny if square == 0 and some else square


@compiled(set())
def entries(rows, first, last, making, groups, entry_units, entry_cells, entry_values):  # type: ignore[no-untyped-def]
    """What everybody brings, one entry for each person and group; how many there are."""
    units, whole, most = rows[0], rows[4], last - first
    seen, sums = np.zeros(groups // 64 + 1, np.uint64), np.zeros((groups, len(whole) + 1), whole.dtype)
    cells, terms = np.empty(most, np.int64), np.empty((most, len(whole) + 1), whole.dtype)
    row, count = first, 0
    while row < last:
        unit = units[row]
        row, found = _own(row, last, rows, seen, cells, terms, sums)
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
