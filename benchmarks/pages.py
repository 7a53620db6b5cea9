"""Every page as its readers meet it: words, width, contrast and the order of the keyboard, and pictures of it.

`python -m benchmarks pages` makes a page of every kind, opens it in a browser and writes pictures to
`benchmarks/out/pages`: desktop and phone, light and dark, and paper. It needs Chromium, and pdftoppm for the paper.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier
from tests.unit.report.seen import all_words, visible_words

import leakcap as lc
from benchmarks.browser import Browser, browser
from benchmarks.records import record
from leakcap.audit.report import AuditReport
from leakcap.cli import main as command
from leakcap.estimators.tradeoff import privacy_utility_curve
from leakcap.planning.plans import Plan
from leakcap.sessions.overview import overview

__all__ = ["main", "written"]

PEOPLE = 4_000
FOLDER = Path(__file__).parent / "out" / "pages"
DESKTOP, TABLET, PHONE, NARROW = (1280, 800), (768, 1024), (390, 844), (360, 740)
# Words of each page when nothing on it was folded, all of them seen at once; counted on 2026-11-17.
BEFORE = {
    "release-worlds": 1039, "release-bits": 921, "release-counts": 962, "release-counts-worlds": 1067,
    "release-pool": 782, "custodian": 1284, "plan": 456, "simulation": 994, "labels": 711, "session": 491,
    "ledger": 367, "audit-holds": 2126, "audit-refuted": 2154, "audit-model": 899, "promises": 288, "tradeoff": 172,
}  # fmt: skip
# The least contrast of any text that is seen with what lies under it, by WCAG 2.2, and whose it is.
CONTRAST = """(() => {
const parts = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
let least = [99, ""];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const text = walk.currentNode, at = text.parentElement;
  if (!text.data.trim() || !at.checkVisibility({contentVisibilityAuto: true})) continue;
  const drawn = at instanceof SVGElement, look = getComputedStyle(at);
  let under = at, ground = null;
  while (under && !ground) {
    const found = parts(getComputedStyle(under).backgroundColor);
    if (found.length < 4 || found[3] > 0) ground = found;
    under = under.parentElement;
  }
  const [a, b] = [light(parts(drawn ? look.fill : look.color)), light(ground || [255, 255, 255])].sort((x, y) => y - x);
  const ratio = (a + .05) / (b + .05);
  if (ratio < least[0]) least = [ratio, text.data.trim().slice(0, 40)];
}
return least; })()"""
FOCUSED = """(() => { const at = document.activeElement; return at === document.body ? null :
[at.tagName, Math.round(at.getBoundingClientRect().top + scrollY), getComputedStyle(at).outlineStyle]; })()"""
# The most lines that a label of an output takes beside its bar, and how many parts of commands are broken in two.
BROKEN = """(() => {
const lines = at => { const all = document.createRange(); all.selectNodeContents(at);
  return new Set([...all.getClientRects()].map(one => Math.round(one.top))).size; };
const most = found => Math.max(0, ...[...found].map(lines));
return [most(document.querySelectorAll(".barred tbody th")),
  [...document.querySelectorAll(".whole")].filter(at => lines(at) > 1).length]; })()"""
PARTS = ("sepal length", "sepal width", "petal length", "petal width")
LABELS = [f"cluster {k}, {part}, scaled 0..1" for k in (1, 2, 3) for part in PARTS]
WORLDS = ("--fn", "mean", "--columns", "age,days", "--design", "worlds", "--worlds", "256", "--cap", "membership=0.55")


def patients() -> pd.DataFrame:
    """Made up: the same for every run. Nobody is in ward D."""
    rng = np.random.default_rng(7)
    age = rng.integers(18, 95, PEOPLE)
    days = rng.poisson(2 + age / 20)
    ward = rng.choice(["A", "B", "C"], PEOPLE, p=[0.5, 0.3, 0.2])
    return pd.DataFrame({"age": age, "days": days, "ward": ward, "back": rng.random(PEOPLE) < 0.2})


def written(folder: Path) -> list[Path]:
    """All kinds of pages, by the commands and calls that users make."""
    (folder / "patients.csv").write_text(patients().to_csv(index=False))
    os.environ["LEAKCAP_KEY"] = str(folder / "vault.key")
    for name, make in PAGES.items():
        page = make(folder)
        if page:
            (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return [folder / f"{name}.html" for name in PAGES]


def _released(*options: str, page: str = "public/certificate.html") -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        out = folder / "releases" / "-".join(options).replace("/", "-")[:60]
        fixed = ("--issuer", "Statistics office", "--data-set", "patients of 2025", "-q", "--alone", "--out", str(out))
        if not out.exists():
            _run("release", str(folder / "patients.csv"), *options, *fixed)
        return (out / page).read_text(encoding="utf-8")

    return make


def _run(*arguments: str) -> None:
    try:
        command(list(arguments))
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"leakcap {' '.join(arguments)} ended with {end.code}") from end


def _labels(folder: Path) -> str:
    data, out = str(folder / "patients.csv"), folder / "labels"
    if not out.exists():
        fixed = ("--epsilon", "1", "--classes", "False,True", "--out", str(out), "--issuer", "Statistics office", "-q")
        _run("labels", data, "--column", "back", *fixed)
    return (out / "public" / "page.html").read_text(encoding="utf-8")


def _encoded(page: str) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        out = folder / "encoded"
        if not out.exists():
            sizes = (
                "--noise",
                "0.2",
                "--draws",
                "64",
                "--mix",
                "100",
                "--rows-released",
                "80",
                "--out",
                str(out),
                "-q",
            )
            ledger = ("--ledger", f"sqlite:///{folder}/encoded.ledger")
            _run("obfuscate", "encode", str(folder / "patients.csv"), "--label", "back", *sizes, *ledger)
        return (out / page).read_text(encoding="utf-8")

    return make


def _plan(seed: int | None = None) -> Plan:
    table = patients()[["age", "days"]].to_numpy(dtype=float)[:400]
    return lc.plan(lc.stats.mean, table, cap=lc.membership(0.55), worlds=64, draws=1024, design="worlds", seed=seed)


def _simulation(folder: Path) -> str:
    return _plan(seed=1).release().to_html(allow_simulation=True)


def _long_labels(folder: Path) -> str:
    table = np.random.default_rng(7).random((PEOPLE, len(LABELS)))
    return lc.release(lc.stats.mean, table, cap=0.55, design="bits", outputs=LABELS).to_html()


def _session(folder: Path) -> str:
    session = lc.Session(patients(), cap=0.60, ledger=f"sqlite:///{folder}/clinic.ledger", name="clinic")
    session.mean("age", bounds=(18, 100), share=0.01)
    session.count(by={"ward": ["A", "B", "C", "D"]}, share=0.02)
    return session.certificate.to_html()


def _ledger(folder: Path) -> str:
    return overview(f"sqlite:///{folder}/clinic.ledger").to_html()


def _audit() -> AuditReport:
    return lc.audit.run(_plan(), trials=8_000)


def _refuted(folder: Path) -> str:
    """An audit of a plan whose claim is too low: half of what the noise allows."""
    honest = _audit()
    worst = max(honest.findings, key=lambda one: one.measured if one.kind == "share" else 0)
    broken = replace(worst, certified=worst.prior, verdict="refuted", p_value=1e-9)
    return replace(honest, findings=(broken, *(one for one in honest.findings if one is not worst))).to_html()


def _model(folder: Path) -> str:
    table = patients()[:300]
    inputs, target = table[["age", "days"]].to_numpy(dtype=float), table["back"].to_numpy()
    return lc.audit.model(
        train=lambda x, y: DecisionTreeClassifier().fit(x, y),
        score=lambda model, x, y: model.predict_proba(x)[np.arange(len(x)), y.astype(int)],
        data=(inputs, target),
        models=64,
    ).to_html()


def _curve(folder: Path) -> str:
    table = patients()[["age", "days"]].to_numpy(dtype=float)[:400]
    return privacy_utility_curve(
        lc.estimators.Mean(cap=lc.membership(0.55), worlds=64), table, caps=[0.52, 0.55, 0.6, 0.7], releases=20
    ).to_html()


PAGES: dict[str, Callable[[Path], str]] = {
    "release-worlds": _released(*WORLDS),
    "release-bits": _released("--fn", "mean", "--columns", "age,days", "--design", "bits", "--cap", "membership=0.55"),
    "release-counts": _released("--fn", "count", "--by", "ward=A,B,C,D", "--cap", "membership=0.55"),
    "release-counts-worlds": _released("--fn", "count", "--by", "ward=A,B,C,D", *WORLDS[4:]),
    "release-pool": _released("--fn", "mean", "--columns", "age", "--bounds", "0,120", "--cap", "pool=0.55"),
    "release-labels": _long_labels,
    "custodian": _released(*WORLDS, page="custodian/report.html"),
    "plan": lambda folder: _plan().to_html(),
    "simulation": _simulation,
    "labels": _labels,
    "encoded": _encoded("server/page.html"),
    "encoded-owner": _encoded("owner/before-and-after.html"),
    "session": _session,
    "ledger": _ledger,
    "audit-holds": lambda folder: _audit().to_html(),
    "audit-refuted": _refuted,
    "audit-model": _model,
    "promises": lambda folder: _plan().compare().to_html(),
    "tradeoff": _curve,
}


def main() -> None:
    """Measure all pages, photograph them and store what was seen."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    seen = []
    with browser() as tab:
        for page in written(FOLDER):
            seen.append(_measured(tab, page))
            print(f"{page.stem:<24}" + "  ".join(f"{name} {value}" for name, value in seen[-1].items()), flush=True)
    certificates = [one for one in seen if one["page"].startswith(("release", "simulation"))]
    audits = [one for one in seen if one["page"].startswith("audit")]
    for name, kinds in (("certificates", certificates), ("audits", audits)):
        record(
            f"pages-words-{name}",
            f"{max(one['words'] for one in kinds)} at most of {len(kinds)} kinds, "
            f"{max(one['before'] for one in kinds):,} before",
            topic="The house",
            claim=f"Words on the first page of {name}, before anything is opened",
            command="python -m benchmarks pages",
            asked="at most 350" if name == "certificates" else "two columns, the rest folded",
        )
    kept = [one for one in seen if one["page"] in ("custodian", "ledger")]
    record(
        "pages-words-custodian",
        "; ".join(f"{one['page']}: {one['words']}, {one['before']:,} before" for one in kept),
        topic="The house",
        claim="Words on the custodian's report and on the page of a ledger, before anything is opened",
        command="python -m benchmarks pages",
        asked="at most 350 each",
    )
    record(
        "pages-lines",
        f"{max(one['lines'] for one in seen)} lines at most; {sum(one['broken'] for one in seen) or 'none'} broken",
        topic="The house",
        claim="Labels of outputs beside their bars at 1,280 pixels, and parts of commands broken in two on any screen",
        command="python -m benchmarks pages",
        asked="2; none",
    )
    wide = [one["page"] for one in seen if one["wide"]]
    record(
        "pages-legible",
        f"contrast {min(one['contrast'] for one in seen):.2f} or more, light and dark; "
        f"{len(wide) or 'no'} page wider than its window at 360, 390, 768 and 1,280 pixels; keyboard from top to "
        f"bottom on {sum(one['ordered'] for one in seen)} of {len(seen)}",
        topic="The house",
        claim="All kinds of pages in a browser: contrast of every text, width, order of the keyboard",
        command="python -m benchmarks pages",
        asked="4.5 (AA); none; all",
    )


