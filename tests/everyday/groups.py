"""The same of every group."""

from __future__ import annotations

import polars

import leakcap as lc
from tests.everyday.desk import Desk, error
from tests.everyday.lists import task

LEVELS = ["HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate"]


@task("The mean working week of women and men", within=0.05)
def mean_by_sex(desk: Desk) -> float:
    adult = desk.adult()
    by_sex = lc.stats.group_by({"sex": ["Female", "Male"]}, "mean", of="hours_per_week")
    release = lc.release(by_sex, adult, cap=0.55)
    return error(release.value["hours_per_week"], adult.groupby("sex")["hours_per_week"].mean())


@task("How many people there are of each level of education", within=0.1)
def counts(desk: Desk) -> float:
    adult = desk.adult()
    release = lc.release(lc.stats.group_by({"education": LEVELS}, "count"), adult, cap=0.55)
    return error(release.value, adult["education"].value_counts()[LEVELS])


@task("pandas' own groupby, of heart patients", within=0.15)
def by_pandas(desk: Desk) -> float:
    heart = desk.heart()
    release = lc.release(lambda table: table.groupby("sex")["chol"].mean(), heart, cap=0.55)
    return error(release.value, heart.groupby("sex")["chol"].mean())


@task("Days in hospital by age group, several stays of a patient", within=0.2)
def stays(desk: Desk) -> float:
    visits = desk.diabetes()
    ages = ["[40-50)", "[50-60)", "[60-70)", "[70-80)"]
    by_age = lc.stats.group_by({"age": ages}, "mean", of="time_in_hospital")
    release = lc.release(by_age, visits, unit="patient_nbr", cap=0.55)
    plain = visits.groupby("age", observed=True)["time_in_hospital"].mean()[ages]
    assert release.certificate.units == visits["patient_nbr"].nunique()
    return error(release.value["time_in_hospital"], plain)


@task("Means of a polars table", within=0.02)
def of_polars(desk: Desk) -> float:
    table = polars.from_pandas(desk.adult()[["age", "education_num"]])
    release = lc.release(lc.stats.mean, table, cap=0.55)
    return error(release.value.row(0), table.mean().row(0))
