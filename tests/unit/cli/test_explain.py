"""`leakcap explain`: every number is on the safe side of an independent one, and no comparison poses as a promise."""

from __future__ import annotations

import io
import json
import re
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import leakcap as lc
from leakcap.cli.explain import read, run, show
from leakcap.convert.explain import SECTIONS, Row, rows
from leakcap.convert.rounding import percent_up

mp.mp.dps = 30


def explain(*given: str) -> dict[tuple[str, str], Row]:
    return {(row.section, row.name): row for row in rows(read(given))}


def shown(row: Row) -> float:
    """The number as a reader sees it."""
    (text,) = re.findall(r"[\d.]+(?:e[-+]?\d+)?", row.shown)
    return float(text) / (100 if "%" in row.shown else 1)


def kl(a: Any, p: Any) -> Any:
    a, p = mp.mpf(a), mp.mpf(p)
    return a * mp.log(a / p) + ((1 - a) * mp.log((1 - a) / (1 - p)) if a < 1 else 0)


def root(mi: Any, p: Any) -> Any:
    """The success at which the divergence reaches `mi`, by bisection in 30 digits."""
    low, high = mp.mpf(p), mp.mpf(1)
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if kl(middle, p) < mi else (low, middle)
    return high


# Published values


@pytest.mark.parametrize(
    ("mi", "half", "rare"),
    [
        ("1/128", 56.241, 2.477),
        ("1/64", 58.815, 3.213),
        ("1/16", 67.490, None),
        ("1/4", 83.789, None),
        ("1/2", 95.181, None),
    ],
)
def test_table_1_of_pac_private_algorithms(mi: str, half: float, rare: float | None) -> None:
    """The paper rounds to the nearest; here everything is rounded up."""
    found = explain(f"mi={mi}")
    assert 0 <= shown(found["follows", "success, prior 50 %"]) - half / 100 < 2e-4
    if rare:
        assert 0 <= shown(found["follows", "success, prior 1 %"]) - rare / 100 < 2e-4


@pytest.mark.parametrize(("mi", "percent"), [("1", 35.730), ("2", 58.104), ("4", 92.583)])
def test_oracles_at_one_per_cent_of_the_shared_mathematics(mi: str, percent: float) -> None:
    assert shown(explain(f"mi={mi}")["follows", "success, prior 1 %"]) == pytest.approx(percent / 100, abs=1.01e-4)


@pytest.mark.parametrize(("eps", "percent"), [("0.36", 58.815), ("2.98", 95.181)])
def test_dp_examples_after_table_1_of_pac_private_algorithms(eps: str, percent: float) -> None:
    """'(0.36, 0)-DP corresponds to 58.815 %': the paper gives eps to two places, so both ways are compared to that."""
    assert shown(explain(f"eps={eps}")["follows", "membership success"]) == pytest.approx(percent / 100, abs=1.5e-3)
    assert shown(explain(f"success={percent}%")["enough", "eps"]) == pytest.approx(float(eps), abs=5e-3)


# Independent arithmetic: never below the truth, and hardly above


@settings(max_examples=25)
@given(st.floats(1e-6, 0.6), st.floats(1e-4, 0.9))
def test_success_from_information_is_the_root_rounded_up(mi: float, prior: float) -> None:
    found = explain(f"mi={mi!r}", f"prior={prior!r}")
    row = next(row for (_, name), row in found.items() if name.startswith("success"))
    truth = root(mi, prior)
    assert truth <= row.value
    assert row.value - truth < 1e-9
    assert truth - 1e-13 <= shown(row) <= max(truth * 1.011, truth + 1.1e-4)


@settings(max_examples=25)
@given(st.decimals("0.5001", "0.999", places=4))
def test_budgets_that_are_called_enough_are_enough(success: Any) -> None:
    found = explain(f"success={success}")
    nats, eps = found["enough", "mi"], found["enough", "eps"]
    assert root(nats.value, 0.5) <= mp.mpf(str(success)) * (1 + mp.mpf(10) ** -12)
    assert root(shown(nats), 0.5) <= mp.mpf(str(success)) < root(shown(nats) * 1.002, 0.5)
    assert 1 / (1 + mp.exp(-mp.mpf(shown(eps)))) <= mp.mpf(str(success)) < 1 / (1 + mp.exp(-mp.mpf(shown(eps)) * 1.002))
    (half,) = re.findall(r"half of it, ([\d.e-]+)\)", eps.sentence)
    assert 1 / (1 + mp.exp(-2 * mp.mpf(half))) <= mp.mpf(str(success)), "an add/remove swap is two steps"


