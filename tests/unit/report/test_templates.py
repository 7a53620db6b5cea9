"""Templates and style sheets: all parse, none is idle, and only they and written-out patterns are ever markup."""

from __future__ import annotations

import ast
import re
from importlib.resources import files
from pathlib import Path

import pytest
from jinja2 import UndefinedError, meta

from leakcap.report import html

FOLDER = Path(str(files("leakcap.report")))
ENVIRONMENT = html._environment()


def named(*endings: str) -> list[str]:
    return sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.suffix in endings)


TEMPLATES, SHEETS, MODULES = named(".html", ".svg"), named(".css"), named(".py")


def source(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def asked_for(name: str) -> set[str]:
    """What a template extends, includes or imports, by names that are written out."""
    found = set(meta.find_referenced_templates(ENVIRONMENT.parse(source(name))))
    assert None not in found, "a template is named by a variable"
    return {str(one) for one in found}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_parses_and_asks_only_for_templates_that_are_there(name: str) -> None:
    ENVIRONMENT.get_template(name)
    assert asked_for(name) <= set(TEMPLATES)


def test_no_template_and_no_style_sheet_is_idle() -> None:
    code = "\n".join(map(source, MODULES))
    used = {name for name in TEMPLATES if f'"{name}"' in code}
    while more := {one for name in used for one in asked_for(name)} - used:
        used |= more
    assert used == set(TEMPLATES)
    templates = "\n".join(map(source, TEMPLATES))
    assert {name for name in SHEETS if f'"{name}"' in templates} == set(SHEETS)


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_neither_run_nor_trust_anything(name: str) -> None:
    """No scripts and no way round the escaping."""
    found = source(name)
    assert not re.search(r"<script|\bon[a-z]+=|javascript:|https?:(?!//www\.w3\.org/2000/svg)", found, re.IGNORECASE)
    assert not re.search(r"\|\s*safe|autoescape|\|\s*xmlattr", found)


def test_escaping_is_on_and_a_missing_fact_raises() -> None:
    made = ENVIRONMENT.from_string('<b title="{{ words }}">{{ words }}</b>')
    assert made.render(words="<i>\"'&") == '<b title="&lt;i&gt;&#34;&#39;&amp;">&lt;i&gt;&#34;&#39;&amp;</b>'
    with pytest.raises(UndefinedError):
        made.render()


def test_style_sheets_come_without_comments() -> None:
    assert "/*" in source("page.css") and "/*" not in html.style("page.css", "kept.css")
    assert html.style("page.css", "kept.css").startswith(".leakcap{--paper")


@pytest.mark.parametrize("name", [name for name in MODULES if name != "html.py"])
def test_patterns_of_markup_are_written_out(name: str) -> None:
    """Nothing that was put together at run time is taken for markup: values go through the braces of a pattern."""
    tree = ast.parse(source(name))
    constants = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        made = call.func.id if isinstance(call.func, ast.Name) else ""
        if made == "Markup":
            assert not call.args, f"line {call.lineno}: only html.py turns text into markup"
        if made == "markup":
            pattern = call.args[0]
            written = isinstance(pattern, ast.Constant) or (isinstance(pattern, ast.Name) and pattern.id in constants)
            assert written, f"line {call.lineno}: the pattern is not written out"


def test_a_pattern_escapes_what_is_put_into_it() -> None:
    inner = html.markup("<i>{}</i>", "<&>")
    assert html.markup("<b>{}{}</b>", inner, "<&>") == "<b><i>&lt;&amp;&gt;</i>&lt;&amp;&gt;</b>"
    assert html.joined(["<", inner], ", ") == "&lt;, <i>&lt;&amp;&gt;</i>"
