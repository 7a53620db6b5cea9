"""A hundred guesses as a hundred dots: right by luck, right thanks to the release, wrong."""

from __future__ import annotations

__all__ = ["grid", "key"]

ACROSS = 10


def grid(luck: int, gained: int, label: str) -> str:
    """Ten rows of ten: dots by luck, then diamonds that the release adds, then empty rings; `label` is HTML."""
    marks = "".join(_mark(i, "luck" if i < luck else "gain" if i < luck + gained else "miss") for i in range(100))
    return f'<svg class="dots" viewBox="0 0 100 100" role="img" aria-label="{label}">{marks}</svg>'


def key(gained: bool, at_most: str) -> str:
    """What the marks mean."""
    kinds = [("luck", "right by luck")]
    if gained:
        kinds.append(("gain", f"right thanks to the release, {at_most}"))
    kinds.append(("miss", "wrong"))
    items = (f'<li><svg class="mark" viewBox="0 0 10 10">{_mark(0, kind)}</svg>{words}</li>' for kind, words in kinds)
    return f'<ul class="key">{"".join(items)}</ul>'


def _mark(place: int, kind: str) -> str:
    x, y = 5 + 10 * (place % ACROSS), 5 + 10 * (place // ACROSS)
    if kind == "gain":
        return f'<path class="gain" d="M{x} {y - 4.6:g}L{x + 4.6:g} {y}L{x} {y + 4.6:g}L{x - 4.6:g} {y}z"/>'
    return f'<circle class="{kind}" cx="{x}" cy="{y}" r="{3.6 if kind == "luck" else 3.2}"/>'
