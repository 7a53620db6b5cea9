"""Compiled loops over rows, person by person: sums of numbers and of products of two, and counts, in whole numbers.

Whole numbers add up to the same in any order. They are kept as floats, which are exact up to 2^53, and moved to
integers before a person has so many rows that they would not be.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["all_counted", "bins_of", "closed", "counted", "on_grid", "swept"]

U1 = np.uint64(1)


@compiled(set())
def on_grid(cells, ends, table, kept):  # type: ignore[no-untyped-def]
    """Columns as whole numbers up to `most`, row by row; 0 for what is no number, and such rows are not kept."""
    low, high, middle, by, most = ends
    for column in range(len(cells)):
        one, least, furthest, centre, steps = cells[column], low[column], high[column], middle[column], by[column]
        for row in range(len(one)):
            number = one[row] - one[row] == 0.0
            near = np.rint((min(max(one[row], least), furthest) - centre) * steps)
            one[row] = min(max(near, -most), most) if number else 0.0
            kept[row] &= number  # of every column
    for row in range(cells.shape[1]):
        for column in range(len(cells)):
            table[row, column] = cells[column, row]


@compiled(set())
def swept(table, kept, people, person, making, factors, squares, total):  # type: ignore[no-untyped-def]
    """Rows of `table` added to those of their people; whoever is at their end is closed.

    `people` is who has the first row, and where the rows end of that person and of everybody after. `person` is who is
    open and how many rows they have, in all and since sums were put away; and their sums: of single numbers, then of
    products of each with all.
    """
    state, own, long = person
    exact, pairs, (unit, rows, since) = making[2], len(own) - 1, state
    first, ends = people
    singles, start = own[0], 0
    for later in range(len(ends)):
        if first + later != unit:
            if unit >= 0:
                squares[unit] = _closed(own, long, rows > since, making, factors[unit], total)
            unit, rows, since = first + later, 0, 0
        for row in range(start, ends[later]):
            if not kept[row]:
                continue
            numbers = table[row]
            for column in range(len(singles)):
                singles[column] += numbers[column]
            for one in range(pairs):
                number, products = numbers[one], own[one + 1]
                for column in range(pairs):
                    products[column] += number * numbers[column]
            rows += 1
            since += 1
            if since == exact:
                since = 0
                _put_away(own, long)
        start = ends[later]
    state[0], state[1], state[2] = unit, rows, since


@compiled(set())
def closed(person, making, factors, squares, total):  # type: ignore[no-untyped-def]
    """The last person, after all rows."""
    (unit, rows, since), own, long = person
    if unit >= 0:
        squares[unit] = _closed(own, long, rows > since, making, factors[unit], total)


@compiled(set())
def _put_away(own, long):  # type: ignore[no-untyped-def]
    """Sums of floats to those of integers, before they cease to be exact."""
    for place in range(len(own)):
        for column in range(own.shape[1]):
            long[place, column] += np.int64(own[place, column])
            own[place, column] = 0.0


@compiled(set())
def _closed(own, long, many, making, factor, total):  # type: ignore[no-untyped-def]
    """A person's squared distance, in deviations; and what they add to the total, in grains.

    The same is done whatever the coins say: what they decide is a factor of 1 or 0.
    """
    by, grains, _ = making
    if many:
        _put_away(own, long)
    square, furthest = 0.0, 0.0
    for place in range(len(own)):
        sums, worth, into = own[place], by[place], total[place]
        for column in range(len(sums)):
            far = sums[column] * worth[column]
            if many:
                far = long[place, column] * worth[column]
                long[place, column] = 0
            square += far * far
            furthest = max(furthest, abs(far))
            into[column] += np.int64(far * grains) * factor  # cut towards 0
            sums[column] = 0.0
    # Whose numbers are tiny would have a charge of 0 by underflow, and yet bring something.
    return square if square or not furthest else np.finfo(np.float64).tiny


@compiled(set())
def bins_of(cells, ladder, bins, codes, kept):  # type: ignore[no-untyped-def]
    """The bin of every number, those of a column after those of the column before it; who has none is not kept.

    `ladder` holds where bins begin and then NaN, which nothing is above, a power of 2 in all. There are as many steps
    for every number, without a branch on it.
    """
    for column in range(len(cells)):
        numbers, found, step = cells[column], codes[column], np.uint64(len(ladder) // 2)
        found[:] = 0
        while step:
            for row in range(len(numbers)):
                above = found[row] + step
                found[row] = above if numbers[row] >= ladder[above] else found[row]
            step >>= U1
        for row in range(len(numbers)):
            found[row] += np.uint64(column * bins)
            kept[row] &= numbers[row] - numbers[row] == 0.0


@compiled(set())
def counted(codes, kept, people, person, making, factors, squares, total):  # type: ignore[no-untyped-def]
    """Rows added to the bins of their people, who are given as to `swept`; whoever is at their end is closed.

    `person` is who is open and in how many bins; how many rows in each; and which bins these are, with room for one.
    """
    state, counts, places = person
    unit, found = state
    first, ends = people
    start = 0
    for later in range(len(ends)):
        if first + later != unit:
            if unit >= 0:
                squares[unit] = _counted(counts, places[:found], making, factors[unit], total)
            unit, found = first + later, 0
        for row in range(start, ends[later]):
            for column in range(len(codes)):
                place = codes[column, row]
                places[found] = place
                found += kept[row] & (counts[place] == 0)
                counts[place] += kept[row]
        start = ends[later]
    state[0], state[1] = unit, found


@compiled(set())
def all_counted(person, making, factors, squares, total):  # type: ignore[no-untyped-def]
    """The last person, after all rows."""
    (unit, found), counts, places = person
    if unit >= 0:
        squares[unit] = _counted(counts, places[:found], making, factors[unit], total)


@compiled(set())
def _counted(counts, places, making, factor, total):  # type: ignore[no-untyped-def]
    """A person's squared distance, in deviations; and what they add to the total, in grains."""
    by, grains = making
    square, low = 0.0, 0.0  # and what rounding took from it (Knuth's TwoSum): bins come in the order of rows
    for place in places:
        far = counts[place] * by[place]
        value = far * far
        raised = square + value
        part = raised - square
        low += (square - (raised - part)) + (value - part)
        square = raised
        total[place] += np.int64(far * grains) * factor  # cut towards 0
        counts[place] = 0
    square += low
    return square if square or not len(places) else np.finfo(np.float64).tiny
