"""Items as tasks of a cluster: answers come as they are ready, and a lost worker's tasks run again elsewhere.

Data, functions, questions and answers travel sealed, and what a task is called tells a number alone. A task never
fails in the scheduler's sense, because what workers and schedulers write about failures quotes arguments: an error of
ours comes back as a result, of any other only its kind.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, TypeAlias

from leakcap.cluster.connecting import SCHEDULER_LOST, Cluster
from leakcap.cluster.scattering import scattered
from leakcap.cluster.telling import UNTOLD, ToldKey, seal_of
from leakcap.cluster.travel import Sealed, closed, kept_open, opened, size
from leakcap.errors import LeakcapError, OutputError
from leakcap.ground.cores import one_blas_thread

__all__ = ["ClusterWorkers"]

Around: TypeAlias = Callable[[], AbstractContextManager[Any]]  # of each call of a function

UNREADABLE = (
    "a worker stopped with {} (its text is withheld: it may quote the data). Do workers have the packages and modules "
    "that the function uses, in the same versions?"
)
FAILED = "the cluster failed with {} (its text is withheld: it may quote the data); nothing was released"
TOGETHER = 0.1  # seconds: answers that are there by then are brought at once, as each way there and back takes time
SENT_AGAIN = 3  # times that data travel anew, after the last worker that had them was lost


class ClusterWorkers:
    """Applies a function to many items on a cluster."""

    elsewhere = True  # workers may have disks of their own

    def __init__(self, cluster: Cluster, *, closing: bool = False, around: Around = nullcontext) -> None:
        self.cluster, self._closing, self._around = cluster, closing, around
        self.count = cluster.threads
        self.key = ToldKey(cluster)
        self.moved = 0  # bytes: data once to every worker, and what tasks ask and answer
        self._there: dict[int, tuple[Any, str, Any]] = {}  # the thing too: its number must not be given to another

    def run(
        self, function: Callable[..., Any], shared: tuple[Any, ...], items: Sequence[Any]
    ) -> Generator[tuple[int, Any], None, None]:
        """`function(*shared, item)` for every item, with the item's place, in whatever order they end."""
        left, times, function = dict(enumerate(items)), 0, partial(_within, self._around, function)
        while left:
            try:
                for place, answer in self._once(function, shared, left, of=len(items)):
                    del left[place]
                    yield place, answer
                failed = ""
            except LeakcapError:
                raise
            except Exception as error:
                failed = type(error).__name__
            if not self.cluster.alive:
                raise OutputError(SCHEDULER_LOST)
            if left or failed:  # what is done stays done
                times += 1
                if times > SENT_AGAIN:
                    raise OutputError(FAILED.format(failed) if failed else _lost(left, len(items)))
                self._there.clear()

    def close(self) -> None:
        """Nothing of a run stays on workers."""
        for _, _, sent in self._there.values():
            with contextlib.suppress(Exception):
                sent.release()
        self._there.clear()
        self.key.forget()
        if self._closing:
            self.cluster.close()

    def _once(
        self, function: Callable[..., Any], shared: tuple[Any, ...], left: dict[int, Any], of: int
    ) -> Generator[tuple[int, Any], None, None]:
        """Answers to all that is left, but for those whose data were lost."""
        self.key.tell()
        client, run = self.cluster.client, secrets.token_hex(6)
        at_workers = [self._sent(thing) for thing in shared]
        names, there = [name for name, _ in at_workers], [data for _, data in at_workers]
        doing = f"doing {run}"
        done = closed(self.key.seal, function, doing)  # once, not for each task
        ready: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        tasks: dict[int, Any] = {}

        def submit(places: Sequence[int], more: str = "") -> None:
            """All at once: a scheduler takes them in one by one far more slowly."""
            called = [f"leakcap-{run}-{place}{more}" for place in places]
            asked = [
                closed(self.key.seal, (left[place], doing, names), f"asked {name}")
                for place, name in zip(places, called, strict=True)
            ]
            self.moved += sum(map(size, asked)) + len(places) * size(done)
            data = ([one] * len(places) for one in (done, *there))
            sent = client.map(partial(_answered, self.key.token), called, asked, *data, key=called, pure=False)
            for place, task in zip(places, sent, strict=True):
                tasks[place] = task
                task.add_done_callback(partial(_note, ready, place))

        try:
            submit(list(left))
            while tasks:
                try:
                    ended = [self.key.waited_for(ready)]
                except queue.Empty:
                    raise OutputError(_stuck(tasks, of, self.cluster.patience)) from None
                if len(tasks) > 1:
                    time.sleep(TOGETHER)
                    while not ready.empty():
                        ended.append(ready.get())
                for place, task, told in self._brought(ended, of):
                    tasks.pop(place).release()
                    if told is None:  # its data were lost
                        continue
                    if told == UNTOLD:  # by a worker that has just come
                        self.key.tell_again()
                        submit([place], f"-{secrets.token_hex(4)}")
                        continue
                    self.moved += size(told)
                    answered, answer = opened(self.key.seal, told, f"answer {task.key}")
                    if not answered:
                        raise answer
                    yield place, answer
        finally:
            if tasks:
                with contextlib.suppress(Exception):
                    client.cancel(list(tasks.values()), force=True)

    def _brought(self, ended: list[tuple[int, Any]], of: int) -> list[tuple[int, Any, Any]]:
        """Tasks with what they told, None where data were lost; an OutputError where workers died of one."""
        died = [place for place, task in ended if task.status == "error"]
        if died:
            raise OutputError(_lost(died, of))
        there = {place: task for place, task in ended if task.status == "finished"}
        told = self.cluster.client.gather(there)
        return [(place, task, told.get(place)) for place, task in ended]

    def _sent(self, thing: Any) -> tuple[str, Any]:
        """Where workers have a thing: it travels once, to all of them, under a name that says nothing."""
        if id(thing) not in self._there:
            name = f"leakcap-{secrets.token_hex(8)}-data"
            self._there[id(thing)] = thing, name, self._travelled(closed(self.key.seal, thing, name), name)
        return self._there[id(thing)][1:]

    def _travelled(self, sealed: Sealed, name: str) -> Any:
        """The thing on all workers that there are; where one dies meanwhile, on those that are there afterwards."""
        client, kind = self.cluster.client, ""
        for attempt in range(1 + SENT_AGAIN):
            try:
                time.sleep(attempt)  # until the scheduler knows which workers there are
                client.wait_for_workers(1, timeout=self.cluster.patience)
                key = f"{name}-{attempt}"
                there = scattered(client, {key: sealed}, self.cluster.patience, broadcast=True)[key]
                self.moved += size(sealed) * len(client.nthreads())
                return there
            except Exception as error:  # whatever Dask makes of a worker that ends while it is sent data
                if not self.cluster.alive:
                    raise OutputError(SCHEDULER_LOST) from None
                kind = type(error).__name__
        raise OutputError(f"the data did not reach the workers ({kind}): are there any, with enough memory for them?")


