"""The guided tour of the demo: at which stop somebody is by the page they look at, and where it leads next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

__all__ = ["DOOR", "ENDED", "Tour", "TourStop"]

ENDED = "leakcap_tour"  # the cookie of a browser in which the tour was ended


@dataclass(frozen=True)
class TourStop:
    """What to look at on a page, and the way on: a link, or with `fields` a form that is filled in already."""

    where: str  # a pattern of addresses
    step: int  # 0 beside the way
    title: str
    words: str
    onward: str = ""
    to: str = ""  # \1 is the first group of the pattern
    fields: Mapping[str, str] | None = None
    sent: bool = False  # of the page that shows what a form asked for, where it was not refused


def _filled(**fields: str) -> Mapping[str, str]:
    return MappingProxyType(fields)


QUESTION = _filled(
    way="sql",
    sql="SELECT sex, avg(bmi) AS bmi, count(*) AS people FROM patients WHERE age > 40 GROUP BY sex",
    share="5",
)
PUBLISHED = _filled(
    what="compare", unit="person", rows="1", fn="mean", cap="60", columns="wage", low2="0", high2="10000", name="wages"
)
REGISTERED = _filled(
    what="check",
    name="visits",
    unit="person",
    about="Made up: 300 people and what a visit cost.",
    cap="70",
    design="bits",
    table="visits",
    rows="1",
    values1="north, south",
    low2="0",
    high2="250",
)
ANALYST = (
    TourStop(
        "/data",
        1,
        "Your data",
        "Two data sets are open to you. The bar of each shows what is left of its clock: all answers together, "
        "whoever asks, stop there.",
        onward="ask about diabetes",
        to="/data/diabetes",
    ),
    TourStop(
        r"/data/[^/]+/preview",
        3,
        "The price",
        "Nothing is paid yet. The price is what the question takes of the clock, and what noise to expect. "
        "“Ask and pay” charges it, then answers.",
        onward="to the price",
        to="#price",
        sent=True,
    ),
    TourStop(
        r"/data/diabetes(?:/preview|/ask)?",
        2,
        "The question",
        "Fill in the form, write SQL, or take a question of ours: the body-mass index of women and men over 40.",
        onward="see the price of that question",
        to="/data/diabetes/preview",
        fields=QUESTION,
    ),
    TourStop(
        r"/data/([^/]+)/answers/[^/]+",
        4,
        "The answer",
        "Each number comes with an interval. The answer is stored: whoever asks the same again pays nothing.",
        onward="what all answers together allow",
        to=r"/data/\1/certificate",
    ),
    TourStop(
        r"/data/[^/]+/certificate",
        5,
        "The certificate",
        "This bounds what anybody learns about one person from everything that was answered. It can be passed on.",
        onward="sign out, and come back as custodian",
        to="/logout",
        fields=_filled(),
    ),
    TourStop(
        r"/data/([^/]+)(?:/preview|/ask)?",
        2,
        "The question",
        "Fill in the form or write SQL: “See the price” costs nothing.",
        onward="write a question",
        to="#sql",
    ),
)
CUSTODIAN = (
    TourStop(
        "/custody",
        1,
        "The data sets",
        "Each has the cap that you set when you registered it; the ledger counts every answer against it.",
        onward="publish a table",
        to="/custody/publish",
    ),
    TourStop(
        "/custody/publish",
        2,
        "Publish: the table",
        "Bring a CSV or Parquet file of yours, or take ours: the wages of 400 made-up people.",
        onward="bring the made-up wages",
        to="/tour/bring",
        fields=_filled(sample="wages"),
    ),
    TourStop(
        r"/custody/publish/(?!finished/)[^/]+",
        4,
        "Publish: the promises",
        "The same average under each promise, and under plain differential privacy. Choose one, keep the name or "
        "write another, then press “Release it”.",
        onward="to the promises",
        to="#price",
        sent=True,
    ),
    TourStop(
        r"/custody/publish/(?!finished/)([^/]+)",
        3,
        "Publish: whose rows, and the question",
        "Say whose row it is, what to publish, and ranges that do not come from the data. “Next” fills it in "
        "for the made-up wages.",
        onward="see what the average wage costs",
        to=r"/custody/publish/\1",
        fields=PUBLISHED,
    ),
    TourStop(
        r"/custody/publish/finished/[^/]+",
        5,
        "Published",
        "Its page and its folder may go to everybody; command line and Python below do the same.",
        onward="register a data set for analysts",
        to="/custody/register",
    ),
    TourStop(
        "/custody/register",
        6,
        "Register: the table",
        "Analysts ask about data sets. Bring a table of yours, or take ours: what 300 made-up people paid for a visit.",
        onward="bring the made-up visits",
        to="/tour/bring",
        fields=_filled(sample="visits"),
    ),
    TourStop(
        r"/custody/register/[^/]+",
        8,
        "Register: what it costs",
        "Values beyond a range are cut: you see how many, and what that does to the mean. Then “Register it”, at the "
        "end of the page.",
        onward="to what it costs",
        to="#price",
        sent=True,
    ),
    TourStop(
        r"/custody/register/([^/]+)",
        7,
        "Register: what everybody may know",
        "Ranges and values are public, so they must not come from the data. “Next” fills them in for the made-up "
        "visits.",
        onward="see what the ranges cost",
        to=r"/custody/register/\1",
        fields=REGISTERED,
    ),
    TourStop(
        r"/custody/data/[^/]+",
        9,
        "The ledger of a data set",
        "Who asked what, when, and what it took; and policies, with which you give analysts less than the cap.",
        onward="who may ask",
        to="/custody/analysts",
    ),
    TourStop(
        "/custody/analysts(?:/[^/]+)?",
        10,
        "The analysts",
        "Open the new data set to ann with a tick and “Save”, or open an account for somebody else.",
        onward="everything that was released",
        to="/custody/released",
    ),
    TourStop(
        "/custody/released",
        11,
        "Everything released so far",
        "One list to be filed in an impact assessment: print it, or take it as a file.",
        onward="attack what you published",
        to="/custody/audit",
    ),
    TourStop(
        r"/custody/audit(?:/[^/]+)?|/custody/data/[^/]+/audit",
        12,
        "Audits",
        "Attackers of ours try to beat a certificate; what they reach stands beside what was promised. That was the "
        "tour: all of the demo goes when the server ends.",
    ),
    TourStop(
        r"/custody/work/[^/]+",
        0,
        "Long work",
        "It is done in a process of its own, and can be stopped. When it is done, this page goes on by itself.",
    ),
)
BESIDE = TourStop(".*", 0, "Beside the way", "Look around: the tour waits.", onward="back to the tour", to="/")
DOOR = TourStop(
    "/login",
    0,
    "This is a demo",
    "Sample data, and two accounts whose passwords the terminal shows. Begin as the analyst, ann; come back as "
    "custodian. This strip leads on.",
    onward="sign in as ann",
    to="#name",
)


@dataclass(frozen=True)
class Tour:
    """Where somebody stands in it."""

    of_custodian: bool
    path: str
    posted: bool
    ended: bool = False

    @property
    def length(self) -> int:
        return max(one.step for one in self._way)

    @property
    def back(self) -> str:
        """Where this page, or the beginning, is seen again."""
        return "/" if self.posted else self.path

    def stop(self, refused: bool, answered: bool) -> TourStop:
        """The stop of this page, which may show what a form asked for; after a refused form that of the form itself."""
        for one in self._way:
            found = re.fullmatch(one.where, self.path)
            if found and (not one.sent or ((self.posted or answered) and not refused)):
                return replace(one, to=found.expand(one.to))
        return BESIDE

    @property
    def _way(self) -> tuple[TourStop, ...]:
        return CUSTODIAN if self.of_custodian else ANALYST
