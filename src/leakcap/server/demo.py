"""A server to try: two data sets that scikit-learn carries, a custodian and an analyst; and tables to bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leakcap.server.accounts import ANALYST, CUSTODIAN
from leakcap.server.passwords import made_password
from leakcap.server.state import ServerState

__all__ = ["SAMPLES", "DemoAccess", "fill", "sample"]

CAP = 0.7
SAMPLES = ("wages", "visits")  # tables that a custodian may bring on the tour
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


def sample(name: str) -> bytes:
    """A table of made-up people as CSV: others each time, since the ledger lets nobody be released from two secrets."""
    rng = np.random.default_rng()
    if name == "wages":
        columns = {
            "person": rng.choice(10**9, 400, replace=False),
            "age": rng.integers(18, 67, 400),
            "wage": np.rint(rng.lognormal(8.0, 0.4, 400)),
            "team": rng.choice(["red", "blue"], 400),
        }
    else:
        columns = {
            "person": rng.choice(10**9, 300, replace=False),
            "town": rng.choice(["north", "south"], 300),
            "cost": np.rint(rng.lognormal(4.5, 0.6, 300)),
        }
    return pd.DataFrame(columns).to_csv(index=False).encode()


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
