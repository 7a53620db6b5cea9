"""A release as files: the answer as JSON and CSV, the certificate as JSON and as a page, the custodian's report."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.caps import Cap, Membership, PoolMembership
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.planning.plans import Plan
from leakcap.planning.released import Release
from leakcap.report.release.answers import aim
from leakcap.report.release.page import Answer, Custody, custodian_page, public_page
from leakcap.simulate.estimators import is_estimator

__all__ = ["custodian_files", "public_files", "table_of"]

LEVEL = 0.95
README = (
    "CUSTODIAN ONLY: do not publish, share or log what lies in this folder.\n\n"
    "report.html   what the answer costs and hides: expected errors, the cloud of worlds, exposure of single people\n"
    "exposure.csv  success of the best attacker against each person, at most\n"
    "plan/         worlds, answers in each of them and the released value, to resume and to check; sealed if the\n"
    "              vault extra is installed. Remove it when no check will be needed any more.\n\n"
    "What may be published lies in ../public.\n"
)
PUBLIC_README = (
    "Open certificate.html: what was released, and what anybody can learn from it at most.\n"
    "The numbers are in answer.csv. answer.json and certificate.json are for programs.\n"
)
MAX_DENSE_OUTPUTS = 512  # up to which the noise between pairs of outputs is drawn


def table_of(release: Release, title: str, names: tuple[str, ...] | None, **about: str) -> Answer:
    """The released numbers with names and error bars, rounded to digits that mean something.

    `about` it: the issuer, the name of the data set, the date.
    """
    values = release.outputs
    labels = names or release.labels or release.names or tuple(f"output {i + 1}" for i in range(len(values)))
    try:
        low, high = release.interval(LEVEL)
    except InputError:
        return Answer(title=title, names=labels, values=values, low=None, high=None, level=LEVEL, **about)
    width = (high - low) / 2
    value = _rounded(values, width)
    low, high = _rounded(value - width, width), _rounded(value + width, width)
    return Answer(title=title, names=labels, values=value, low=low, high=high, level=LEVEL, **about)


def public_files(release: Release, answer: Answer) -> dict[str, str | bytes]:
    """What may be published; made from the release alone."""
    rows = _rows(answer)
    pooled = release.certificate.mode == "pool"
    held = aim(pooled and release.certificate.in_blocks)
    certificate = release.certificate.to_json()
    files: dict[str, str | bytes] = {
        "README.txt": PUBLIC_README,
        "answer.json": json.dumps(
            {
                "question": answer.title,
                "answer": rows,
                "note": f"{'Added up' if pooled else 'Computed on a secret random part of the data'}, and noised: "
                "certificate.html explains it.",
                "interval": f"holds {held} with probability {answer.level:g} or more, each",
                "issuer": answer.issuer,
                "data_set": answer.data_set,
                "date": answer.date,
                **({"notes": list(release.notes)} if release.notes else {}),
                "certificate": "certificate.json",
                "certificate_sha256": hashlib.sha256(certificate.encode()).hexdigest(),
            },
            indent=1,
            ensure_ascii=False,
        ),
        "answer.csv": _csv(list(rows[0]), [list(row.values()) for row in rows]),
        "certificate.json": certificate,
        "certificate.html": public_page(release.certificate, answer),
    }
    if is_estimator(release.value):
        files["model.pkl"] = pickle.dumps(release.value)
    return files


def custodian_files(plan: Plan, answer: Answer, caps: list[Cap], people: npt.NDArray[Any] | None) -> dict[str, str]:
    """What only the custodian may see; `people` are the labels of the units, in the order of the exposure."""
    summary = plan.summary()
    outputs = plan.run.simulation.table.shape[1]
    custody = Custody(
        exposure=plan.exposure,
        outputs=plan.run.simulation.table,
        noise_deviations=summary.noise,
        noise_covariance=_noise_covariance(plan, outputs),
        whole_pool=summary.answer,
        halving=summary.halving,
        noise=summary.noise,
        forecast=summary.forecast,
        cap=min((cap.success for cap in caps if isinstance(cap, (Membership, PoolMembership))), default=None),
    )
    order = np.argsort(-plan.exposure, kind="stable")
    labels = np.arange(1, len(order) + 1) if people is None else people
    exposure = zip(labels[order].tolist(), plan.exposure[order].tolist(), strict=True)
    return {
        "README.txt": README,
        "report.html": custodian_page(plan.certificate, answer, custody),
        "exposure.csv": _csv(["row" if people is None else "unit", "success_at_most"], exposure),
    }


def _noise_covariance(plan: Plan, outputs: int) -> Floats | None:
    """Between pairs of outputs, where it is drawn; of answers made of sums only the sums' own is known."""
    if plan.run.finishing is not None or outputs > MAX_DENSE_OUTPUTS:
        return None
    return plan.noise.covariance()


def _rows(answer: Answer) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"output": name, "released": value} for name, value in zip(answer.names, answer.values.tolist(), strict=True)
    ]
    if answer.low is not None and answer.high is not None:
        for row, low, high in zip(rows, answer.low.tolist(), answer.high.tolist(), strict=True):
            row[f"low_{100 * answer.level:g}"] = low
            row[f"high_{100 * answer.level:g}"] = high
    return rows


def _csv(head: list[str], rows: Any) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def _rounded(values: Floats, width: Floats) -> Floats:
    """To a thousandth of the error bar: more digits would say nothing."""
    unit = 10.0 ** np.floor(np.log10(np.maximum(width, 1e-290)) - 3)
    inverse = np.rint(1 / unit)  # powers of ten above one are exact, tenths are not: divide by them instead
    fine = np.where(unit < 1, np.rint(values * inverse) / np.maximum(inverse, 1), np.rint(values / unit) * unit)
    return np.where(width > 0, fine, values)
