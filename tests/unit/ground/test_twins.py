"""Two columns of one name: refused wherever a table comes in, with a cure that then works."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression as PlainLogistic

import leakcap as lc
from leakcap.errors import InputError
from leakcap.estimators import LogisticRegression, Private, RandomForestClassifier
from leakcap.ground.twins import twins_of
from leakcap.tables.files import open_table
from leakcap.tables.reading import Reading
from tests.refusals import refusal

pytestmark = pytest.mark.usefixtures("few_worlds", "few_draws")


def table() -> pd.DataFrame:
    cells = np.random.default_rng(0).normal(50, 10, (300, 3)).round(2)
    return pd.DataFrame(cells, columns=["age", "score", "score"])


def test_names_and_places_are_told() -> None:
    assert twins_of(["a", "b"]) == ""
    assert twins_of(["a", "b", "a", "b", "b"]) == "a (columns 1 and 3), b (columns 2, 4 and 5)"
    assert twins_of(list(range(9)) * 2).endswith("4 (columns 5 and 14) and 4 more")


def test_a_table_with_twins_is_refused_wherever_it_comes_in_and_the_cure_works() -> None:
    twins, older = table(), table()["age"] > 50
    told = r"same name: score \(columns 2 and 3\).*table\.loc\[:, ~table\.columns\.duplicated\(\)\]"
    cells = tuple(str(one) for one in twins.iloc[0])
    for call in (
        lambda: lc.plan(lc.stats.mean, twins, cap=0.55),
        lambda: lc.plan(lambda rows: rows["age"].mean(), twins, cap=0.55),
        lambda: lc.plan(lc.stats.group_by({"age": [1]}), twins, cap=0.55),
        lambda: lc.plan(lc.stats.mean, twins, cap=lc.pool_membership(0.55), bounds=(0, 100)),
        lambda: lc.plan(lc.stats.mean, twins, unit="score", cap=0.55),
        lambda: lc.Session(twins, cap=0.55),
        lambda: LogisticRegression(cap=0.6).fit(twins, older),
        lambda: RandomForestClassifier(cap=0.6).fit(twins, older),
        lambda: Private(PlainLogistic(), cap=0.6).fit(twins, older),
    ):
        refusal(call, told, private=cells)
    for cured in (twins.loc[:, ~twins.columns.duplicated()], twins.set_axis(["age", "score", "other"], axis=1)):
        assert list(lc.release(lc.stats.mean, cured, cap=0.55).value.index) == list(cured.columns)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv"])
def test_a_file_with_twins_is_refused_before_it_is_read(tmp_path: Path, ending: str) -> None:
    file, mark = tmp_path / f"scores.{ending}", "\t" if ending == "tsv" else ","
    table().to_csv(file, index=False, sep=mark)
    told = rf"scores\.{ending} has .* score \(columns 2 and 3\)\. Rename them in the file"
    with pytest.raises(InputError, match=told):
        open_table(file, Reading.of([]))
    table().set_axis(["age", "score", "other"], axis=1).to_csv(file, index=False, sep=mark)
    assert list(open_table(file, Reading.of([])).columns) == ["age", "score", "other"]
