"""What notebooks show of a plan and of a release: the first is the custodian's, the second anybody's."""

from __future__ import annotations

import numpy as np

import leakcap as lc

rng = np.random.default_rng(4)
TABLE = {"a": rng.normal(size=40), "b": 777123.5 + rng.normal(size=40)}
SMALL = {"cap": lc.mutual_information(0.3), "worlds": 16, "draws": 256, "seed": 1}


def means(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    return {"<b>a</b>": a.mean(), "b": b.mean()}


def test_a_release_shows_its_answer_and_its_certificate_and_nothing_else() -> None:
    plan = lc.plan(means, *TABLE.values(), **SMALL)
    release = plan.release()
    shown = release._repr_html_()
    assert f"{release.value['b']!r}" in shown
    assert repr(float(plan.summary().answer[1])) not in shown
    assert "CUSTODIAN" not in shown
    assert "SIMULATION" in shown
    assert "<b>a</b>" not in shown
    assert "&lt;b&gt;a&lt;/b&gt;" in shown
    assert "<script" not in shown


def test_a_plan_says_that_it_is_the_custodians() -> None:
    plan = lc.plan(means, *TABLE.values(), **SMALL)
    shown = plan._repr_html_()
    assert "CUSTODIAN ONLY" in shown
    assert repr(float(plan.summary().answer[1])) in shown
    assert "&lt;b&gt;a&lt;/b&gt;" in shown
    assert not plan._token._spent, "looking releases nothing"


def test_many_outputs_and_no_interval_are_shown_too() -> None:
    def fragile(x: np.ndarray) -> np.ndarray:
        if len(x) > 30:
            raise ValueError
        return np.full(12_000, x.mean())

    release = lc.plan(fragile, TABLE["a"], **SMALL).release()
    assert "output 1" in release._repr_html_()
