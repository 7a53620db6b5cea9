"""Hostile questions: none is answered, none hangs, and what is said of them tells nothing of the data."""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Iterator

import pytest

from leakcap.sql.compile import compiled
from leakcap.sql.evaluate import cell_sums
from leakcap.sql.refusals import NotAnswered
from tests.later import others_later
from tests.refusals import texts_of
from tests.sql.harmless import HARMLESS
from tests.sql.hospital import tables
from tests.sql.hostile import REFUSED
from tests.sql.others import WAYS, Hospitals

HANGS = 60  # seconds, for one question: they take a few thousandths each, a few seconds for the longest
ENDLESS, SOME = "work without end", slice(None, None, 3)  # so many of these by default: they take a second and more
KINDS = [
    pytest.param(ENDLESS, SOME, id=ENDLESS),
    pytest.param(ENDLESS, slice(None), id=f"all {ENDLESS}", marks=pytest.mark.slow),
    *(pytest.param(kind, slice(None), id=kind) for kind in REFUSED if kind != ENDLESS),
]


@pytest.fixture(scope="module")
def hospitals(tmp_path_factory: pytest.TempPathFactory) -> Hospitals:
    return Hospitals.built(tmp_path_factory.mktemp("hospitals"))


@pytest.fixture
def watched() -> Iterator[None]:
    """A question that hangs fails, so that the run does not hang with it."""

    def ring(*_: object) -> None:
        raise AssertionError("a question hangs")

    before = signal.signal(signal.SIGALRM, ring)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def values() -> set[str]:
    return peoples_values()


def peoples_values() -> set[str]:
    """Values of people's rows, as they would be printed; those of one or two letters are in any text."""
    found: set[str] = set()
    for name in ("people", "stays", "tests"):
        for column in tables()[name]:
            found |= set(tables()[name][column].dropna().astype(str))
    return {one for one in found if len(one) > 2 and one not in ("True", "False", "inf")}


def asked(hospitals: Hospitals, text: str) -> NotAnswered | None:
    """The refusal of a question, None where it is answered. Whoever hangs is ended."""
    signal.alarm(HANGS)
    return refusal_of(hospitals, text)


def refusal_of(hospitals: Hospitals, text: str) -> NotAnswered | None:
    try:
        program = compiled(text, hospitals.catalogs[0])
        for release in program.releases:
            cell_sums(release, hospitals.catalogs[0], hospitals.engines[0], {})
    except NotAnswered as refusal:
        return refusal
    return None


def test_there_are_questions_of_every_kind() -> None:
    listed = [one for kind in REFUSED.values() for one in kind]
    assert len(listed) == len(set(listed)) > 800
    assert min(map(len, REFUSED.values())) >= 5


def shown_of(refusal: NotAnswered, text: str) -> set[str]:
    """What a refusal holds that the question did not."""
    return set(re.findall(r"[\w.+-]+", str(refusal))) - set(re.findall(r"[\w.+-]+", text))


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize(("kind", "some"), KINDS)
def test_hostile_questions_are_refused(
    hospitals: Hospitals,
    values: set[str],
    kind: str,
    some: slice,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.WARNING)
    for text in REFUSED[kind][some]:
        refusal = asked(hospitals, text)
        assert refusal is not None, f"answered: {text[:300]}"
        assert len(str(refusal)) > 15, "a refusal is a sentence"
        assert refusal.__context__ is None or refusal.__suppress_context__
        assert not shown_of(refusal, text) & values, text[:300]
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("kind", [one for one in REFUSED if one != ENDLESS])
def test_refusals_are_the_same_whatever_the_rows(hospitals: Hospitals, kind: str) -> None:
    first, *others = hospitals.catalogs
    for at, text in enumerate(REFUSED[kind]):
        said = set()
        for catalog in (first, others[at % len(others)]):
            signal.alarm(HANGS)
            try:
                compiled(text, catalog)
            except NotAnswered as refusal:
                said.add(texts_of(refusal).splitlines()[-1])
            else:
                said.add("")
        assert len(said) == 1, text


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("kind", HARMLESS)
@pytest.mark.parametrize("in_turn", others_later([True, False], True))
def test_rows_without_an_answer_count_for_nothing_and_for_nobody_else(
    hospitals: Hospitals, kind: str, in_turn: bool
) -> None:
    """Beside odd rows always, and in turn beside none and twice as many."""
    for at, text in enumerate(HARMLESS[kind]):
        signal.alarm(HANGS)
        assert hospitals.differences(text, ("odd", WAYS[at % 2]) if in_turn else WAYS) == [], text


def test_a_question_about_others_is_told_from_one_that_is_not(
    hospitals: Hospitals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leakcap.sql.joins._refuse_strangers", lambda *_: None)
    assert hospitals.differences("select count(*) from stays p, stays q where p.days < q.days") != []
    assert (
        hospitals.differences("select count(*) from stays p, stays q where p.person = q.person and p.days < q.days")
        == []
    )
