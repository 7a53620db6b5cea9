"""Every example runs and draws its picture, and has its page in the gallery."""

from __future__ import annotations

import json
import os
import runpy

import pytest

from tests.docs.pages import ROOT

SCRIPTS = sorted((ROOT / "docs" / "examples").glob("*.py"))
SAYS = {
    "audit": "An audit finds faults; it never proves their absence.",
    "compare": "First choice at this success: pool",
    "groups": "that anybody is in the data is guessed with at most 55",
    "model": "private: right about",
    "pipeline": "private: right about",
    "private_labels": "epsilon 1:",
    "side_channel": "6 of 8 bits right: 14.5% without the timing, at most 29",
    "session": "five answers, 4",
    "table": "any person's participation is guessed with at most 5",
}
PNG = b"\x89PNG\r\n"


def test_every_example_is_known_here_and_in_the_gallery():
    assert {script.stem for script in SCRIPTS} == set(SAYS)
    gallery = (ROOT / "docs" / "examples" / "index.md").read_text()
    navigation = (ROOT / "mkdocs.yml").read_text()
    for script in SCRIPTS:
        name = script.stem.replace("_", "-")
        page = (script.parent / f"{name}.md").read_text()
        assert f'--8<-- "docs/examples/{script.name}"' in page
        assert f"../images/example-{name}.png" in page
        assert f"]({name}.md)" in gallery
        assert f"examples/{name}.md\n" in navigation
        assert f"({name}.ipynb)" in page
        assert (ROOT / "docs" / "images" / f"example-{name}.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_notebook_is_made_from_the_script(script):
    make = runpy.run_path(str(ROOT / "docs" / "make_notebooks.py"))["notebook"]
    held = (script.parent / f"{script.stem.replace('_', '-')}.ipynb").read_text(encoding="utf-8")
    assert held == make(script), "python docs/make_notebooks.py makes them again"
    cells = ["".join(cell["source"]) for cell in json.loads(held)["cells"] if cell["cell_type"] == "code"]
    dropped = [line for line in script.read_text().splitlines() if line and line not in "\n".join(cells)]
    assert all("sys" in line or "Path" in line or line.startswith('"""') for line in dropped)
    compile("\n".join(cells), script.name, "exec")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_example_runs_and_draws_its_picture(script, tmp_path, nursery):
    environment = os.environ | {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "HOME": str(tmp_path)}
    done = nursery.script(script, tmp_path, tmp_path, environment)
    assert done.returncode == 0, done.stderr
    assert SAYS[script.stem] in done.stdout
    picture = tmp_path / f"example-{script.stem.replace('_', '-')}.png"
    assert picture.read_bytes().startswith(PNG)
