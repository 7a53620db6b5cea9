"""Compiled Newton steps of the squared hinge loss: a quadratic as long as the same rows are inside the margin.

With `slack = 1 - y score` of a row at some point and `x` the row times its y, the slack after a step v is
`slack - x @ v`, and the loss is the sum of its squares over the rows where it is positive. One thread each.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["minimise", "settle", "some_bits"]

FAST = {"contract", "reassoc", "nsz"}
BLOCK = 512  # rows whose slacks are made together
FAR = 0.2  # a step that far from where slacks are known makes them anew
SAFE = 1 + 1e-9  # rounding must not hide a row at the edge


@compiled(FAST)
def some_bits(packed, rows, out):  # type: ignore[no-untyped-def]
    """The bits of some rows, packed again."""
    count = len(rows)
    for w in range(len(packed)):
        mask = packed[w]
        for start in range(0, count, 8):
            byte = 0
            for i in range(start, min(start + 8, count)):
                row = rows[i]
                byte |= ((mask[row >> 3] >> (7 - (row & 7))) & 1) << (7 - (i & 7))
            out[w, start >> 3] = byte


@compiled(FAST)
def _solve(left, right, root, found):  # type: ignore[no-untyped-def]
    """`found = -inverse(left) @ right` by Cholesky, from the lower triangle; says whether `left` is safely positive."""
    d = len(right)
    for i in range(d):
        for j in range(i):
            s = left[i, j]
            for k in range(j):
                s -= root[i, k] * root[j, k]
            root[i, j] = s * root[j, j]
        s = left[i, i]
        for k in range(i):
            s -= root[i, k] * root[i, k]
        if not s > 1e-14 * left[i, i]:
            return False
        root[i, i] = 1 / np.sqrt(s)  # the diagonal is only ever divided by
    for i in range(d):
        s = -right[i]
        for k in range(i):
            s -= root[i, k] * found[k]
        found[i] = s * root[i, i]
    for i in range(d - 1, -1, -1):
        s = found[i] * root[i, i]
        found[i] = s
        for k in range(i):
            found[k] -= root[i, k] * s
    return True


@compiled(FAST)
def _slacks(columns, slack, v, start, stop, out):  # type: ignore[no-untyped-def]
    """`out = slack - v @ columns` for some rows."""
    d, count = len(columns), stop - start
    before = slack[start:stop]
    for i in range(count):
        out[i] = before[i]
    j = 0
    while j + 4 <= d:
        x0, x1 = columns[j, start:stop], columns[j + 1, start:stop]
        x2, x3 = columns[j + 2, start:stop], columns[j + 3, start:stop]
        v0, v1, v2, v3 = v[j], v[j + 1], v[j + 2], v[j + 3]
        for i in range(count):
            out[i] -= (v0 * x0[i] + v1 * x1[i]) + (v2 * x2[i] + v3 * x3[i])
        j += 4
    while j < d:
        x0, v0 = columns[j, start:stop], v[j]
        for i in range(count):
            out[i] -= v0 * x0[i]
        j += 1


@compiled(FAST)
def _crossed(rows, slack, size, near, known, v, moved, order, mask, out):  # type: ignore[no-untyped-def]
    """Which of the first `near` rows are in the world and on the other side of the margin after the step v.

    `known` are slacks after another step, `moved` away from v: most are too large to have changed their sign since.
    """
    count = 0
    for i in range(near):
        after = known[i]
        if abs(after) <= size[i] * moved:
            after = slack[i]
            for j in range(len(v)):
                after -= rows[i, j] * v[j]
        out[count] = i
        count += (after > 0) != (slack[i] > 0)
    last, count = count, 0
    for i in range(last):
        at = out[i]
        row = order[at]
        out[count] = at
        count += (mask[row >> 3] >> (7 - (row & 7))) & 1
    return count


@compiled(FAST)
def _toggle(row, slack, sign, weight, left, right):  # type: ignore[no-untyped-def]
    """Take a row into the equations, or out of them."""
    for j in range(len(right)):
        c = sign * weight * row[j]
        for k in range(j + 1):
            left[j, k] += c * row[k]
        right[j] -= c * slack


@compiled(FAST)
def _exchange(old, before, new, many, rows, slack, weight, left, right):  # type: ignore[no-untyped-def]
    """Bring the equations from one list of crossed rows to another, both sorted; says how many rows differ."""
    a = b = changed = 0
    while a < before or b < many:
        if a < before and b < many and old[a] == new[b]:
            a += 1
            b += 1
            continue
        changed += 1
        if b == many or (a < before and old[a] < new[b]):
            i = old[a]
            a += 1
            inside = slack[i] > 0
        else:
            i = new[b]
            b += 1
            inside = slack[i] <= 0
        _toggle(rows[i], slack[i], 1.0 if inside else -1.0, weight, left, right)
    return changed


@compiled(FAST)
def settle(sums, weight, prior, pull, rows, columns, slack, size, reach, order, packed, limit, out):  # type: ignore[no-untyped-def]
    """Newton steps `out[w]` from one common point to each world's minimiser; False where rows never stop crossing.

    The quadratic at the common point comes from `sums`; after each step only the rows that crossed the margin change
    it. Rows are sorted by `reach = abs(slack) / size`, the shortest step at which they can cross (Cauchy and Schwarz),
    so the others are never looked at. When no row crosses any more, the gradient is that of the quadratic: zero.
    """
    n, d = rows.shape
    left, root, right = np.empty((d, d)), np.empty((d, d)), np.empty(d)
    there, known = np.empty(d), np.empty(n)  # slacks are known after the step `there`
    lists = np.empty((2, n + 1), dtype=np.int64)
    settled = np.zeros(len(sums), dtype=np.bool_)
    for w in range(len(sums)):
        at = 0
        for a in range(d):
            for b in range(a, d):
                left[b, a] = prior[a, b] + weight * sums[w, at]
                at += 1
        for a in range(d):
            right[a] = pull[a] - weight * sums[w, at + a]
        v = out[w]
        many = done = np.int64(0)
        for step in range(limit):
            if not _solve(left, right, root, v):
                break
            length = moved = 0.0
            for j in range(d):
                length += v[j] * v[j]
                moved += (v[j] - there[j]) * (v[j] - there[j])
            if step == 0 or moved > FAR**2 * length:
                for j in range(d):
                    there[j] = v[j]
                moved, done = 0.0, np.int64(0)  # a literal would compile what it is handed to twice
            near = np.searchsorted(reach, np.sqrt(length) * SAFE, side="right")
            while done < near:
                stop = min(done + BLOCK, near)
                _slacks(columns, slack, there, done, stop, known[done:stop])
                done = stop
            old, new = lists[step % 2], lists[1 - step % 2]
            before = many
            many = _crossed(rows, slack, size, near, known, v, np.sqrt(moved) * SAFE, order, packed[w], new)
            if _exchange(old, before, new, many, rows, slack, weight, left, right) == 0:
                settled[w] = True
                break
    return settled


@compiled(FAST)
def _line_search(slack, along, weight, slope, bend):  # type: ignore[no-untyped-def]
    """The best length of a step: root of the slope, which is increasing and made of straight pieces."""
    t, low, high = 1.0, 0.0, np.inf
    start = slope
    for i in range(len(slack)):
        if slack[i] > 0:
            start -= weight * slack[i] * along[i]
    for _ in range(100):
        first, second = slope + t * bend, bend
        for i in range(len(slack)):
            left = slack[i] - t * along[i]
            if left > 0:
                first -= weight * left * along[i]
                second += weight * along[i] * along[i]
        if abs(first) <= -1e-13 * start:
            break
        if first < 0:
            low = t
        else:
            high = t
        t -= first / second
        if not low < t < high:
            t = (low + high) / 2 if high < np.inf else 2 * low
        if high - low <= 1e-15 * high:
            break
    return t


@compiled(FAST)
def _times(rows, v, out):  # type: ignore[no-untyped-def]
    for i in range(len(rows)):
        s = 0.0
        for j in range(len(v)):
            s += rows[i, j] * v[j]
        out[i] = s


@compiled(FAST)
def minimise(rows, given, weight, prior, pull, scale, v, limit):  # type: ignore[no-untyped-def]
    """Move `v` to the minimiser of `pull @ v + v @ prior @ v / 2 + weight / 2 * sum(max(0, given - rows @ v) ** 2)`.

    Newton steps with an exact line search, which reach the minimiser of a strictly convex function of finitely many
    quadratic pieces in finitely many steps. Returns the error left, relative to `v` and `scale`, in the norm of the
    quadratic.
    """
    n, d = rows.shape
    left, root, right = np.empty((d, d)), np.empty((d, d)), np.empty(d)
    step, held, slack, along = np.empty(d), np.empty(d), np.empty(n), np.empty(n)
    _times(rows, v, along)
    for i in range(n):
        slack[i] = given[i] - along[i]
    error = np.inf
    for _ in range(limit):
        for j in range(d):  # written out: assigning whole arrays takes four times as long to compile
            held[j] = pull[j]
            for k in range(d):
                left[j, k] = prior[j, k]
                held[j] += prior[j, k] * v[k]
            right[j] = held[j]
        for i in range(n):
            if slack[i] > 0:
                _toggle(rows[i], slack[i], 1.0, weight, left, right)
        if not _solve(left, right, root, step):
            return np.inf
        slope = bend = gain = size = 0.0
        for j in range(d):
            gain -= right[j] * step[j]
            slope += held[j] * step[j]
            for k in range(d):
                bend += step[j] * prior[j, k] * step[k]
                size += v[j] * left[max(j, k), min(j, k)] * v[k]
        before = error
        error = 0.0 if gain <= 0 else np.sqrt(gain / (size + scale)) if size + scale > 0 else np.inf
        if error < 1e-13 or (error < 1e-8 and error > before / 2):  # as near as rounding lets it come
            return error
        _times(rows, step, along)
        t = _line_search(slack, along, weight, slope, bend)
        for j in range(d):
            v[j] += t * step[j]
        for i in range(n):
            slack[i] -= t * along[i]
    return error
