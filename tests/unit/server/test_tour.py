"""The guided tour of the demo: its strip leads through both journeys, and no other server has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest

from leakcap.server.app import create_app
from leakcap.server.demo import DemoAccess, fill, sample
from leakcap.server.settings import ServerSettings
from leakcap.server.tour import ANALYST, CUSTODIAN
from tests.unit.server.conftest import UNHURRIED
from tests.unit.server.running import Running, form_word


@dataclass
class Strip(HTMLParser):
    """What the strip of a page says, and where its first link or form leads."""

    words: str = ""
    to: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    posts: bool = False
    seen: int = 0
    _depth: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        if tag == "aside":
            self.seen, self._depth = self.seen + 1, 1
        elif self._depth and tag == "a" and not self.to:
            self.to = held["href"]
        elif self._depth and tag == "form" and not self.to and held["action"] != "/tour":
            self.to, self.posts = held["action"], True
        elif self._depth and tag == "input" and self.posts:
            self.fields.setdefault(held["name"], held["value"])

    def handle_endtag(self, tag: str) -> None:
        if tag == "aside":
            self._depth = 0

    def handle_data(self, data: str) -> None:
        if self._depth:
            self.words += data


def strip_of(answer: Any) -> Strip:
    assert answer.status_code == 200, answer.text
    found = Strip()
    found.feed(answer.text)
    return found


@dataclass
class Tourist:
    """A browser that presses nothing but `Next`, and the button that a page is about."""

    demo: Running
    browser: Any
    page: Any = None

    def at(self, path: str) -> Strip:
        self.page = self.browser.get(path)
        return strip_of(self.page)

    def onward(self, strip: Strip) -> Strip:
        """Where `Next` leads, over what it leads to."""
        if not strip.posts:
            return self.at(strip.to)
        return self.sent(strip.to, strip.fields)

    def sent(self, path: str, fields: dict[str, str]) -> Strip:
        self.page = self.browser.post(path, data=fields)
        if self.page.status_code == 303:
            return self.at(self.demo.place(self.page))
        return strip_of(self.page)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, DemoAccess]]:
    home = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAKCAP_KEY", str(home / "key"))
        app = create_app(ServerSettings(home=home, hosts=("localhost",), limits=UNHURRIED, demo=True))
        yield Running(app), fill(app.state.leakcap)
        app.state.leakcap.close()


def tourist(shown: tuple[Running, DemoAccess], role: str) -> Tourist:
    demo, access = shown
    name, password = getattr(access, role)
    browser = demo.client()
    assert browser.post("/login", data={"name": name, "password": password}).status_code == 303
    return Tourist(demo, browser)


def step(strip: Strip) -> int:
    found = re.search(r"Tour, (\d+) of \d+", strip.words)
    return int(found[1]) if found else 0


def test_an_analyst_is_led_from_the_data_to_the_certificate(shown: tuple[Running, DemoAccess]) -> None:
    ann = tourist(shown, "analyst")
    strip = ann.at("/data")
    strip = ann.onward(strip)
    assert step(strip) == 2
    question = dict(strip.fields)
    strip = ann.onward(strip)
    assert step(strip) == 3 and strip.to == "#price" and 'id="price"' in ann.page.text
    strip = ann.sent("/data/diabetes/ask", question | {"request": "tour"})
    assert step(strip) == 4 and "95 % interval" in ann.page.text
    strip = ann.onward(strip)
    assert step(strip) == 5 and "1 answer was given so far" in ann.page.text
    assert "This is a demo" in ann.onward(strip).words and ann.page.url.path == "/login"
    assert ann.browser.get("/data").headers["location"].startswith("/login")


def test_a_custodian_is_led_from_publishing_to_everything_released(shown: tuple[Running, DemoAccess]) -> None:
    carla = tourist(shown, "custodian")
    strips = [carla.at("/custody")]
    for _ in range(2):
        strips.append(carla.onward(strips[-1]))
    upload, filled_in = carla.page.url.path, strips[-1].fields
    strips.append(carla.onward(strips[-1]))
    assert strips[-1].to == "#price" and "costs least" in carla.page.text and 'value="wages"' in carla.page.text
    strips.append(carla.sent(upload, filled_in | {"what": "release"}))
    assert carla.page.url.path == "/custody/publish/finished/wages"
    for _ in range(2):
        strips.append(carla.onward(strips[-1]))
    upload, filled_in = carla.page.url.path, strips[-1].fields
    strips.append(carla.onward(strips[-1]))
    assert strips[-1].to == "#price" and "values cut" in carla.page.text
    strips.append(carla.sent(upload, filled_in | {"what": "register"}))
    assert carla.page.url.path == "/custody/data/visits"
    for _ in range(2):
        strips.append(carla.onward(strips[-1]))
        assert "visits" in carla.page.text
    assert re.search(r"<b>wages</b>: published.*60\xa0%", carla.page.text) and "are whole" in carla.page.text
    strips.append(carla.onward(strips[-1]))
    assert [step(one) for one in strips] == list(range(1, 13)) and not strips[-1].to


def test_every_page_of_the_demo_has_one_strip(shown: tuple[Running, DemoAccess]) -> None:
    demo, _ = shown
    paths = [one.path for one in demo.app.routes if "GET" in (one.methods or ()) and "{" not in one.path]
    for role in ("analyst", "custodian"):
        one, pages = tourist(shown, role), 0
        for path in paths:
            answer = one.browser.get(path)
            if answer.status_code == 200 and answer.headers["content-type"].startswith("text/html"):
                strip, pages = strip_of(answer), pages + 1
                assert strip.seen == 1 and strip.words.strip(), path
        assert pages >= 3


def test_a_refused_form_stays_at_its_stop(shown: tuple[Running, DemoAccess]) -> None:
    ann = tourist(shown, "analyst")
    fields = {"form_word": form_word(ann.browser), "way": "sql", "sql": "select nothing", "share": "5"}
    answer = ann.browser.post("/data/tumours/preview", data=fields)
    assert answer.status_code == 400 and "Tour, 2 of" in answer.text
    answer = ann.browser.post("/data/tumours/preview", data=fields | {"sql": "select count(*) as n from tumours"})
    assert answer.status_code == 200 and "Tour, 3 of" in answer.text


def test_the_tour_ends_in_this_browser_and_can_be_shown_again(shown: tuple[Running, DemoAccess]) -> None:
    ann, other = tourist(shown, "analyst"), tourist(shown, "analyst")
    word = form_word(ann.browser)
    answer = ann.browser.post("/tour", data={"form_word": word, "ended": "yes", "back": "/data/diabetes"})
    assert answer.headers["location"] == "/data/diabetes" and "httponly" in answer.headers["set-cookie"].lower()
    assert ann.at("/data").seen == 0 and "Show the tour again" in ann.page.text and other.at("/data").seen == 1
    answer = ann.browser.post("/tour", data={"form_word": word, "back": "//elsewhere.example"})
    assert answer.headers["location"] == "/" and ann.at("/data").seen == 1


def test_the_tour_lets_nobody_in(shown: tuple[Running, DemoAccess]) -> None:
    demo, _ = shown
    ann, carla = tourist(shown, "analyst").browser, tourist(shown, "custodian").browser
    for path in ("/tour", "/tour/bring"):
        assert demo.client().post(path, data={"sample": "wages"}).headers["location"].startswith("/login")
        assert carla.post(path, data={"sample": "wages"}).status_code == 403, "a form of another site"
    before = len(list((demo.state.settings.home / "uploads").glob("*")))
    assert ann.post("/tour/bring", data={"sample": "wages", "form_word": form_word(ann)}).status_code == 403
    assert carla.post("/tour/bring", data={"sample": "../key", "form_word": form_word(carla)}).status_code == 404
    assert len(list((demo.state.settings.home / "uploads").glob("*"))) == before


def test_no_other_server_has_a_tour(running: Running) -> None:
    ann = running.browser("ann")
    assert "Guided tour" not in ann.get("/data").text + running.client().get("/login").text
    for path in ("/tour", "/tour/bring"):
        assert ann.post(path, data={"form_word": form_word(ann)}).status_code == 404


def test_the_way_has_every_step_once_and_names_samples_that_are_of_others_each_time() -> None:
    for way, length in ((ANALYST, 5), (CUSTODIAN, 12)):
        assert {one.step for one in way} - {0} == set(range(1, length + 1))
    for name in ("wages", "visits"):
        people = [{line.split(b",")[0] for line in sample(name).splitlines()[1:]} for _ in range(2)]
        assert len(people[0]) >= 300 and len(people[0] & people[1]) <= 3
