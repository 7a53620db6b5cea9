"""The page of benchmarks is made from the stored records, each record is whole, and its command can be run."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import shlex

import pytest
from benchmarks import distilled
from benchmarks.page import PAGE, page
from benchmarks.records import FOLDER, TOPICS, Record, record, slug, stored

from leakcap.cli import app
from tests.docs.pages import ROOT

RECORDS = stored()


def runnable(command):
    """What keeps a command from being run; empty where nothing does."""
    program, *words = shlex.split(command)
    check = {"python": _module, "pytest": _tests, "make": _target, "leakcap": _command}.get(program)
    return check(words) if check else f"{program} is not known here"


def _module(words):
    flag, name, *parts = words
    if flag != "-m" or importlib.util.find_spec(name) is None:
        return f"no module {name}"
    if not name.startswith("benchmarks"):
        return ""
    module = importlib.import_module(f"{name}.__main__" if name == "benchmarks" else name)
    known = {*module.PARTS, *getattr(module, "FLAGS", ())}
    return "".join(
        f"{name} has no part {part}" for part in parts if not part.isdigit() and part.partition("=")[0] not in known
    )


def _tests(words):
    paths = [word for word in words if "/" in word]
    return "" if paths and all((ROOT / path).exists() for path in paths) else f"not all of {paths} exist"


def _target(words):
    found = re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return "" if found else f"no target {words[0]}"


def _command(words):
    return "" if words[0] in {one.name for one in app.registered_commands} else f"no command {words[0]}"


def test_the_page_is_made_from_the_records():
    assert PAGE.read_text() == page(RECORDS), "run `python -m benchmarks page`"


@pytest.mark.parametrize(("name", "cap"), [(name, cap) for name in distilled.PARTS for cap in distilled.CAPS])
def test_records_of_distilled_models_say_what_is_measured_and_how_settings_were_chosen(name, cap):
    (kept,) = [one for one in RECORDS if one.name == f"distilled-{name}-{cap}"]
    assert kept.claim == distilled.claim(distilled.PARTS[name], cap)
    assert "Settings of `Distilled` were chosen looking at" in kept.claim


def test_every_topic_has_records_and_every_file_is_read():
    assert {one.topic for one in RECORDS} == set(TOPICS)
    assert {one.name for one in RECORDS} == {path.stem for path in FOLDER.iterdir()}


@pytest.mark.parametrize("one", RECORDS, ids=lambda one: one.name)
def test_the_record_is_dated_and_its_command_can_be_run(one):
    assert re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", one.date)
    assert slug(one.name) == one.name
    assert runnable(one.command) == ""


@pytest.mark.parametrize(
    "command",
    [
        "python -m benchmarks coffee",
        "python -m benchmarks.labels coffee",
        "python -m benchmarks.coffee",
        "pytest tests/coffee",
        "make coffee",
        "leakcap coffee",
        "brew coffee",
    ],
)
def test_a_planted_command_that_does_not_exist_is_caught(command):
    assert runnable(command)


WHOLE = {"topic": TOPICS[0], "claim": "a figure", "command": "make demo", "asked": "-"}


def test_a_run_replaces_what_was_seen_and_keeps_the_claim(tmp_path):
    record("one", "3 times", machine="a cloud", folder=tmp_path, **WHOLE)
    record("one", "4 times", machine="a desk", folder=tmp_path)
    (found,) = stored(tmp_path)
    assert isinstance(found, Record)
    assert (found.claim, found.seen, found.machine) == ("a figure", "4 times", "a desk")


@pytest.mark.parametrize("damage", [{"seen": ""}, {"machine": None}, {"extra": "field"}, {"name": "another"}])
def test_a_planted_damaged_record_is_caught(damage, tmp_path):
    record("one", "3 times", folder=tmp_path, **WHOLE)
    path = tmp_path / "one.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    with pytest.raises(ValueError, match=r"one\.json"):
        stored(tmp_path)
