"""Both journeys in a real browser: desktop and phone, light and dark, and with the keyboard alone."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.unit.server.running import PASSWORDS, Running

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright here: pip install 'leakcap[dev]'")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no browser here: install chromium to walk through the pages"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of the driver's pipes
]
MOST_TABS = 80

# Text whose contrast is below AA (WCAG 2.2, 1.4.3), fields without a name, and what is wider than the window.
FAULTS = """() => {
  const channel = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const parse = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const box = one.getBoundingClientRect(), style = getComputedStyle(one);
    if (!own || !box.width || box.left < 0 || style.visibility === "hidden" || one.closest("svg")) continue;
    const [a, b] = [light(parse(style.color)), light(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    const least = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
    if (ratio < least) found.push(`contrast ${ratio.toFixed(2)}: ${one.textContent.trim().slice(0, 40)}`);
  }
  for (const one of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (!one.labels.length && !one.getAttribute("aria-label")) found.push(`no label: ${one.name}`);
  }
  for (const one of document.querySelectorAll("button, a[href]")) {
    const named = one.textContent.trim() || one.getAttribute("aria-label");
    if (!named) found.push(`no name: ${one.outerHTML.slice(0, 60)}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const one of ids) if (ids.filter((id) => id === one).length > 1) found.push(`twice: #${one}`);
  if (document.querySelectorAll("h1").length !== 1 || !document.title || !document.documentElement.lang)
    found.push("one h1, a title and a language are missing");
  const width = document.documentElement.scrollWidth;
  if (width > innerWidth) found.push(`${width} pixels wide`);
  return found;
}"""


@dataclass
class Walk:
    """A tab, and what went wrong in it."""

    page: Any
    address: str
    faults: list[str]

    def at(self, path: str) -> None:
        self.page.goto(self.address + path)
        self.look(path)

    def arrives(self, selector: str) -> None:
        """Wait for a page that shows this and can be typed on: all loaded, and the focus where the page puts it.

        That is given when the page is first painted, at times after it is loaded.
        """
        self.page.wait_for_selector(selector)
        self.page.wait_for_load_state("load")
        if self.page.locator("[autofocus]").count():
            self.page.wait_for_selector("[autofocus]:focus")

    def look(self, where: str) -> None:
        self.page.wait_for_load_state("load")  # without its style sheet a page is wide and pale
        self.faults += [f"{where}: {one}" for one in self.page.evaluate(FAULTS)]

    def sign_in(self, name: str) -> None:
        self.at("/login")
        self.page.fill("#name", name)
        self.page.fill("#password", PASSWORDS[name])
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(lambda url: "/login" not in url)

    def tab_to(self, selector: str) -> None:
        """With the keyboard alone."""
        for _ in range(MOST_TABS):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("(one) => document.activeElement.matches(one)", selector):
                outline = self.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                if outline == "none":
                    self.faults.append(f"{selector} does not show that it has the focus")
                return
        raise AssertionError(f"{selector} cannot be reached with the keyboard")

    def press(self, selector: str, key: str = "Enter") -> None:
        """A key, where the keyboard leads."""
        self.tab_to(selector)
        self.page.keyboard.press(key)

    def write(self, selector: str, text: str) -> None:
        """A text, where the keyboard leads."""
        self.tab_to(selector)
        self.page.keyboard.type(text)


@contextmanager
def reached(app: Any) -> Iterator[str]:
    """The address of an application that is served."""
    from leakcap.server.serving import bound_socket, made_server

    listening = bound_socket("127.0.0.1", 0)
    server = made_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://localhost:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(20)


@pytest.fixture(scope="module")
def served(running: Running) -> Iterator[str]:
    with reached(running.app) as address:
        yield address


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


WINDOWS = {"desktop": (1280, 860, "light"), "phone": (390, 844, "dark")}
# Through the smaller window with the slow tests: the longest journeys, where nothing but the window is another, and
# what has nothing to do with windows.
PHONE_LATER = pytest.mark.parametrize(
    "walk",
    [
        pytest.param(WINDOWS["desktop"], id="desktop"),
        pytest.param(WINDOWS["phone"], id="phone", marks=pytest.mark.slow),
    ],
    indirect=True,
)


@pytest.fixture(params=WINDOWS.values(), ids=WINDOWS)
def walk(request: pytest.FixtureRequest, chromium: Any, served: str) -> Iterator[Walk]:
    with walking(chromium, served, *request.param) as made:
        yield made


@contextmanager
def walking(chromium: Any, served: str, width: int, height: int, scheme: str) -> Iterator[Walk]:
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_timeout(60_000)
    made = Walk(context.new_page(), served, [])
    made.page.on("console", lambda said: made.faults.append(said.text) if said.type in ("error", "warning") else None)
    made.page.on("pageerror", lambda error: made.faults.append(str(error)))
    made.page.on("request", lambda one: None if one.url.startswith(served) else made.faults.append(one.url))
    yield made
    context.close()


def test_an_analyst_sees_the_price_pays_and_reads_the_answer(walk: Walk) -> None:
    page = walk.page
    walk.sign_in("ann")
    walk.look("/data")
    page.click("text=clinic")
    walk.arrives("#sql")
    walk.look("console")
    page.select_option("select[name=measure]", "avg")
    page.select_option("select[name=column]", "age")
    page.select_option("select[name=group1]", "sex")
    page.fill("#share-form", "3")
    page.click("form:has([name=measure]) >> text=See the price")
    walk.arrives("#price")
    walk.look("price")
    assert "It takes 3\xa0% of the clock" in page.inner_text("#price") or "answered before" in page.inner_text("#price")
    page.click("#price button")
    walk.arrives("text=How to read it")
    walk.look("answer")
    assert page.locator("svg.bar circle").count() == 2 and "average of age" in page.inner_text("main")
    for path in ("/data/clinic/answers", "/data/clinic/certificate", "/tokens"):
        walk.at(path)
    page.click("text=Sign out")
    page.wait_for_url("**/login")
    page.go_back()
    page.wait_for_url("**/login**")
    assert walk.faults == []


@PHONE_LATER
def test_an_analyst_needs_no_mouse(walk: Walk) -> None:
    page = walk.page
    page.goto(walk.address + "/login")
    walk.arrives("#name")
    page.keyboard.type("ann")
    walk.write("#password", PASSWORDS["ann"])
    walk.press("button")
    walk.arrives("a[href='/data/clinic']")
    walk.press("a[href='/data/clinic']")
    walk.arrives("#sql")
    walk.write("#sql", "select count(*) as n from peo")
    page.keyboard.press("Tab")  # the completed name
    assert page.input_value("#sql") == "select count(*) as n from people"
    page.keyboard.type(" where ag")
    page.keyboard.press("Escape")
    page.keyboard.type("e > 30")
    walk.tab_to("#share-sql")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("2")
    walk.press("button[formaction$=preview]")
    walk.arrives("#price")
    assert page.evaluate("document.activeElement.id") == "price", "the price is where the reader goes on"
    walk.press("#price button")
    walk.arrives("text=How to read it")
    assert walk.faults == []


@PHONE_LATER
def test_a_custodian_sees_what_was_asked_and_registers_data(walk: Walk, tmp_path: Any) -> None:
    page = walk.page
    walk.sign_in("carla")
    walk.look("/custody")
    assert "are whole" in page.inner_text("main")
    for path in (
        "/custody/data/clinic",
        "/custody/analysts",
        "/custody/released",
        "/custody/audit",
        "/custody/data/clinic/audit",
        "/custody/events",
        "/tokens",
    ):
        walk.at(path)
    walk.at("/custody/register")
    file = tmp_path / "visits.csv"
    first = time.monotonic_ns()  # the ledger would know the same people again
    file.write_text("person,town,cost\n" + "".join(f"{first + at},A,{at}\n" for at in range(100)))
    page.set_input_files("#file", str(file))
    page.click("text=Bring it")
    walk.arrives("#unit")
    walk.look("declare")
    page.fill("#name", f"visits-{time.monotonic_ns()}")
    page.select_option("#unit", "person")
    page.fill("#low2", "0")
    page.fill("#high2", "49")
    page.click("text=See what it costs")
    walk.arrives("#price")
    walk.look("what it costs")
    assert "50 of 100 values cut" in page.inner_text("#price")
    page.click("text=Register it")
    walk.arrives("text=What registering changed")
    assert walk.faults == []


@PHONE_LATER
def test_a_custodian_publishes_without_a_mouse(walk: Walk, tmp_path: Any) -> None:
    page = walk.page
    walk.sign_in("carla")
    walk.at("/custody/publish")
    first = time.monotonic_ns()  # the ledger would know the same people again
    file = tmp_path / "weights.csv"
    file.write_text(
        "person,weight\n" + "".join(f"{first + at},{30 + (at * first) % 7001 / 100:.2f}\n" for at in range(100))
    )
    page.set_input_files("#file", str(file))  # the one thing that a driver cannot do with keys
    walk.press("main button")
    walk.arrives("#unit")
    walk.look("whose rows, and the question")
    walk.write("#unit", "person")
    walk.press("input[value=weight]", "Space")
    walk.write("[aria-label='Least value of weight']", "0")
    walk.write("[aria-label='Largest value of weight']", "150")
    walk.press("button[value=compare]")
    walk.arrives("#price")
    walk.look("the promises")
    assert page.evaluate("document.activeElement.id") == "price", "the promises are where the reader goes on"
    walk.press("[name=promise]", "ArrowDown")
    walk.write("#name", f"weights-{first % 10**6}")
    walk.press("button[value=release]")
    walk.arrives("text=The same by hand")
    walk.look("published")
    assert "leakcap release table.csv" in page.inner_text("main")
    assert walk.faults == []


@pytest.mark.slow
def test_a_custodian_publishes_and_attacks_trees_that_vote_without_a_mouse(walk: Walk, tmp_path: Any) -> None:
    page = walk.page
    walk.sign_in("carla")
    first = time.monotonic_ns()  # the ledger would know the same people again
    places = [((at * first) % 7919 / 7919, (at * at * first) % 7907 / 7907) for at in range(4500)]
    rows = [f"{one:.4f},{other:.4f}" for one, other in places]
    kinds = ["high" if one > other else "low" for one, other in places]
    people, public = tmp_path / "people.csv", tmp_path / "public.csv"
    told = [f"{first + at},{row},{kind}" for at, (row, kind) in enumerate(zip(rows, kinds, strict=True))]
    people.write_text("\n".join(["person,a,b,kind", *told[:3000]]))
    public.write_text("\n".join(["a,b", *rows[3000:]]))
    walk.at("/custody/publish")
    page.set_input_files("#file", str(people))
    page.click("text=Bring it")
    walk.arrives("#unit")
    page.set_input_files("#file", str(public))
    walk.press("form[enctype] button")
    walk.arrives("text=1,500 public rows")
    walk.look("public rows are there")
    assert page.input_value("#fn") == "boosted", "the choice for which they were brought"
    walk.write("#unit", "person")
    walk.tab_to("#cap")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("70")
    walk.write("#target", "kind")
    for name in ("a", "b"):
        walk.press(f"input[value={name}]", "Space")
    walk.press("button[value=compare]")
    walk.arrives("#price")
    walk.look("the promises of trees")
    assert page.locator("[name=promise]").count() == 1, "the classes are not declared, so that a pool cap is none"
    walk.write("#name", f"trees-{first % 10**6}")
    walk.press("button[value=release]")
    walk.arrives("text=The same by hand")
    walk.look("published trees")
    assert "--fn Distilled" in page.inner_text("main")
    walk.press("a[href^='/custody/audit/']:not(nav a)")
    walk.arrives("#trials")
    walk.look("their audit")
    walk.tab_to("#trials")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("200")
    page.keyboard.press("Enter")
    walk.arrives("text=The report of the last audit")
    walk.look("their audit, done")
    walk.press("main a.button")
    walk.arrives("text=CUSTODIAN ONLY")
    walk.look("the report")
    assert "Nothing refuted" in page.inner_text("body")
    assert walk.faults == []


@pytest.mark.parametrize(
    "window",
    [
        pytest.param((1280, 860, "dark"), id="dark desktop", marks=pytest.mark.slow),
        pytest.param((390, 844, "light"), id="light phone"),
    ],
)
def test_the_tour_of_the_demo_needs_no_mouse(
    window: tuple[int, int, str], chromium: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leakcap.server.app import create_app
    from leakcap.server.demo import fill
    from leakcap.server.settings import ServerSettings

    monkeypatch.setenv("LEAKCAP_KEY", str(tmp_path / "key"))
    app = create_app(ServerSettings(home=tmp_path / "server", demo=True))
    access = fill(app.state.leakcap)
    with reached(app) as address, walking(chromium, address, *window) as walk:
        page = walk.page

        def step(at: str, words: str) -> None:
            walk.arrives(f"aside:has-text('{words}')")
            walk.look(at)

        def onward() -> None:
            walk.press("aside .next")

        def signs_in(name: str, password: str) -> None:
            step("the door", "This is a demo")
            page.focus("#name")
            page.keyboard.type(name)
            walk.write("#password", password)
            page.keyboard.press("Enter")

        page.goto(address)
        signs_in(*access.analyst)
        step("data", "Tour, 1 of 5")
        onward()
        step("console", "Tour, 2 of 5")
        onward()
        step("price", "Tour, 3 of 5")
        onward()  # the price has the focus
        walk.press("#price button")
        step("answer", "Tour, 4 of 5")
        onward()
        step("certificate", "Tour, 5 of 5")
        onward()
        signs_in(*access.custodian)
        step("custody", "Tour, 1 of 12")
        onward()
        step("publish", "Tour, 2 of 12")
        onward()
        step("whose rows", "Tour, 3 of 12")
        onward()
        step("promises", "Tour, 4 of 12")
        walk.press("aside button[name=ended]")
        walk.arrives("text=Show the tour again")
        walk.look("without the tour")
        assert page.locator("aside").count() == 0 and walk.faults == []


@PHONE_LATER
def test_planted_faults_of_a_page_are_seen(walk: Walk) -> None:
    walk.page.goto(walk.address + "/login")
    assert walk.page.evaluate(FAULTS) == []
    walk.page.evaluate(
        """() => {
          document.querySelector("label[for=name]").remove();
          document.querySelector("h1").style.color = "#bbb";
          document.querySelector("h1").style.backgroundColor = "#ccc";
          document.querySelector("main").style.minWidth = "3000px";
          document.querySelector("main button").textContent = "";
        }"""
    )
    found = " ".join(walk.page.evaluate(FAULTS))
    for words in ("contrast", "no label: name", "no name: <button", "pixels wide"):
        assert words in found, words


@PHONE_LATER
def test_pages_are_small(walk: Walk) -> None:
    """All that a browser loads for a page."""
    loaded: list[Any] = []
    walk.page.on("response", lambda one: loaded.append(one) if one.status == 200 else None)
    walk.sign_in("ann")
    for path in ("/data", "/data/clinic", "/data/clinic/answers", "/data/clinic/certificate"):
        walk.page.wait_for_load_state("networkidle")  # bodies of the page before are no longer there to weigh
        loaded.clear()
        walk.at(path)
        walk.page.wait_for_load_state("networkidle")
        sizes = [len(one.body()) for one in loaded]
        assert sizes and sum(sizes) < 150_000, (path, sum(sizes))