def _within(around: Around, function: Callable[..., Any], *given: Any) -> Any:
    with around():
        return function(*given)


def _note(ready: queue.SimpleQueue[tuple[int, Any]], place: int, task: Any) -> None:
    ready.put((place, task))


def _answered(token: str, name: str, asked: Sealed, done: Sealed, *shared: Sealed) -> Any:
    """In a worker: the answer, or what may be said of why there is none, sealed."""
    seal = seal_of(token)
    if seal is None:
        return UNTOLD
    try:
        with one_blas_thread():
            item, doing, names = opened(seal, asked, f"asked {name}")
            function = opened(seal, done, doing)  # anew: what it keeps in itself does not reach the next task
            things = [kept_open(seal, one, called, token) for called, one in zip(names, shared, strict=True)]
            return closed(seal, (True, function(*things, item)), f"answer {name}")
    except LeakcapError as error:
        told: LeakcapError = error
    except BaseException as error:  # a worker that ends of it writes its text down
        told = OutputError(UNREADABLE.format(type(error).__name__))
    return closed(seal, (False, told), f"answer {name}")


def _lost(places: Any, of: int) -> str:
    first = min(places) + 1
    return (
        f"workers were lost while they worked on batch {first} of {of}: does it need more memory than they have? "
        "Nothing was released; give workers more memory, or take smaller data"
    )


def _stuck(tasks: dict[int, Any], of: int, patience: float) -> str:
    first = min(tasks) + 1
    return (
        f"no batch ended for {patience:g} s, the first of those that are left being batch {first} of {of}: nothing was "
        "released. Does the function hang? If it only takes long, say lc.cluster.connect(..., patience=SECONDS)"
    )
