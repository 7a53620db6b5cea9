"""How commands end: exit codes, and what is said about an error."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from leakcap.errors import AlreadyReleased, LeakcapError, NumericalError, OutputError, PartiesError

__all__ = ["CHECK_FAILED", "as_options", "defect_in_words", "ending"]

# Exit codes beside 0. Typer ends with 2 itself where a command cannot be parsed.
CHECK_FAILED = 1
WRONG_INPUT = 2
NOT_RELEASABLE = 3  # not as asked
RELEASED_ALREADY = 4
DEFECT = 70  # of leakcap
STOPPED = 130  # by the user
# Arguments that errors of the library name as `name=`, and whose options have the same names.
ARGUMENTS = "classes|delta|draws|high|low|mechanism|missing_as"


@contextmanager
def ending(after_stop: str = "") -> Iterator[None]:
    """End with the code of an error. Those of leakcap keep their words; others lose their text, it may quote data."""
    try:
        yield
        return
    except AlreadyReleased as error:
        code, words = RELEASED_ALREADY, str(error)
    except (OutputError, NumericalError, PartiesError) as error:
        code, words = NOT_RELEASABLE, as_options(str(error))
    except LeakcapError as error:
        code, words = WRONG_INPUT, str(error)
    except KeyboardInterrupt:
        code, words = STOPPED, f"stopped. {after_stop}".rstrip()
    except SystemExit:
        raise
    except BaseException as error:
        if isinstance(error.__cause__, OutputError):  # of the user's function, which shows it in Python alone
            code, words = NOT_RELEASABLE, as_options(str(error.__cause__))
        else:
            code, words = DEFECT, defect_in_words(error)
    _fail(words, code)


def as_options(words: str) -> str:
    """What the library says of its arguments, as options of the command line."""
    words = re.sub(r"drop=\[([^\]]*)\]", lambda names: "--drop " + re.sub(r"['\s]", "", names[1]), words)
    words = words.replace("clip=(low, high)", "--clip LOW,HIGH")
    return re.sub(rf"\b({ARGUMENTS})=(?=(\w)?)", _option, words)


def _option(argument: re.Match[str]) -> str:
    """`missing_as=` as `--missing-as`, with a blank before a value."""
    return f"--{argument[1].replace('_', '-')}{' ' if argument[2] else ''}"


def defect_in_words(error: BaseException) -> str:
    """Kind and place of an unexpected error, without its text."""
    place, trace = "", error.__traceback__
    while trace is not None:
        if "leakcap" in trace.tb_frame.f_code.co_filename:
            place = f" in {Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return (
        f"{type(error).__name__}{place}: a defect of leakcap, please report it. The text of the error is withheld: it "
        "may quote the data"
    )


def _fail(words: str, code: int) -> NoReturn:
    print(f"leakcap: {words}", file=sys.stderr)
    raise SystemExit(code)
