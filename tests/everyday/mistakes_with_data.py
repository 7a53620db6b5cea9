"""Data as they come, and answers that are misread: what is said, quoting no cell, and that it helps."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pandas
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import leakcap as lc
from leakcap import errors
from leakcap.estimators import LogisticRegression, Private
from tests.everyday.desk import Desk, told
from tests.everyday.lists import mistake
from tests.refusals import refusal


@mistake("The name of a file in place of its table")
def path(desk: Desk) -> None:
    desk.heart()[["age"]].to_csv(desk.folder / "heart.csv", index=False)
    file = desk.folder / "heart.csv"
    for given in (file, str(file)):
        refusal(lambda given=given: lc.plan(lc.stats.mean, given, cap=0.55), r"read the file first, pandas.read_csv\(")
        refusal(lambda given=given: lc.Session(given, cap=0.55), r"read the file first, pandas.read_csv\(")
    assert lc.release(lc.stats.mean, pandas.read_csv(file), cap=0.55).value.shape == (1,)
    assert desk.run("leakcap release heart.csv --fn mean --cap membership=0.55 --out heart --alone")[0] == 0


@mistake("Missing values among the numbers")
def missing(desk: Desk) -> None:
    heart = desk.heart()
    refusal(lambda: lc.plan(lc.stats.mean, heart[["age", "ca"]], cap=0.55), "drop such rows, or fill them")
    assert lc.release(lc.stats.mean, heart[["age", "ca"]].dropna(), cap=0.55).value.shape == (2,)
    assert lc.release(lc.stats.mean, heart[["chol", "ca"]].fillna(0), cap=0.55).value.shape == (2,)
    X, y = heart[["age", "ca"]], heart["num"] > 0
    with pytest.raises(lc.InputError, match=r"Private\(make_pipeline\(SimpleImputer"):
        LogisticRegression(cap=0.6).fit(X, y)
    model = Private(make_pipeline(SimpleImputer(), PlainLogistic()), cap=0.6).fit(X, y)
    assert model.score(X, y) > 0.4


@mistake("A column of words among the numbers")
def words(desk: Desk) -> None:
    adult = desk.adult()
    X, y = adult[["age", "education_num", "hours_per_week", "sex"]], adult["income"]
    cells = ("'Male'", "'Female'")
    cure = r"column 'sex' of X holds text.*Private\(make_pipeline\(ColumnTransformer\("
    for model in (LogisticRegression(cap=0.6), Private(PlainLogistic(), cap=0.6)):
        refusal(lambda model=model: model.fit(X, y), cure, private=cells)
    columns = ColumnTransformer([("categories", OneHotEncoder(), ["sex"])], remainder="passthrough")
    model = Private(make_pipeline(columns, PlainLogistic(max_iter=1000)), cap=0.6).fit(X, y)
    assert model.score(X, y) > 0.6


@mistake("Several rows of a person, and unit= forgotten")
def unit(desk: Desk) -> None:
    visits = desk.diabetes()[["patient_nbr", "time_in_hospital", "num_medications"]]
    visits = pandas.concat([visits, visits[:500]])

    def ask(table: pandas.DataFrame) -> float:
        return float(table["time_in_hospital"].mean())

    with told(errors.RepeatedIdsWarning, "column 'patient_nbr'", "unit='patient_nbr' protects the person"):
        lc.plan(ask, visits, cap=0.55)
    with told(errors.RepeatedIdsWarning, "unit='patient_nbr'"):
        lc.Session(visits, cap=0.55)
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.RepeatedIdsWarning)
        plan = lc.plan(ask, visits, unit="patient_nbr", cap=0.55)
    assert plan.certificate.units == visits["patient_nbr"].nunique()


@mistake("A group that nobody in the pool is in leaves as an exact 0")
def empty_group(desk: Desk) -> None:
    counts = lc.stats.group_by({"cp": [1.0, 2.0, 3.0, 4.0, 5.0]}, "count")
    release = lc.release(counts, desk.heart(), cap=0.55)
    assert float(release.value.iloc[-1]) == 0
    (note,) = (one for one in release.notes if "exact 0" in one)
    assert "tells that nobody in the pool is there" in note
    pool = lc.release(counts, desk.heart()[["cp"]], cap=lc.pool_membership(0.55))  # the cap that hides it
    assert float(pool.value.iloc[-1]) != 0


@mistake("A count of the half that was used, read as one of everybody")
def half(desk: Desk) -> None:
    heart = desk.heart()
    older = heart["age"] > 55
    release = lc.release(lambda table: int((table["age"] > 55).sum()), heart, cap=0.55)
    assert any("of the half of the pool that was used" in note and "2 times as large" in note for note in release.notes)
    assert "of the half that was used" in release.labels[0]
    assert release.value < 0.75 * older.sum()
    counted = lc.release(lc.stats.sum, older.to_frame().astype(int), cap=0.55)  # on the scale of the whole pool
    assert not any("half" in note for note in counted.notes)
    assert counted.value.iloc[0] > 0.75 * older.sum()


@mistake("A key file that was made without anybody noticing")
def key(desk: Desk) -> None:
    before = os.environ.get("LEAKCAP_KEY")
    os.environ["LEAKCAP_KEY"] = str(desk.folder / "keys" / "vault.key")
    try:
        adult, ledger = desk.adult()[["age"]], f"sqlite:///{desk.folder / 'ledger.db'}"
        with told(errors.KeyMadeWarning, "keep a copy"):
            lc.Session(adult, cap=0.6, ledger=ledger, name="census").count()
        copy = (desk.folder / "keys" / "vault.key").read_bytes()
        (desk.folder / "keys" / "vault.key").rename(desk.folder / "lost")
        refusal(lambda: lc.Session(adult, cap=0.6, ledger=ledger, name="census"))
        (desk.folder / "keys" / "vault.key").write_bytes(copy)
        os.chmod(desk.folder / "keys" / "vault.key", 0o600)
        assert lc.Session(adult, cap=0.6, ledger=ledger, name="census").count().again
    finally:
        os.environ.pop("LEAKCAP_KEY") if before is None else os.environ.update(LEAKCAP_KEY=before)


@mistake("A function that returns the rows it found, or nothing")
def rows(desk: Desk) -> None:
    heart = desk.heart()
    found = "return a fixed size in a canonical order"
    refusal(lambda: lc.plan(lambda table: table["chol"][table["age"] > 60].to_numpy(), heart, cap=0.55), found)
    refusal(lambda: lc.plan(lambda table: print(end=""), heart, cap=0.55), "return numbers, arrays, dicts")
    release = lc.release(lambda table: table["chol"][table["age"] > 60].mean(), heart, cap=0.55)
    assert np.isfinite(release.value)