def _measured(tab: Browser, page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8")
    wide, contrasts, lines, broken = False, [], 0, 0
    for name, size, dark in LOOKS:
        tab.open(page, *size, dark=dark)
        across = tab.value("[document.documentElement.scrollWidth, innerWidth]")
        wide |= across[0] > size[0] or across[1] > size[0]
        for opened in (False, True):
            if opened:
                tab.value("document.querySelectorAll('details').forEach(one => one.open = true)")
            contrasts.append(tab.value(CONTRAST))
            labels, split = tab.value(BROKEN)
            lines, broken = max(lines, labels if size == DESKTOP else 0), broken + split
            wide |= tab.value("document.documentElement.scrollWidth") > size[0]
            if name:
                tab.picture(page.with_name(f"{page.stem}-{name}{'-opened' if opened else ''}.png"))
    ordered = all(_ordered(tab, page, opened) for opened in (False, True))
    tab.print(page.with_suffix(".pdf"))
    if shutil.which("pdftoppm"):
        subprocess.run(["pdftoppm", "-r", "60", "-png", page.with_suffix(".pdf"), page.with_suffix("")], check=True)
    least = min(contrasts)
    whole = len(all_words(text))
    facts = {"page": page.stem, "before": BEFORE.get(page.stem, 0), "words": len(visible_words(text)), "all": whole}
    seen = {"wide": wide, "contrast": round(least[0], 2), "ordered": ordered, "lines": lines, "broken": broken}
    return facts | seen


def _ordered(tab: Browser, page: Path, opened: bool) -> bool:
    """Whether the keyboard goes through everything that opens, from the top to the bottom, and shows where it is."""
    tab.open(page, *DESKTOP)
    if opened:
        tab.value("document.querySelectorAll('details').forEach(one => one.open = true)")
    places = []
    for _ in range(tab.value("document.querySelectorAll('summary, [tabindex], a[href]').length")):
        tab.press("Tab")
        at = tab.value(FOCUSED)
        if at is None:
            break
        places.append(at)
    folds = tab.value("[...document.querySelectorAll('summary')].filter(one => one.checkVisibility()).length")
    heights = [height for _, height, _ in places]
    shown = all(outline != "none" for _, _, outline in places)
    return heights == sorted(heights) and shown and sum(kind == "SUMMARY" for kind, *_ in places) == folds


LOOKS = (
    ("desktop", DESKTOP, False),
    ("desktop-dark", DESKTOP, True),
    ("phone", PHONE, False),
    ("phone-dark", PHONE, True),
    ("", NARROW, False),
    ("", TABLET, False),
)
