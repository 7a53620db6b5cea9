"""The scripts in docs/ that make pages and drawings, imported by their file."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from tests.docs.pages import ROOT


def made_by(name: str) -> ModuleType:
    """The script `docs/<name>.py` as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
