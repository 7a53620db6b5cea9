"""A crowd of writers on one ledger: who was told that a charge counts, and what the ledger says afterwards."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from leakcap.custody.ledger import Account, Book
from leakcap.errors import BudgetError

ACCOUNT = "a crowd"


def open_budget(book: Book, budget: int) -> Account:
    """An account of which so much may be taken."""
    account = book.account(ACCOUNT)
    with account.writing() as now:
        if now.title is None:
            now.title, now.state = {"name": ACCOUNT}, {"budget": budget, "spent": 0}
            now.append("opened", {})
    return account


def charge(account: Account, request: str, amount: int = 1) -> bool:
    """Take from it, once for a request; whether it was taken now. BudgetError where too little is left."""
    with account.writing() as now:
        if now.asked(request) is not None:
            return False
        if now.state["spent"] + amount > now.state["budget"]:
            raise BudgetError("nothing is left")
        now.state["spent"] += amount
        now.append("charge", {"request": request}, charge=amount, request=request)
    return True


@dataclass(frozen=True)
class Crowded:
    """What a crowd has done."""

    told: list[str]  # requests that were acknowledged
    refused: int
    failed: list[str]
    seconds: float

    def check(self, account: Account, budget: int) -> None:
        """Nothing is lost, nothing counted twice, nothing overspent; the chain is whole."""
        assert not self.failed, self.failed[:3]
        with account.reading() as now:
            charged = [entry for entry in now.entries() if entry.kind == "charge"]
            spent = now.state["spent"]
        total = sum(entry.charge for entry in charged)
        assert total == spent <= budget, "overspent, or a charge that the budget does not know of"
        stored = Counter(entry.body["request"] for entry in charged)
        assert not stored or max(stored.values()) == 1, "a request was charged twice"
        lost = set(self.told) - set(stored)
        assert not lost, f"{len(lost)} acknowledged charges are lost"
        assert len(self.told) == len(set(self.told)) == len(stored), "a charge that nobody was told of"


def crowd(
    folder: Path, work: Callable[[], Callable[[str], bool]], *, processes: int, threads: int, turns: int
) -> Crowded:
    """Many threads in many processes; `work()` is called in each process and gives what takes a request."""
    began = time.perf_counter()
    children = []
    for process in range(processes):
        child = os.fork()
        if not child:
            try:
                _one_process(folder / f"told-{process}", work(), str(process), threads=threads, turns=turns)
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    seconds = time.perf_counter() - began
    lines = [line.split(" ", 1) for process in range(processes) for line in _lines(folder / f"told-{process}")]
    kinds = Counter(kind for kind, _ in lines)
    failed = [text for kind, text in lines if kind == "failed"]
    if sum(kinds.values()) != processes * threads * turns:
        failed.append(f"only {sum(kinds.values())} of {processes * threads * turns} attempts ended")
    return Crowded([text for kind, text in lines if kind == "told"], kinds["refused"], failed, seconds)


def _one_process(told: Path, take: Callable[[str], bool], name: str, *, threads: int, turns: int) -> None:
    log = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def attempts(thread: int) -> None:
        for turn in range(turns):
            request = f"{name}-{thread}-{turn}"
            try:
                line = f"told {request}" if take(request) else f"again {request}"
            except BudgetError:
                line = f"refused {request}"
            except Exception as error:
                line = f"failed {type(error).__name__}: {error}"
            os.write(log, line.replace("\n", " ").encode() + b"\n")

    crowd = [threading.Thread(target=attempts, args=(thread,)) for thread in range(threads)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
