"""The page of an audit: the verdict first, every figure of every finding, and nothing that runs or reaches outside."""

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import leakcap as lc
from leakcap import audit
from leakcap.audit import AuditReport, Finding
from leakcap.errors import InputError
from leakcap.report.audit.audited import groups, leading, releases_needed
from leakcap.report.audit.words import chance, in_cases, likelihood
from leakcap.report.chart import HEIGHT
from tests.unit.report.test_figures import CERTIFICATE
from tests.unit.report.test_page import read, words

NAMED = "whether the most exposed person took part"
NAN = math.nan


def finding(attack="bayes", question=NAMED, measured=0.5432, certified=0.548, verdict="holds", **changes):
    ends = (measured - 0.0123, measured + 0.0117)
    made = Finding(attack, question, measured, ends, 0.5, certified, 0.25, verdict, 1000, named=question == NAMED)
    return replace(made, **changes)


def recognition(attack, rate, measured, certified, verdict="holds"):
    question = f"recognising a participant at {rate:.1%} false alarms"
    return finding(
        attack, question, measured, certified, verdict, prior=rate, interval=(measured * 0.7, measured * 1.31),
        kind="recognition",
    )  # fmt: skip


CHECKS = (
    Finding("law of the noise", "size of the noise, in units of the claimed one", 1.0023, (NAN, NAN), NAN, None, 0.31,
            "holds", 1000, kind="check", reading="the noise is {} times as large as certified"),
    Finding("predictable", "whether releases can be predicted", 0.0, (NAN, NAN), 0.0, None, 1.0, "holds", 2000,
            kind="check", reading="no"),
)  # fmt: skip
HOLDING = (
    finding(),
    finding("learned", measured=0.5311),
    recognition("bayes", 0.01, 0.0213, 0.09),
    recognition("bayes", 0.001, 0.0041, 0.07),
    recognition("learned", 0.001, 0.0052, 0.07),
    finding("collude", "whether a person took part, knowing of 1 others", 0.5512, 0.561),
    finding("collude", "whether a person took part, knowing of 5 others", 0.6512, 0.671),
    *CHECKS,
)
DOUBT = finding("world", "which of the worlds was the secret one", 0.0131, 0.0125, "inconclusive", prior=0.001,
                interval=(0.0071, 0.0221), needed=6200)  # fmt: skip
BROKEN = finding(measured=0.6534, verdict="refuted", p_value=3e-12)
BARE = tuple(
    finding(name, measured=share, certified=None, verdict="no promise", p_value=1.0)
    for name, share in (("lira, online", 0.9312), ("threshold", 0.8123))
)


def a_report(findings=HOLDING, certificate=CERTIFICATE, exposed=(17, 3, 1204), target="plan"):
    return AuditReport(tuple(findings), certificate, 2000, 1e-6, target, 3.4567, exposed)


REPORTS = {
    "holds": a_report(),
    "inconclusive": a_report((*HOLDING, DOUBT)),
    "refuted": a_report((*HOLDING, BROKEN, DOUBT)),
    "no promise": a_report(BARE, None, target="DecisionTreeClassifier"),
    "mechanism": a_report(
        (finding("told apart", "which of 2 secrets it was", 0.6789, 0.75),
         finding("told apart", "epsilon, at least", 0.4321, 0.5, prior=0.0, interval=(0.4321, math.inf),
                 kind="epsilon")),
        None, (), "mechanism"),
    "checks alone": a_report(CHECKS),
    "nothing": a_report((), None, ()),
}  # fmt: skip


@pytest.fixture(params=REPORTS, scope="module")
def made(request):
    report = REPORTS[request.param]
    return report, report.to_html()


def test_a_page_is_one_file_without_scripts_and_asks_for_nothing_outside(made):
    page = made[1]
    seen = read(page)
    assert page.startswith("<!DOCTYPE html>")
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page
    assert not re.search(r"<script|https?:|//[a-z]|@import|url\((?!#)|<link|<iframe|<object", page, re.IGNORECASE)
    assert not any(name.startswith("on") or name in ("href", "src") for _, name, _ in seen.attributes)
    for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(picture)
        assert "nan" not in picture and "inf" not in re.sub(r'aria-label="[^"]*"', "", picture)
    body = page.partition("</head>")[2]
    assert not re.search(r"#[0-9a-fA-F]{3,6}\b|rgb\(", body)  # colours follow the page's light or dark


