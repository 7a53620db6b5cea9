"""What people write in a session that it does not have: arguments and questions of other libraries, and data again."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from leakcap.errors import InputError
from leakcap.planning.arguments import names_of, refuse_unknown

__all__ = ["HOW", "checked_how", "no_column", "no_question", "refuse_data"]

HOW = ("noise", "share", "request")  # that every question takes
OF_THE_SESSION = (
    "what may leak is the session's cap, for all answers together: share=0.01 is the part this one may take"
)
MEANT = {
    **dict.fromkeys(("budget", "cap", "delta", "eps", "epsilon"), OF_THE_SESSION),
    **dict.fromkeys(("condition", "filter"), "it is called where: where=\"age > 40 and ward in ('A', 'B')\""),
    **dict.fromkeys(("group", "group_by", "groupby", "groups"), 'declare the groups: by={"ward": ["A", "B"]}'),
    **dict.fromkeys(("random_state", "seed"), "the session has one, and is then a simulation: lc.Session(..., seed=1)"),
}
SPREAD = "ask session.covariance(columns, bounds=(low, high)), which has the variances"
ENDS = "it belongs to a single person: ask session.quantile(columns, [0.05, 0.95], bounds=(low, high))"
INSTEAD = {
    **dict.fromkeys(("std", "var", "variance"), SPREAD),
    **dict.fromkeys(("max", "min"), ENDS),
    **dict.fromkeys(("groupby", "group_by", "value_counts"), 'ask session.count(by={"ward": ["A", "B"]}), or a mean'),
    **dict.fromkeys(("save", "to_html", "to_json"), "take session.certificate, or an answer"),
    **dict.fromkeys(
        ("plan", "release"), "ask session.mean(...) and the like, or session.blocks(fn, ...) for other functions"
    ),
    "median": "ask session.quantile(columns, 0.5, bounds=(low, high))",
}


def checked_how(kind: str, call: Callable[..., Any], how: Mapping[str, Any]) -> dict[str, Any]:
    """How a question is to be asked; an argument that it does not have is refused with what is meant by it."""
    known = (names_of(call) | {*HOW}) - {"self"}
    refuse_unknown(f"session.{kind}", how, known, lambda name: MEANT.get(name, ""))
    return dict(how)


def no_question(name: str) -> AttributeError:
    """For a question that sessions do not answer."""
    if name in INSTEAD:
        return AttributeError(f"a session has no {name}: {INSTEAD[name]}")
    return AttributeError(f"'Session' object has no attribute {name!r}")


def refuse_data(columns: Any) -> None:
    """Refuse rows in the place of names: a message must not quote the cells that they hold."""
    if hasattr(columns, "iloc") or type(columns).__module__.split(".")[0] == "polars":
        raise InputError("the session has the data: name the columns, such as 'age' or ['age', 'height']")


def no_column(name: Any, asked: Collection[Any], known: Collection[str]) -> InputError:
    """For a name that no column has; what may be a cell is not quoted."""
    there = f"there are {', '.join(map(repr, known))}"
    if not isinstance(name, str if len(asked) > 1 else (str, int)) or not 0 < len(asked) <= len(known):
        return InputError(f"the columns are named by their names: {there}")
    lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(str(name).lower(), lower, 1)
    return InputError(
        f"there is no column {str(name)!r}: {f'did you mean {lower[near[0]]!r}? ' if near else ''}{there}"
    )
