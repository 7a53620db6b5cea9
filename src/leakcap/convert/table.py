"""One privacy number in every currency at once, each line with what it assumes: `leakcap explain --table`.

Bounds on an attacker are rounded up, what is enough is rounded down, and what does not follow says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from leakcap.convert import differential_privacy as dp
from leakcap.convert import information
from leakcap.convert.rounding import above, below, exact, percent_up, rounded_down, rounded_up
from leakcap.errors import InputError
from leakcap.ground.proofs import proves

__all__ = ["CURRENCIES", "TableLine", "table_of"]

CURRENCIES = (
    "information",
    "guess about one person",
    "eta",
    "found at 1 % alarms",
    "guess of prior 1 %",
    "name a member",
    "generalisation gap",
    "eps of DP",
    "rho of zCDP",
    "RDP of order 8",
)
ORDER, DELTA, RARE = 8, 1e-5, 0.01
REPLACE = "replace-one neighbours; a fresh random half of the pool takes part"
WHOLE = "for an attacker who knows everything but the secret"
ONE = "one person, named before the release, who takes part with probability 1/2"
LOSS = "fresh data are independent of those used and of the same law; losses from 0 to 1; the secret is all data used"
AVERAGE = "an average over releases bounds no single one"


@dataclass(frozen=True)
class TableLine:
    """One currency: the figure, how it relates to what was given, and what it assumes (or why there is none).

    Attributes:
        currency: one of `CURRENCIES`.
        shown: the figure in words, rounded to the safe side.
        relation: "given", "follows" (a bound), "enough" (keeps what was given) or "none".
        assumes: in words.
        value: the figure; None where there is none.
    """

    currency: str
    shown: str
    relation: str
    assumes: str
    value: float | None = None


def table_of(given: dict[str, Fraction]) -> list[TableLine]:
    """Every currency, in order, for numbers such as `{"mi": Fraction(1, 10)}`.

    Guarantee: "follows" holds for every release of which the number given holds; "enough" keeps it.
    """
    if "mi" in given:
        lines = _from_mi(given["mi"])
    elif "eps" in given:
        lines = _from_eps(given["eps"], given.get("delta", Fraction(0)), given.get("n"))
    elif "rho" in given:
        lines = _from_rho(given["rho"], given.get("n"))
    else:
        if given.get("prior", Fraction(1, 2)) != Fraction(1, 2):
            raise InputError("the table is for guesses at one participation: leave prior out")
        lines = _from_membership(given)
    found = {line.currency: line for line in lines}
    return [found[currency] for currency in CURRENCIES]


def _share(currency: str, success: Any, assumes: str) -> TableLine:
    return TableLine(currency, f"≤ {percent_up(float(success))}", "follows", assumes, value=float(success))


def _none(currency: str, why: str) -> TableLine:
    return TableLine(currency, "none", "none", why)


def _nats(nats: float, assumes: str) -> Iterator[TableLine]:
    """What follows from information about the whole secret, information included."""
    yield TableLine("information", f"≤ {rounded_up(nats)} nats", "follows", assumes, value=nats)
    yield _share("guess of prior 1 %", information.posterior(nats, RARE), f"{assumes}; {WHOLE}")
    gap = float(information.generalisation(nats))
    yield TableLine("generalisation gap", f"≤ {rounded_up(gap)}", "follows", f"{assumes}; {LOSS}", value=gap)


def _about_one(success: float, assumes: str, given: str = "") -> Iterator[TableLine]:
    relation = {name: "given" if name == given else "follows" for name in ("success", "eta")}
    eta = success - 0.5  # exact: the two lie within a factor of two
    yield TableLine("guess about one person", f"≤ {percent_up(success)}", relation["success"], assumes, value=success)
    yield TableLine("eta", f"≤ {rounded_up(eta)}", relation["eta"], assumes, value=eta)


def _from_mi(mi: Fraction) -> Iterator[TableLine]:
    nats, whole = above(mi), f"mutual information with the whole secret, {WHOLE}"
    lines = {line.currency: line for line in _nats(nats, whole)}
    lines["information"] = TableLine("information", f"≤ {exact(mi)} nats", "given", whole, value=nats)
    yield from lines.values()
    yield from _about_one(float(information.membership(nats)), ONE)
    yield _share("found at 1 % alarms", information.true_positive_rate(nats, RARE), ONE)
    yield _share("name a member", information.name_a_member(nats), f"half of the pool takes part; {WHOLE}")
    for currency in ("eps of DP", "rho of zCDP", "RDP of order 8"):
        yield _none(currency, f"{AVERAGE}, nor the worst data")


@proves("comparisons")
def _from_eps(eps: Fraction, delta: Fraction, n: Fraction | None) -> Iterator[TableLine]:
    e, d = above(eps), above(delta)
    pair = f"({exact(eps)}, {exact(delta)})" if delta else exact(eps)
    yield TableLine("eps of DP", pair, "given", "replace-one neighbours", value=e)
    yield from _about_one(float(dp.from_dp(e, d)), f"{ONE}; {REPLACE}")
    yield _share("found at 1 % alarms", min(1.0, (math.exp(min(e, 700.0)) * RARE + d) * (1 + 2.0**-40)), REPLACE)
    yield _none("name a member", "the person is named before the release")
    if delta:
        why = "with probability delta anything may leave, all data included"
        for currency in ("information", "generalisation gap", "guess of prior 1 %", "rho of zCDP", "RDP of order 8"):
            yield _none(currency, why)
        return
    rho = e * e / 2 * (1 + 2.0**-48)
    yield TableLine("rho of zCDP", f"≤ {rounded_up(rho)}", "follows", "the same neighbours", value=rho)
    renyi = min(e, ORDER * rho)
    yield TableLine("RDP of order 8", f"≤ {rounded_up(renyi)}", "follows", "the same neighbours", value=renyi)
    yield from _with_records(
        n, None if n is None else float(dp.dp_mutual_information(e, int(n))), "however they depend"
    )
    yield _one_record(dp.rdp_reconstruction(RARE, e, math.inf))


@proves("comparisons")
def _from_rho(rho: Fraction, n: Fraction | None) -> Iterator[TableLine]:
    r = above(rho)
    yield TableLine("rho of zCDP", exact(rho), "given", "replace-one neighbours", value=r)
    yield from _about_one(float(dp.from_zcdp(r)), f"{ONE}; {REPLACE}")
    eps = (r + 2 * math.sqrt(r * math.log(1 / DELTA))) * (1 + 2.0**-40)
    words = f"with delta {DELTA:g}; the same neighbours. No eps without delta"
    yield TableLine("eps of DP", f"≤ {rounded_up(eps)}", "follows", words, value=eps)
    alarms = min(1.0, (math.exp(min(eps, 700.0)) * RARE + DELTA) * (1 + 2.0**-40))
    yield _share("found at 1 % alarms", alarms, f"by that eps and delta; {REPLACE}")
    yield _none("name a member", "the person is named before the release")
    renyi = ORDER * r
    yield TableLine("RDP of order 8", f"≤ {rounded_up(renyi)}", "follows", "the same neighbours", value=renyi)
    independent = "records independent of each other, which a random half is not"
    yield from _with_records(n, None if n is None else float(dp.zcdp_mutual_information(r, int(n))), independent)
    yield _one_record(dp.rdp_reconstruction(RARE, renyi, ORDER))


def _with_records(n: Fraction | None, nats: float | None, assumes: str) -> Iterator[TableLine]:
    if nats is None:
        for currency in ("information", "generalisation gap"):
            yield _none(currency, "it grows with the number of records: add n=1000, for example")
        return
    for line in _nats(nats, f"{int(n or 0):,} records, {assumes}"):
        if line.currency != "guess of prior 1 %":
            yield line


def _one_record(success: Any) -> TableLine:
    return _share("guess of prior 1 %", success, "about one record, for somebody who knows all others")


@proves("comparisons")
def _from_membership(given: dict[str, Fraction]) -> Iterator[TableLine]:
    success = given["success"] if "success" in given else Fraction(1, 2) + given["eta"]
    yield from _about_one(above(success), ONE, "success" if "success" in given else "eta")
    yield _share("found at 1 % alarms", min(1.0, above(Fraction(1, 100) + 2 * success - 1)), ONE)
    nats = float(information.mutual_information(below(success), 0.5))
    yield TableLine(
        "information", f"≤ {rounded_down(nats)} nats", "enough", f"with the whole secret, {WHOLE}", value=nats
    )
    eps = _least(below(success), dp.from_dp, math.log(success / (1 - success)))
    yield TableLine("eps of DP", f"≤ {rounded_down(eps)}", "enough", f"pure; {REPLACE}", value=eps)
    gap = float(2 * success - 1)
    rho = _least(below(success), dp.from_zcdp, gap * math.log(success / (1 - success)))
    yield TableLine("rho of zCDP", f"≤ {rounded_down(rho)}", "enough", REPLACE, value=rho)
    yield _none("RDP of order 8", "one order bounds reconstructions, and leakcap derives no membership from it")
    why = "one participation may be hard to guess while the release tells a lot about all of them together"
    for currency in ("guess of prior 1 %", "name a member", "generalisation gap"):
        yield _none(currency, why)


def _least(success: float, bound: Any, start: float) -> float:
    """The number given, or one just below it that was checked to keep the success; 0 if none does."""
    near = (start * (1 - slack) for slack in (0.0, 1e-15, 1e-14, 1e-12, 1e-9, 1e-6))
    return next((one for one in near if float(bound(one)) <= success), 0.0)
