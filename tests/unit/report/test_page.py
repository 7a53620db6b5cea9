"""The report: one file that anybody can read, that asks for nothing outside, and that tells nothing it should not."""

import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import leakcap as lc
from leakcap.certificates.text import rows
from leakcap.errors import InputError
from leakcap.report import numbers
from leakcap.report.release.page import Answer, Custody, custodian_page, fragment, public_page
from tests.unit.report.test_figures import CERTIFICATE

EMPTY = {"meta", "br", "link", "img", "input", "hr"}
EVIL = '<script>alert("x")</script>'


class Reader(HTMLParser):
    """Raises where tags are not closed in order; keeps ids, attributes and headings."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.attributes, self.texts = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def words(page):
    return " ".join(" ".join(read(page).texts).split())


def an_answer(d=3, names=None, interval=True):
    values = np.linspace(-1, 5, d)
    width = np.linspace(0.1, 0.4, d)
    names = names or tuple(f"output {i}" for i in range(d))
    return Answer("Means of the pool", names, values, *((values - width, values + width) if interval else (None, None)))


def a_custody(d=3, units=150, worlds=64, spread=1.0, covariance=True):
    rng = np.random.default_rng(0)
    noise = np.full(d, 0.5 * spread)
    return Custody(
        exposure=rng.uniform(0.5, 0.548, units),
        outputs=spread * rng.normal(size=(worlds, d)) + np.arange(d),
        noise_deviations=noise,
        noise_covariance=np.diag(noise**2) if covariance else None,
        whole_pool=np.arange(d, dtype=float),
        halving=np.full(d, 0.3 * spread),
        noise=noise,
        forecast="64 worlds, about 1 s",
        cap=0.55,
    )


PAGES = {
    "public": lambda: public_page(CERTIFICATE, an_answer()),
    "without an answer": lambda: public_page(CERTIFICATE),
    "custodian": lambda: custodian_page(CERTIFICATE, an_answer(), a_custody()),
}


@pytest.fixture(scope="module")
def pages():
    return {name: made() for name, made in PAGES.items()}


@pytest.fixture(params=PAGES)
def page(pages, request):
    return pages[request.param]


def test_a_page_is_one_file_without_scripts_and_asks_for_nothing_outside(page):
    seen = read(page)
    assert page.startswith("<!DOCTYPE html>")
    assert '<html lang="en">' in page and '<meta charset="utf-8">' in page
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page
    assert not re.search(r"<script|https?:|//[a-z]|@import|url\((?!#)|<link|<iframe|<object", page, re.IGNORECASE)
    for tag, name, value in seen.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in ("href", "src", "xlink:href", "action", "srcset"):
            assert value.startswith(("#", "data:"))


def test_pictures_are_well_formed_and_ids_are_unique(page):
    ids = read(page).ids
    assert len(ids) == len(set(ids))
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) > 4
    for picture in pictures:
        ElementTree.fromstring(picture)
        assert "nan" not in picture and "inf" not in picture


def test_pictures_take_their_colours_from_the_page(page):
    body = page.partition("</head>")[2]
    assert not re.search(r"#[0-9a-fA-F]{3,6}\b|rgb\(", body)
    assert "prefers-color-scheme:dark" in page and "@media print" in page


def test_equal_arguments_give_equal_bytes_in_any_process_and_without_matplotlib(pages):
    assert public_page(CERTIFICATE, an_answer()) == pages["public"]
    assert custodian_page(CERTIFICATE, an_answer(), a_custody()) == pages["custodian"]
    code = (
        "import sys; from leakcap.certificates.release import Certificate; "
        "from leakcap.report.release.page import public_page; "
        "print(public_page(Certificate.from_json(sys.stdin.read())), end=''); "
        "sys.exit('matplotlib' in sys.modules)"
    )
    certificate = replace(CERTIFICATE, leakcap_version="0.0")
    other = os.environ | {"PYTHONHASHSEED": "7", "PYTHONUTF8": "1"}
    given = {"input": certificate.to_json(), "encoding": "utf-8", "env": other}
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, **given)
    assert found.stdout == public_page(certificate)


def test_the_first_screen_holds_before_after_answer_limits_and_what_to_do():
    certificate = replace(CERTIFICATE, not_promised=("Being in the pool at all: it is about who was used.",))
    page = public_page(certificate, an_answer())
    titles = ("Before", "After", "The answer", "What was done", "Where the promise ends", "What to do next")
    places = [page.index(f"<h2>{title}") for title in titles]
    assert places == sorted(places) and places[-1] < page.index("<details")
    told = words(page.partition("<details")[0] + "</div></main></body></html>")
    for words_of_it in ("54.80 %", "55 of 100", "50 of 100", "150 people", "Being in the pool at all", "unsigned"):
        assert words_of_it in told


def test_dots_are_luck_then_gain_then_misses():
    page = public_page(replace(CERTIFICATE, membership_success=0.5301))
    before, after = re.findall(r'<svg class="dots".*?</svg>', page)
    assert [before.count(f'class="{kind}"') for kind in ("luck", "gain", "miss")] == [50, 0, 50]
    assert [after.count(f'class="{kind}"') for kind in ("luck", "gain", "miss")] == [50, 4, 46]  # 53.01: rounded up


@pytest.mark.parametrize(("success", "dots"), [(0.5, 50), (0.55, 55), (0.500001, 51), (1.0, 100), (0.5700000001, 58)])
def test_of_hundred_never_rounds_down(success, dots):
    assert numbers.of_hundred(success) == dots


def test_every_bound_is_shown_rounded_up():
    certificate = replace(CERTIFICATE, membership_success=0.548001, mutual_information=0.123401)
    page = public_page(certificate)
    assert "54.81 %" in page and "0.1235" in page
    shown = re.findall(r'<td data-head="after, at most"><b>([\d.]+) %</b>', page)
    bounds = [after for _, _, after in rows(certificate)]
    assert len(shown) == len(bounds)
    for text, bound in zip(shown, bounds, strict=True):
        assert bound <= float(text) / 100 + 1e-12 < bound + 1.1e-4


def test_what_users_supply_cannot_become_markup():
    certificate = replace(
        CERTIFICATE,
        design=EVIL,
        pool_public=(EVIL,),
        declared_public=(EVIL,),
        assumptions=(EVIL,),
        not_promised=(EVIL,),
        theorems=(EVIL,),
        leakcap_version=EVIL,
        draws=((EVIL, 3),),
        capped=(replace(CERTIFICATE.capped[0], meaning=EVIL, cap=EVIL),),
    )
    answer = replace(an_answer(2, names=(EVIL, f'" onload="x{EVIL}' * 9)), title=EVIL)
    custody = replace(a_custody(2), forecast=EVIL)
    for page in (public_page(certificate, answer), custodian_page(certificate, answer, custody), fragment(certificate)):
        assert "<script" not in page
        assert "&lt;script&gt;" in page
        assert not any(name.startswith("on") for _, name, _ in read(page).attributes)


def test_what_the_custodian_alone_may_see_is_on_the_custodians_page_alone():
    custody = replace(
        a_custody(),
        whole_pool=np.array([123456.789, 1.0, 2.0]),
        halving=np.array([987.25, 0.3, 0.3]),
        exposure=np.full(150, 0.53123),
        forecast="forecast-sentinel",
        cap=0.5678,
    )
    public, kept = public_page(CERTIFICATE, an_answer()), custodian_page(CERTIFICATE, an_answer(), custody)
    for sentinel in ("123456.789", "987.25", "53.13\u00a0%", "forecast-sentinel", "56.78 %", "CUSTODIAN ONLY"):
        assert sentinel in kept
        assert sentinel not in public
    assert kept.index("CUSTODIAN ONLY &ndash; do not publish") < kept.index("<main>")
    assert kept.count("CUSTODIAN ONLY</p>") == 2  # under each of the two pictures
    inside = public.partition("<main>")[2].partition("</main>")[0].partition("</header>")[2].strip()
    assert inside in kept


@pytest.mark.parametrize("kind", ["simulation", "empirical"])
def test_what_is_no_guarantee_says_so_first(kind):
    certificate = replace(CERTIFICATE, kind=kind)
    for page in (
        public_page(certificate),
        custodian_page(certificate, an_answer(), a_custody()),
        fragment(certificate),
    ):
        assert page.index('class="band warn"') < page.index("Before")
        assert "NOT A" in words(page)
        assert "Whoever reads this release" not in page
    assert 'class="band warn"' not in public_page(CERTIFICATE)


def test_a_cap_that_is_not_kept_is_told(pages):
    broken = replace(CERTIFICATE, capped=(replace(CERTIFICATE.capped[0], certified=0.56),))
    assert "CAP NOT KEPT" in public_page(broken)
    assert "CAP NOT KEPT" not in pages["public"]


@pytest.mark.parametrize(
    "certificate",
    [
        replace(CERTIFICATE, mode="confidence", kind="confidence", known_memberships=(), hockey_sticks=()),
        replace(CERTIFICATE, mode="empirical", kind="empirical", known_memberships=(), confidence=0.0, gamma=1.0),
        replace(CERTIFICATE, rate="1/3", design="random partitions into 3 parts"),
        replace(CERTIFICATE, noised_directions=0, membership_success=0.5, known_memberships=((1, 1.0),)),
        replace(CERTIFICATE, integrated=True, leakage_curve=(), draws=(), capped=()),
        replace(CERTIFICATE, membership_success=1.0, mutual_information=6.9, leakage_curve=()),
    ],
    ids=["confidence", "empirical", "a third", "constant", "integrated", "everything leaks"],
)
def test_all_kinds_of_certificates_have_pages(certificate):
    for page in (
        public_page(certificate),
        custodian_page(certificate, an_answer(), a_custody()),
        fragment(certificate),
    ):
        assert "None" not in words(page) and "nan" not in words(page)


@pytest.mark.parametrize("d", [1, 2, 1000])
@pytest.mark.parametrize("interval", [True, False])
def test_few_and_many_outputs(d, interval):
    answer = an_answer(d, interval=interval)
    page = custodian_page(CERTIFICATE, answer, a_custody(d, covariance=d < 1000))
    read(page)
    table = words(public_page(CERTIFICATE, answer))
    assert ("970 are in the CSV file" in table) == (d == 1000)
    assert ("output 29" in table) == (d == 1000) and "output 30" not in table


def test_one_output_is_drawn_as_a_histogram_and_two_as_a_cloud():
    one, two = (custodian_page(CERTIFICATE, an_answer(d), a_custody(d)) for d in (1, 2))
    assert "worlds with this answer" in one and 'class="world"' not in one
    assert '<g class="world">' in two and "worlds with this answer" not in two


def test_constant_outputs_have_no_cloud_and_no_error():
    page = custodian_page(CERTIFICATE, an_answer(), a_custody(spread=0.0))
    assert "the same in all of them" in words(page)


def test_a_cloud_shows_outputs_that_do_not_just_follow_each_other():
    custody = a_custody(4)
    outputs = custody.outputs.copy()
    outputs[:, 0] = 7.0  # constant
    outputs[:, 2] = -3 * outputs[:, 1]  # follows
    custody = replace(custody, outputs=outputs, noise_deviations=np.array([0, 0.5, 0.5, 0.5]))
    answer = an_answer(4, names=("constant", "first", "follower", "other"))
    labels = re.findall(r'class="axis"[^>]*>([^<]*)<', custodian_page(CERTIFICATE, answer, custody))
    assert {"first", "other"} <= set(labels)
    assert not {"constant", "follower"} & set(labels)


def test_a_million_units_are_thinned_and_the_most_exposed_is_kept():
    exposure = np.full(1_000_000, 0.51)
    exposure[777] = 0.5471
    started = time.process_time()
    page = custodian_page(CERTIFICATE, an_answer(), replace(a_custody(), exposure=exposure))
    assert time.process_time() - started < 2
    assert len(page) < 300_000
    assert "1,000,000 people: at most 54.71 %" in words(page)
    first, second = re.search(r'class="bound" d="M[\d.]+ ([\d.]+)L[\d.]+ ([\d.]+)', page).groups()
    assert float(first) < float(second)  # the line starts at the most exposed one, higher up


def test_many_worlds_are_thinned():
    page = custodian_page(CERTIFICATE, an_answer(), a_custody(worlds=50_000))
    assert "2,000 of 50,000 drawn" in words(page)
    assert len(page) < 400_000


def test_scales_far_apart_and_long_names_still_make_a_table():
    values = np.array([1e-9, 3.0, -4e12, 0.0])
    width = np.array([2e-10, 0.01, 1e11, 0.0])
    answer = Answer("All scales", ("tiny", "x" * 5000, "huge", "exact zero"), values, values - width, values + width)
    page = public_page(CERTIFICATE, answer)
    assert "1.00\u202f\u00d7\u202f10⁻⁹" in page and "x" * 200 not in words(page)
    assert [float(v) for v in re.findall(r'<data value="([^"]+)">', page)] == values.tolist()
    for bar in re.findall(r'<svg class="bar".*?</svg>', page):
        assert all(0 <= float(place) <= 100 for place in re.findall(r'"([-\d.]+)%"', bar))


@pytest.mark.parametrize(
    ("low", "high", "decimals", "shown"),
    [
        (1.239, 1.301, 2, ("1.23", "1.31")),
        (-1.239, -1.231, 2, ("\u22121.24", "\u22121.23")),
        (-0.001, 0.0, 1, ("\u22120.1", "0.0")),
        (1234.4, 1234.6, 0, ("1,234", "1,235")),
    ],
)
def test_shown_intervals_cover_the_true_ones(low, high, decimals, shown):
    assert numbers.outward(low, high, decimals) == shown


def test_intervals_have_two_ends_and_all_lists_one_length():
    with pytest.raises(InputError, match="two ends"):
        Answer("x", ("a",), np.ones(1), np.ones(1), None)
    with pytest.raises(InputError, match="one length"):
        Answer("x", ("a", "b"), np.ones(1), None, None)


def test_a_notebook_shows_a_fragment_that_keeps_to_itself():
    text = CERTIFICATE._repr_html_()
    read(text)
    assert text == fragment(CERTIFICATE)
    assert not re.search(r"<(html|head|body|script|link)\b", text)
    css = re.sub(r"@(media|page|supports)[^{]*\{", "", re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1])
    for selectors in re.findall(r"([^{}]+)\{", css):
        assert all(one.strip().startswith(".leakcap") for one in selectors.split(",")), selectors
    assert "54.80 %" in text and "coin flip" in text


@pytest.mark.parametrize("mode", ["exact", "confidence"])
def test_pages_of_a_real_plan(mode):
    data = np.random.default_rng(1).normal(10, 2, size=(60, 2))
    options = {"worlds": 16, "draws": 256} if mode == "exact" else {"worlds": 64, "mode": mode}
    plan = lc.plan(lambda x: x.mean(axis=0), data, cap=lc.membership(0.75), seed=1, **options)
    release, summary = plan.release(), plan.summary()
    answer = Answer("Two means", summary.names, release.value, *release.interval(0.95))
    custody = Custody(
        plan.exposure,
        plan.outputs,
        plan.noise.output_deviations,
        plan.noise.covariance(),
        summary.answer,
        summary.halving,
        summary.noise,
        summary.forecast,
        0.75,
    )
    public, kept = public_page(release.certificate, answer), custodian_page(release.certificate, answer, custody)
    read(public), read(kept)
    for value in summary.answer.tolist():
        assert repr(value) in kept and repr(value) not in public
