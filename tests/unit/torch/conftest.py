"""Every test runs on torch's CPU, and again on a GPU where there is one."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_[!i]*.py"]


@pytest.fixture(params=["cpu", "cuda"])
def device(request: Any) -> str:
    import torch

    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    return str(request.param)