@pytest.mark.parametrize(("success", "prior"), [("0.2", "0.01"), ("0.5", "0.3"), ("0.99", "0.98"), ("1e-5", "1e-6")])
def test_budgets_at_other_priors_are_enough(success: str, prior: str) -> None:
    found = explain(f"success={success}", f"prior={prior}")
    s, p = mp.mpf(success), mp.mpf(prior)
    assert root(shown(found["enough", "mi"]), p) <= s < root(shown(found["enough", "mi"]) * 1.002, p)
    assert p * mp.exp(shown(found["enough", "eps, for one record"])) <= s
    assert shown(found["then", "membership success"]) >= root(shown(found["enough", "mi"]), mp.mpf("0.5"))


@pytest.mark.parametrize("eps", ["0.01", "0.5", "1", "3"])
@pytest.mark.parametrize("delta", ["0", "1e-6", "0.01"])
def test_dp_gives_the_best_test_that_dp_allows(eps: str, delta: str) -> None:
    """The corners of the region of (eps, delta)-DP tests (Kairouz, Oh and Viswanath), in 30 digits."""
    found = explain(f"eps={eps}", f"delta={delta}", "prior=0.02")
    e, d = mp.exp(mp.mpf(eps)), mp.mpf(delta)

    def near_above(row: Row, truth: Any) -> None:
        assert truth <= row.value <= truth + mp.mpf(10) ** -11
        assert truth - 1e-13 <= shown(row) <= max(truth * 1.011, truth + 1.1e-4)

    near_above(found["follows", "membership success"], 1 - (1 - d) / (1 + e))
    near_above(found["follows", "if add/remove DP"], min(mp.mpf(1), 1 - (1 - min(mp.mpf(1), (1 + e) * d)) / (1 + e**2)))
    for name, f in (("1 %", mp.mpf("0.01")), ("0.1 %", mp.mpf("0.001"))):
        near_above(found["follows", f"found at {name} alarms"], min(e * f + d, 1 - (1 - f - d) / e))
    if d == 0:
        q = mp.mpf("0.02")
        near_above(found["follows", "claims, prior 2 %"], q * e / (1 - q + q * e))
        near_above(found["follows", "one record, prior 2 %"], min(mp.mpf(1), q * e))
    else:
        assert not any("claims" in name or "record" in name for _, name in found)


def test_dp_information_is_that_of_the_proof_page() -> None:
    row = explain("eps=0.01", "n=100")["follows", "mi"]
    k = 1 / (1 - mp.exp(-mp.mpf(1)))
    assert k - 1 - mp.log(k) <= row.value
    assert row.shown == "≤ 0.1234 nats"
    assert explain("eps=0.01")["none", "mi"].shown == "needs n"
    assert ("follows", "mi") not in explain("eps=0.01", "delta=1e-6", "n=100")


def test_a_success_bounds_every_test_of_membership() -> None:
    """All pairs of false and true positives whose success is 55 %: none is above what is said, and one attains it."""
    found = explain("success=0.55")
    f = np.linspace(0, 0.9, 901)
    t = np.minimum(1, f + 0.1)  # (1 + t - f)/2 = 0.55
    for alarms in (0.01, 0.001):
        best = t[np.argmin(abs(f - alarms))]
        assert shown(found["follows", f"found at {alarms * 100:g} % alarms"]) == pytest.approx(best)
    often = (t + f) / 2 >= 0.1 - 1e-12
    assert shown(found["follows", "claims, 10 % of cases"]) == pytest.approx((t / (t + f))[often].max())


def test_eta_and_success_are_one_promise_in_two_words() -> None:
    success, eta = explain("success=0.55"), explain("eta=0.05")
    for name in ("eta", "membership success", "found at 1 % alarms", "mi", "eps"):
        found = [[row.value for (_, own), row in table.items() if own == name] for table in (success, eta)]
        assert found[0] == found[1]
    assert success["follows", "eta"].value == 0.05
    assert eta["follows", "membership success"].shown == "≤ 55 %"


# What follows, what is enough, what is compared


def test_information_and_success_never_promise_an_eps() -> None:
    for given_one in ("mi=0.05", "success=0.55", "eta=0.05"):
        found = explain(given_one)
        assert found["none", "eps"].value is None
        assert not any(section in ("follows", "then") and "eps" in name for section, name in found)
    assert "about" in explain("mi=0.05")["comparison", "eps of equal success"].shown
    assert "about" in explain("eps=1")["comparison", "mi of equal success"].shown


def test_a_success_never_promises_information_nor_naming() -> None:
    found = explain("success=0.55", "prior=0.5")
    assert found["none", "mi"].value is None
    assert found["none", "name a member"].value is None
    assert ("follows", "success, prior 1 %") not in found, "only where it is kept by information"
    assert ("then", "success, prior 1 %") in found


