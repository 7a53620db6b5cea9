"""The custodian's part of a page: the truth beside the release, who is exposed, and the cloud of worlds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from leakcap.certificates.release import Certificate
from leakcap.ground.arrays import Floats
from leakcap.planning.accuracy import Summary
from leakcap.report.chart import Axis, Chart, captioned, key, linear
from leakcap.report.html import Markup, joined, markup, shortened
from leakcap.report.numbers import bound, data, decimals_for, neat, shown, unbroken
from leakcap.report.release.answers import FIRST_ROWS, MOST_ROWS, left_out
from leakcap.report.release.records import Answer, Custody

__all__ = ["custodian_facts", "plan_facts"]


ERROR_HEADS = (
    *("output", "whole pool", "released", "off by", "expected error"),
    *("due to using a part", "due to noise"),
)
MAX_POINTS = 2_000  # points of one picture
NOISE_SHARE = 0.95  # of the noise lies in the region that is drawn for it
DEVIATIONS_95 = 1.959964  # deviations of a normal number that hold 95 %
MAX_CORRELATION = 0.95  # two outputs that correlate more than this make a poor picture


def custodian_facts(cert: Certificate, answer: Answer, custody: Custody) -> dict[str, Any]:
    """What the templates of the custodian's page ask for beyond what everybody may see."""
    errors = list(_rows(answer, custody))
    return {
        "error_heads": ERROR_HEADS,
        "first_errors": errors[:FIRST_ROWS],
        "more_errors": errors[FIRST_ROWS:],
        "left_out": left_out(answer.names),
        "forecast": custody.forecast,
        "custody_pictures": joined((_exposure_picture(cert, custody), _worlds_picture(cert, answer, custody))),
    }


def plan_facts(summary: Summary) -> dict[str, Any]:
    """The answer on the whole pool and the error to expect in a release of it."""
    rows = []
    for i, name in enumerate(summary.names[:MOST_ROWS]):
        places = decimals_for(float(summary.error[i]))
        numbers = summary.answer[i], summary.error[i], summary.halving[i], summary.noise[i]
        rows.append((shortened(name), *(data(float(x), shown(float(x), places)) for x in numbers)))
    outputs = len(summary.answer)
    note = f"The first {len(rows)} of {outputs:,} outputs." if outputs > len(rows) else ""
    about = ("mean over inputs", "spread and noise", "between inputs", "of noise")
    if not summary.certificate.of_inputs:
        about = ("whole pool", "expected error", "of using a part", "of noise")
    return {
        "error_heads": ("output", *about),
        "errors": rows,
        "left_out": note,
        "forecast": summary.forecast,
        "hints": list(map(unbroken, summary.hints)),
    }


def _rows(answer: Answer, custody: Custody) -> Iterator[tuple[str, ...]]:
    error = custody.error
    for i in range(min(len(answer.names), MOST_ROWS)):
        decimals = decimals_for(float(error[i]))
        pool, value, total = float(custody.whole_pool[i]), float(answer.values[i]), float(error[i])

        def number(x: float, places: int = decimals, expected: float = total) -> Markup:
            return data(x, shown(x, places) if expected > 0 else neat(x, 6))

        if total > 0:
            parts = [f"{100 * (one[i] / total) ** 2:.0f} %" for one in (custody.halving, custody.noise)]
        else:
            parts = ["none", "none"]
        yield shortened(answer.names[i]), number(pool), number(value), number(value - pool), number(total), *parts


def _exposure_picture(cert: Certificate, custody: Custody) -> Markup:
    ordered = np.sort(custody.exposure)[::-1]
    place = np.arange(1, len(ordered) + 1, dtype=np.float64)
    highest = float(ordered[0])
    if len(ordered) > MAX_POINTS:
        kept = np.unique(np.linspace(0, len(ordered) - 1, MAX_POINTS).round().astype(np.intp))
        ordered, place = ordered[kept], place[kept]
    top = max(highest, custody.cap or 0.0, 0.501)
    y = linear("success at “did this person take part?”", 0.5, top + 0.15 * (top - 0.5))
    y = Axis(y.label, y.low, y.high, tuple((v, f"{100 * v:.4g} %") for v, _ in y.ticks if v <= 1))
    x = linear("people in the pool, the most exposed first", 1, max(float(place[-1]), 2.0))
    chart = Chart(x, y)
    chart.area("between", place, np.full(len(place), 0.5), ordered)
    chart.line("bound", place, ordered)
    keys = [("line", "bound", "best attacker against this person, at most"), ("line", "before", "a coin flip: 50 %")]
    chart.line("before", [1, x.high], [0.5, 0.5])
    if custody.cap is not None:
        chart.line("cap", [1, x.high], [custody.cap, custody.cap])
        keys.append(("line", "cap", f"the cap: {100 * custody.cap:g} %"))
    words = unbroken(f"Against the most exposed of {len(custody.exposure):,} people: at most {bound(highest)}.")
    if cert.mode not in ("exact", "individual"):
        words += " In this mode all people share one bound."
    return _kept("Every single person", words, chart.svg("Bound for each person, in falling order."), key(keys))


