"""Promises side by side: total errors as a picture, and the table; a page, or a part of a notebook.

What is shown comes from the data without noise: it is the custodian's.
"""

from __future__ import annotations

import math
from typing import Any

from leakcap.planning.comparison import Comparison, share
from leakcap.report.chart import Axis, Chart, captioned, key
from leakcap.report.html import Markup, render
from leakcap.report.numbers import bound, data, neat
from leakcap.version import __version__

__all__ = ["comparison_fragment", "comparison_page"]

LEAST = 1e-9  # relative errors below are rounding
STEPS = (1.0, 2.0, 5.0)
MOST_ROWS = 200  # outputs of the table
MARKS = (
    ("diamond", "person", "total error"),
    ("dot", "bound-point", "of it noise"),
    ("cross", "pool", "of it before noise: a part of the pool, cut values"),
)


def comparison_page(made: Comparison) -> str:
    """The custodian's document: picture and figures."""
    return render("promises_page.html", version=__version__, **_facts(made))


def comparison_fragment(made: Comparison) -> str:
    """The same as a part of a notebook."""
    return render("promises_fragment.html", **_facts(made))


def _facts(made: Comparison) -> dict[str, Any]:
    rows = [
        (
            one.name + (" (this plan)" if one.name == made.own else ""),
            data(one.total, share(one.total)),
            share(made.relative(one.before_noise)),
            share(made.relative(one.noise)),
            f"{neat(one.seconds, 2)} s",
            one.hides,
            one.how,
        )
        for one in made.promises
    ]
    outputs = [
        (
            made.names[i],
            data(float(made.answer[i]), neat(float(made.answer[i]))),
            *(data(float(one.error[i]), neat(float(one.error[i]), 3)) for one in made.promises),
        )
        for i in range(min(len(made.answer), MOST_ROWS))
    ]
    words = "Total error on the whole pool's answer, relative to its size; the first row is the first choice."
    left_out = len(made.answer) - len(outputs)
    return {
        "success": bound(made.success),
        "picture": captioned("The same success, other promises", words, _chart(made), key(MARKS)),
        "heads": ("promise", "total error", "before noise", "noise", "time", "hides", "made with"),
        "rows": rows,
        "output_heads": ("output", "whole pool", *(f"error: {one.name}" for one in made.promises)),
        "outputs": outputs if len(made.answer) > 1 else [],
        "more": f"... and {left_out:,} more outputs" if left_out else "",
        "sentence": made.sentence,
        "reading": made.reading.removeprefix("* what this plan promises. "),  # the row's own name says it here
        "left_out": made.not_compared,
    }


def _chart(made: Comparison) -> Markup:
    """One line for each promise, its errors along a logarithmic axis."""
    errors = [(one.total, made.relative(one.noise), made.relative(one.before_noise)) for one in made.promises]
    seen = [error for line in errors for error in line if error > LEAST] or [1.0]
    lines = len(errors)
    y = Axis("promise", 0.5, lines + 0.5, tuple((lines - i, one.name) for i, one in enumerate(made.promises)))
    chart = Chart(_axis(min(seen) / 1.5, max(seen) * 1.5), y)
    for i, (total, noise, before) in enumerate(errors):
        if noise > LEAST:
            chart.points("bound-point", noise, lines - i, 4.2)
        if before > LEAST:
            chart.cross("pool", before, lines - i)
        if total > LEAST:
            chart.diamond("person", total, lines - i)
    told = ", ".join(f"{one.name} {share(one.total)}" for one in made.promises)
    return chart.svg(f"Total errors at the same success: {told}.")


def _axis(low: float, high: float) -> Axis:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [step * 10.0**power for power in powers for step in STEPS]
    inside = [mark for mark in marks if low <= mark <= high]
    if len(inside) > 6:
        inside = [mark for mark in inside if abs(math.log10(mark) - round(math.log10(mark))) < 1e-9]
    inside = inside[:: max(1, math.ceil(len(inside) / 6))]
    return Axis("error, relative", low, high, tuple((mark, f"{100 * mark:.6g} %") for mark in inside), log=True)