def test_dp_rows_say_which_neighbours_and_which_sampling() -> None:
    assert "replace-one" in explain("eps=1")["given", "eps"].sentence
    assert "random half" in explain("eps=1")["given", "eps"].sentence
    assert "replace-one" in explain("mi=1/8")["comparison", "eps of equal success"].sentence
    assert "replace-one" in explain("success=0.2", "prior=0.1")["enough", "eps, for one record"].sentence


WORDS = (
    ("mi=0.05",),
    ("mi=0",),
    ("mi=100",),
    ("success=0.55",),
    ("success=99.9%",),
    ("success=20%", "prior=1%"),
    ("eta=0.05", "prior=0.01"),
    ("eps=1", "delta=1e-6", "prior=0.5"),
    ("eps=0",),
    ("eps=900", "n=10"),
    ("eps=0.01", "n=1000000", "prior=1e-9"),
)


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_row_is_one_plain_sentence(words: tuple[str, ...]) -> None:
    for row in rows(read(words)):
        assert row.section in SECTIONS
        assert row.sentence[0].isupper() and row.sentence.endswith(".") and len(row.sentence) > 20
        assert not re.search(r"\. [A-Z]", row.sentence)
        assert (row.value is None) == (row.section == "none")
        assert row.value is None or (row.value >= 0 and np.isfinite(row.value))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_the_table_fits_the_terminal_and_cuts_nothing(words: tuple[str, ...], width: int) -> None:
    found = rows(read(words))
    console = Console(width=width, record=True, file=io.StringIO())
    show(found, console)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    flat = re.sub(r"\s+", "", text)
    for row in found:
        assert row.shown.replace(" ", "") in flat
        assert all(word in text for word in row.sentence.split())
    assert "…" not in text
    assert not re.search(r"^\s*%", text, re.MULTILINE)


def test_json_is_one_object_with_numbers_and_sentences(capsys: Any) -> None:
    run(["eta=5%", "prior=1/100"], json=True)
    record = json.loads(capsys.readouterr().out)
    assert record["given"] == {"eta": 0.05, "prior": 0.01}
    assert {row["relation"] for row in record["rows"]} == {"given", "follows", "enough", "then", "none"}
    assert all(set(row) == {"relation", "name", "value", "shown", "says"} for row in record["rows"])


def test_quiet_prints_bare_lines(capsys: Any) -> None:
    run(["mi=0.05"], quiet=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "given\tmi\t≤ 0.05 nats"
    assert all(line.count("\t") == 2 for line in lines)


@given(st.fractions(0, 1))
def test_per_cents_are_rounded_up(share: Fraction) -> None:
    text = percent_up(share)
    seen = Fraction(text.removesuffix(" %")) / 100
    assert (
        share - Fraction(1, 10**12)
        <= seen
        <= min(Fraction(1), max(share + Fraction(1, 10**4), share * Fraction(102, 100)))
    )


BAD: dict[tuple[str, ...], str] = {
    (): "exactly one of",
    ("prior=0.5",): "exactly one of",
    ("mi=1", "eps=1"): "mi and eps are different currencies",
    ("eta=0.05", "success=0.55"): "eta and success",
    ("mi=1", "mi=1"): "twice",
    ("mi=1", "nats=1"): "twice",
    ("mj=1",): "did you mean mi",
    ("eppsilon=1",): "did you mean eps",
    ("mi",): "such as mi=0.05",
    ("mi=",): "must be a number",
    ("mi=much",): "must be a number",
    ("mi=nan",): "must be a number",
    ("mi=inf",): "must be a number",
    ("mi=1/0",): "must be a number",
    ("mi=1e999999999",): "must be a number",
    ("mi=-1",): "0 or a number",
    ("eps=-1",): "0 or a number",
    ("eps=1e9",): "0 or a number",
    ("eta=0",): "between 0 and 0.5",
    ("eta=0.5",): "between 0 and 0.5",
    ("success=1",): "between 0 and 1",
    ("success=55",): "55%",
    ("success=0.4",): "above the prior, 50 %",
    ("success=0.5",): "above the prior",
    ("success=0.005", "prior=0.01"): "above the prior, 1 %",
    ("mi=1", "prior=0"): "between 0 and 1",
    ("mi=1", "prior=1"): "between 0 and 1",
    ("mi=1", "delta=0.1"): "belongs to eps",
    ("success=0.6", "n=10"): "belongs to eps",
    ("eps=1", "delta=1"): "below 1",
    ("eps=1", "n=0"): "whole number",
    ("eps=1", "n=2.5"): "whole number",
}


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_what_cannot_be_explained_is_refused_with_what_to_do(words: tuple[str, ...], capsys: Any) -> None:
    with pytest.raises(lc.InputError, match=BAD[words]):
        run(words)
    assert capsys.readouterr().out == ""
