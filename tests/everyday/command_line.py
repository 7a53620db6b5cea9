"""Files as offices keep them, from the command line: refused with what to add, and then released."""

from __future__ import annotations

import csv
import json
import re

import numpy as np

from tests.everyday.desk import Desk, error
from tests.everyday.lists import task

PEOPLE = 600


def released(desk: Desk, folder: str) -> list[float]:
    answer = json.loads((desk.folder / folder / "public" / "answer.json").read_text())["answer"]
    return [one["released"] for one in answer]


def salaries() -> np.ndarray:
    return np.random.default_rng(0).normal(3200, 500, PEOPLE).round(2)


def german(amount: float) -> str:
    return f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))


@task("A spreadsheet from Vienna: semicolons, 3.200,50, cp1252", within=0.05)
def vienna(desk: Desk) -> float:
    pay = salaries()
    lines = ["Gehalt;Straße", *(f"{german(one)};Währinger Straße" for one in pay)]
    desk.write("wien.csv", "\r\n".join(lines) + "\r\n", encoding="cp1252")
    command = "leakcap release wien.csv --fn mean --columns Gehalt --cap membership=0.6 --out wien"
    for _ in range(2):  # each refusal names the next option
        code, said = desk.run(command)
        assert code == 2 and "Gehalt" not in said.replace("'Gehalt'", "") and german(pay[0]) not in said
        command += " " + " ".join(re.findall(r"--read [a-z]+=[^\s,]+", " ".join(said.split())))
    assert desk.run(command)[0] == 0
    return error(released(desk, "wien"), [pay.mean()])


@task("n/a, dashes and empty lines where values are missing", within=0.05)
def missing(desk: Desk) -> float:
    pay = salaries()
    cells = [("n/a", "-", "")[row % 3] if row % 50 == 0 else f"{one}" for row, one in enumerate(pay)]
    lines = ["id,salary", *(f"{row},{cell}" for row, cell in enumerate(cells)), "", ""]
    desk.write("gaps.csv", "\n".join(lines))
    command = "leakcap release gaps.csv --fn mean --columns salary --cap membership=0.6 --out gaps"
    code, said = desk.run(command)
    assert code == 2 and "--read missing=marks" in " ".join(said.split())
    code, said = desk.run(f"{command} --read missing=marks")
    assert code == 2 and "--missing drop" in " ".join(said.split())
    assert desk.run(f"{command} --read missing=marks --missing drop")[0] == 0
    return error(released(desk, "gaps"), [pay[np.arange(PEOPLE) % 50 != 0].mean()])


@task("An export with a byte order mark and line breaks inside cells", within=0.05)
def quoted(desk: Desk) -> float:
    pay = salaries()
    with (desk.folder / "export.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["salary", "remark"])
        writer.writerows((one, "first line\nsecond, line") for one in pay)
    code, said = desk.run("leakcap release export.csv --fn mean --columns salary --cap membership=0.6 --out export")
    assert code == 0, said
    return error(released(desk, "export"), [pay.mean()])


@task("A file of one column, and nothing said about columns", within=0.05)
def one_column(desk: Desk) -> float:
    pay = salaries()
    desk.write("pay.csv", "salary\n" + "\n".join(map(str, pay)) + "\n")
    code, said = desk.run("leakcap release pay.csv --fn mean --cap membership=0.6 --out pay")
    assert code == 0, said
    return error(released(desk, "pay"), [pay.mean()])


@task("Years of birth, from dates as they are written in Germany", within=0.01)
def dates(desk: Desk) -> float:
    years = 1940 + np.arange(PEOPLE) % 60
    days = [f"{1 + row % 28}.{1 + row % 12}.{year}" for row, year in enumerate(years)]
    desk.write("born.csv", "born\n" + "\n".join(days) + "\n")
    command = "leakcap release born.csv --fn mean --columns born --cap membership=0.6 --out born"
    code, said = desk.run(command)
    assert code == 2 and "--read dates=" in " ".join(said.split())
    code, said = desk.run(command.replace("--columns born", "--columns born.year") + " --read dates=dmy")
    assert code == 0, said
    return error(released(desk, "born"), [years.mean()])


@task("Adult's counts by sex, so that nobody learns who is in the file", within=0.1)
def pool(desk: Desk) -> float:
    adult = desk.adult()
    adult.to_csv(desk.folder / "adult.csv", index=False)
    command = "leakcap release adult.csv --fn count --by sex=Female,Male --cap pool=0.55 --out counts"
    code, said = desk.run(command)
    assert code == 0, said
    return error(released(desk, "counts"), adult["sex"].value_counts()[["Female", "Male"]])
