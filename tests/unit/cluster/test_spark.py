"""Warehouses run Spark: keyed coins and exact sums by `mapInArrow`, and a session's answer from Spark's rows."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import leakcap as lc
from leakcap.worlds.keyed import keyed_bits, keyed_numbers, keyed_words

if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)
pyspark_sql = pytest.importorskip("pyspark.sql", reason="pip install pyspark")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Spark has warnings of its own

KEY = bytes(range(16))
EDGES = np.linspace(0, 100, 11)
GRAIN = 2.0**-20  # to multiples of which everything that is added up is cut: sums of whole numbers have no order


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        pyspark_sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "64")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    yield session
    session.stop()


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"who": rng.integers(0, 60, 300), "age": rng.normal(40, 10, 300)})


def coins_and_words(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A row for every row: whose it is, that person's number, coin and first word of worlds."""
    for batch in batches:
        names = batch.column("who").to_numpy()
        word = keyed_words(names, KEY, 64)[0].view(np.int64)
        columns = [names, keyed_numbers(names, KEY).view(np.int64), keyed_bits(names, KEY), word]
        yield pa.RecordBatch.from_arrays(list(map(pa.array, columns)), names=["who", "number", "coin", "word"])


def sums_under_bits(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A row for every partition: what those bring whose coin says so, in whole numbers."""
    total = np.zeros(len(EDGES) + 1, dtype=np.int64)
    for batch in batches:
        coins = keyed_bits(batch.column("who").to_numpy(), KEY)
        age = np.clip(batch.column("age").to_numpy()[coins], 0, 100)
        total[0] += np.trunc(age / GRAIN).astype(np.int64).sum()
        total[1] += len(age)
        total[2:] += np.histogram(age, EDGES)[0]
    yield pa.RecordBatch.from_arrays([pa.array([total.tolist()])], names=["total"])


def of_everybody(table: Any) -> np.ndarray:
    rows = table.mapInArrow(sums_under_bits, "total array<bigint>").collect()
    return np.sum([row.total for row in rows], axis=0)


def test_coins_and_worlds_are_the_same_in_sparks_workers(spark: Any) -> None:
    kinds = "who bigint, number bigint, coin boolean, word bigint"
    rows = spark.createDataFrame(people()).repartition(5).mapInArrow(coins_and_words, kinds).toPandas()
    assert len(rows) == 300
    assert rows["number"].tolist() == keyed_numbers(rows["who"].to_numpy(), KEY).view(np.int64).tolist()
    assert rows["coin"].tolist() == keyed_bits(rows["who"].to_numpy(), KEY).tolist()
    assert rows["word"].tolist() == keyed_words(rows["who"].to_numpy(), KEY, 64)[0].view(np.int64).tolist()


@pytest.mark.parametrize("parts", [1, 2, 7, 64])
def test_sums_and_histograms_under_bits_are_the_same_on_every_partitioning(spark: Any, parts: int) -> None:
    frame = people()
    batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    here = next(sums_under_bits([batch])).column("total").to_pylist()[0]
    assert of_everybody(spark.createDataFrame(frame).repartition(parts)).tolist() == here
    assert 0 < here[1] < len(frame)


def test_a_session_about_sparks_rows_answers_as_one_about_the_table(spark: Any) -> None:
    frame = people()
    table = spark.createDataFrame(frame).repartition(7)
    how: dict[str, Any] = {"cap": 0.6, "unit": "who", "seed": 1}
    one, session = lc.Session(frame, **how), lc.Session(lc.partitions(table.toArrow().to_reader(64)), **how)
    for ask in (
        lambda it: it.mean("age", bounds=(0, 100), share=0.2),
        lambda it: it.histogram("age", edges=EDGES, share=0.2),
    ):
        assert np.array_equal(ask(session).value, ask(one).value)
    assert session.spent == one.spent
