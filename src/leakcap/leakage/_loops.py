"""Compiled inner loops, in a module of their own so that numba loads only when they run."""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = [
    "add_panel",
    "difference_on_grid",
    "exponentials",
    "fill_knapsacks",
    "largest",
    "normalise",
    "wager_panel",
]


LOG2_E = np.float32(1.4426950408889634)
LN_2 = np.float32(0.6931471805599453)
ROUNDER = np.float32(1.5 * 2**23)
LEAST = np.float32(-87.0)


@compiled({"contract", "nsz"})
def exponentials(logits, tops, result):  # type: ignore[no-untyped-def]
    """exp(logit - top) of each row in f32, for tops no smaller than the logits; a relative error of (|x| + 8) 2^-24.

    exp(x) = 2^n e^f with |f| <= ln(2)/2: a polynomial of degree 7 (its remainder is below 2^-27) and an exponent made
    of bits, in loops that vectorise. Adding and subtracting 1.5 * 2^23 rounds to a whole number.
    """
    releases, m = logits.shape
    part = np.empty(m, np.float32)
    power = np.empty(m, np.int32)
    scale = power.view(np.float32)
    for j in range(releases):
        for w in range(m):
            x = np.float32(logits[j, w] - tops[j])
            x = x if x > LEAST else LEAST  # below that a posterior is as good as 0
            n = (x * LOG2_E + ROUNDER) - ROUNDER
            f = x - n * LN_2
            e = np.float32(1 / 5040)
            e = e * f + np.float32(1 / 720)
            e = e * f + np.float32(1 / 120)
            e = e * f + np.float32(1 / 24)
            e = e * f + np.float32(1 / 6)
            e = e * f + np.float32(0.5)
            e = e * f + np.float32(1.0)
            part[w] = e * f + np.float32(1.0)
            power[w] = (np.int32(n) + np.int32(127)) << np.int32(23)
        for w in range(m):
            result[j, w] = part[w] * scale[w]


@compiled({"reassoc", "contract", "nsz"})
def normalise(rows):  # type: ignore[no-untyped-def]
    """Divide each f32 row by its sum (in f64)."""
    releases, m = rows.shape
    for j in range(releases):
        total = np.float64(0)
        for w in range(m):
            total += np.float64(rows[j, w])
        inverse = np.float32(1.0 / total)
        for w in range(m):
            rows[j, w] *= inverse


@compiled({"reassoc"})  # of the two f64 sums; what is on the grid has one order only
def difference_on_grid(posterior, paired, grid, table):  # type: ignore[no-untyped-def]
    """Half the difference of paired worlds (or the posterior itself) on a grid; the largest sum lost, and kept."""
    releases, width = table.shape
    most_lost = np.float64(0)
    most_kept = np.float64(0)
    half = np.float32(0.5)
    up = np.float32(grid)
    down = np.float32(1.0 / grid)
    for j in range(releases):
        lost = np.float64(0)
        kept = np.float64(0)
        for w in range(width):
            a = (posterior[j, w] - posterior[j, w + width]) * half if paired else posterior[j, w]
            b = np.rint(a * up) * down
            lost += abs(a - b)
            kept += abs(b)
            table[j, w] = b
        most_lost = max(most_lost, lost)
        most_kept = max(most_kept, kept)
    return most_lost, most_kept


@compiled({"nsz"})
def largest(deviation, best):  # type: ignore[no-untyped-def]
    """Keep each release's largest deviation: 64 columns at a time, so that the loop vectorises."""
    releases, units = deviation.shape
    lanes = np.empty(64, deviation.dtype)
    for j in range(releases):
        lanes[:] = deviation[j, 0]
        for start in range(0, units - units % 64, 64):
            for i in range(64):
                a = deviation[j, start + i]
                lanes[i] = a if a > lanes[i] else lanes[i]
        for u in range(units - units % 64, units):
            lanes[0] = max(lanes[0], deviation[j, u])
        for i in range(64):
            best[j] = max(best[j], lanes[i])


