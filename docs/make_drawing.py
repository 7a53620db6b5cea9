"""Draw the rooms of the package and who imports whom: `python docs/make_drawing.py` makes docs/images/house.svg.

Everything is read from the code: every import counts, also those inside functions and those for types alone. A room is
a folder or a file directly under the package. Each may import from the rooms below it; the one exception, the door, is
named here.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "leakcap"
PICTURE = ROOT / "docs" / "images" / "house.svg"

# From the ground up. Rooms that are not built yet are left out of the drawing.
ROOMS = {
    "errors": "what is raised, in words that hold no data",
    "version": "the number on every certificate",
    "ground": "checks, arrays, cores, proofs",
    "caps": "what may be promised",
    "datasets": "public data for trying things",
    "convert": "one privacy figure in terms of another",
    "certificates": "frozen records and their plain words",
    "worlds": "which units take part in each world",
    "kernels": "the same function in all worlds at once",
    "stats": "means, quantiles, histograms",
    "custody": "what only the custodian may open",
    "cluster": "many machines",
    "simulate": "run a function in every world",
    "leakage": "what the best attacker would know",
    "noise": "the least noise that keeps the caps",
    "modes": "ways from answers to a release",
    "planning": "plan, release, recap, suggest",
    "sessions": "many answers from one secret",
    "estimators": "private scikit-learn models",
    "synthetic": "data drawn from a release",
    "labels": "labels that nobody may see",
    "obfuscation": "bounded encoders",
    "local": "release without a trusted holder",
    "audit": "attacks, and what they prove",
    "tables": "files become what plan() takes",
    "sql": "private queries",
    "report": "pages for people",
    "testing": "checks for parts of your own",
    "cli": "the command line",
    "server": "the service",
}
GROUND = {"errors", "version", "ground"}  # everybody stands on these: their arrows are drawn faintly
# A record asks for its page when it is shown, a session for its answers when it is asked in SQL, and only then.
DOORS = (("certificates", "report"), ("sessions", "sql"))

STOREY, WIDTH, HOUSE = 30, 900, (120, 570)  # pixels; left and right wall
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1c2330 }
.room { fill: #e8ecf5; stroke: #8793ad }
.name { font-weight: 600 }
.what, .count { font-size: 11px; fill: #5b667c }
.arrow { fill: none; stroke: #5d76b8; stroke-opacity: .5 }
.ground { stroke-opacity: .16 }
.door { fill: none; stroke: #d9720b }
.against { fill: none; stroke: #c62828 }
.door-words { fill: #b45b00 }
.against-words { fill: #c62828 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e9f0 }
  .room { fill: #2b3347; stroke: #6d7a96 }
  .what, .count { fill: #a9b3c6 }
  .arrow { stroke: #9db4f0 }
  .door { stroke: #ffa94d }
  .against { stroke: #ff8080 }
  .door-words { fill: #ffa94d }
  .against-words { fill: #ff8080 }
}
"""


def arrows() -> Counter[tuple[str, str]]:
    """How many imports lead from one room to another."""
    found: Counter[tuple[str, str]] = Counter()
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] in ("__init__", "__main__"):
            continue  # the front door shows everything, and opens each room when it is asked for
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for target in (*imported(tree), *asked_by_name(tree)):
            if target != parts[0]:
                found[parts[0], target] += 1
    return found


def imported(tree: ast.AST) -> Iterator[str]:
    """The room of every import of ours in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "leakcap":
            yield from (one.name for one in node.names if one.name in ROOMS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("leakcap."):
            yield str(node.module).split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (one.name.split(".")[1] for one in node.names if one.name.startswith("leakcap."))


def asked_by_name(tree: ast.AST) -> Iterator[str]:
    """Rooms whose module is named in a constant, `UPSTAIRS = "leakcap.report.pages"`: the door opens when asked."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            name = str(node.value.value)
            if re.fullmatch(r"leakcap(\.\w+)+", name):
                yield name.split(".")[1]