def test_equal_arguments_give_equal_bytes(made):
    report, page = made
    assert report.to_html() == page
    assert report._repr_html_() == report._repr_html_()


def test_everybody_is_told_first_that_it_is_the_custodians(made):
    report, page = made
    assert page.index("CUSTODIAN ONLY &ndash; do not publish") < page.index("<main>")
    assert "<title>CUSTODIAN ONLY" in page
    assert '@top-center{content:"CUSTODIAN ONLY"' in page  # and on every printed sheet
    part = report._repr_html_()
    read(part)
    assert part.index("CUSTODIAN ONLY") < part.index('<div class="verdict')


def test_every_number_of_every_finding_is_on_the_page(made):
    report, page = made
    for one in report.findings:
        figures = [one.measured, *one.interval]
        figures += [] if math.isnan(one.interval[0]) else [one.prior]
        figures += [] if one.certified is None else [one.certified]
        figures += [] if one.verdict == "no promise" else [one.p_value]
        for figure in figures:
            assert not math.isfinite(figure) or f'<data value="{float(figure)!r}">' in page, one
    told = words(page)
    for one in report.findings:
        assert one.attack in told
    assert f"{report.trials:,}" in told and "3.46 seconds" in told and "alpha 1e-06" in told


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("holds", "Nothing refuted: no attack did better than the certificate allows."),
        ("inconclusive", "No attack broke the certificate, but 1 of 10 figures could not be decided."),
        ("refuted", "Refuted: this release tells more than its certificate allows. Do not publish it."),
        (
            "no promise",
            "The most exposed people are not protected at all: an attacker is right about one of them in 93 of 100",
        ),
        ("mechanism", "Nothing refuted: no attack did better than the claim allows."),
        ("nothing", "Nothing was attacked"),
    ],
)
def test_the_verdict_comes_first_in_one_sentence(name, sentence):
    page = REPORTS[name].to_html()
    first = re.search(r"<h1>(.*?)</h1>", page)[1]
    assert first.startswith(sentence)
    assert page.index("<h1>") < page.index("What to do") < page.index("What an audit is")
    assert "can refute" in page and "can never prove one" in page


def test_chips_say_the_verdict_of_each_finding():
    page = REPORTS["refuted"].to_html()
    body = page.partition('<div class="folds">')[2]
    for verdict, count in (("holds", len(HOLDING)), ("refuted", 1), ("inconclusive", 1)):
        assert body.count(f'<span class="chip {verdict}">{verdict}</span>') == 2 * count  # beside the bar, in the table


