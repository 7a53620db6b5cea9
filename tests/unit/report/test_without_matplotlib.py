"""Pictures drawn by matplotlib need an extra, and say which one."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import leakcap as lc
import leakcap.report
from leakcap.report import pages


@pytest.fixture
def _hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if matplotlib were not installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "leakcap.report.figures", raising=False)
    monkeypatch.delattr(leakcap.report, "figures", raising=False)


def _figures() -> Any:
    from leakcap.report import figures

    return figures


@pytest.mark.usefixtures("_hidden")
@pytest.mark.parametrize("draw", [_figures, lambda: pages.axes(None)], ids=["figures", "tradeoff"])
def test_drawing_names_the_extra(draw: Any) -> None:
    with pytest.raises(lc.errors.MissingExtra, match=r"pip install 'leakcap\[plots\]'"):
        draw()


def test_where_it_is_installed_nothing_is_refused() -> None:
    assert callable(_figures().cloud)