def rooms() -> list[str]:
    """The rooms that are built, from the ground up."""
    built = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    built -= {"__init__", "__main__"}
    if built - set(ROOMS):
        raise SystemExit(f"say in docs/make_drawing.py where these rooms are: {', '.join(sorted(built - set(ROOMS)))}")
    return [room for room in ROOMS if room in built]


def against(counted: Counter[tuple[str, str]], order: list[str]) -> list[tuple[str, str]]:
    """Arrows that lead up, the doors not counted."""
    return [pair for pair in counted if pair not in DOORS and order.index(pair[0]) < order.index(pair[1])]


def drawing() -> str:
    """The whole picture."""
    order, counted = rooms(), arrows()
    height = {room: STOREY * (len(order) - place) for place, room in enumerate(order)}
    wrong = against(counted, order)
    shapes = [_arrow(pair, number, height, wrong) for pair, number in sorted(counted.items())]
    shapes += [_room(room, height[room], counted) for room in order]
    tall = STOREY * (len(order) + 3)
    words = _legend(len(order), counted, wrong)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" role="img" aria-label="Rooms of the '
            'package, from the ground up, and the imports between them">',
            f"<style>{STYLE}</style>",
            *(_head(kind) for kind in ("arrow", "door", "against")),
            *shapes,
            *(
                f'<text x="{HOUSE[0]}" y="{tall - 42 + 18 * i}" {look}>{line}</text>'
                for i, (look, line) in enumerate(words)
            ),
            "</svg>\n",
        ]
    )


def _head(kind: str) -> str:
    return (
        f'<marker id="{kind}-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path class="{kind}" d="M1 1 L7 4 L1 7"/></marker>'
    )


def _room(room: str, y: int, counted: Counter[tuple[str, str]]) -> str:
    left, right = HOUSE
    used, uses = (sum(n for pair, n in counted.items() if pair[side] == room) for side in (1, 0))
    return (
        f"<g><title>{room}: {uses} imports from other rooms, {used} by them</title>"
        f'<rect class="room" x="{left}" y="{y - 11}" width="{right - left}" height="{STOREY - 6}" rx="3"/>'
        f'<text class="name" x="{left + 8}" y="{y + 5}">{room}</text>'
        f'<text class="what" x="{left + 100}" y="{y + 5}">{escape(ROOMS[room])}</text>'
        f'<text class="count" text-anchor="end" x="{right - 8}" y="{y + 5}">uses {uses}, used {used}</text></g>'
    )


def _arrow(pair: tuple[str, str], number: int, height: dict[str, int], wrong: list[tuple[str, str]]) -> str:
    """Down on the right; the door, and what leads up, on the left. Far rooms bend farther, many imports are broad."""
    above, below = height[pair[0]], height[pair[1]]
    kind = "door" if pair in DOORS else "against" if pair in wrong else "arrow"
    wall, side = (HOUSE[1], 1) if kind == "arrow" else (HOUSE[0], -1)
    bend = wall + side * (26 + 0.44 * abs(above - below)) * (1 if side > 0 else 0.4)
    look = f"{kind} ground" if pair[1] in GROUND else kind
    thick = 0.6 + 0.8 * math.log2(number)
    return (
        f'<path class="{look}" stroke-width="{thick:.1f}" marker-end="url(#{kind}-head)" '
        f'd="M{wall} {above + 3} C{bend:.0f} {above + 3} {bend:.0f} {below} {wall + side * 2} {below}">'
        f"<title>{pair[0]} imports {pair[1]}: {number}</title></path>"
    )


def _legend(built: int, counted: Counter[tuple[str, str]], wrong: list[tuple[str, str]]) -> list[tuple[str, str]]:
    down = [pair for pair in counted if pair not in DOORS and pair not in wrong]
    imports = sum(counted[pair] for pair in down)
    lines = [
        ('class="what"', f"{built} rooms. {len(down)} arrows lead down ({imports} imports): broad ones stand for many.")
    ]
    said = [f"{here} to {there}" for here, there in DOORS if (here, there) in counted]
    if said:
        lines.append(('class="what door-words"', f"Doors up, opened when asked: {', '.join(said)}."))
    if wrong:
        lines.append(('class="what against-words"', f"{len(wrong)} arrows against the order."))
    return lines


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
