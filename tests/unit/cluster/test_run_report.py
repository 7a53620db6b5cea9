"""What runs on a cluster tell of themselves, stage by stage."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leakcap as lc

HEIGHTS = np.random.default_rng(0).normal(170, 10, 200)
FRAME = pd.DataFrame({"who": np.arange(200) % 50, "height": HEIGHTS})


def middle(heights: np.ndarray) -> float:
    return float(np.median(heights))


def test_a_plan_on_a_cluster_tells_worlds_rows_and_bytes(pair: lc.cluster.Cluster, tmp_path: Path) -> None:
    run = lc.RunReport(show=False)
    lc.plan(middle, HEIGHTS, cap=0.6, worlds=64, seed=1, backend=pair, progress=run)
    worlds, noise, certificate = run.stages
    assert (worlds.name, worlds.done, worlds.workers) == ("worlds", 64, 2)
    assert 62 * 100 <= worlds.rows <= 64 * 100  # half of all in each world
    assert worlds.moved > 2 * HEIGHTS.nbytes and worlds.per_second > 0
    assert worlds.rows_per_second == pytest.approx(worlds.rows / worlds.seconds)
    assert (noise.name, certificate.name) == ("noise", "certificate")
    assert run.seconds == pytest.approx(sum(one.seconds for one in run.stages))
    run.save(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    assert stat.S_IMODE((tmp_path / "run.html").stat().st_mode) == 0o600
    assert "CUSTODIAN ONLY" in page and "the function in possible worlds" in page and ">64<" in page
    assert "MB travelled to and from workers" in page and "<script" not in page
    assert "the function in possible worlds" in run._repr_html_() and "worlds: 64 in" in str(run)


def test_a_session_tells_of_rows_that_are_read_and_of_shards(pair: lc.cluster.Cluster) -> None:
    run = lc.RunReport(show=False)
    session = lc.Session(
        lc.partitions([FRAME.iloc[:80], FRAME.iloc[80:]]),
        cap=0.6,
        unit="who",
        seed=1,
        backend=pair,
        progress=run,
    )
    assert [(one.name, one.done, one.rows) for one in run.stages] == [("rows", 200, 200)]
    for share in (0.1, 0.2):
        session.sum("height", bounds=(0, 250), share=share)
    shards = len(session._questions.shards.shards)
    _, first, second = run.stages
    assert (
        (first.name, first.done, first.workers) == (second.name, second.done, second.workers) == ("shards", shards, 2)
    )
    assert first.moved > FRAME.memory_usage().sum() / 2 > 0, "rows travel with the first question"
    assert 0 < second.moved < first.moved, "and stay with the workers"