def _worlds_picture(cert: Certificate, answer: Answer, custody: Custody) -> Markup:
    axes = _telling(custody)
    if not axes:
        return _kept(
            "The answer in every world", "It is the same in all of them: there is nothing that noise must hide."
        )
    picture = _histogram(axes[0], answer, custody) if len(axes) == 1 else _cloud((axes[0], axes[1]), answer, custody)
    words = "Which of these worlds gave the released answer? The noise hides it."
    if cert.mode != "exact":
        words = "The secret world is one more of this kind. The noise hides which."
    return _kept("The answer in every world", words, picture)


def _kept(title: str, words: str, *parts: Markup) -> Markup:
    return captioned(title, words, *parts, markup('<p class="kept">CUSTODIAN ONLY</p>'))


def _telling(custody: Custody) -> list[int]:
    """The first output that varies, and the first other one that does not just follow it."""
    some = custody.outputs[:: max(1, len(custody.outputs) // 16)]
    moved = (some != some[0]).any(axis=0) | (custody.noise_deviations > 0)
    candidates = np.flatnonzero(moved)[:256]
    seen = custody.outputs[:, candidates]
    spread = seen.std(axis=0)
    varying = spread > 1e-12 * np.maximum(np.abs(seen).max(axis=0, initial=0), 1e-300)
    candidates, seen, spread = candidates[varying], seen[:, varying], spread[varying]
    if len(candidates) < 2:
        return [int(i) for i in candidates]
    centred = (seen - seen.mean(axis=0)) / spread
    alike = np.abs(centred[:, 0] @ centred[:, 1:]) / len(seen)
    free = np.flatnonzero(alike <= MAX_CORRELATION)
    return [int(candidates[0]), int(candidates[1 + (free[0] if len(free) else np.argmin(alike))])]


def _cloud(axes: tuple[int, int], answer: Answer, custody: Custody) -> Markup:
    pair = list(axes)
    worlds = _thinned(custody.outputs[:, pair])
    if custody.noise_covariance is None:
        covariance = np.diag(custody.noise_deviations[pair] ** 2)
    else:
        covariance = custody.noise_covariance[np.ix_(pair, pair)]
    released, pool = answer.values[pair], custody.whole_pool[pair]
    ring = released[:, None] + _ring(covariance)
    x, y = (_around(answer.names[j], worlds[:, k], ring[k], pool[k]) for k, j in enumerate(pair))
    chart = Chart(x, y)
    chart.shape("noise", ring[0], ring[1])
    chart.points("world", worlds[:, 0], worlds[:, 1], 2)
    chart.cross("pool", float(pool[0]), float(pool[1]))
    chart.diamond("person", float(released[0]), float(released[1]))
    total = len(custody.outputs)
    words = "answer in one world" + (f" ({len(worlds):,} of {total:,} drawn)" if len(worlds) < total else "")
    return chart.svg("Answers of all worlds along two outputs, with the released one.") + _worlds_key("dot", words)


def _histogram(which: int, answer: Answer, custody: Custody) -> Markup:
    worlds = custody.outputs[:, which]
    released, pool = float(answer.values[which]), float(custody.whole_pool[which])
    reach = DEVIATIONS_95 * float(custody.noise_deviations[which])
    x = _around(answer.names[which], worlds, np.array([released - reach, released + reach]), np.float64(pool))
    heights, edges = np.histogram(worlds, bins=min(40, max(5, len(worlds) // 12)))
    top = float(heights.max())
    chart = Chart(x, linear("worlds with this answer", 0, 1.2 * top))
    ends = np.array([released - reach, released + reach])
    chart.area("noise", ends, np.zeros(2), np.full(2, 1.2 * top))
    chart.area("worlds", np.repeat(edges, 2)[1:-1], np.zeros(2 * len(heights)), np.repeat(heights, 2).astype(float))
    chart.cross("pool", pool, 1.1 * top)
    chart.diamond("person", released, 1.1 * top)
    return chart.svg("How often each answer comes up, with the released one.") + _worlds_key(
        "box", "answers in the worlds"
    )


def _worlds_key(form: str, words: str) -> Markup:
    return key(
        (
            (form, "world" if form == "dot" else "worlds", words),
            ("cross", "pool", "on the whole pool"),
            ("diamond", "person", "released"),
            ("box", "noise", "95 % of the noise"),
        )
    )


def _around(name: str, worlds: Floats, noise: Floats, pool: np.float64) -> Axis:
    """An axis that holds the worlds, the noise and the whole pool."""
    everything = np.concatenate([worlds, noise, [pool] if np.isfinite(pool) else []])
    low, high = everything.min(), everything.max()
    margin = 0.05 * (high - low)
    label = name if len(name) <= 48 else name[:47] + "…"
    return linear(label, float(low - margin), float(high + margin))


def _ring(covariance: Floats) -> Floats:
    """`(2, 73)`: the border of the region that holds 95 % of the noise."""
    variances, directions = np.linalg.eigh(covariance)
    turn = np.linspace(0, 2 * np.pi, 73)
    # Two normal coordinates lie within radius r (in deviations) with probability 1 - exp(-r^2 / 2).
    radius = np.sqrt(np.maximum(variances, 0) * -2 * np.log(1 - NOISE_SHARE))
    return directions @ (radius[:, None] * np.stack([np.cos(turn), np.sin(turn)]))


def _thinned(points: Floats) -> Floats:
    if len(points) <= MAX_POINTS:
        return points
    return points[np.unique(np.linspace(0, len(points) - 1, MAX_POINTS).round().astype(np.intp))]
