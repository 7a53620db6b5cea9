"""Every page as its readers meet it: words, width, contrast and the order of the keyboard, and pictures of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

import leakcap as lc
from leakcap.audit.report import AuditReport
from leakcap.cli import main as command
from leakcap.estimators.tradeoff import privacy_utility_curve
from leakcap.planning.plans import Plan
from leakcap.sessions.overview import overview

__all__ = ["written"]

PEOPLE = 4_000
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


def _plan(seed: int | None = None) -> Plan:
    table = patients()[["age", "days"]].to_numpy(dtype=float)[:400]
    return lc.plan(lc.stats.mean, table, cap=lc.membership(0.55), worlds=64, draws=1024, design="worlds", seed=seed)


def _simulation(folder: Path) -> str:
    return _plan(seed=1).release().to_html(allow_simulation=True)


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
    "custodian": _released(*WORLDS, page="custodian/report.html"),
    "plan": lambda folder: _plan().to_html(),
    "simulation": _simulation,
    "labels": _labels,
    "session": _session,
    "ledger": _ledger,
    "audit-holds": lambda folder: _audit().to_html(),
    "audit-refuted": _refuted,
    "audit-model": _model,
    "promises": lambda folder: _plan().compare().to_html(),
    "tradeoff": _curve,
}
