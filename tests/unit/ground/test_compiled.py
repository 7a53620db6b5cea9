"""Machine code on the disk belongs to one version, and whoever watches is told before it is made."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from leakcap.ground import compiled as compiling
from leakcap.ground.announce import heard_by
from leakcap.version import __version__

SOURCE = """
from leakcap.ground.compiled import compiled

@compiled(set())
def doubled(x):
    return 2 * x
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(compiling, "edition", lambda: "1_0")
    (tmp_path / "loops_of_a_test.py").write_text(SOURCE)
    return tmp_path


def loaded(folder: Path) -> Any:
    """The module as a new process would load it."""
    spec = importlib.util.spec_from_file_location("loops_of_a_test", folder / "loops_of_a_test.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["loops_of_a_test"] = module  # numba asks for it
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["loops_of_a_test"]
    return module.doubled


def outcome(folder: Path) -> tuple[int, int, list[float]]:
    """Signatures read from the disk, signatures compiled, and what was said."""
    told: list[float] = []
    function = loaded(folder)
    with heard_by(told.append):
        assert function(21) == 42
    return sum(function.stats.cache_hits.values()), sum(function.stats.cache_misses.values()), told


def test_it_is_compiled_once_for_each_version_and_said_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = [compiling.SECONDS_PER_LOOP]
    assert outcome(folder) == (0, 1, once)
    assert outcome(folder) == (1, 0, [])
    monkeypatch.setattr(compiling, "edition", lambda: "1_1")
    assert outcome(folder) == (0, 1, once), "machine code of another version is not used"
    assert outcome(folder) == (1, 0, [])


def test_names_stay_as_they_were_written(folder: Path) -> None:
    assert loaded(folder).py_func.__qualname__ == "doubled"


def test_a_version_is_that_of_the_package_and_of_all_its_loops() -> None:
    assert compiling.edition().startswith(f"{__version__}-".replace(".", "_"))
    package = Path(compiling.__file__).parents[1]
    users = [path for path in package.rglob("*.py") if "@compiled(" in path.read_text()]
    assert len(users) > 5
    assert all(path.name.startswith("_") for path in users), "edition() reads files whose names begin with _"
