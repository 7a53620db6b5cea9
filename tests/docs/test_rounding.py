"""Certified figures are upper bounds: pages and texts never print one rounded to the nearest."""

from __future__ import annotations

import re
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from leakcap import convert
from leakcap.certificates.text import percent, rounded_up
from leakcap.report.numbers import at_most, bound
from tests.docs.pages import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "examples").glob("*.py")])
SOURCES = sorted((ROOT / "src" / "leakcap").rglob("*.py"))
FIGURE = (
    r"(?:membership_success|name_a_member_success|guess_success|\.certified|true_positive_rate\(|posterior\(|given\()"
)
NEAREST = re.compile(rf"\{{[^{{}}]*{FIGURE}[^{{}}]*:[^{{}}:]*[%efg]\}}|round\([^()]*certificate[^()]*{FIGURE}")
UP = re.compile(r"rounded_up\(|percent_up\(|percent\(|at_most\(")
# This is the page that warns of it.
WARNING = '`f"{certificate.membership_success:.2%}"` may print less'


def nearest_in(text: str) -> list[str]:
    """Places that print a certified figure by Python's own rounding."""
    found = (match[0] for match in NEAREST.finditer(text.replace(WARNING, "")))
    return [one for one in found if not UP.search(one)]


def test_no_certified_figure_is_rounded_to_the_nearest() -> None:
    found = {str(path.relative_to(ROOT)): nearest_in(path.read_text()) for path in [*PAGES, *SOURCES]}
    assert {path: places for path, places in found.items() if places} == {}


def test_a_figure_that_is_rounded_to_the_nearest_is_seen() -> None:
    """The twin: the first page as it was, and others."""
    for line in (
        'print(f"{release.certificate.membership_success:.2%}", f"{certificate.true_positive_rate(0.01):.2%}")',
        'f"{100 * one.certified:6.1f} %"',
        "round(certificate.membership_success, 3)",
    ):
        assert nearest_in(line)
    assert not nearest_in('f"{rounded_up(one.certified, 4):.4f}"')


@given(st.floats(1e-12, 1.0))
def test_what_is_printed_is_not_below_the_figure(figure: float) -> None:
    """But for a billionth of the last place: figures have been rounded up before."""
    for shown, scale in (
        (convert.percent_up(figure).rstrip(" %"), 100),
        (percent(figure).rstrip(" %"), 100),
        (bound(figure).rstrip(" %"), 100),
        (str(rounded_up(figure, 4)), 1),
        (at_most(figure), 1),
    ):
        if "\u00d7" not in shown:  # powers of ten are for people alone
            last = Fraction(1, 10 ** len(shown.partition(".")[2]))
            assert Fraction(shown) >= Fraction(figure) * scale - last * Fraction(2, 10**9)


def test_the_readmes_table_repeats_what_its_example_printed() -> None:
    page = (ROOT / "README.md").read_text()
    printed = re.search(r"dtype: float64\n([\d.]+ %)\n([\d.]+ %)\n```", page)
    assert printed is not None
    assert f"| did this person, named beforehand, take part? | 50 % | at most {printed[1]} |" in page
    assert f"| recognise a participant, at 1 % false alarms | 1 % | at most {printed[2]} |" in page
