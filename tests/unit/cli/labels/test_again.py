"""Labels are privatised once: a second run gives the same bytes, or says that it costs more."""

from __future__ import annotations

import json
import math
import stat
from pathlib import Path
from typing import Any

import pytest

from leakcap.custody import folders
from tests.unit.cli.labels.commands import BINS, THREE, YES, certificate, privatised


def everything(out: str = "out") -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path(out).rglob("*")) if path.is_file()}


def test_a_second_run_is_refused_and_changes_nothing(capsys: Any) -> None:
    assert privatised(*YES, "-q") == 0
    before = everything()
    for options in (YES, THREE, BINS, [*YES, "--json"]):
        assert privatised(*options) == 4
        said = capsys.readouterr()
        assert said.out == ""
        assert "privatised in out before" in said.err and "--again" in said.err
    assert everything() == before


def test_runs_that_are_asked_for_again_are_all_counted(capsys: Any) -> None:
    assert privatised(*YES, "-q") == 0
    first = everything()
    assert privatised(*YES, "--again", "--json") == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 2
    assert privatised(*YES[:3], "0.5", *YES[4:], "--mechanism", "gaussian", "--delta", "1e-6", "--again", "-q") == 0
    assert first.items() <= everything().items(), "what has left is kept"
    two, three = certificate("out/public-2"), certificate("out/public-3")
    assert (two.epsilon, two.delta, three.epsilon, three.delta) == (2.0, 0.0, 2.5, 1e-6)
    assert two.guess_success == pytest.approx(math.exp(2) / (1 + math.exp(2)))
    one = certificate("out/public").mutual_information
    assert two.mutual_information == pytest.approx(2 * one)
    assert one < two.mutual_information < three.mutual_information <= math.log(2) * (1 + 1e-9)
    assert "privatised 3 times" in str(three)
    page = Path("out/public-3/page.html").read_text()
    assert "All 3 times" in page and "epsilon = 2.5, delta = 1e-06" in page
    assert privatised(*YES) == 4
    assert "epsilon 2.5 so far" in capsys.readouterr().err


def test_two_observations_of_a_label_tell_no_more_than_the_certificate_of_both_says() -> None:
    """The best attacker on both files of randomised response: computed from the channel itself."""
    assert privatised(*YES, "-q") == privatised(*YES, "--again", "-q") == 0
    keep = math.e / (math.e + 1)
    both = [
        (keep * keep, (1 - keep) ** 2),
        (keep * (1 - keep),) * 2,
        ((1 - keep) * keep,) * 2,
        ((1 - keep) ** 2, keep**2),
    ]
    best = sum(max(pair) / 2 for pair in both)
    told = sum(p / 2 * math.log(p / (sum(pair) / 2)) for pair in both for p in pair)
    found = certificate("out/public-2")
    assert best <= found.guess_success
    assert told <= found.mutual_information
    # The twin: the certificate of one run alone does not cover what both tell.
    assert told > certificate().mutual_information


def test_a_run_with_other_classes_counts_what_any_prior_allows() -> None:
    assert privatised(*YES, "-q") == privatised(*THREE, "--again", "-q") == 0
    found = certificate("out/public-2")
    assert found.mutual_information == pytest.approx(min(found.epsilon, math.log(2 * 3)))


def test_a_run_with_coarser_bins_does_not_forget_what_the_finer_ones_told() -> None:
    fine, coarse = [*BINS, "-q"], [*BINS, "-q"]
    fine[fine.index("--epsilon") + 1], coarse[coarse.index("--epsilon") + 1] = "8", "0.5"
    assert privatised(*fine) == privatised(*coarse, "--again") == privatised(*coarse, "--again") == 0
    told = [certificate(f"out/{name}").mutual_information for name in ("public", "public-2", "public-3")]
    assert len(certificate("out/public-2").classes) < len(certificate().classes)
    assert told[0] < told[1] <= told[2]


def test_a_run_that_could_not_be_published_has_spent_its_epsilon(monkeypatch: Any, capsys: Any) -> None:
    def full(self: Any, files: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folders.Folders, "publish", full)
        assert privatised(*YES) != 0
    assert not Path("out/public").exists()
    capsys.readouterr()
    assert privatised(*YES) == 4
    assert "start in a new folder" in capsys.readouterr().err
    assert privatised(*YES, "--again", "-q") == 0
    assert certificate("out/public-2").epsilon == 2


def test_nothing_is_published_that_was_not_recorded(monkeypatch: Any) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("leakcap.cli.labels.record", stopped)
    assert privatised(*YES) == 130
    assert not Path("out/public").exists()


def test_of_two_runs_at_once_one_is_refused(monkeypatch: Any, capsys: Any) -> None:
    from leakcap.cli import labels

    monkeypatch.setattr(labels, "spent_before", lambda out, again: [])
    assert privatised(*YES, "-q") == 0
    before = everything()
    assert privatised(*YES) == 4
    assert "just now" in capsys.readouterr().err
    assert everything() == before


def test_what_was_spent_is_the_custodians_and_a_damaged_record_is_refused(capsys: Any) -> None:
    assert privatised(*YES, "-q") == 0
    kept = Path("out/custodian/labels/1.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(Path("out/custodian").stat().st_mode) == 0o700
    kept.write_text(kept.read_text()[:-20])
    for options in (YES, [*YES, "--again"]):
        assert privatised(*options) == 2
        assert "damaged" in capsys.readouterr().err


def test_a_folder_of_another_release_is_not_written_into(capsys: Any) -> None:
    Path("out/public").mkdir(parents=True)
    assert privatised(*YES) == 4
    assert "finished release" in capsys.readouterr().err
    assert privatised(*YES, "--again") == 2
