"""`leakcap explain --table`: every currency in one table, as text, JSON and bare lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leakcap.cli.explain import run
from leakcap.convert.table import CURRENCIES
from leakcap.errors import InputError


@pytest.mark.parametrize("given", [["mi=0.1"], ["eps=1", "n=50"], ["rho=0.1", "n=100"], ["success=60%"], ["eta=0.05"]])
def test_every_currency_is_shown_in_every_form(given: list[str], capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run(given, table=True)
    text = capsys.readouterr().out
    assert all(currency in text for currency in CURRENCIES)
    run(given, json=True, table=True)
    lines = json.loads(capsys.readouterr().out)["lines"]
    assert [line["currency"] for line in lines] == list(CURRENCIES)
    run(given, quiet=True, table=True)
    assert len(capsys.readouterr().out.splitlines()) == len(CURRENCIES)


@pytest.mark.parametrize(
    ("given", "table"),
    [
        (["rho=0.1"], False),
        (["rho=-1"], True),
        (["rho=0.1", "mi=1"], True),
        (["mi=1", "n=5"], True),
        ([], True),
        (["rho=0.1", "delta=0.1"], True),
        (["success=0.3", "prior=0.1"], True),
    ],
)
def test_what_makes_no_table_is_refused(given: list[str], table: bool) -> None:
    with pytest.raises(InputError):
        run(given, table=table)
