"""`leakcap sql`: questions in SQL about a file or several, one at a time or at a prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakcap.certificates.text import percent
from leakcap.cli.limits import limits
from leakcap.cli.sql_words import as_sql_options, in_sql_options
from leakcap.cli.terminal import Terminal, plain
from leakcap.cli.workers import backend_of
from leakcap.custody.ledger import default_place
from leakcap.errors import InputError, LeakcapError
from leakcap.sessions.session import Session
from leakcap.sql.catalog import Catalog
from leakcap.sql.failures import in_words
from leakcap.sql.noised_keys import noised
from leakcap.sql.register import register
from leakcap.sql.sources import DATABASES, attached

__all__ = ["SqlOrder", "run"]

MOST_NAMES = 12  # of columns, that a sentence lists
HELP = ("help", "?", "\\?", "\\h")
WORDS = ("\\t  tables and columns", "\\p QUESTION  its price", "\\s  what is left", "\\q  leave")


@dataclass(frozen=True)
class SqlOrder:
    """What `leakcap sql` was asked."""

    data: Path
    question: str | None
    cap: tuple[str, ...]
    unit: str | None
    link: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    rows_per_unit: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    noised_keys: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    design: str = "bits"
    worlds: int | None = None
    cohorts: int | None = None
    share: float | None = None
    rows: int | None = None  # of one person, that are enough for a question
    ledger: str | None = None
    name: str | None = None
    store: Path | None = None
    backend: str | None = None
    insecure: bool = False


def run(order: SqlOrder, quiet: bool = False, json: bool = False) -> None:
    """Answer one question, or open a prompt."""
    terminal = Terminal(quiet, json)
    with terminal.heeding(), in_sql_options():
        catalog = _catalog(order)
        for line in catalog.report if order.unit is not None else ():  # of stored tables it was said before
            terminal.note(plain(line))
        with backend_of(order.backend, None, order.insecure) as there:
            session = _session(catalog, order, there)
            if order.question is None:
                _prompt(session, catalog, order, terminal)
            else:
                _answer(session, order.question, order, terminal)


def _session(catalog: Catalog, order: SqlOrder, there: Any) -> Session:
    listed = {name: value for name in ("worlds", "cohorts") if (value := getattr(order, name)) is not None}
    return Session(
        catalog,
        cap=limits(order.cap),
        design=order.design,
        ledger=order.ledger or default_place(),
        name=order.name,
        backend=None if there == "serial" else there,
        **listed,
    )


def _catalog(order: SqlOrder) -> Catalog:
    if order.data.suffix in DATABASES and order.unit is None:
        return Catalog.load(order.data)  # made earlier, with --store
    if order.data.suffix in DATABASES and _is_registered(order.data):
        raise InputError(f"{order.data.name!r} was registered already, with all of this: leave out --unit and the like")
    if order.unit is None:
        raise InputError(f"say whose row it is, as in --unit patient or --unit customer.id: {_columns(order.data)}")
    if order.store is not None and order.store.exists():
        raise InputError(
            f"{order.store.name!r} exists: ask it, as in: leakcap sql {order.store.name} --cap 0.6 'select ...'"
        )
    return register(
        order.data,
        unit=order.unit,
        links=dict(_pair(word, "--link orders.customer=customer.id") for word in order.link),
        bounds=dict(_bounds(word) for word in order.bounds),
        rows_per_unit=_rows(order.rows_per_unit),
        keys=_keys(order),
        public=[name for word in order.public for name in word.split(",")],
        path=order.store,
    )


def _columns(data: Path) -> str:
    """What there is to choose from."""
    import duckdb

    with duckdb.connect() as file:
        try:
            found = [f"{name}.{one}" for name, table in attached(file, data).items() for one in table.columns]
        except duckdb.Error as error:
            raise InputError(in_words(error, data.name)) from None
    return f"there are {', '.join(found[:MOST_NAMES])}{' and more' if len(found) > MOST_NAMES else ''}"


def _is_registered(data: Path) -> bool:
    try:
        Catalog.load(data)
    except InputError:
        return False
    return True


def _answer(session: Session, question: str, order: SqlOrder, terminal: Terminal) -> None:
    answer = session.sql(question, **_how(order))
    frame = answer.frame
    shown = [name for name in frame.columns if not name.endswith((" low", " high"))]
    rows = [
        [_cell(row, name, f"{name} low" in frame.columns) for name in shown] for row in frame.to_dict(orient="records")
    ]
    terminal.table([plain(name) for name in shown], rows)
    left = session.remaining
    spent = "Nothing was spent" if not answer.share else f"Took at most {100 * answer.share:.3g} % of anybody's clock"
    terminal.say(
        f"{spent}; whoever has least has {_left(left.share)} left. All answers together allow at most "
        f"{percent(left.success)}."
    )
    terminal.result(
        {
            "columns": list(map(str, frame.columns)),
            "rows": [[_plain_value(one) for one in row] for row in frame.itertuples(index=False)],
            "share": answer.share,
            "remaining": left.share,
        }
    )


def _prompt(session: Session, catalog: Catalog, order: SqlOrder, terminal: Terminal) -> None:
    """Questions one after the other, with history and completion where the terminal has them."""
    _complete(catalog)
    terminal.say("Ask in SQL, and end with ;. " + "; ".join(plain(word) for word in WORDS))
    text = ""
    while True:
        try:
            line = input("... " if text else "sql> ")
        except EOFError:
            if text.strip():
                terminal.tell("the last question was not asked: end it with ;")
            return
        except KeyboardInterrupt:
            text = ""
            continue
        word = line.strip().rstrip(";").rstrip()
        if word == "\\q" or (not text and word in ("exit", "quit")):
            return
        if word.startswith("\\") or (not text and (word in HELP or word.startswith("."))):
            asked = word  # in the middle of a question, which goes on
        else:
            text = f"{text}\n{line}" if text else line
            if not text.rstrip().endswith(";"):
                continue
            asked, text = text.strip().rstrip(";"), ""
        try:
            _one(asked, session, catalog, order, terminal)
        except LeakcapError as error:
            terminal.tell(as_sql_options(str(error)))
        except KeyboardInterrupt:
            terminal.tell("stopped: what was charged by then is stored, and asked again it costs nothing")


def _one(asked: str, session: Session, catalog: Catalog, order: SqlOrder, terminal: Terminal) -> None:
    if asked == "\\t":
        for table in catalog.tables.values():
            kind = "people's rows" if table.private else "public"
            terminal.say(f"{plain(table.name)} ({kind}): {plain(', '.join(one.name for one in table.columns))}")
    elif asked == "\\s":
        left = session.remaining
        terminal.say(
            f"Whoever has least has {_left(left.share)} of the clock left; at most {percent(left.success)} in the end."
        )
    elif asked.startswith("\\p"):
        found = session.preview_sql(asked[2:], **_how(order))
        terminal.say(
            "It is about public tables: nothing is spent."
            if found is None
            else f"It takes at most {100 * found.share:.3g} % of anybody's clock."
        )
    elif asked in HELP:
        terminal.say("; ".join(plain(word) for word in WORDS))
    elif asked.startswith(("\\", ".")):
        terminal.tell(f"There is no such word: {'; '.join(WORDS)}")
    else:
        _answer(session, asked, order, terminal)


def _how(order: SqlOrder) -> dict[str, Any]:
    """How each question is asked."""
    return {name: value for name in ("share", "rows") if (value := getattr(order, name)) is not None}


def _left(share: float) -> str:
    """Of a clock; what rounding leaves of one that has run out is nothing."""
    return f"{100 * share:.4g} %" if share >= 1e-6 else "nothing"


def _complete(catalog: Catalog) -> None:
    try:
        import readline
    except ImportError:  # a system without it: the prompt works all the same
        return
    words = sorted({*catalog.tables, *(one.name for table in catalog.tables.values() for one in table.columns)})

    def found(text: str, state: int) -> str | None:
        fitting = [word for word in words if word.lower().startswith(text.lower())]
        return fitting[state] if state < len(fitting) else None

    readline.set_completer(found)
    # Some systems have another library under the same name, with words of its own.
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")


def _cell(row: dict[str, Any], name: str, has_ends: bool) -> str:
    value = row[name]
    if not has_ends:
        return "" if value is None else plain(str(value))
    half = (row[f"{name} high"] - row[f"{name} low"]) / 2
    if math.isnan(value) or not math.isfinite(half):  # the noise leaves it open
        return "too few"
    if not half:
        return f"{value:.6g}"
    digits = 1 - math.floor(math.log10(half))  # two of the half width, and no more of the value
    return f"{_rounded(value, digits)} ± {_rounded(half, digits)}"


def _rounded(one: float, digits: int) -> str:
    return f"{round(one, digits):,.{max(0, min(digits, 12))}f}"


def _plain_value(one: Any) -> Any:
    if one is None or (isinstance(one, float) and math.isnan(one)):
        return None
    return one if isinstance(one, (str, bool, int, float)) else str(one)


def _pair(word: str, example: str) -> tuple[str, str]:
    name, sign, value = word.partition("=")
    if not sign or not name or not value:
        raise InputError(f"{word!r} cannot be read: write {example}")
    return name, value


def _bounds(word: str) -> tuple[str, tuple[Any, Any]]:
    name, text = _pair(word, "--bounds age=0,120")
    ends = text.split(",")
    if len(ends) != 2:
        raise InputError("--bounds takes two ends, as in --bounds age=0,120 or --bounds day=2020-01-01,2022-12-31")
    return name, (_value(ends[0]), _value(ends[1]))


def _keys(order: SqlOrder) -> dict[str, Any]:
    """Values to group by: listed, or by a noised count of people."""
    found: dict[str, Any] = {}
    for word in order.keys:
        name, text = _pair(word, "--keys ward=A,B")
        found[name] = [_value(one) for one in text.split(",")]
    for word in order.noised_keys:
        name, text = _pair(word, "--noised-keys town=50")
        people = _value(text)
        if name in found or isinstance(people, str):
            raise InputError("--noised-keys takes a column without --keys and a number of people, as in town=50")
        found[name] = noised(people)
    return found


def _rows(words: Sequence[str]) -> Any:
    if len(words) == 1 and words[0].isdigit():
        return int(words[0])
    found = {}
    for word in words:
        name, text = _pair(word, "--rows-per-unit 10, or --rows-per-unit stays=10")
        if not text.isdigit():
            raise InputError("--rows-per-unit takes whole numbers, as in --rows-per-unit stays=10")
        found[name] = int(text)
    return found or None


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
