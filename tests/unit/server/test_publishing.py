"""Publishing by pages: what the page shows as a command and as Python does run, and gives the same kind of release."""

from __future__ import annotations

import io
import json
import pickle
import re
import shlex
import shutil
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.planning.released import forget_released
from leakcap.server.publish_orders import asked_of, command_words, python_words, shown
from leakcap.server.refusals import Refusal
from tests.unit.cli.running import leakcap
from tests.unit.server.running import BY_SEX, COUNT, Running, form_word

HELD = {"rows": 200, "columns": [{"name": name, "kind": "float"} for name in ("who", "a", "b")]}
HELD["columns"] = [*HELD["columns"], {"name": "kind", "kind": "text"}]  # type: ignore[has-type]
RANGES = {"low1": "-4", "high1": "4", "low2": "-4", "high2": "4"}
MODEL = {"fn": "GaussianNB", "target": "kind", "classes": "high, low"}
ORDERS = {
    "averages, bits": {"fn": "mean", "promise": "bits"},
    "averages, pool": {"fn": "mean", "promise": "pool"},
    "covariances": {"fn": "covariance", "promise": ""},
    "bins": {"fn": "histogram", "promise": "bits"},
    "medians": {"fn": "median", "promise": ""},
    "a model, bits": {**MODEL, "promise": "bits"},
    "a model, pool": {**MODEL, "promise": "pool"},
    "a regression, pool": {"fn": "Ridge", "target": "b", "promise": "pool"},
}


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    made = pd.DataFrame({"who": np.arange(200) + 1000 * seed, "a": rng.normal(size=200)})
    made["b"] = made["a"] + rng.normal(size=200)
    made["kind"] = np.where(made["a"] > 0, "high", "low")
    return made


def order_of(given: dict[str, str]) -> dict[str, Any]:
    columns = ["a"] if given["fn"] in ("histogram", "median", "Ridge") else ["a", "b"]
    fields = {"cap": "65", "unit": "who", "rows": "1", **RANGES, **given}
    return asked_of(fields, columns, HELD, file=Path("table.csv"))


@pytest.mark.parametrize("name", ORDERS)
def test_the_shown_command_and_the_shown_python_give_the_same_kind_of_release(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "key" / "key"))
    table().to_csv("table.csv", index=False)
    order = order_of(ORDERS[name])
    words = shlex.split(shown(order, "by-command"))
    assert words[0] == "leakcap" and words[1:] == command_words(order, "table.csv", "by-command")
    assert leakcap(*words[1:], "--quiet", "--workers", "1") == 0
    assert leakcap("audit", "by-command", "--trials", "200", "--quiet") == 0, "whatever is published can be attacked"
    forget_released()
    told: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(python_words(order), "shown", "exec"), told)
    by_command = lc.load("by-command").certificate
    by_python = told["model"].certificate_ if "model" in told else told["release"].certificate
    ours, theirs = (json.loads(one.to_json()) for one in (by_command, by_python))
    for part in ("kind", "mode", "caps", "units", "outputs"):
        assert ours.get(part) == theirs.get(part), part
    assert (ours["kind"] == "pool") is (order["promise"] == "pool")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"fn": "rows"}, "Choose what to publish"),
        ({"fn": "GaussianNB"}, "Choose the column that the model predicts"),
        ({"fn": "GaussianNB", "target": "who"}, "Choose the column that the model predicts"),
        ({"fn": "mean", "low1": "9", "high1": "1"}, "the smaller one first"),
        ({"fn": "histogram", "low1": "", "high1": ""}, "write its range"),
        ({"fn": "mean", "cap": "much"}, "Write a number above 0"),
    ],
)
def test_what_is_missing_is_said(given: dict[str, str], words: str) -> None:
    with pytest.raises(Refusal) as refused:
        order_of(given)
    assert words in refused.value.words


@pytest.fixture(scope="module")
def publishing(running: Running) -> tuple[Any, str, dict[str, Any]]:
    """The browser of a custodian who has brought a table, the place of its form, and a model as its fields."""
    browser = running.browser("carla")
    word = form_word(browser)
    content = table(7).to_csv(index=False).encode()
    brought = browser.post(
        "/custody/publish", data={"form_word": word}, files={"file": ("people.csv", content, "text/csv")}
    )
    fields = {"form_word": word, "unit": "who", "cap": "65", "rows": "1", "columns": ["a", "b"], **RANGES, **MODEL}
    return browser, running.place(brought), fields


