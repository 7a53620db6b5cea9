"""What the server says instead of an answer: a status, and one sentence that says what to do."""

from __future__ import annotations

from pathlib import Path

from leakcap.errors import BudgetError, LeakcapError

__all__ = ["HEAVY", "NOT_THERE", "Refusal", "as_refusal", "as_sentence", "defect_in_words"]

NOT_THERE = "There is nothing of this name that you may see: look at the list of your data sets, or ask the custodian."
HEAVY = "The server is busy with your earlier questions: ask again when they are answered."


class Refusal(Exception):
    """A request is not answered. The words are the server's own, and hold nothing of the data."""

    def __init__(self, status: int, words: str, *, wait: float | None = None) -> None:
        """`wait`: seconds after which to try again."""
        super().__init__(words)
        self.status, self.words, self.wait = status, words, wait


def as_refusal(error: BaseException) -> Refusal:
    """Errors of the library keep their words, since they quote no data; others lose their text."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, LeakcapError):
        words = str(error)
        return Refusal(409 if isinstance(error, BudgetError) else 400, as_sentence(words))
    return Refusal(
        500, "The server failed, and nothing was answered: ask again, and tell the custodian if it stays so."
    )


def as_sentence(words: str) -> str:
    """With a capital, and with an end."""
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "?")) or not words else ".")


def defect_in_words(error: BaseException) -> str:
    """Kind and place of an unexpected error, for the custodian's log; never its text, which may quote data."""
    place, trace = "", error.__traceback__
    while trace is not None:
        if "leakcap" in trace.tb_frame.f_code.co_filename:
            place = f" in {Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__}{place}"
