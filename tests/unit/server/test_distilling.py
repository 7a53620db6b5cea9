"""Models that are no list of numbers, published by pages: taught in blocks, they vote on public rows."""

from __future__ import annotations

import io
import pickle
import re
import shlex
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.certificates.session import SessionCertificate
from leakcap.custody.folders import votes_folder
from leakcap.custody.vault import Vault
from leakcap.planning.released import forget_released
from leakcap.server.long_work import WorkWatch
from leakcap.server.publish_orders import asked_of, command_words, python_words, shown
from leakcap.server.refusals import Refusal
from leakcap.server.work import command_done
from leakcap.sessions import desk
from leakcap.sessions.linear import STEP
from leakcap.tables.distilled import public_people
from leakcap.tables.kept_votes import KeptVotes
from tests.unit.cli.running import leakcap
from tests.unit.server.running import Running, form_word

PEOPLE = 3000
KINDS = (("who", "int"), ("a", "float"), ("b", "float"), ("kind", "text"))
HELD = {"rows": PEOPLE, "columns": [{"name": name, "kind": kind} for name, kind in KINDS]}
FIELDS = {"cap": "70", "unit": "who", "rows": "1", "target": "kind", "classes": "high, low"}
CHOSEN = ["a", "b"]


def people(seed: int, count: int = PEOPLE) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    made = pd.DataFrame({"who": np.arange(count) + 10**6 * seed, "a": rng.normal(size=count)})
    made["b"] = rng.normal(size=count)
    made["kind"] = np.where(made["a"] > 0, "high", "low")
    return made


def by_python(order: dict[str, Any]) -> Any:
    told: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(python_words(order), "shown", "exec"), told)
    return told["model"]


@pytest.mark.parametrize(
    ("promise", "beside"), [("bits", True), pytest.param("pool", False, marks=pytest.mark.slow)], ids=["file", "share"]
)
def test_the_shown_command_and_the_shown_python_give_the_same_kind_of_model(
    promise: str, beside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "key" / "key"))
    people(1).to_csv("table.csv", index=False)
    people(2)[CHOSEN].to_csv("public.csv", index=False)
    given = {**FIELDS, "fn": "neighbours", "promise": promise, "public_share": "" if beside else "50"}
    order = asked_of(given, CHOSEN, HELD, file=Path("table.csv"), public=Path("public.csv") if beside else None)
    words = shlex.split(shown(order, "by-command"))
    assert words[1:] == command_words(order, "table.csv", "by-command", "public.csv")
    assert leakcap(*words[1:], "--quiet") == 0
    public = tmp_path / "by-command" / "public"
    certificate = SessionCertificate.from_json((public / "certificate.json").read_text())
    model = pickle.loads((public / "model.pkl").read_bytes())
    forget_released()
    ours = by_python(order)
    for part in ("design", "membership_success"):
        assert getattr(certificate, part) == getattr(ours.certificate_, part), part
    assert certificate.design == promise and certificate.membership_success <= 0.7
    assert len(model.asked_) == len(ours.asked_) and list(model.classes_) == list(ours.classes_) == ["high", "low"]
    test = people(3, 300)
    assert (model.predict(test[CHOSEN].to_numpy()) == test["kind"]).mean() > 0.7