def columns(page):
    """What was guessed, what was promised and what was reached, row by row, as a reader sees them."""
    rows = re.findall(r"<tr>(.*?)</tr>", re.search(r'<table class="sides">.*?</table>', page, re.DOTALL)[0])
    return [[words(f"<p>{cell}</p>") for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def test_two_columns_say_what_was_promised_and_what_was_reached():
    head, first, *others = columns(REPORTS["holds"].to_html())
    assert head == ["What was guessed", "Promised, at most", "Reached by the best attack"]
    assert first == [f"{NAMED[:1].upper()}{NAMED[1:]} by guessing alone 50 %", "54.80 %", "54.32 % holds"]
    assert others[-1] == ["Checks of the noise and of the secret", "all passed", "2 of 2 passed holds"]


def test_what_is_refuted_stands_first_in_the_columns():
    worst = finding("collude", "whether a person took part, knowing of 5 others", 0.9, 0.671, "refuted")
    rows = columns(a_report((*HOLDING, worst)).to_html())
    assert rows[1][1:] == ["67.10 %", "90.00 % refuted"]
    assert [row[2].split()[-1] for row in rows[2:]] == ["holds"] * len(rows[2:])


def test_without_a_promise_the_columns_say_nothing_was_promised():
    for row in columns(REPORTS["no promise"].to_html())[1:]:
        assert row[1] == "nothing" and row[2].endswith("no promise")


def test_the_columns_hold_few_rows_and_say_how_many_more_there_are():
    many = [finding("world", f"a question of kind {letter}", 0.5, 0.6) for letter in "abcdefgh"]
    page = a_report(many).to_html()
    assert len(columns(page)) == 1 + 5
    assert "3 more under “All figures”, none of them refuted or undecided." in words(page)


def test_what_is_refuted_is_told_in_cases_and_looks_alarming():
    page = REPORTS["refuted"].to_html()
    told = words(page)
    assert 'class="verdict refuted"' in page
    assert "right in 65 of 100 cases; guessing is right in 50; the certificate allows 55" in told
    assert "less than one of a billion audits" in told
    assert "Publish nothing that was made in this way" in told
    for name in ("holds", "inconclusive", "no promise", "mechanism"):
        body = REPORTS[name].to_html().partition("</head>")[2]
        assert "verdict refuted" not in body and "broken" not in body, name


def test_what_is_refuted_stands_first():
    fault = replace(CHECKS[0], verdict="refuted", p_value=1e-9, measured=0.5)
    assert "Checks of the mechanism" in _first_question((*HOLDING[:-2], fault))
    assert "Whether the most exposed" in _first_question(HOLDING)
    assert "Which of the worlds" in _first_question((*HOLDING, replace(DOUBT, verdict="refuted")))


def _first_question(findings):
    return re.search(r'<div class="question"><h3>(.*?)</h3>', a_report(findings).to_html())[1]


def test_an_open_question_says_how_many_releases_would_decide():
    report = REPORTS["inconclusive"]
    told = words(report.to_html())
    assert releases_needed(report, DOUBT) == 12_400  # 1,000 of 2,000 were judged, and 6,200 would decide
    assert "about 13,000 releases (trials=13000) instead of 2,000" in told
    assert "10,400" in told  # more than were made
    unknown = a_report((*HOLDING, replace(DOUBT, needed=None)))
    assert "about 8,000 releases" in words(unknown.to_html())


def test_without_a_promise_the_page_says_how_exposed_people_are():
    def told(share):
        return a_report([finding(measured=share, certified=None, verdict="no promise")], None).to_html()

    levels = {
        0.95: "not protected at all",
        0.8: "strongly exposed",
        0.6: "people are exposed",
        0.53: "slightly exposed",
    }
    for share, level in levels.items():
        assert level in told(share)
    everybody = finding("rmia", "whether a row was trained on, all rows", 0.95, None, "no promise")
    sentence = (
        "<h1>People are not protected at all: an attacker is right in 95 of 100 cases; guessing is right in 50.</h1>"
    )
    assert sentence in a_report([everybody], None).to_html()
    assert "100 models for trial" in replace(a_report([everybody], None, target="model"), trials=100).to_html()
    assert "No attack did clearly better than guessing. That is no promise" in told(0.505)
    assert "certified" not in told(0.8).partition("</head>")[2].partition("<footer>")[0]


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (finding(measured=0.56, certified=None), "right in 56 of 100 cases; guessing is right in 50"),
        (
            finding(measured=0.017, certified=0.0256, prior=1 / 256),
            "right in 17 of 1,000 cases; guessing is right in 4",
        ),
        (recognition("lira", 0.001, 0.031, None), "recognises 31 of 1,000 participants; blind guessing 1"),
        (finding(measured=0.5482, verdict="refuted"), "right in 5,482 of 10,000 cases; guessing is right in 5,000"),
        (finding(measured=0.0, prior=0.5), "right in 0 of 100 cases; guessing is right in 50"),
        (finding(measured=1.0, interval=(0.99, 1.0)), "right in 100 of 100 cases"),
    ],
)
def test_shares_become_counts_that_do_not_mislead(one, said):
    assert in_cases(a_report(), one).startswith(said)


def test_bounds_are_rounded_up():
    one = finding(certified=0.54801)
    assert in_cases(a_report(), one).endswith("the certificate allows 55")
    assert "54.81 %" in a_report([one]).to_html()