@pytest.mark.slow
def test_the_promises_stand_side_by_side_with_a_curve(
    running: Running, publishing: tuple[Any, str, dict[str, Any]]
) -> None:
    browser, place, fields = publishing
    shown = running.shown(browser, browser.post(place, data={**fields, "what": "compare"}))
    assert shown.status_code == 200
    page = shown.text
    for words in ("Which half of the people was used?", "Does this person take part?", "in the data at all?"):
        assert words in page
    assert page.count('type="radio"') == 3 and "ε is" in page and '<svg class="chart"' in page
    assert "accuracy" in page and "Nothing has left yet." in page


def test_a_statistic_is_compared_with_what_differential_privacy_would_cost(
    running: Running, publishing: tuple[Any, str, dict[str, Any]]
) -> None:
    browser, place, fields = publishing
    asked = browser.post(place, data={**fields, "fn": "mean", "target": "", "what": "compare"})
    page = running.shown(browser, asked).text
    assert page.count('type="radio"') == 3 and "What plain differential privacy would cost" in page
    named = {**fields, "fn": "mean", "target": "", "what": "release", "promise": "bits", "name": "Clinic!"}
    again = browser.post(place, data=named)
    assert again.status_code == 400 and "lower-case letters" in again.text and 'value="Clinic!"' in again.text
    assert again.text.count('type="radio"') == 3, "a name that cannot be used does not undo the comparison"
    assert 'type="radio"' not in browser.post(place, data={**named, "cap": "70"}).text, "which was for another cap"
    assert "Laplace noise" in page and "--fn mean" in page and "lc.stats.mean" in page


def test_a_release_and_a_data_set_never_share_a_name(running: Running, publishing: tuple[Any, str, Any]) -> None:
    """The ledger counts by names: a release of others under a data set's name would end all questions about it."""
    browser, place, fields = publishing
    asked = browser.post(place, data={**fields, "what": "release", "promise": "bits", "name": "clinic"})
    assert asked.status_code == 400 and "A data set has this name: take another one." in asked.text
    assert 'name="columns" value="a" checked' in asked.text, "the form is filled in"
    asked = browser.post(place, data={**fields, "columns": []})
    assert asked.status_code == 400 and "Choose the columns" in asked.text and 'id="cap"' in asked.text
    (running.state.settings.home / "published" / "shared").mkdir(parents=True)
    (running.state.settings.home / "published" / "shared" / "command.txt").write_text("leakcap release")
    content = b"person,cost\n" + b"".join(b"%d,1\n" % at for at in range(50))
    file = {"file": ("visits.csv", content, "text/csv")}
    step = running.place(browser.post("/custody/register", data={"form_word": fields["form_word"]}, files=file))
    given = {"form_word": fields["form_word"], "name": "shared", "unit": "person", "rows": "1", "cap": "60"}
    asked = browser.post(step, data={**given, "table": "visits", "what": "register"})
    assert asked.status_code == 400 and "Something was published under this name" in asked.text
    assert "shared" not in running.state.datasets.names()
    shutil.rmtree(running.state.settings.home / "published" / "shared")


def led_to(browser: Any, answer: Any) -> Any:
    """What long work led to: where to look, or the page that says why not."""
    while answer.headers.get("location", "").startswith("/custody/work/"):
        found = browser.get(answer.headers["location"])
        if "refresh" not in found.headers:
            return found
        time.sleep(0.2)
    return answer


def test_a_published_model_has_its_page_its_folder_and_its_commands(
    publishing: tuple[Any, str, dict[str, Any]],
) -> None:
    browser, place, fields = publishing
    released = browser.post(place, data={**fields, "what": "release", "promise": "bits", "name": "own-model"})
    assert released.status_code == 303, released.text
    led = led_to(browser, released)
    assert led.headers.get("location") == "/custody/publish/finished/own-model", led.text
    finished = browser.get("/custody/publish/finished/own-model").text
    assert "--fn GaussianNB" in finished and "--cap membership=0.65" in finished and "lc.membership(0.65)" in finished
    assert "GaussianNB of kind" in browser.get("/custody/publish/finished/own-model/page").text
    packed = zipfile.ZipFile(io.BytesIO(browser.get("/custody/publish/finished/own-model/public.zip").content))
    names = {one.split("/")[1] for one in packed.namelist()}
    assert {"certificate.html", "certificate.json", "model.pkl", "SHA256SUMS"} <= names
    told = json.loads(packed.read("own-model/certificate.json"))
    assert told["mode"] == "individual" and not re.search(r"\bplan\b|exposure", " ".join(names))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["KMeans", "RandomForestClassifier", "Ridge", "LogisticRegression"])