def test_who_is_public_follows_from_their_own_name_alone() -> None:
    names = np.arange(4000)
    apart = public_people(names, 0.25)
    assert abs(apart.mean() - 0.25) < 0.035  # five deviations
    assert (public_people(names[1000:], 0.25) == apart[1000:]).all()
    assert (public_people(np.repeat(names[:50], 3), 0.25) == np.repeat(apart[:50], 3)).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "by its votes on public rows"),
        ({"public_share": "100"}, "below 100 %"),
        ({"public_share": "20", "unit": ""}, "say whose row it is"),
        ({"public_share": "20", "target": ""}, "Choose the column that the model predicts"),
    ],
)
def test_what_is_missing_is_said(given: dict[str, str], words: str) -> None:
    with pytest.raises(Refusal) as refused:
        asked_of({**FIELDS, "fn": "boosted", **given}, CHOSEN, HELD, file=Path("table.csv"))
    assert words in refused.value.words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fn", "Distilled"], "--public-rows names a file"),
        (["--fn", "Distilled", "--public-share", "0.5"], "--unit says whose row it is"),
        (["--fn", "Distilled", "--public-share", "0.5", "--bins", "1,2"], "--bins has no meaning"),
        (["--fn", "Distilled", "--public-share", "0.5", "--worlds", "64"], "leave out --worlds"),
        (
            ["--fn", "Distilled", "--public-rows", "table.csv", "--teacher", "json:dumps"],
            "module:class of a classifier",
        ),
        (["--fn", "GaussianNB", "--public-share", "0.5"], "are for --fn Distilled"),
    ],
)
def test_the_command_says_what_is_missing(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    people(4, 60).to_csv("table.csv", index=False)
    asked = ["release", "table.csv", *words, "--target", "kind", "--cap", "membership=0.6", "--out", "out"]
    assert leakcap(*asked) == 2
    assert said in " ".join(capfd.readouterr().err.split())


def brought(running: Running, seed: int) -> tuple[Any, str, dict[str, Any]]:
    """A custodian's browser that has brought a table, and public rows; the place of the form, and its fields."""
    browser = running.browser("carla")
    word = form_word(browser)

    def bring(table: pd.DataFrame, **more: str) -> str:
        file = {"file": ("some.csv", table.to_csv(index=False).encode(), "text/csv")}
        return running.place(browser.post("/custody/publish", data={"form_word": word, **more}, files=file))

    place = bring(people(seed))
    asked = browser.get(place).text
    assert "Models that vote on public rows" in asked and "Bring public rows" in asked
    beside = bring(people(seed + 1)[CHOSEN], first=place.rsplit("/", 1)[1])
    assert beside.startswith(f"{place}?public=")
    form = browser.get(beside).text
    assert f"{PEOPLE:,} public rows" in form and "Bring public rows" not in form
    number = beside.rsplit("=", 1)[1]
    return browser, place, {"form_word": word, **FIELDS, "columns": CHOSEN, "public": number}


def released(running: Running, browser: Any, place: str, fields: dict[str, Any]) -> None:
    name = f"student-{fields['fn']}"
    asked = browser.post(place, data={**fields, "what": "release", "promise": "bits", "name": name})
    assert running.place(asked) == f"/custody/publish/finished/{name}"
    finished = browser.get(f"/custody/publish/finished/{name}").text
    assert "--fn Distilled" in finished and "Attack it" in finished
    assert "Certificate of a session" in browser.get(f"/custody/publish/finished/{name}/page").text
    assert name in browser.get("/custody/audit").text
    packed = zipfile.ZipFile(io.BytesIO(browser.get(f"/custody/publish/finished/{name}/public.zip").content))
    student = pickle.loads(packed.read(f"{name}/model.pkl"))
    test = people(99, 300)
    assert (student.predict(test[CHOSEN].to_numpy()) == test["kind"]).mean() > 0.7
    assert not re.search(r"\bplan\b|exposure", " ".join(packed.namelist()))
    assert not list(running.state.uploads.folder.glob(f"{fields['public']}*")), "public rows wait no longer"
    assert place.rsplit("/", 1)[1] not in finished and fields["public"] not in finished


def test_a_model_that_votes_is_published_and_attacked_by_pages(running: Running) -> None:
    browser, place, fields = brought(running, 20)
    released(running, browser, place, {**fields, "fn": "neighbours"})
    audit = "/custody/audit/student-neighbours"
    assert "Nobody has attacked it yet" in browser.get(audit).text
    asked = browser.post(audit, data={"form_word": fields["form_word"], "trials": "200"})
    assert running.place(asked) == audit
    shown, report = browser.get(audit).text, browser.get(f"{audit}/page").text
    assert "leakcap audit student-neighbours --trials 200" in shown and "The teachers are asked again" in shown
    assert "whether a person took part" in report.replace("\u00a0", " ") and "CUSTODIAN ONLY" in report
    assert ("audited votes", "student-neighbours") in [
        (one.what, one.about) for one in running.state.audit_log.latest()
    ]


@pytest.mark.slow
def test_boosted_trees_are_compared_and_published_by_pages(running: Running) -> None:
    browser, place, fields = brought(running, 30)
    fields["fn"] = "boosted"
    page = running.shown(browser, browser.post(place, data={**fields, "what": "compare"})).text
    assert page.count('type="radio"') == 2 and "Nothing has left yet." in page, page
    assert "Not compared: “Which half of the people was used?”: such a model is no list of numbers" in page
    assert "--public-rows public.csv" in page and "Distilled(" in page
    released(running, browser, place, fields)


@pytest.fixture(scope="module")
def voted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release of neighbours that voted, two rows a person, and the ledger's address beside it."""
    place = tmp_path_factory.mktemp("voted")
    table = pd.concat([people(50, 600)] * 2)
    table.to_csv(place / "table.csv", index=False)
    people(51, 300)[CHOSEN].to_csv(place / "public.csv", index=False)
    words = ["release", str(place / "table.csv"), "--fn", "Distilled", "--teacher", "sklearn.naive_bayes:GaussianNB"]
    words += ["--columns", "a,b", "--target", "kind", "--unit", "who", "--public-rows", str(place / "public.csv")]
    words += ["--cap", "membership=0.85", "--setting", "blocks=20", "--rows-per-unit", "2"]
    words += ["--ledger", f"sqlite:///{place / 'ledger.db'}"]
    assert leakcap(*words, "--out", str(place / "out"), "--quiet") == 0
    return place


@pytest.fixture
def few_trials(monkeypatch: pytest.MonkeyPatch) -> str:
    """How many do here, where each takes hundredths of a second: what is bare is refuted in so many."""
    monkeypatch.setattr("leakcap.audit.sessions.MIN_TRIALS", 120)
    return "120"


def test_votes_are_attacked_by_command_and_nothing_is_spent(
    voted: Path, few_trials: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (voted / "ledger.db").read_bytes(), sorted((voted / "out").rglob("*"))
    assert leakcap("audit", str(voted / "out"), "--trials", few_trials) == 0
    said = " ".join(capfd.readouterr().out.split())
    assert "Nothing refuted in 120 releases" in said and "whether a person took part" in said
    assert ((voted / "ledger.db").read_bytes(), sorted((voted / "out").rglob("*"))) == before


def test_whoever_looks_on_reads_whole_sentences(voted: Path) -> None:
    """And stops it when the first one is there."""
    watch, said = WorkWatch(), list[str]()
    watch.says = lambda words: said.append(words) or watch.stop()  # type: ignore[method-assign,func-returns-value]
    with pytest.raises(lc.InputError, match="this was stopped"):
        command_done(["audit", str(voted / "out"), "--trials", "200"], 120, watch)
    asked = "asking the teachers again 200 times, each with another coin of one person; none leaves"
    assert said[0] == asked, "a page would show its end alone"


def test_votes_without_noise_are_refuted_by_command(
    voted: Path, few_trials: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: what is released is bare, and whoever knows everybody else tells who took part."""
    bare = lambda total, grains, deviations, _: total / grains * STEP * deviations  # noqa: E731
    monkeypatch.setattr(desk, "with_noise", bare)
    assert leakcap("audit", str(voted / "out"), "--trials", few_trials, "--quiet") == 1


def test_what_is_kept_for_audits_is_the_custodians_and_names_no_ledger(voted: Path) -> None:
    kept = voted / "out" / "custodian"
    assert {votes_folder(one) for one in (voted / "out", kept, kept / "votes")} == {kept / "votes"}
    assert {one.stat().st_mode & 0o077 for one in (kept, *kept.rglob("*"))} == {0}
    assert not any(b"GaussianNB" in one.read_bytes() for one in kept.rglob("*") if one.is_file()), "it is sealed"
    model, (rows, target, unit) = KeptVotes.stored(kept / "votes")
    assert model.options == {"rows_per_unit": 2} and (len(rows), len(target), len(set(unit))) == (1200, 1200, 600)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trials", "3"], "at least 200"),
        (["--backend", "dask"], "leave --backend out"),
        (["--ledger", "sqlite:///x.db"], "for registered tables"),
    ],
)
def test_an_audit_of_votes_says_what_it_does_not_take(
    voted: Path, words: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert leakcap("audit", str(voted / "out"), *words) == 2
    assert said in " ".join(capfd.readouterr().err.split())


def test_a_release_that_was_cut_off_before_its_model_was_kept_says_so(
    voted: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Vault.open(tmp_path / "custodian" / "votes").write("rows", b"")
    assert leakcap("audit", str(tmp_path)) == 2
    assert "its release was cut off" in " ".join(capfd.readouterr().err.split())
