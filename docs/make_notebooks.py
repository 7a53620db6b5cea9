"""Make a notebook of every example: `python docs/make_notebooks.py`. A paragraph of the script is a cell."""

from __future__ import annotations

import ast
import json
from pathlib import Path

EXAMPLES = Path(__file__).parent / "examples"
FOR_FILES = {"sys": "import sys", "Path": "from pathlib import Path"}  # of scripts, which take a folder for pictures


def notebook(script: Path) -> str:
    """The script as a notebook: its docstring is the text above, pictures are shown and not written."""
    text = script.read_text(encoding="utf-8")
    title = ast.get_docstring(ast.parse(text)) or script.stem
    body = text.split('"""', 2)[2]
    body = "\n".join(line for line in body.splitlines() if "sys.argv" not in line)
    for name, line in FOR_FILES.items():
        if body.count(name) == line.count(name):
            body = body.replace(line + "\n", "")
    cells = [_cell(0, "markdown", f"# {title}")]
    cells += [_cell(place + 1, "code", source) for place, source in enumerate(_paragraphs(body))]
    made = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _paragraphs(body: str) -> list[str]:
    """Statements between blank lines; all imports are one cell."""
    lines, cells = body.splitlines(), [[]]
    statements = ast.parse(body).body
    ends = {statement.end_lineno for statement in statements}
    for number, line in enumerate(lines, start=1):
        blank = not line.strip() and any(cells[-1])
        if blank and number - 1 in ends and not _still_imports(cells[-1], lines[number:]):
            cells.append([])
        elif line.strip() or cells[-1]:
            cells[-1].append(line)
    return ["\n".join(cell).strip("\n") for cell in cells if any(cell)]


def _still_imports(cell: list[str], following: list[str]) -> bool:
    words = ("import ", "from ")
    told = [line for line in cell if line]
    after = next((line for line in following if line.strip()), "")
    return all(line.startswith(words) for line in told) and after.startswith(words)


def _cell(place: int, kind: str, source: str) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": kind, "id": f"cell-{place}", "metadata": {}}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell | {"source": source.splitlines(keepends=True)}


if __name__ == "__main__":
    for script in sorted(EXAMPLES.glob("*.py")):
        (EXAMPLES / f"{script.stem.replace('_', '-')}.ipynb").write_text(notebook(script), encoding="utf-8")
