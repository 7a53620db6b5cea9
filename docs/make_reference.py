"""Give every public name a place in the reference: `python docs/make_reference.py`.

A name that no page shows yet is added at the end of its namespace's page. Order and headings are written by hand. The
arguments of a plan are shown in groups, by what they are for, between two marks on the first page.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import leakcap

PAGES = Path(__file__).parent / "reference"
NAMESPACES = ("audit", "caps", "convert", "datasets", "errors", "estimators", "labels", "local", "stats")
NAMESPACES += ("cluster", "obfuscation", "sql", "synthetic", "testing")

MARKS = "<!-- arguments of a plan: made by docs/make_reference.py -->", "<!-- end of the arguments -->"
INTRODUCTION = (
    "`lc.plan(fn, *data, cap=...)`: the function, the data and a cap are all that must be given. Here is what else may "
    "be, by what it is for; `lc.release` takes the same. Every argument in full: [leakcap.plan](#leakcap.plan).\n\n"
    "Those with a ✓ are rarely needed. They may be given like all others, or together and more than once, as "
    "[`lc.Settings`](#leakcap.Settings): `usual = lc.Settings(confidence=0.999, workers=4)`, then "
    "`lc.plan(fn, data, cap=0.55, settings=usual)`."
)
# By what arguments are for: a heading, and each argument in a line.
ARGUMENTS = {
    "What is computed": {
        "fn": "the function whose answer is to be released",
        "data": "the data, one or more tables or arrays of equal length, sliced alike",
        "outputs": "labels of the outputs, for people",
        "inputs": "in place of data: a list one of which is the secret, or a function that draws one",
        "prior": "the probability of each of these inputs",
        "drop": "attributes of a fitted model that are left out",
    },
    "What is promised": {
        "cap": "the most that any attacker may achieve; several hold together",
        "design": "how the secret is drawn: from a list of worlds, or by a coin for everybody",
        "mode": "in which game the cap holds",
        "randomness": "whether the seed of the function is secret, too",
        "confidence": "how sure the certified figures are, all together",
    },
    "Who is protected": {
        "unit": "whose row is whose, if a person has several",
        "rows_per_unit": "the most rows of one person that count",
        "strata": "groups that every world holds in proportion",
        "rate": "the share of the pool that is used, a half if nothing is said",
    },
    "What is known without the data": {
        "bounds": "the least and largest value of each column, for pool caps and coins",
        "clip": "the least and largest answer",
        "public": "what you declare public, for the certificate",
        "pool_public": "what was done by looking at everybody's data, for the certificate",
    },
    "How much is simulated": {
        "worlds": "in how many worlds the function is run",
        "seeds": "how many seeds are tried in each of them, where the seed is secret",
        "draws": "how many simulated releases certify the noise",
        "seed": "makes it a trial run that can be repeated, and no release",
    },
    "Which noise": {
        "weights": "which outputs should have less of it",
        "shape": "how it is spread over the outputs",
        "floor": "the least there must be",
        "mechanism": "Gaussian, or of another law",
    },
    "Several answers about the same people": {
        "ledger": "where the release is charged, so that all answers together keep a cap",
        "name": "what the data set is called there",
    },
    "Where and how it runs": {
        "backend": "in this process, in threads, in others, or on a GPU",
        "workers": "in how many processes",
        "memory": "how many bytes it may use",
        "progress": "whether a bar is shown",
        "checkpoint": "a folder to go on from after a stop",
        "settings": "those with a ✓, together",
    },
}


def arguments() -> str:
    """The arguments of a plan in groups, as Markdown."""
    rare = {one.name for one in fields(leakcap.Settings)}
    lines = [MARKS[0], "", INTRODUCTION]
    for heading, group in ARGUMENTS.items():
        rows = (f"| `{name}` | {words} | {'✓' if name in rare else ''} |" for name, words in group.items())
        lines += ["", f"### {heading}", "", "| argument | what it says | rare |", "|---|---|---|", *rows]
    return "\n".join([*lines, "", MARKS[1]])


def with_arguments(page: str) -> str:
    """A page with the arguments of a plan between its two marks."""
    before, _, rest = page.partition(MARKS[0])
    return before + arguments() + rest.partition(MARKS[1])[2]


def missing() -> dict[str, list[str]]:
    """By page, the entries of names that are on none."""
    pages = {space: (PAGES / f"{space}.md").read_text(encoding="utf-8") for space in ("leakcap", *NAMESPACES)}
    shown = {space: set(re.findall(r"^::: (\S+)$", text, re.MULTILINE)) for space, text in pages.items()}
    lacking = {space: [f"leakcap.{space}.{name}" for name in getattr(leakcap, space).__all__] for space in NAMESPACES}
    lacking = {space: [name for name in names if name not in shown[space]] for space, names in lacking.items()}
    listed = {name.rpartition(".")[2] for names in (*shown.values(), *lacking.values()) for name in names}
    own = [name for name in leakcap.__all__ if not isinstance(getattr(leakcap, name), ModuleType)]
    lacking["leakcap"] = [f"leakcap.{name}" for name in own if name not in {*listed, "__version__"}]
    return {space: names for space, names in lacking.items() if names}


if __name__ == "__main__":
    for space, names in missing().items():
        with (PAGES / f"{space}.md").open("a", encoding="utf-8") as page:
            page.writelines(f"\n::: {name}\n" for name in names)
    first = PAGES / "leakcap.md"
    first.write_text(with_arguments(first.read_text(encoding="utf-8")), encoding="utf-8")