def test_how_rare_something_is():
    assert likelihood(1e-6) == "one of 1,000,000 audits"
    assert likelihood(0.0) == likelihood(1e-12) == "less than one of a billion audits"
    assert likelihood(0.25) == "25 of 100 audits"
    assert chance(0.0) == "below alpha" and chance(1.0) == "1"


def test_questions_that_differ_in_numbers_share_a_scale():
    found = groups(HOLDING)
    assert [title for title, _ in found][:3] == [
        NAMED, "recognising a participant at … false alarms", "whether a person took part, knowing of … others",
    ]  # fmt: skip
    assert [len(members) for _, members in found][:3] == [2, 3, 2]
    assert {id(one) for _, members in found for one in members} == {id(one) for one in HOLDING}


ODD = "recognising a participant at 1 % epsilon, size of the noise, whether the most exposed"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("share", "right in 50 of 100 cases; guessing 1"),
        ("recognition", "recognises 50 of 100 participants; guessing 1"),
        ("epsilon", "at least 0.5; allowed 0.6"),
        ("check", "found: 0.500"),
    ],
)
def test_what_a_figure_means_is_read_off_its_kind_and_never_off_the_question(kind, said):
    one = finding(question=ODD, measured=0.5, certified=0.6, prior=0.01, kind=kind)
    page = a_report([one]).to_html()
    assert f"<small>{said}" in page
    assert ("Recognising people" in page) == (kind == "recognition")
    assert ("Checks of the mechanism" in page) == (kind == "check")
    assert ("The most exposed people are" in a_report([replace(one, certified=None, verdict="no promise", kind="share",
                                                               named=True)], None).to_html())  # fmt: skip


def test_a_finding_without_a_kind_is_a_check_where_it_has_no_interval():
    bare = ("bayes", "a question", 0.5, (0.4, 0.6), 0.5, None, 1.0, "holds", 10)
    assert Finding(*bare).kind == "share"
    assert Finding(*bare[:3], (NAN, NAN), *bare[4:]).kind == "check"
    with pytest.raises(InputError, match="share, recognition, epsilon, check"):
        Finding(*bare, kind="guess")


def test_findings_of_real_audits_say_their_kind():
    plan = lc.plan(lambda x: x.mean(axis=0), np.random.default_rng(0).normal(size=(30, 2)), cap=lc.membership(0.7),
                   worlds=16, draws=256)  # fmt: skip
    found = audit.run(plan, trials=400).findings
    kinds = {one.attack.partition(",")[0]: set() for one in found}
    for one in found:
        kinds[one.attack.partition(",")[0]].add(one.kind)
        assert one.named == one.question.startswith(NAMED)
        assert (one.kind == "recognition") == one.question.startswith("recognising")
    assert kinds["law of the noise"] == kinds["predictable"] == {"check"}
    assert {"share", "recognition"} <= set().union(*kinds.values())
    assert any("times as large as certified" in one.reading for one in found)
    told = audit.check_mechanism(lambda secret: secret + np.random.default_rng().laplace(), [0.0, 1.0], success=0.9,
                                 epsilon=1.0, trials=400)  # fmt: skip
    assert [one.kind for one in told.findings] == ["share", "epsilon"]


def test_what_readers_hear_first_is_the_worst():
    assert leading(REPORTS["refuted"]) is BROKEN
    assert leading(REPORTS["holds"]) is HOLDING[0]  # the strongest on a person named in advance
    assert leading(REPORTS["no promise"]) is BARE[0]


def test_a_bar_puts_the_dot_beyond_the_bound_only_where_the_figures_do():
    for one, beyond in ((finding(), False), (BROKEN, True)):
        bar = re.search(r'<svg class="beside" role.*?</svg>', a_report([one]).to_html())[0]
        dot = float(re.search(r'<circle cx="([\d.]+)%', bar)[1])
        limit = float(re.search(r'<rect class="beyond" x="([\d.]+)%', bar)[1])
        prior = float(re.search(r'<line class="before" x1="([\d.]+)%', bar)[1])
        assert prior < min(dot, limit)
        assert (dot > limit) == beyond


