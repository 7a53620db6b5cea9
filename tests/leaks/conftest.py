"""What tests of leaks hold fixed beside the released value: the ids that every plan draws."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _ids_are_held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs that are compared have the same ids, as they have the same noise; `test_ids.py` looks at them."""
    if not getattr(request.module, "DRAWS_IDS", False):
        monkeypatch.setattr("leakcap.certificates.ids.drawn_id", lambda: "0" * 32)
