"""Plans to audit."""

from __future__ import annotations

from typing import Any

from sklearn.datasets import load_iris

import leakcap as lc

IRIS, KINDS = load_iris(return_X_y=True)


def plan(fn: Any = lc.stats.mean, data: Any = IRIS, cap: float = 0.6, **options: Any) -> lc.Plan:
    return lc.plan(fn, data, cap=lc.membership(cap), **({"worlds": 64, "draws": 1024} | options))
