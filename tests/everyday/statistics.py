"""Numbers about a column or two."""

from __future__ import annotations

import functools

import numpy as np
from scipy.stats import trim_mean

import leakcap as lc
from tests.everyday.desk import Desk, error
from tests.everyday.lists import task


@task("The mean age and working week of adults", within=0.05)
def means(desk: Desk) -> float:
    table = desk.adult()[["age", "hours_per_week"]]
    release = lc.release(lc.stats.mean, table, cap=0.55)
    return error(release.value, table.mean())


@task("How many hours they work together", within=0.05)
def total(desk: Desk) -> float:
    hours = desk.adult()[["hours_per_week"]]
    release = lc.release(lc.stats.sum, hours, cap=0.55)
    return error(release.value, hours.sum())


@task("Which share earns more than 50,000", within=0.2)
def share(desk: Desk) -> float:
    rich = desk.adult()[["income"]] == ">50K"
    release = lc.release(lc.stats.share, rich, cap=0.55)
    return error(release.value, rich.mean())


@task("The median cholesterol of heart patients, as pandas computes it", within=0.1)
def median(desk: Desk) -> float:
    heart = desk.heart()
    release = lc.release(lambda table: table["chol"].median(), heart, cap=0.55)
    return error(release.value, heart["chol"].median())


@task("Quartiles of age, cut points given", within=0.1)
def quartiles(desk: Desk) -> float:
    ages = desk.adult()["age"].to_numpy()
    quartiles = functools.partial(lc.stats.quantile, q=[0.25, 0.5, 0.75], grid=range(15, 96, 5))
    release = lc.release(quartiles, ages, cap=0.55)
    return error(np.ravel(release.value), np.quantile(ages, [0.25, 0.5, 0.75]))


@task("A histogram of ages", within=0.1)
def histogram(desk: Desk) -> float:
    ages = desk.adult()["age"].to_numpy()
    bins = functools.partial(lc.stats.histogram, edges=[16, 30, 45, 60, 91])
    release = lc.release(bins, ages, cap=0.55)
    counts = np.histogram(ages, [16, 30, 45, 60, 91])[0]
    return error(np.ravel(release.value), counts / len(ages))


@task("How lengths and widths of beans vary together", within=0.6)
def covariance(desk: Desk) -> float:
    beans = desk.beans()[["MajorAxisLength", "MinorAxisLength"]]
    release = lc.release(lc.stats.covariance, beans, cap=0.55)
    return error(release.value, np.cov(beans.T))


@task("A trimmed mean, from scipy", within=0.15)
def trimmed(desk: Desk) -> float:
    pressure = desk.heart()["trestbps"].to_numpy()
    plan = lc.plan(lambda rows: trim_mean(rows, 0.1), pressure, cap=0.55)
    assert "error" in str(plan.summary())
    return error(plan.release().value, trim_mean(pressure, 0.1))
