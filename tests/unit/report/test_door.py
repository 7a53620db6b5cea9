"""One door from records to pages: every record has a page, `save` writes it, and nothing else below asks for pages."""

from __future__ import annotations

import ast
import re
import stat
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.audit.report import AuditReport
from leakcap.certificates.display import UPSTAIRS, Displayed
from leakcap.certificates.labels import LabelCertificate
from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding
from leakcap.certificates.release import Certificate
from leakcap.certificates.session import SessionCertificate
from leakcap.errors import InputError
from leakcap.estimators.tradeoff import Curve, CurvePoint
from leakcap.planning.accuracy import Summary
from leakcap.planning.comparison import Comparison
from leakcap.planning.plans import Plan, Release
from leakcap.report import pages
from leakcap.report.labels.page import Labelled, label_page
from leakcap.report.release.page import custodian_page, public_page
from leakcap.sessions.overview import LedgerOverview
from leakcap.simulate.progress import Forecast, Progress
from leakcap.simulate.run_report import RunReport
from tests.unit.certificates.encodings import claimed, unclaimed
from tests.unit.report.test_audit_page import HOLDING, a_report
from tests.unit.report.test_figures import CERTIFICATE
from tests.unit.report.test_ledger_page import hostile as hostile_ledger
from tests.unit.report.test_page import a_custody, an_answer, read

EVIL = '"\'><b onclick="x">hostile</b><script>alert("1")</script>'
KINDS = (
    AuditReport,
    Certificate,
    Comparison,
    Curve,
    LabelCertificate,
    LedgerOverview,
    ObfuscationCertificate,
    Plan,
    Release,
    RunReport,
    SessionCertificate,
    Summary,
    UnclaimedEncoding,
)
CUSTODIANS = {AuditReport, Comparison, Curve, LedgerOverview, Plan, RunReport, Summary}


@cache
def plan() -> Plan:
    def means(x: np.ndarray) -> dict[str, float]:
        return {EVIL: float(x.mean()), "largest": float(x.max())}

    data = np.random.default_rng(4).normal(size=40)
    return lc.plan(means, data, cap=lc.mutual_information(0.3), worlds=16, draws=256)


@cache
def release() -> Release:
    return plan().release()


def hostile_certificate() -> Certificate:
    texts = ("pool_public", "declared_public", "assumptions", "not_promised", "theorems")
    capped = (replace(CERTIFICATE.capped[0], meaning=EVIL, cap=EVIL),)
    told: dict[str, Any] = dict.fromkeys(texts, (EVIL,))
    return replace(CERTIFICATE, design=EVIL, leakcap_version=EVIL, draws=((EVIL, 3),), capped=capped, **told)


def hostile_labels() -> LabelCertificate:
    made = lc.labels.KRR(epsilon=1.0, n_classes=2).certificate(labels=100)
    told: dict[str, Any] = dict.fromkeys(("theorems", "assumptions", "not_promised"), (EVIL,))
    return replace(made, mechanism=EVIL, classes=(EVIL, "b"), settings=((EVIL, 1.0),), leakcap_version=EVIL, **told)


def hostile_session() -> SessionCertificate:
    session = lc.Session(np.ones((40, 1)), cap=0.6, seed=1)
    session.count(share=0.1)
    capped = (replace(session.certificate.capped[0], meaning=EVIL, cap=EVIL),)
    told: dict[str, Any] = dict.fromkeys(("pool_public", "assumptions", "not_promised", "theorems"), (EVIL,))
    return replace(
        session.certificate, capped=capped, questions=((EVIL, 0.1),), leakcap_version=EVIL, kind="session", **told
    )


def record(kind: type) -> Any:
    """One of each, with hostile words wherever it takes words."""
    if kind is AuditReport:
        findings = [replace(one, attack=EVIL, question=EVIL, reading=EVIL) for one in HOLDING]
        return a_report(findings, hostile_certificate(), target=EVIL)
    if kind is Curve:
        points = tuple(CurvePoint((lc.membership(cap),), cap - 0.001, cap, 0.01, 2.0) for cap in (0.55, 0.7))
        return Curve(points, 0.9, 0.8, 0.5, EVIL, EVIL, 64, 100, 20)
    if kind is ObfuscationCertificate:
        return claimed(EVIL)
    if kind is UnclaimedEncoding:
        return unclaimed(EVIL)
    if kind is LedgerOverview:
        return hostile_ledger()
    if kind is Plan:
        return plan()
    if kind is SessionCertificate:
        return hostile_session()
    if kind is Summary:
        return replace(plan().summary(), forecast=EVIL, certificate=hostile_certificate())
    if kind is Release:
        return release()
    if kind is RunReport:
        return hostile_run()
    if kind is Comparison:
        return plan().recap(lc.membership(0.8)).compare(answers=64)
    return hostile_certificate() if kind is Certificate else hostile_labels()