def test_every_kind_of_model_is_compared_and_released_by_page(running: Running, model: str) -> None:
    browser = running.browser("carla")
    word, made = form_word(browser), table(len(model))
    content = made.assign(who=made["who"] + 10_000 * len(model), c=made["a"] - made["b"]).to_csv(index=False).encode()
    file = {"file": ("people.csv", content, "text/csv")}
    place = running.place(browser.post("/custody/publish", data={"form_word": word}, files=file))
    fields = {"form_word": word, "unit": "who", "cap": "65", "rows": "1", "columns": ["a", "b"], **RANGES}
    fields |= {
        "low4": "-9",
        "high4": "9",
        "fn": model,
        "groups": "2",
        "target": {"Ridge": "c", "KMeans": ""}.get(model, MODEL["target"]),
    }
    shown = running.shown(browser, browser.post(place, data={**fields, "what": "compare"}))
    assert "Nothing has left yet." in shown.text, shown.text
    promise = re.search(r'name="promise" value="(\w+)" checked', shown.text)
    assert promise
    name = model.lower()
    asked = browser.post(place, data={**fields, "what": "release", "promise": promise[1], "name": name})
    assert running.place(asked) == f"/custody/publish/finished/{name}"
    packed = browser.get(f"/custody/publish/finished/{name}/public.zip").content
    model_file = zipfile.ZipFile(io.BytesIO(packed)).read(f"{name}/model.pkl")
    released = pickle.loads(model_file)
    assert len(released.predict(np.array([[1.0, 0.5], [2.0, 1.0]]))) == 2


def test_a_release_is_audited_by_a_page(publishing: tuple[Any, str, dict[str, Any]]) -> None:
    browser, _, fields = publishing
    assert "own-model" in browser.get("/custody/audit").text
    place = "/custody/audit/own-model"
    assert "Nobody has attacked it yet" in browser.get(place).text
    asked = browser.post(place, data={"form_word": fields["form_word"], "trials": "400"})
    assert led_to(browser, asked).headers["location"] == place
    found = browser.get(place).text
    assert "leakcap audit" in found and "400" in found and f"{place}/page" in found
    page = browser.get(f"{place}/page")
    assert "style-src 'self' 'sha256-" in page.headers["Content-Security-Policy"] and "CUSTODIAN ONLY" in page.text
    refused = led_to(browser, browser.post(place, data={"form_word": fields["form_word"], "trials": "3"}))
    assert "location" not in refused.headers and "200" in refused.text
    assert browser.get("/custody/audit/nothing").status_code == 404


def test_all_answers_about_a_data_set_are_audited_by_a_page(running: Running) -> None:
    """Everything is asked again in accounts of their own: nothing is charged, and the ledger stays as it is."""
    browser, place = running.browser("carla"), "/custody/data/school/audit"
    form = {"form_word": form_word(browser), "trials": "200"}
    assert "school" in browser.get("/custody/audit").text and "Nobody has attacked it yet" in browser.get(place).text
    unasked = led_to(browser, browser.post(place, data=form))
    assert "can be asked again: there are none yet" in unasked.text
    assert "Nobody has attacked it yet" in browser.get(place).text
    program = running.program("ann")
    for sql in (COUNT, BY_SEX):
        asked = program.post("/api/datasets/school/ask", json={"sql": sql, "share": 0.1})
        assert asked.status_code == 200, asked.text

    def standing() -> Any:
        with running.state.datasets.account("school").reading() as now:
            return now.number, now.title, now.state, now.value("clocks/")

    before = standing()
    assert led_to(browser, browser.post(place, data=form)).headers["location"] == place
    assert standing() == before and before[3]
    found = browser.get(place).text
    assert "leakcap audit school.duckdb --name school --ledger LEDGER --trials 200" in found
    page = browser.get(f"{place}/page").text
    assert "whether a person took part, from 2 answers" in page.replace("\u00a0", " ") and "CUSTODIAN ONLY" in page
    assert ("audited answers", "school") in [(one.what, one.about) for one in running.state.audit_log.latest()]
    assert browser.get("/custody/data/nothing/audit").status_code == 404