@compiled({"contract", "nsz"})
def add_panel(deviation, weight, cuts, total, squares, stick_total, stick_squares, best):  # type: ignore[no-untyped-def]
    """Add |a|, a^2 and (a - cut)_+ of a panel of releases x units to running sums; keep each release's largest a."""
    releases, units = deviation.shape
    largest(deviation, best)
    s1 = np.empty(units, deviation.dtype)
    s2 = np.empty(units, deviation.dtype)
    zero = deviation.dtype.type(0)
    step = 64  # sums of 64 stay accurate in f32; then they join the f64 totals
    for start in range(0, releases, step):
        stop = min(start + step, releases)
        s1[:] = zero
        s2[:] = zero
        for j in range(start, stop):
            w = deviation.dtype.type(weight[j])
            for u in range(units):
                b = abs(deviation[j, u])
                s1[u] += w * b
                s2[u] += w * b * b
        for u in range(units):
            total[u] += s1[u]
            squares[u] += s2[u]
        for k in range(len(cuts)):
            cut = cuts[k]
            s1[:] = zero
            s2[:] = zero
            for j in range(start, stop):
                w = deviation.dtype.type(weight[j])
                for u in range(units):
                    a = max(deviation[j, u] - cut, zero)
                    s1[u] += w * a
                    s2[u] += w * a * a
            for u in range(units):
                stick_total[k, u] += s1[u]
                stick_squares[k, u] += s2[u]


@compiled({"contract", "nsz"})
def wager_panel(deviation, cuts, base, stake, capital, best):  # type: ignore[no-untyped-def]
    """Multiply capitals by `base - stake X` for each release and unit: X is |a| in row 0, then (a - cut)_+.

    Logarithms of the products join `capital`; each release's largest a goes to `best`. Factors lie between 1/8 and 4:
    products of 32 of them fit into single precision, and of 256 into double.
    """
    releases, units = deviation.shape
    product = np.empty(units, np.float32)
    wide = np.empty(units, np.float64)
    largest(deviation, best)
    for outer in range(0, releases, 256):
        end = min(outer + 256, releases)
        for k in range(len(cuts) + 1):
            wide[:] = 1.0
            for start in range(outer, end, 32):
                product[:] = np.float32(1)
                some = deviation[start : min(start + 32, end)]
                if k == 0:
                    _wager_on_size(some, base[0], stake[0], product)
                else:
                    _wager_above(some, cuts[k - 1], base[k], stake[k], product)
                for u in range(units):
                    wide[u] *= product[u]
            for u in range(units):
                capital[k, u] += np.log(wide[u])


# Four releases at a time: what is wagered on a unit is read once for them.


@compiled({"contract", "nsz"})
def _wager_on_size(deviation, base, stake, product):  # type: ignore[no-untyped-def]
    releases, units = deviation.shape
    for j in range(0, releases - releases % 4, 4):
        for u in range(units):
            b, s = base[u], stake[u]
            first = (b - s * abs(deviation[j, u])) * (b - s * abs(deviation[j + 1, u]))
            second = (b - s * abs(deviation[j + 2, u])) * (b - s * abs(deviation[j + 3, u]))
            product[u] *= first * second
    for j in range(releases - releases % 4, releases):
        for u in range(units):
            product[u] *= base[u] - stake[u] * abs(deviation[j, u])


@compiled({"contract", "nsz"})
def _wager_above(deviation, cut, base, stake, product):  # type: ignore[no-untyped-def]
    releases, units = deviation.shape
    zero = np.float32(0)
    for j in range(0, releases - releases % 4, 4):
        for u in range(units):
            b, s = base[u], stake[u]
            first = (b - s * max(deviation[j, u] - cut, zero)) * (b - s * max(deviation[j + 1, u] - cut, zero))
            second = (b - s * max(deviation[j + 2, u] - cut, zero)) * (b - s * max(deviation[j + 3, u] - cut, zero))
            product[u] *= first * second
    for j in range(releases - releases % 4, releases):
        for u in range(units):
            product[u] *= base[u] - stake[u] * max(deviation[j, u] - cut, zero)


@compiled(set())
def fill_knapsacks(posterior, prior, order, chances, found):  # type: ignore[no-untyped-def]
    """For each release and each chance, in rising order, the posterior of the first worlds of `order` that this much
    prior pays for, the last of them in part."""
    releases, m = order.shape
    for j in range(releases):
        paid, had, taken = 0.0, 0.0, 0
        for c in range(len(chances)):
            while taken < m and paid + prior[order[j, taken]] <= chances[c]:
                paid += prior[order[j, taken]]
                had += posterior[j, order[j, taken]]
                taken += 1
            found[j, c] = had
            if taken < m:
                w = order[j, taken]
                found[j, c] += posterior[j, w] * ((chances[c] - paid) / prior[w])
