"""Compiled gradients of a linear model's loss in many worlds: only the rows of a world are looked at.

One thread each: callers split the worlds. Loops run along rows that lie side by side, which is what vector
instructions want; four columns and two score rows at a time, so that a number read is used more than once.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.compiled import compiled

__all__ = ["HINGE", "SOFTMAX", "add_gradients"]

FAST = {"contract", "reassoc", "nsz"}  # sums in any order; nothing is assumed about overflow or NaN
BLOCK = 256  # rows of the data from which a world's are taken together: tiles stay in the first cache
SOFTMAX, HINGE = 0, 1
HIGHEST = 700.0  # the largest score whose exponential is a number
TURN = 6755399441055744.0  # 1.5 * 2**52: adding it leaves a whole number in the lowest bits


@compiled({"contract", "nnan"})
def _exponentials(x, n, scratch, scratch_bits):  # type: ignore[no-untyped-def]
    """Put the exponential into the place of each number, to 1e-14: a power of two times a polynomial.

    Scores beyond +-700 count as +-700. No reassociation here: it would undo the rounding to a whole number. Weights
    are never NaN (`gradients` sees to it), which makes the bounds one instruction each.
    """
    for i in range(n):
        v = min(max(x[i], -HIGHEST), HIGHEST)
        t = v * 1.4426950408889634 + TURN
        scratch[i] = t
        k = t - TURN
        x[i] = (v - k * 0.6931471803691238) - k * 1.9082149292705877e-10
    for i in range(n):
        scratch_bits[i] = (scratch_bits[i] + 1023) << 52
    for i in range(n):
        r = x[i]
        s = r * r
        q = s * s
        a = (1 + r) + s * (1 / 2 + r * (1 / 6))
        b = (1 / 24 + r * (1 / 120)) + s * (1 / 720 + r * (1 / 5040))
        c = (1 / 40320 + r * (1 / 362880)) + s * (1 / 3628800 + r * (1 / 39916800))
        x[i] = (a + q * (b + q * c)) * scratch[i]


@compiled({"contract"})
def _scores(tile, n, weights, scores):  # type: ignore[no-untyped-def]
    """`scores[k] = weights[k] @ tile`; one more row of `scores` takes what an odd number of rows leaves over.

    Sums in this order only: each product is then added in the same instruction.
    """
    rows, d = weights.shape
    for k in range(0, rows, 2):
        first, second = scores[k, :n], scores[k + 1, :n]
        a, b = weights[k], weights[min(k + 1, rows - 1)]
        for i in range(n):
            first[i] = 0.0
            second[i] = 0.0
        j = 0
        while j + 8 <= d:
            x0, x1, x2, x3 = tile[j, :n], tile[j + 1, :n], tile[j + 2, :n], tile[j + 3, :n]
            x4, x5, x6, x7 = tile[j + 4, :n], tile[j + 5, :n], tile[j + 6, :n], tile[j + 7, :n]
            a0, a1, a2, a3, a4, a5, a6, a7 = a[j], a[j + 1], a[j + 2], a[j + 3], a[j + 4], a[j + 5], a[j + 6], a[j + 7]
            b0, b1, b2, b3, b4, b5, b6, b7 = b[j], b[j + 1], b[j + 2], b[j + 3], b[j + 4], b[j + 5], b[j + 6], b[j + 7]
            for i in range(n):
                s = first[i] + a0 * x0[i] + a1 * x1[i] + a2 * x2[i] + a3 * x3[i]
                first[i] = s + a4 * x4[i] + a5 * x5[i] + a6 * x6[i] + a7 * x7[i]
                s = second[i] + b0 * x0[i] + b1 * x1[i] + b2 * x2[i] + b3 * x3[i]
                second[i] = s + b4 * x4[i] + b5 * x5[i] + b6 * x6[i] + b7 * x7[i]
            j += 8
        while j < d:
            x0, a0, b0 = tile[j, :n], a[j], b[j]
            for i in range(n):
                first[i] += a0 * x0[i]
                second[i] += b0 * x0[i]
            j += 1


@compiled(FAST)
def _add_products(tile, n, slopes, out):  # type: ignore[no-untyped-def]
    """`out += slopes @ tile.T`."""
    rows, d = out.shape
    for k in range(0, rows, 2):
        first, second = slopes[k, :n], slopes[k + 1, :n]
        two = k + 1 < rows
        j = 0
        while j + 4 <= d:
            x0, x1, x2, x3 = tile[j, :n], tile[j + 1, :n], tile[j + 2, :n], tile[j + 3, :n]
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
            for i in range(n):
                a0 += first[i] * x0[i]
                a1 += first[i] * x1[i]
                a2 += first[i] * x2[i]
                a3 += first[i] * x3[i]
                b0 += second[i] * x0[i]
                b1 += second[i] * x1[i]
                b2 += second[i] * x2[i]
                b3 += second[i] * x3[i]
            out[k, j] += a0
            out[k, j + 1] += a1
            out[k, j + 2] += a2
            out[k, j + 3] += a3
            if two:
                out[k + 1, j] += b0
                out[k + 1, j + 1] += b1
                out[k + 1, j + 2] += b2
                out[k + 1, j + 3] += b3
            j += 4
        while j < d:
            x0 = tile[j, :n]
            a0 = b0 = 0.0
            for i in range(n):
                a0 += first[i] * x0[i]
                b0 += second[i] * x0[i]
            out[k, j] += a0
            if two:
                out[k + 1, j] += b0
            j += 1


@compiled(FAST)
def _softmax_slopes(scores, rows, n, own, total, scratch, scratch_bits):  # type: ignore[no-untyped-def]
    """Scores become probabilities, less one for a row's own class; the class after the last has score 0.

    Says whether a score was too high for its exponential.
    """
    for i in range(n):
        total[i] = 1.0
    for k in range(rows):
        score = scores[k, :n]
        _exponentials(score, n, scratch, scratch_bits)
        for i in range(n):
            total[i] += score[i]
    high = 0
    for i in range(n):
        high += total[i] > 1e303
        total[i] = 1 / total[i]
    for k in range(rows):
        score = scores[k, :n]
        for i in range(n):
            score[i] *= total[i]
    for i in range(n):
        if own[i] < rows:
            scores[own[i], i] -= 1.0
    return high > 0


@compiled(FAST)
def _hinge_slopes(scores, rows, n, own, kept):  # type: ignore[no-untyped-def]
    """Scores become slopes of `max(0, 1 - y score) ** 2`, where y is 1 for a row's own class and -1 elsewhere."""
    for i in range(n):
        if own[i] < rows:
            kept[i] = scores[own[i], i]
    for k in range(rows):
        score = scores[k, :n]
        for i in range(n):
            score[i] = 2 * (1 + score[i]) if score[i] > -1 else 0.0
    for i in range(n):
        if own[i] < rows:
            scores[own[i], i] = -2 * max(0.0, 1 - kept[i])


