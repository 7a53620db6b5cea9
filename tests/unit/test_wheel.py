"""A wheel holds the package with its pages, styles and types, nothing else, and says what it is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from benchmarks.install import ROOT, examples

from tests.wheel import PACKAGE, faults_inside

BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built of a copy: what building leaves behind is not our checkout's."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in BUILT_FROM:
        shutil.copy(ROOT / name, folder)
    shutil.copytree(PACKAGE, folder / "src" / "leakcap", ignore=shutil.ignore_patterns("__pycache__"))
    for beside in ("tests", "benchmarks", "docs"):
        (folder / beside).mkdir()
        (folder / beside / "__init__.py").touch()
    code = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = (folder / "dist").glob("*.whl")
    return built


def test_it_holds_the_package_and_says_what_it_is(wheel: Path) -> None:
    assert faults_inside(wheel) == []


@pytest.mark.parametrize(
    ("name", "becomes", "fault"),
    [
        ("leakcap/report/page.css", None, "leakcap/report/page.css is missing"),
        ("leakcap/py.typed", None, "leakcap/py.typed is missing"),
        ("tests/__init__.py", "", "tests/__init__.py does not belong there"),
        ("METADATA", "Metadata-Version: 2.4", "no licence"),
    ],
)
def test_planted_faults_are_told(wheel: Path, tmp_path: Path, name: str, becomes: str | None, fault: str) -> None:
    changed = tmp_path / wheel.name
    with ZipFile(wheel) as before, ZipFile(changed, "w") as after:
        for held in before.namelist():
            if not held.endswith(name):
                after.writestr(held, before.read(held))
        if becomes is not None:
            inside = next((held for held in before.namelist() if held.endswith(name)), name)
            after.writestr(inside, becomes)
    assert fault in faults_inside(changed)


def test_the_first_screen_has_the_examples_that_are_measured() -> None:
    codes = {name: " ".join(command) for name, command in examples().items()}
    assert "lc.plan(" in codes["plan"] and ".fit(X, y)" in codes["fit"] and "lc.Session(" in codes["session"]
