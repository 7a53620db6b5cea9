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
from leakcap.certificates.release import Certificate
from leakcap.errors import InputError
from leakcap.ground.arrays import Floats
from leakcap.planning.plans import Plan
from leakcap.planning.released import Release
from leakcap.report.release.answers import aim
from leakcap.report.release.page import Answer, Custody, custodian_page, public_page
from leakcap.report.release.saved import MODEL, RELEASE, release_json
from leakcap.simulate.estimators import is_estimator

__all__ = ["answer_in", "custodian_files", "public_files", "public_texts", "table_of"]

LEVEL = 0.95
README = (
    "CUSTODIAN ONLY: do not publish, share or log what lies in this folder.\n\n"
    "report.html   what the answer costs and hides: expected errors, the cloud of worlds, exposure of single people\n"
    "exposure.csv  success of the best attacker against each person, at most\n"
    "plan/         worlds, answers in each of them and the released value, to resume and to check; sealed if the\n"
    "              vault extra is installed. Remove it when no check will be needed any more.\n\n"
    "What may be published lies in ../public.\n"
)
README_OF_INPUTS = (
    "CUSTODIAN ONLY: do not publish, share or log what lies in this folder.\n\n"
    "summary.txt   what the answer costs: its spread between inputs, and the noise\n\n"
    "What may be published lies in ../public.\n"
)
PUBLIC_README = (
    "Open certificate.html: what was released, and what anybody can learn from it at most.\n"
    "The numbers are in answer.csv. answer.json and certificate.json are for programs.\n"
)
SIGNED_README = (
    f"{PUBLIC_README}SHA256SUMS lists these files, and SHA256SUMS.sig signs the list. With the issuer's public key, "
    "got by another way:\nleakcap check --public certificate.json --signer KEY\n"
)
MAX_DENSE_OUTPUTS = 512  # up to which the noise between pairs of outputs is drawn


def table_of(release: Release, title: str, names: tuple[str, ...] | None, **about: Any) -> Answer:
    """The released numbers with names and error bars, rounded to digits that mean something.

    `about` it: the issuer, the name of the data set, the date, and whether counts and sums were scaled up.
    """
    values = release.outputs
    labels = names or release.labels or release.names or tuple(f"output {i + 1}" for i in range(len(values)))
    try:
        low, high = release.interval(LEVEL)
    except InputError:
        return Answer(
            title=title, names=labels, values=values, low=None, high=None, level=LEVEL, notes=release.notes, **about
        )
    width = (high - low) / 2
    value = _rounded(values, width)
    low, high = _rounded(value - width, width), _rounded(value + width, width)
    return Answer(
        title=title, names=labels, values=value, low=low, high=high, level=LEVEL, notes=release.notes, **about
    )


def public_files(release: Release, answer: Answer, signed_with: str = "") -> dict[str, str | bytes]:
    """What may be published; made from the release alone. `signed_with` is the fingerprint of the key, if any."""
    files: dict[str, str | bytes] = {**public_texts(release.certificate, answer, signed_with)}
    files[RELEASE] = release_json(release)
    if is_estimator(release.value):
        files[MODEL] = pickle.dumps(release.value)
    return files


def public_texts(certificate: Certificate, answer: Answer, signed_with: str = "") -> dict[str, str]:
    """All of it that is text: a pure function of what anybody may see, so that anybody can make it again."""
    rows = _rows(answer)
    made = "Computed on a secret random part of the data"
    if certificate.mode in ("pool", "given"):
        made = "Added up" if certificate.mode == "pool" else "Computed on one of the given inputs"
    held = aim(certificate)
    record = certificate.to_json()
    told = {
        "question": answer.title,
        "answer": rows,
        "note": f"{made}, and noised: certificate.html explains it.",
        "interval": f"holds {held} with probability {answer.level:g} or more, each",
        "scaled": answer.scaled,
        "notes": answer.notes,
        "issuer": answer.issuer,
        "data_set": answer.data_set,
        "date": answer.date,
        "certificate": "certificate.json",
        "certificate_sha256": hashlib.sha256(record.encode()).hexdigest(),
        "signed_with": signed_with,
    }
    return {
        "README.txt": SIGNED_README if signed_with else PUBLIC_README,
        "answer.json": json.dumps(told, indent=1, ensure_ascii=False),
        "answer.csv": _csv(list(rows[0]), [list(row.values()) for row in rows]),
        "certificate.json": record,
        "certificate.html": public_page(certificate, answer, signed_with),
    }


def answer_in(text: str) -> tuple[Answer, str]:
    """The answer in an answer.json, and the fingerprint of the key that it names; an InputError if it is none."""
    try:
        told = json.loads(text)
        rows = told["answer"]
        ends = [name for name in rows[0] if name.startswith("low_")]
        level = float(ends[0].removeprefix("low_")) / 100 if ends else LEVEL
        values, *bounds = (
            np.array([float(row[name]) for row in rows])
            for name in ("released", *(f"{end}_{100 * level:g}" for end in ("low", "high") if ends))
        )
        answer = Answer(
            title=str(told["question"]),
            names=tuple(str(row["output"]) for row in rows),
            values=values,
            low=bounds[0] if ends else None,
            high=bounds[1] if ends else None,
            level=level,
            issuer=str(told["issuer"]),
            data_set=str(told["data_set"]),
            date=str(told["date"]),
            scaled=bool(told["scaled"]),
            notes=tuple(map(str, told["notes"])),
        )
        return answer, str(told["signed_with"])
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        pass
    raise InputError("answer.json is not the answer of a release: get it from the issuer again")


def custodian_files(plan: Plan, answer: Answer, caps: list[Cap], people: npt.NDArray[Any] | None) -> dict[str, str]:
    """What only the custodian may see; `people` are the labels of the units, in the order of the exposure."""
    summary = plan.summary()
    outputs = plan.run.simulation.table.shape[1]
    if plan.certificate.of_inputs:
        return {"README.txt": README_OF_INPUTS, "summary.txt": f"{summary}\n"}
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