def test_the_curve_is_the_certificates_and_the_points_are_the_findings():
    page = REPORTS["holds"].to_html()
    chart = re.search(r"<h3>Recognising people.*?<svg class=\"chart\".*?</svg>", page, re.DOTALL)[0]
    assert [chart.count(f"{100 * 10.0**k:g} %") > 0 for k in range(-3, 1)] == [True] * 4
    heights = [float(y) for y in re.findall(r'<g class="point[ a-z]*"><circle cx="[\d.]+" cy="([\d.]+)"', chart)]
    assert len(heights) == 3

    def height(share):  # from 0.05 % at the bottom to 100 % at the top, logarithmic
        return HEIGHT - 46 - (HEIGHT - 46 - 30) * math.log(share / 5e-4) / math.log(1 / 5e-4)

    assert sorted(heights) == pytest.approx(sorted(height(share) for share in (0.0213, 0.0041, 0.0052)), abs=0.06)
    curve = re.search(r'<path class="bound" d="M([^"]*)"', chart)[1]
    ends = [float(pair.split()[1]) for pair in (curve.split("L")[0], curve.split("L")[-1])]
    wanted = [height(CERTIFICATE.true_positive_rate(alarms)) for alarms in (5e-4, 1.0)]
    assert ends == pytest.approx(wanted, abs=0.06)
    assert "Recognising people" not in REPORTS["mechanism"].to_html()
    unpromised = a_report([recognition("lira", 0.001, 0.3, None, "no promise")], None).to_html()
    assert 'class="point best"' in unpromised and 'class="bound"' not in unpromised


def test_the_most_exposed_are_named_by_number_in_their_order():
    page = REPORTS["holds"].to_html()
    assert re.findall(r"<li>unit <b>([\d,]+)</b></li>", page) == ["17", "3", "1,204"]
    assert "unit <b>" not in REPORTS["mechanism"].to_html()


def test_what_is_no_guarantee_says_so():
    report = a_report(certificate=replace(CERTIFICATE, kind="empirical"))
    for page in (report.to_html(), report._repr_html_()):
        assert "NOT A GUARANTEE" in page


EVIL = '<b onclick="x">"\'</b><script>alert(1)</script>'


def test_names_that_users_supply_cannot_become_markup():
    findings = (replace(HOLDING[0], attack=EVIL, question=EVIL), replace(BROKEN, attack=EVIL, question=EVIL * 9))
    report = a_report((*findings, replace(CHECKS[0], attack=EVIL, question=EVIL)), target=EVIL)
    for page in (report.to_html(), report._repr_html_()):
        assert "<script" not in page and "<b onclick" not in page
        assert "&lt;script&gt;" in page
        assert not any(name.startswith("on") for _, name, _ in read(page).attributes)


def test_any_figures_at_all_have_a_page():
    rng = np.random.default_rng(0)
    for _ in range(200):
        low, mid, high, prior, limit = np.append(np.sort(rng.choice([0.0, 1.0, *rng.random(3)], 3)), rng.random(2))
        one = finding(
            measured=float(mid), interval=(float(low), float(high)), prior=float(rng.choice([prior, 1e-9, 0.0, 1.0])),
            certified=rng.choice([None, float(limit), 1.0]), verdict=str(rng.choice(["holds", "refuted"])),
        )  # fmt: skip
        page = a_report([one]).to_html()
        assert "nan" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL).replace("dominant", "")
        read(page)


def test_questions_left_to_the_whole_table_are_counted_where_they_are_no_better():
    many = [finding("world", f"a question of kind {letter}", 0.5, 0.6, "inconclusive") for letter in "abcdefgh"]
    assert "3 more under “All figures”, 3 of them refuted or undecided." in words(a_report(many).to_html())


def test_what_is_undecided_is_named_and_not_taken_for_what_holds():
    told = words(REPORTS["inconclusive"].to_html())
    open_ones = [one for one in REPORTS["inconclusive"].findings if one.verdict == "inconclusive"]
    undecided, decided = told.index("Undecided: "), told.index("Decided, and within its limit: ")
    assert open_ones and all(undecided < told.index(one.question, undecided) < decided for one in open_ones)
    assert "right in 54 of 100 cases" in told[decided : decided + 400]
    assert "You may publish on the strength of the certificate" in told
