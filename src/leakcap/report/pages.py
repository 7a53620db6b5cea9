"""Which record is shown by which page: the far side of the door, `leakcap.certificates.display`."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from leakcap.audit.report import AuditReport
from leakcap.certificates.labels import LabelCertificate
from leakcap.certificates.obfuscation import ObfuscationCertificate, UnclaimedEncoding
from leakcap.certificates.release import Certificate
from leakcap.certificates.session import SessionCertificate
from leakcap.errors import InputError
from leakcap.estimators.tradeoff import Curve
from leakcap.ground.arrays import Floats
from leakcap.planning.accuracy import Summary
from leakcap.planning.comparison import Comparison
from leakcap.planning.plans import Plan
from leakcap.planning.released import Release
from leakcap.report.audit.page import audit_fragment, audit_page
from leakcap.report.labels.page import label_fragment, label_page
from leakcap.report.ledger.page import ledger_fragment, ledger_page
from leakcap.report.obfuscation.page import encoding_fragment, encoding_page
from leakcap.report.promises import comparison_fragment, comparison_page
from leakcap.report.release.keeping import keep
from leakcap.report.release.page import fragment as release_fragment
from leakcap.report.release.page import plan_fragment, plan_page, public_page
from leakcap.report.release.records import Answer
from leakcap.report.runs.page import run_fragment, run_page
from leakcap.report.sessions.page import session_fragment, session_page
from leakcap.report.tradeoff import Tradeoff, tradeoff_fragment, tradeoff_page, tradeoff_svg
from leakcap.sessions.overview import LedgerOverview
from leakcap.simulate.run_report import RunReport

__all__ = ["axes", "fragment", "keep", "page", "picture"]


@singledispatch
def page(record: Any) -> str:
    """A record as a whole HTML document."""
    raise _unknown(record)


@singledispatch
def fragment(record: Any) -> str:
    """A record as a part of a notebook."""
    raise _unknown(record)


def _unknown(record: Any) -> TypeError:
    return TypeError(f"leakcap.report.pages knows no page for {type(record).__name__}")


page.register(AuditReport, audit_page)
page.register(Certificate, public_page)
page.register(Comparison, comparison_page)
page.register(LabelCertificate, label_page)
page.register(LedgerOverview, ledger_page)
page.register(ObfuscationCertificate, encoding_page)
page.register(RunReport, run_page)
page.register(SessionCertificate, session_page)
page.register(Summary, plan_page)
page.register(UnclaimedEncoding, encoding_page)
fragment.register(AuditReport, audit_fragment)
fragment.register(Certificate, release_fragment)
fragment.register(Comparison, comparison_fragment)
fragment.register(LabelCertificate, label_fragment)
fragment.register(LedgerOverview, ledger_fragment)
fragment.register(ObfuscationCertificate, encoding_fragment)
fragment.register(RunReport, run_fragment)
fragment.register(SessionCertificate, session_fragment)
fragment.register(Summary, plan_fragment)
fragment.register(UnclaimedEncoding, encoding_fragment)


@page.register
def _(record: Release) -> str:
    return public_page(record.certificate, _answer(record))


@fragment.register
def _(record: Release) -> str:
    return release_fragment(record.certificate, _answer(record))


@page.register
def _(record: Plan) -> str:
    return plan_page(record.summary())


@fragment.register
def _(record: Plan) -> str:
    return plan_fragment(record.summary())


@page.register
def _(record: Curve) -> str:
    return tradeoff_page(Tradeoff.of(record))


@fragment.register
def _(record: Curve) -> str:
    return tradeoff_fragment(Tradeoff.of(record))


def picture(curve: Curve) -> str:
    """A trade-off as SVG."""
    return tradeoff_svg(Tradeoff.of(curve))


def axes(curve: Curve, ax: Any = None) -> Any:
    """A trade-off on matplotlib axes."""
    from leakcap.report.figures import tradeoff_axes  # matplotlib is slow to load, and pages need none of it

    return tradeoff_axes(Tradeoff.of(curve), ax)


def _answer(release: Release) -> Answer:
    outputs = release.outputs
    names = release.labels or release.names or tuple(f"output {i + 1}" for i in range(len(outputs)))
    low: Floats | None
    high: Floats | None
    try:
        low, high = release.interval()
    except InputError:  # the function has no answer of this form on the whole pool
        low = high = None
    return Answer(title="Released answer", names=names, values=outputs, low=low, high=high, notes=release.notes)
