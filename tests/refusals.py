"""What every refusal has in common: it is one of our errors, it is a sentence, and it quotes nothing private."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

import leakcap as lc


def refusal(
    call: Callable[[], Any], words: str = "", kind: type[Exception] = lc.LeakcapError, private: tuple[str, ...] = ()
) -> lc.LeakcapError:
    """The error that `call` must raise; neither it nor anything chained to it shows a private text."""
    with pytest.raises(kind, match=words or None) as caught:
        call()
    assert isinstance(caught.value, lc.LeakcapError)
    assert len(str(caught.value)) > 15, "a clear error is a sentence"
    shown = texts_of(caught.value)
    assert not any(text in shown for text in private)
    return caught.value


def texts_of(error: BaseException) -> str:
    """Everything an error shows, to people and to programs that log it."""
    chain: list[BaseException | None] = [error]
    seen: list[BaseException] = []
    while chain:
        one = chain.pop()
        if one is None or one in seen:
            continue
        seen.append(one)
        chain += [one.__cause__, None if one.__suppress_context__ else one.__context__]
    parts = ["".join(traceback.format_exception(error))]
    for one in seen:
        parts += [str(one), repr(one), repr(one.args), *getattr(one, "__notes__", [])]
        parts += [repr(value) for value in vars(one).values()]
    return "\n".join(parts)
