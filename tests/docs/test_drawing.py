"""The drawing of the rooms shows the code as it is."""

from __future__ import annotations

import ast
import xml.etree.ElementTree as ET
from collections import Counter
from functools import cache

from tests.docs.made import made_by
from tests.docs.pages import ROOT

house = made_by("make_drawing")
drawn = cache(house.drawing)


def test_the_stored_drawing_is_that_of_the_code():
    assert house.PICTURE.read_text() == drawn(), "run `python docs/make_drawing.py`"


def test_every_room_is_drawn_once_and_the_page_shows_the_drawing():
    names = [text.text for text in ET.fromstring(drawn()).iter() if text.get("class") == "name"]
    assert sorted(names) == sorted(house.rooms())
    assert "images/house.svg" in (ROOT / "docs" / "design.md").read_text()


def test_every_room_is_explained_on_the_page():
    page = (ROOT / "docs" / "design.md").read_text()
    assert [room for room in house.rooms() if f"`{room}" not in page] == []


def test_lazy_imports_and_imports_for_types_are_counted():
    code = (
        "import leakcap.worlds\nfrom leakcap import stats, membership\nfrom numpy import caps\n"
        "if TYPE_CHECKING:\n    from leakcap.noise import Noise\n"
        "def late():\n    from leakcap.report.html import page\n"
    )
    assert sorted(house.imported(ast.parse(code))) == ["noise", "report", "stats", "worlds"]


def test_a_planted_arrow_against_the_order_is_seen_and_the_door_is_not():
    planted = Counter({("worlds", "cli"): 1, ("cli", "worlds"): 1, house.DOORS[0]: 1, house.DOORS[1]: 1})
    assert house.against(planted, house.rooms()) == [("worlds", "cli")]