@compiled(FAST)
def add_gradients(columns, code, packed, which, weights, loss, out):  # type: ignore[no-untyped-def]
    """Add to `out[t]` the gradient of the loss at `weights[t]`, `(k, d)`, over the rows of world `which[t]`.

    `columns` is the data, a line for each column; `code` a row's own class, k for the one without weights. A gradient
    that this cannot give, because a score was too high, is NaN.
    """
    d, n = columns.shape
    rows = weights.shape[1]
    tile, scores = np.zeros((d, BLOCK)), np.zeros((rows + 1, BLOCK))
    total, scratch = np.zeros(BLOCK), np.zeros(BLOCK)
    scratch_bits = scratch.view(np.int64)
    chosen, own = np.zeros(BLOCK + 1, np.uint32), np.zeros(BLOCK, np.int64)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for t in range(len(which)):
            mask = packed[which[t]]
            count = np.int64(0)  # a literal would compile everything that it is handed to twice
            for row in range(start, stop):
                chosen[count] = row
                count += (mask[row >> 3] >> (7 - (row & 7))) & 1
            for j in range(d):
                column, to = columns[j], tile[j]
                for i in range(count):
                    to[i] = column[chosen[i]]
            for i in range(count):
                own[i] = code[chosen[i]]
            _scores(tile, count, weights[t], scores)
            if loss == SOFTMAX:
                if _softmax_slopes(scores, rows, count, own, total, scratch, scratch_bits):
                    out[t] = np.nan
            else:
                _hinge_slopes(scores, rows, count, own, total)
            _add_products(tile, count, scores, out[t])