def hostile_run() -> RunReport:
    run = RunReport(show=False)
    run(Progress(1, 2, 0.5, Forecast(2, 1, 0.1, 8, way=EVIL), stage=EVIL))
    return run


@pytest.fixture(params=KINDS, ids=[kind.__name__ for kind in KINDS])
def shown(request: Any) -> Any:
    return record(request.param)


def test_every_record_behind_the_door_is_registered_and_no_other() -> None:
    for forms in (pages.page, pages.fragment):
        assert set(forms.registry) - {object} == set(KINDS)
    assert all(issubclass(kind, Displayed) for kind in KINDS)
    with pytest.raises(TypeError, match="no page for int"):
        pages.page(3)


def test_every_record_gives_a_page_and_a_part_of_a_notebook(shown: Any) -> None:
    page, part = shown.to_html(), shown._repr_html_()
    assert type(page) is type(part) is str
    assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n")
    assert part.startswith('<div class="leakcap fragment">')
    for made in (page, part):
        read(made)
        assert shown._custodian_only == ("CUSTODIAN ONLY" in made)


def test_hostile_words_stay_words_in_every_page(shown: Any) -> None:
    made = [shown.to_html(), shown._repr_html_()]
    if isinstance(shown, Curve):
        made.append(shown.to_svg())
    for page in made:
        inert(page)


def test_hostile_titles_issuers_and_names_stay_words() -> None:
    answer = replace(an_answer(2, names=(EVIL, EVIL * 9)), title=EVIL, issuer=EVIL)
    labelled = Labelled(title=EVIL, file=EVIL, columns=(EVIL,), holds=EVIL, code=EVIL, issuer=EVIL)
    inert(public_page(hostile_certificate(), answer))
    inert(custodian_page(hostile_certificate(), answer, replace(a_custody(2), forecast=EVIL)))
    inert(label_page(hostile_labels(), labelled))


def inert(page: str) -> None:
    """The hostile words are there, and none of them is markup."""
    assert "hostile" in page and "&lt;script&gt;" in page
    assert "<script" not in page and "<b onclick" not in page
    assert not any(name.startswith("on") for _, name, _ in read(page).attributes)


def test_save_writes_what_the_page_is(shown: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    shown.save(path)
    shown.save(str(path))  # again, over the first
    assert path.read_text(encoding="utf-8") == shown.to_html()
    assert (type(shown) in CUSTODIANS) == shown._custodian_only
    if shown._custodian_only:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_the_custodians_is_closed_also_in_a_file_that_was_open(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    path.touch(mode=0o644)
    record(AuditReport).save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_save_knows_json_and_pictures_where_there_are_any(shown: Any, tmp_path: Path) -> None:
    for ending, method in ((".json", "to_json"), (".svg", "to_svg")):
        path = tmp_path / f"x{ending}"
        if hasattr(shown, method):
            shown.save(path)
            assert path.read_text(encoding="utf-8") == getattr(shown, method)()
        else:
            with pytest.raises(InputError, match=r"ending: \.htm"):
                shown.save(path)
            assert not path.exists()
    with pytest.raises(InputError, match="ending"):
        shown.save(tmp_path / "x.pdf")


def test_nothing_below_asks_for_pages_but_the_door() -> None:
    """Also lazily, for types alone, or by a name in a text."""
    root = Path(lc.__file__).parent
    above = {"report", "testing", "cli", "server"}
    asking = set()
    for path in root.rglob("*.py"):
        place = path.relative_to(root)
        if place.parts[0] not in above and any(re.match(r"leakcap\.report\b", one) for one in mentioned(path)):
            asking.add(place.as_posix())
    assert asking == {"__init__.py", "certificates/display.py"}  # the former is the facade, above everything
    assert pages.__name__ == UPSTAIRS


def mentioned(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def test_pages_import_records_for_real() -> None:
    """No import for types alone, and none inside functions but of what loads matplotlib, and of tables' libraries."""
    for path in Path(str(Path(pages.__file__).parent)).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert "TYPE_CHECKING" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}, path.name
        inside = {
            getattr(node, "module", None) or node.names[0].name
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef)
            for node in ast.walk(function)
            if isinstance(node, (ast.Import, ast.ImportFrom))
        }
        assert inside <= {"matplotlib", "leakcap.report.figures", "pandas", "polars"}, path.name
