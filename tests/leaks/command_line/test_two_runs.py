"""Rule 6 for the command line: with the released value held fixed, nothing that is written or said tells the secret.

Method, as in `test_public_bytes.py`: the operating system "draws" the world we choose and then just the noise that
leads from there to one agreed grid point. Clocks stand still, so that time makes no difference of its own. Two runs
with different secrets are then compared in everything: files (names, modes, sizes, contents, sealed ones opened), the
order of writes, both streams at the level of file descriptors, log lines, warnings and the exit code. Planted twins
show that each of these is looked at. Nothing here is statistical: there are no false alarms.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from leakcap.cli import main
from leakcap.custody import folders
from leakcap.planning.released import forget_released
from leakcap.report.release import files as answers
from tests.leaks.command_line.runs import FRESH, HERE, MARKED_TOWN, MEAN, MEANS, SECRETS, SMALL, UNIT, telling

# Two runs, everything that can be seen of them


def slow(options: list[str]) -> Any:
    return pytest.param(options, marks=pytest.mark.slow)


KINDS: dict[str, Any] = {
    "mean": MEANS,
    "mean of one": ["--fn", "mean", "--columns", "age"],
    "median": slow(["--fn", "median", "--columns", "age,hours"]),
    "quantiles": slow(["--fn", "quantile", "--q", "0.25", "--q", "0.75", "--columns", "age"]),
    "histogram": ["--fn", "histogram", "--columns", "town,age", "--bins", "age=0,35,45,120"],
    "covariance": ["--fn", "covariance", "--columns", "age,hours"],
    "own": ["--fn", f"{HERE}:two_numbers"],
    "model": ["--fn", f"{HERE}:model", "--drop", "n_iter_"],
    "units": [*MEANS, "--unit", "who"],
    "strata": slow([*MEANS, "--strata", "group"]),
    "thirds": [*MEANS, "--rate", "1/3", "--worlds", "18"],
    "clipped": slow([*MEANS, "--clip", "0,60"]),
    "doubling": slow([*MEANS, "--worlds", "doubling"]),
    "json": [*MEANS, "--json"],
    "quiet, and the plan forgotten": [*MEANS, "--quiet", "--forget"],
    "fresh": FRESH,
}


@pytest.mark.parametrize("options", KINDS.values(), ids=list(KINDS))
def test_everything_written_and_said_is_the_same_whichever_world_was_secret(options: list[str], watch: Any) -> None:
    runs = watch(options)
    assert not telling(runs)
    assert runs[0].code == 0, runs[0].err
    assert {"public/answer.json", "public/certificate.html", "custodian/report.html"} <= set(runs[0].files)
    assert ("public/model.pkl" in runs[0].files) == (options == KINDS["model"])


def test_a_preview_and_the_release_after_it_tell_nothing(watch: Any) -> None:
    preview = watch([*MEANS, "--preview"])
    assert not telling(preview)
    assert "public" not in preview[0].files
    released = watch(MEANS)
    assert not telling(released)
    assert "public/answer.json" in released[0].files


@pytest.mark.parametrize("options", [MEANS, FRESH], ids=["one of the worlds", "fresh"])
def test_a_release_that_stopped_before_it_was_published_tells_nothing_when_resumed(
    options: list[str], watch: Any, monkeypatch: Any
) -> None:
    """The secret was drawn in the run that stopped; the next one must not show which it was."""

    def full(self: Any, files: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folders.Folders, "publish", full)
        stopped = watch(options)
    assert not telling(stopped)
    assert stopped[0].code != 0
    assert "public" not in stopped[0].files
    resumed = watch(options, secrets_=tuple(reversed(SECRETS)))  # another draw would end in another world
    assert not telling(resumed)
    assert resumed[0].code == 0
    assert resumed[0].files["custodian/plan/release"] == stopped[0].files["custodian/plan/release"]


def test_a_second_run_is_refused_in_the_same_words(watch: Any) -> None:
    again = watch(MEANS, before=[MEANS])
    assert not telling(again)
    assert again[0].code == 4


# Nothing of the custodian's in public


def test_public_files_hold_no_person_no_rare_word_and_no_true_figure(people: Path, tmp_path: Path) -> None:
    """The custodian's files hold them, so the search would find them."""
    options = ["--fn", "histogram", "--columns", "town,age", "--levels", "town=here,there", "--bins", "age=0,41,120"]
    _run(["release", str(people), *options, "--unit", "who", *SMALL, "--out", "a"])
    _run(["release", str(people), "--fn", "mean", "--columns", "age", "--unit", "who", *SMALL, "--out", "b", "--alone"])
    public = b"".join(path.read_bytes() for path in tmp_path.glob("*/public/*"))
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("*/custodian/*") if path.is_file())
    for sentinel in (UNIT, str(MEAN)):
        assert sentinel.encode() in kept
        assert sentinel.encode() not in public
    assert MARKED_TOWN.encode() not in public
    assert b"custodian" not in public.lower().replace(b"only the custodian", b"").replace(b"the custodian", b"")
    assert str(tmp_path).encode() not in public


def test_a_pool_answer_in_public_would_be_found(people: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """The planted twin: an answer centred on the truth."""
    page = answers.public_page
    monkeypatch.setattr(answers, "public_page", lambda *a: page(*a) + str(pd.read_csv(people)["age"].mean()))
    _run(["release", str(people), "--fn", "mean", "--columns", "age", *SMALL, "--out", "a"])
    assert str(MEAN).encode() in b"".join(path.read_bytes() for path in tmp_path.glob("*/public/*"))


def _run(arguments: list[str]) -> None:
    forget_released()
    main_code = 0
    try:
        main(arguments)
    except SystemExit as end:
        main_code = end.code or 0
    assert main_code == 0
