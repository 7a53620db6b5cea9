"""What readers meet: few words first, all colours legible, everything reachable by the keyboard and on paper."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import leakcap as lc
from leakcap.certificates.release import Certificate
from leakcap.custody.ledger.operations import LedgerFindings
from leakcap.report.html import style
from leakcap.report.ledger.page import ledger_page
from leakcap.report.release.page import Answer, custodian_page, public_page
from leakcap.sessions.overview import UncountedRelease
from tests.unit.report.seen import all_words, visible_words
from tests.unit.report.test_audit_page import REPORTS
from tests.unit.report.test_ledger_page import a_ledger, an_account
from tests.unit.report.test_page import a_custody, words

FIRST_PAGE = 350  # words of a certificate that are seen before anything is opened
SHEETS = sorted(Path(str(files("leakcap.report"))).rglob("*.css"))
ROWS = np.random.default_rng(4).normal(40, 9, size=(200, 2))
KINDS: dict[str, Callable[[], Certificate]] = {
    "worlds": lambda: lc.plan(lc.stats.mean, ROWS, cap=0.6, worlds=64, draws=1024, design="worlds").certificate,
    "bits": lambda: lc.plan(lc.stats.mean, ROWS, cap=0.6, design="bits").certificate,
    "pool": lambda: lc.plan(lc.stats.mean, ROWS, cap=lc.pool_membership(0.6), bounds=(0, 100)).certificate,
    "confidence": lambda: lc.plan(lc.stats.mean, ROWS, cap=0.75, mode="confidence", worlds=64).certificate,
    "individual": lambda: lc.plan(lc.stats.mean, ROWS, cap=0.75, mode="individual", worlds=64).certificate,
    "simulation": lambda: lc.plan(lc.stats.mean, ROWS, cap=0.6, worlds=64, draws=1024, seed=1).certificate,
}


@cache
def certificate(kind: str) -> Certificate:
    return KINDS[kind]()


def an_answer(rows: int, **more: object) -> Answer:
    values = np.linspace(100, 900, rows)
    names = tuple(f"group = {i}, age = {10 * i}" for i in range(rows))
    answer = Answer("Means of age and days by group", names, values, values - 40, values + 40)
    return replace(answer, issuer="Statistics office", data_set="patients of 2025", date="2026-01-31", **more)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 6, 30, 1000])
@pytest.mark.parametrize("signed_with", ["", "f177c2a6caab816403537f28e0a20490"])
def test_a_certificate_shows_no_more_than_a_page_of_words_before_anything_is_opened(
    kind: str, rows: int, signed_with: str
) -> None:
    page = public_page(certificate(kind), an_answer(rows), signed_with)
    assert len(visible_words(page)) <= FIRST_PAGE
    assert len(all_words(page)) > 2 * FIRST_PAGE, "nothing was thrown away"


def test_the_count_of_words_counts_what_is_seen() -> None:
    page = (
        "<html><head><title>no</title><style>no{}</style></head><body><p>one two <b>three</b> … 4 %</p>"
        "<details><summary>five</summary><p>no no<br>no</p><details><summary>no</summary>no</details></details>"
        "<details open><summary>six</summary>seven</details><svg><line/><text>eight</text></svg></body></html>"
    )
    assert visible_words(page) == ["one", "two", "three", "4", "five", "six", "seven", "eight"]
    assert len(all_words(page)) == 13


@pytest.mark.parametrize("kind", KINDS)
def test_the_promise_the_answer_and_what_to_do_are_seen_before_the_small_print(kind: str) -> None:
    cert = certificate(kind)
    page = public_page(cert, an_answer(8))
    first = " ".join(visible_words(page))
    assert page.index('class="card compare"') < page.index('id="answer"') < page.index("<details")
    for told in ("Where the promise ends", "What to do next", "anybody can write an unsigned page"):
        assert told in first
    assert cert.assumptions[0].split(":")[0] not in first and cert.assumptions[0] in words(page)


@pytest.mark.parametrize("rows", [1, 6, 30, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_the_custodians_page_shows_no_more_than_a_page_of_words_before_anything_is_opened(kind: str, rows: int) -> None:
    answer = an_answer(rows)
    page = custodian_page(certificate(kind), answer, a_custody(rows, covariance=rows < 1000))
    seen = " ".join(visible_words(page))
    assert len(visible_words(page)) <= FIRST_PAGE
    assert len(all_words(page)) > 2 * FIRST_PAGE, "nothing was thrown away"
    for first in ("CUSTODIAN ONLY", "against the whole pool", "group 0, age 0", "Every single person"):
        assert first in seen
    everybody = words(public_page(certificate(kind), answer)).partition("unsigned")[2]
    assert everybody in words(page), "what everybody may see is there, folded"


@pytest.mark.parametrize("accounts", [1, 2])
def test_the_page_of_a_ledger_shows_no_more_than_a_page_of_words_before_anything_is_opened(accounts: int) -> None:
    asked = an_account().answers * 60
    besides = (UncountedRelease("2026-01-05T00:00:00+00:00", "Mean of cost"),)
    page = ledger_page(a_ledger(*[replace(an_account(uncounted=besides), answers=asked)] * accounts))
    seen = " ".join(visible_words(page))
    assert len(visible_words(page)) <= FIRST_PAGE < len(all_words(page))
    for first in ("NOT EVERYTHING IS COUNTED", "Mean of cost", "at most 64", "Is the ledger whole? Yes"):
        assert first in seen, first
    broken = ledger_page(a_ledger(findings=LedgerFindings(1, 2, ("'clinic': damaged",))))
    assert "THE LEDGER IS NOT WHOLE" in broken and "'clinic': damaged" in " ".join(visible_words(broken))


def test_no_option_of_a_command_is_broken_in_two() -> None:
    page = public_page(certificate("bits"), an_answer(2), "f177c2a6")
    typed = re.findall(r"<code>.*?</code>", page)
    whole = '<span class="whole">leakcap check</span> <span class="whole">--public certificate.json</span>'
    assert len(typed) == 2 and all(whole in command for command in typed)
    assert "--" not in re.sub(r'<span class="whole">[^<]*</span>|<style>.*?</style>', "", page, flags=re.DOTALL)
    assert ".leakcap .whole{white-space:nowrap}" in style("page.css")
    assert "leakcap check --public certificate.json --signer KEY" in words(page), "it can be copied"


def test_a_release_shows_the_labels_of_its_outputs_and_what_could_be_misread() -> None:
    labels = {"age": "Mean age (years)", "people": "People seen"}
    plan = lc.plan(
        lambda x: {"age": x[:, 0].mean(), "people": float(len(x))},
        *(ROWS,),
        cap=0.6,
        worlds=64,
        draws=1024,
        seed=1,
        outputs=labels,
    )
    release = plan.release()
    page = release.to_html(allow_simulation=True)
    for label in release.labels:
        assert label in words(page)
    assert "Mean age (years)" in " ".join(visible_words(page))
    assert release.notes and all(f"{note}." in words(page) for note in release.notes)


def test_long_ends_of_a_scale_stand_in_two_lines() -> None:
    values = np.array([56.1, 1.234e6])
    answer = Answer("Two scales", ("age", "cost"), values, 0.98 * values, 1.02 * values)
    bars = re.findall(r'<svg class="(bar own[^"]*)".*?</svg>', public_page(certificate("bits"), answer))
    assert bars == ["bar own", "bar own tall"]


@pytest.mark.parametrize("name", REPORTS)
def test_an_audit_shows_no_more_than_a_page_of_words_before_anything_is_opened(name: str) -> None:
    assert len(visible_words(REPORTS[name].to_html())) <= FIRST_PAGE


def test_a_count_of_a_half_is_not_read_as_one_of_the_whole() -> None:
    half = "counts and sums are of that half, unless scaled up"
    whole = "of whom a secret half was used."
    shown = {kind: words(public_page(certificate(kind), an_answer(2))) for kind in ("worlds", "bits", "pool")}
    assert half in shown["worlds"] and whole not in shown["worlds"]
    assert whole in shown["bits"] and half not in shown["bits"]
    assert "They are about everybody in the data." in shown["pool"] and half not in shown["pool"]
    scaled = words(public_page(certificate("worlds"), an_answer(2, scaled=True)))
    assert whole in scaled and half not in scaled


def test_a_cell_that_leaves_exactly_says_what_that_means() -> None:
    answer = Answer(
        "People by ward", ("A", "D"), np.array([310.0, 0.0]), np.array([290.0, 0.0]), np.array([330.0, 0.0])
    )
    note = "nobody in the data is there."
    assert note in " ".join(visible_words(public_page(certificate("bits"), answer)))
    assert note not in words(public_page(certificate("bits"), an_answer(2)))


def test_bars_start_at_round_numbers_near_the_interval_and_say_where() -> None:
    values, width = np.array([56.1, 0.3]), np.array([1.9, 0.2])
    answer = Answer("Two scales", ("age", "share"), values, values - width, values + width)
    page = public_page(certificate("bits"), answer)
    ends = re.findall(r'<text x="(?:0|100%)" y="30"[^>]*>([^<]+)</text>', page)
    assert ends == ["53", "59", "0", "0.6"]  # zero is near the share and far from the age
    age = re.search(r'<line class="reach" x1="([\d.]+)%" x2="([\d.]+)%"', page)
    assert float(age[1]) == pytest.approx(100 * (54.2 - 53) / 6, abs=0.02)
    assert float(age[2]) == pytest.approx(100 * (58.0 - 53) / 6, abs=0.02)


def test_an_unsigned_page_says_so_and_a_signed_one_names_its_key() -> None:
    unsigned, signed = (public_page(certificate("bits"), an_answer(2), key) for key in ("", "f177c2a6"))
    assert "· unsigned</p>" in unsigned and "Nothing shows it: the files are unsigned" in words(unsigned)
    assert "· signed</p>" in signed and "with the Ed25519 key f177c2a6." in words(signed)
    assert "not that they are true" in words(signed) and "not that they are true" not in words(unsigned)


# Colours


def schemes() -> dict[str, dict[str, str]]:
    """The colours by name, as light and dark screens have them."""
    light, dark = re.findall(r"\.leakcap\{(--paper[^}]*)\}", style("page.css"))
    read = {
        scheme: dict(re.findall(r"--([\w-]+):(#[0-9a-f]+)", text))
        for scheme, text in (("light", light), ("dark", dark))
    }
    assert set(read["light"]) == set(read["dark"])
    return read


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def rules() -> list[tuple[str, str]]:
    """Selectors and declarations of all style sheets."""
    text = re.sub(r"/\*.*?\*/", "", "".join(path.read_text() for path in SHEETS), flags=re.DOTALL)
    return re.findall(r"([^{}]+)\{([^{}]*)\}", re.sub(r"@(media|page|supports)[^{]*\{", "", text))


def text_colours() -> set[tuple[str, str]]:
    """Pairs of a colour of text and what may lie under it: its own background, or paper and cards."""
    found = set()
    for _, declarations in rules():
        said = dict(part.strip().split(":", 1) for part in declarations.split(";") if ":" in part)
        named = re.fullmatch(r"var\(--([\w-]+)\)|(#fff)", said.get("color", ""))
        under = re.match(r"var\(--([\w-]+)\)", said.get("background", ""))
        if named:
            grounds = [under[1]] if under else ["paper", "card"]
            found |= {(named[1] or named[2], ground) for ground in grounds}
    return found


def drawn_texts() -> set[str]:
    """Colours of texts inside drawings, which lie on paper or on cards."""
    kinds = ("text", "tick", "note", "axis")
    fills = [re.search(r"fill:var\(--([\w-]+)\)", said) for who, said in rules() if any(kind in who for kind in kinds)]
    return {fill[1] for fill in fills if fill}


def test_the_measure_of_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000", "#fff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # the well-known grey that just fails


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_is_legible(scheme: str) -> None:
    colours = schemes()[scheme]
    pairs = text_colours() | {(fill, ground) for fill in drawn_texts() for ground in ("paper", "card")}
    assert len(pairs) >= 12 and ("faint", "card") in pairs and ("#fff", "red") in pairs
    for text, ground in pairs:
        assert contrast(colours.get(text, text), colours[ground]) >= 4.5, (scheme, text, ground)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("mark", ["blue", "orange", "luck", "ink", "red-ink"])
def test_marks_that_carry_meaning_stand_out(scheme: str, mark: str) -> None:
    colours = schemes()[scheme]
    for ground in ("paper", "card"):
        assert contrast(colours[mark], colours[ground]) >= 3


# The keyboard, phones and paper


def pages() -> dict[str, str]:
    certificates = {kind: public_page(certificate(kind), an_answer(8)) for kind in KINDS}
    custodian = custodian_page(certificate("worlds"), an_answer(3), a_custody())
    return {**certificates, **{name: one.to_html() for name, one in REPORTS.items()}, "custodian": custodian}


def test_the_keyboard_goes_through_what_is_folded_from_the_top_to_the_bottom() -> None:
    for name, page in pages().items():
        assert "tabindex" not in page.replace('tabindex="0"', ""), name
        assert page.count("<details") == page.count("<summary>") > 0
        assert re.findall(r"<details[^>]*>(?!<summary>)", page) == []
    sheet = style("page.css")
    assert ".leakcap :focus-visible{outline:3px solid var(--blue)" in sheet
    assert not re.search(r"outline:\s*(0|none)", sheet)
    assert not re.search(r"[;{]order:", "".join(path.read_text() for path in SHEETS)), "seen and read in one order"


def test_on_a_phone_the_two_grids_of_dots_come_first() -> None:
    page = public_page(certificate("bits"), an_answer(3))
    assert page.count('<svg class="dots"') == 2
    first = page.partition('<div class="screen">')[2]
    assert first.index('class="dots"') < first.index('id="answer"')
    narrow = style("page.css").partition("@media screen and (max-width:960px){")[2].partition("\n}\n")[0]
    assert ".leakcap .screen>.compare,.leakcap .screen>.compare+*{grid-column:1;grid-row:auto}" in narrow


def test_paper_shows_what_is_folded_or_says_that_it_is_folded() -> None:
    paper = style("page.css").partition("@media print{")[2]
    assert "details::details-content{content-visibility:visible" in paper
    elsewhere = paper.partition("@supports not selector(::details-content){")[2]
    assert 'details:not([open])>summary::after{content:" (folded: open it, then print again)"}' in elsewhere
