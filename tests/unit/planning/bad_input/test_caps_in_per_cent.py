"""A cap that was written in per cent, or as text, is asked about: did you mean 0.55?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.cli.limits import limits
from leakcap.errors import CapError, InputError

WRITTEN: dict[Any, str] = {55: "0.55", 60.5: "0.605", "55%": "0.55", "55 %": "0.55", "55": "0.55", "0.55": "0.55"}


@pytest.mark.parametrize("cap", WRITTEN, ids=repr)
def test_what_was_meant_is_offered(cap: Any) -> None:
    words = f"did you mean {WRITTEN[cap]}\\?"
    for tried in (
        lambda: lc.plan(np.mean, np.ones(8), cap=cap),
        lambda: lc.Session(np.ones(8), cap=cap),
        lambda: lc.estimators.Mean(cap=cap).fit(np.ones((8, 1))),
        lambda: lc.membership(cap) if not isinstance(cap, str) else lc.plan(np.mean, np.ones(8), cap=cap),
    ):
        with pytest.raises(InputError, match=words):
            tried()
    if cap != "0.55":  # which is how the command has it
        with pytest.raises(InputError, match=words):
            limits([str(cap)])


@pytest.mark.parametrize("cap", ["membership", "", "%", "55%%", 0.5, -1, 101, None, True, [], "nan"], ids=repr)
def test_nothing_is_offered_where_nothing_can_be_meant(cap: Any) -> None:
    with pytest.raises((CapError, InputError)) as refused:
        lc.plan(np.mean, np.ones(8), cap=cap)
    assert "did you mean" not in str(refused.value)
