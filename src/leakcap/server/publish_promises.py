"""The promises of a release side by side: as tables, and as a curve along the caps. For the custodian alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scipy import special

from leakcap.convert.differential_privacy import gaussian_epsilon
from leakcap.planning.comparison import share
from leakcap.report.chart import Chart, captioned, linear
from leakcap.report.html import Markup
from leakcap.report.numbers import bound
from leakcap.server.publish_orders import PROMISES

__all__ = ["PromiseRow", "curve_of", "in_words", "left_out", "promises_of"]

DELTA = 1e-5
NOT_COMPARED = "Not compared: "
OWN = {"Laplace": "Laplace noise", "Gaussian": "(ε, δ) by normal noise", "zCDP": "zCDP by normal noise"}


@dataclass(frozen=True)
class PromiseRow:
    """One promise at the custodian's cap."""

    name: str
    words: str
    figures: tuple[str, str, str]
    hides: str
    offered: bool


def promises_of(found: Mapping[str, Any], success: float) -> tuple[list[PromiseRow], list[PromiseRow]]:
    """Ours, and what plain differential privacy would cost."""
    rows = [_row(one, found["of"], success) for one in found["promises"]]
    return [one for one in rows if one.name in PROMISES], [one for one in rows if one.name not in PROMISES]


def in_words(found: Mapping[str, Any], success: float) -> str:
    """What follows, in a sentence."""
    ours = [one for one in found["promises"] if one["name"] in PROMISES]
    best = (min if found["of"] == "error" else max)(ours, key=lambda one: one["total"])
    figure = _figure(best["total"], found["of"])
    return (
        f"At {bound(success)} right guesses at most, “{PROMISES[best['name']]}” costs least: "
        f"{'an error of ' if found['of'] == 'error' else found['of'] + ' '}{figure}."
    )


def left_out(found: Mapping[str, Any]) -> list[str]:
    """Which promises are not compared and why, by the words that the page has for them."""
    named = {f"{NOT_COMPARED}{name}: ": f"{NOT_COMPARED}“{words}”: " for name, words in PROMISES.items()}
    return [
        next((words + why.removeprefix(name) for name, words in named.items() if why.startswith(name)), why)
        for why in found["not_compared"]
    ]


def curve_of(found: Mapping[str, Any], success: float) -> Markup:
    """What one promise costs along the caps, and where the others lie at this one."""
    caps, values = zip(*found["curve"], strict=True)
    others = [one["total"] for one in found["promises"] if one["name"] != found["own"]]
    low, high = _ends(found, values, others)
    name = "error, % of the answer" if found["of"] == "error" else f"{found['of']}, %"
    chart = Chart(linear("right guesses at most, %", 50.0, 90.0), linear(name, 100 * low, 100 * high))
    chart.line("bound", [100 * one for one in caps], [100 * min(max(one, low), high) for one in values])
    if found["of"] != "error":
        chart.line("before", [50.0, 90.0], [100 * max(found["nothing"], low)] * 2)
    for total in others:
        if low <= total <= high:
            chart.cross("pool", 100 * success, 100 * total)
    own = dict(map(tuple, found["curve"]))[success]
    chart.diamond("person", 100 * success, 100 * min(max(own, low), high))
    words = f"The line: “{PROMISES[found['own']]}” at other caps. The diamond: at yours. Crosses: the others at yours."
    words += " The dots: a model that knows nothing." if found["of"] != "error" else ""
    label = f"Curve of the {found['of']} against the cap; at {bound(success)} it is {_figure(own, found['of'])}."
    return captioned("What a cap costs", words, chart.svg(label))


def _ends(found: Mapping[str, Any], values: Any, others: list[float]) -> tuple[float, float]:
    if found["of"] != "error":
        low = min([*values, *others, found["nothing"]])
        return max(low - 0.03, -1.0), min(1.0, max([*values, *others]) + 0.03)
    near = [one for one in others if one < 4 * max(values)]
    return 0.0, 1.15 * max([min(max(values), 4 * min(values)), *near])


def _row(one: Mapping[str, Any], of: str, success: float) -> PromiseRow:
    name, hides = one["name"], one["hides"]
    if name == "pool":
        epsilon = gaussian_epsilon(2 * float(special.ndtri(success)), DELTA)
        hides += f"; as differential privacy, ε is {epsilon:.2g} at a δ of {DELTA:.5f}"
    spread = share(one["noise"]) if of == "error" else f"± {100 * one['noise']:.2g} %"
    figures = (_figure(one["total"], of), _figure(one["before"], of), spread)
    return PromiseRow(
        name=name,
        words=PROMISES.get(name) or OWN.get(name, name),
        figures=figures,
        hides=hides,
        offered=one["offered"],
    )


def _figure(value: float, of: str) -> str:
    return share(value) if of == "error" else f"{100 * value:.3g} %"
