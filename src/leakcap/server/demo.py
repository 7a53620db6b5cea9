"""A server to try: two data sets that scikit-learn carries, a custodian and an analyst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leakcap.server.accounts import ANALYST, CUSTODIAN
from leakcap.server.passwords import made_password
from leakcap.server.state import ServerState

__all__ = ["DemoAccess", "fill"]

CAP = 0.7
BLOOD = {
    f"s{at}": name for at, name in enumerate(("cholesterol", "ldl", "hdl", "ratio", "triglycerides", "sugar"), start=1)
}


@dataclass(frozen=True)
class DemoAccess:
    """How to get in; shown once."""

    custodian: tuple[str, str]
    analyst: tuple[str, str]
    token: str


def fill(state: ServerState) -> DemoAccess:
    """Register the data, open the accounts, and make a token for the analyst."""
    diabetes, tumours = _tables()
    state.datasets.register(
        "diabetes",
        {"patients": diabetes},
        success=CAP,
        about="442 people with diabetes: age, sex, body-mass index, blood pressure, and how far it went in a year.",
        unit="patient",
        bounds={"age": (0, 110), "bmi": (10, 60), "pressure": (40, 180), "progression": (0, 400)},
        rows_per_unit=1,
        keys={"sex": ["female", "male"]},
    )
    state.datasets.register(
        "tumours",
        {"tumours": tumours},
        success=CAP,
        about="569 biopsies: size and shape of cells, and whether the tumour is malignant.",
        unit="biopsy",
        bounds={"radius": (0, 40), "texture": (0, 50), "area": (0, 3000)},
        rows_per_unit=1,
        keys={"diagnosis": ["benign", "malignant"]},
    )
    custodian, analyst = ("custodian", made_password()), ("ann", made_password())
    state.accounts.add(custodian[0], CUSTODIAN, custodian[1])
    state.accounts.add(analyst[0], ANALYST, analyst[1])
    state.accounts.allow("ann", frozenset(("diabetes", "tumours")))
    token = state.tokens.make("ann", "the demo", days=7)
    return DemoAccess(custodian, analyst, token)


def _tables() -> tuple[Any, Any]:
    from sklearn.datasets import load_breast_cancer, load_diabetes

    diabetes = load_diabetes(as_frame=True, scaled=False).frame
    diabetes = diabetes.rename(columns={"bp": "pressure", "target": "progression", **BLOOD})
    diabetes.insert(0, "patient", range(len(diabetes)))
    diabetes["sex"] = diabetes["sex"].map({1.0: "female", 2.0: "male"})
    cells = load_breast_cancer(as_frame=True).frame
    tumours = cells[["mean radius", "mean texture", "mean area"]].rename(
        columns=lambda name: name.removeprefix("mean ")
    )
    tumours.insert(0, "biopsy", range(len(tumours)))
    tumours["diagnosis"] = cells["target"].map({0: "malignant", 1: "benign"})
    return diabetes, tumours
