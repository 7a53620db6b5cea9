"""An audit in plain words: what was found, what it means, what to do."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from leakcap.audit.memorisation import MemorisationReport
from leakcap.audit.report import AuditReport
from leakcap.audit.verdicts import CHECK, HOLDS, INCONCLUSIVE, RECOGNITION, REFUTED, UNBOUNDED, Finding
from leakcap.report.audit.audited import NUMBERS, is_share, leading, releases_needed, surely_won, things
from leakcap.report.numbers import UNBROKEN, at_most, neat, shown

__all__ = [
    "METHODS",
    "chance",
    "counted",
    "differing",
    "headline",
    "in_cases",
    "in_short",
    "lead",
    "likelihood",
    "next_steps",
    "spaced",
]

BASES = (100, 1_000, 10_000, 100_000, 1_000_000)
MOST_NAMED = 2  # undecided figures that the first lines name
COARSE = 0.05  # error of a rounded count that readers do not mind
EXPOSED = (
    (0.7, "not protected at all"),
    (0.3, "strongly exposed"),
    (0.1, "exposed"),
    (0.0, "slightly exposed"),
)

METHODS = {
    "bayes": "knows all data, the code and every world that could have been used, and works out the chance of each "
    "from the released numbers: no method does better",
    "learned": "knows nothing of the code, and learns from earlier releases how numbers move when a person takes part",
    "world": "guesses the whole list of participants at once, or which input was used",
    "generalized": "names a participant of its own choice, or gets most memberships right",
    "collude": "was told by others whether they took part",
    "task": "answers the question that the cap is about",
    "law of the noise": "no guess: compares the noise of the releases with the noise that was certified, in size, "
    "shape and tails, and looks for what it knows of the world, of itself and of other releases",
    "secret": "checks that all worlds are drawn alike, and guesses the world by how often each was drawn before",
    "numbers drawn": "no guess: looks at the random numbers before they are rounded: their digits, repeats and law",
    "predictable": "no guess: looks for releases that repeat each other or that follow from a seed",
    "lira": "compares a person's score with those in models that were trained with and without them",
    "rmia": "compares a person's score with their usual one, and with that of people who took part in nothing",
    "calibrated": "compares a person's score with their usual one in models that were trained without them",
    "threshold": "takes a high score, or a low loss, for a sign of participation",
    "universe": "knows everybody else's data, and asks whether a person is in the pool at all: no certificate is about "
    "that",
    "attribute": "knows everything but one value of a person, and guesses it",
    "reconstruction": "knows everybody else's data, and looks for the row that the release fits best",
    "replay": "no guess: makes the same release from two pools that differ in one person, and looks for what differs",
    "insider": "knows how an encoded set was mixed and everybody else who was drawn, and weighs two rows for one place",
    "likelihood": "draws samples with a row and without it, and asks with which the encoded set is likelier",
    "similarity": "looks for encoded means that are as near to others as a row is: what is near stays near",
    "known plaintext": "was told what half of the encoded means are of, and finds the mask from them: no certificate "
    "is about that",
    "chosen plaintexts": "chose two pools, one that can be learnt and one that cannot, and sees how well a model "
    "learns: no certificate is about that",
    "law of the encoding": "no guess: takes the masked means out of encoded sets, looks at the noise that is left, "
    "and for secrets that were drawn before",
    "one decoy": "is shown the label that was planted and another wrong one, and takes the one that the model believes "
    "more",
    "every wrong label": "takes the wrong label that the model believes most",
    "normal rule": "no attacker of its own: the same guesses with the normal interval, which promises nothing",
    "appendix B": "guesses against every decoy at once, each canary weighed by its guesses; its interval is too short",
    "votes": "knows everybody else and the law of the noise, and takes the likelier coin of one person",
    "answers": "knows everybody else, the law of the noise and all answers to the same questions, and takes the "
    "likelier coin of one person: no method does better",
    "in the data": "knows everybody else's rows and the law of the noise, and takes the likelier of two sums, with one "
    "person and without: no method does better",
    "noise of the sums": "no guess: compares the noise of the sums with the claimed one, in size, shape and tails",
    "noise of the answers": "no guess: compares the noise of the answers with the claimed one, in size, shape and "
    "tails",
    "told apart": "learns from earlier releases which secret gives which numbers",
}


def headline(audit: AuditReport) -> str:
    """The verdict in one sentence."""
    promise = "certificate" if audit.certificate is not None else "claim"
    if not audit.findings:
        return "Nothing was attacked: no attack applies to this target."
    verdict = audit.verdict
    if isinstance(audit, MemorisationReport) and verdict != REFUTED:
        return audit.sentence
    if verdict == REFUTED:
        return f"Refuted: this release tells more than its {promise} allows. Do not publish it."
    if verdict == INCONCLUSIVE:
        undecided = sum(one.verdict == INCONCLUSIVE for one in audit.findings)
        return f"No attack broke the {promise}, but {undecided} of {len(audit.findings)} figures could not be decided."
    if verdict == HOLDS:
        beyond = ", beyond what chance explains" if any(one.within_chance for one in audit.findings) else ""
        return f"Nothing refuted: no attack did better than the {promise} allows{beyond}."
    return _exposure(audit)


def lead(audit: AuditReport) -> str:
    """The figures behind it, as a count of cases."""
    first = leading(audit)
    if first is None:
        return ""
    if audit.verdict == UNBOUNDED:  # the headline holds the figures already
        low, high = first.interval
        sure = f" Allowing for luck: from {100 * low:.1f} to {100 * high:.1f} %." if is_share(first) else ""
        return f"Measured by the attack “{first.attack}” on the question “{spaced(first.question)}”.{sure}"
    if audit.verdict == INCONCLUSIVE:
        return f"Undecided: {_undecided(audit)}. {_nearest_that_holds(audit)}".rstrip()
    if first.kind == CHECK:
        words = f"The check “{first.attack}” {_ended(first)}: {in_cases(audit, first)}."
    else:
        words = f"The attack “{first.attack}” on the question “{spaced(first.question)}”: {in_cases(audit, first)}."
    if first.verdict == REFUTED:
        words += f" If the promise were true, chance would do as much in {likelihood(first.p_value)}."
    return words


def _undecided(audit: AuditReport) -> str:
    """The figures that are open, by what tells one from the other."""
    names = [one.attack if one.kind == CHECK else one.question for one in audit.findings if one.verdict == INCONCLUSIVE]
    told = [f"“{spaced(name)}”" for name in dict.fromkeys(names)]
    return ", ".join(told[:MOST_NAMED]) + (f" and {len(told) - MOST_NAMED} more" if len(told) > MOST_NAMED else "")


def _nearest_that_holds(audit: AuditReport) -> str:
    """Of the figures that are decided, the one nearest to its limit."""
    first = leading(replace(audit, findings=tuple(one for one in audit.findings if one.verdict == HOLDS)))
    if first is None or first.kind == CHECK:
        return ""
    return f"Decided, and within its limit: “{spaced(first.question)}” by “{first.attack}”, {in_cases(audit, first)}."


def _ended(check: Finding) -> str:
    if check.verdict == UNBOUNDED:
        return f"on “{spaced(check.question)}”, about which nothing was promised"
    return "failed" if check.verdict == REFUTED else "was passed"


def in_cases(audit: AuditReport, one: Finding) -> str:
    """`right in 56 of 100 cases; guessing is right in 50; the certificate allows 55`."""
    allows = f"the {'certificate' if audit.certificate is not None else 'claim'} allows"
    return _counts(one, blindly="blind guessing", guessing="guessing is right in", allows=allows)


def in_short(one: Finding) -> str:
    """`right in 56 of 100; guessing 50; allowed 55`."""
    return _counts(one, blindly="guessing", guessing="guessing", allows="allowed")


def _counts(one: Finding, *, blindly: str, guessing: str, allows: str) -> str:
    if one.kind == CHECK:
        return _checked(one)
    if not is_share(one):
        told = f"{'about' if one.heuristic else 'at least'} {neat(one.measured)}"
        return told if one.certified is None else f"{told}; {allows} {at_most(one.certified)}"
    base = _base(one)
    done = f"{counted(one.measured, base)} of {base:,}"
    known = one.kind == RECOGNITION
    parts = [f"recognises {done} participants" if known else f"right in {done} cases"]
    if not math.isnan(one.prior):
        parts.append(f"{blindly if known else guessing} {counted(one.prior, base)}")
    if one.certified is not None:
        parts.append(f"{allows} {counted(one.certified, base, up=True)}")
    if one.within_chance:
        parts.append("above that within chance")
    return "; ".join(parts)


def _checked(one: Finding) -> str:
    return (one.reading or "found: {}").replace("{}", shown(one.measured, 3))


def counted(share: float, base: int, up: bool = False) -> str:
    """A share as so many of `base`; bounds are rounded up."""
    exact = share * base
    whole = math.ceil(exact - 1e-9) if up else round(exact)
    return f"{whole:,}" if whole or exact < 1e-9 else "fewer than 1"


def _base(one: Finding) -> int:
    """The smallest round number of cases in which the counts do not mislead."""
    shares = [x for x in (one.measured, one.prior) if math.isfinite(x) and x > 0]
    for base in BASES:
        fine = all(abs(round(x * base) / base - x) <= COARSE * x for x in shares)
        # Of what is refuted, the counts must say so.
        limit = one.certified if one.verdict == REFUTED else None
        if fine and (limit is None or round(one.measured * base) > math.ceil(limit * base - 1e-9)):
            return base
    return BASES[-1]


def likelihood(p: float) -> str:
    """How rare it would be."""
    if p < 1e-9:
        return "less than one of a billion audits"
    if p < 0.1:
        return f"one of {_round(1 / p):,} audits"
    return f"{100 * min(p, 1.0):.0f} of 100 audits"


def _round(count: float) -> int:
    """Two digits of a count."""
    size = 10 ** max(math.floor(math.log10(count)) - 1, 0)
    return int(round(count / size) * size)


def chance(p: float) -> str:
    """A p-value in a table."""
    if p <= 0:
        return "below alpha"
    return "1" if p >= 1 else f"{p:.2f}" if p >= 0.01 else neat(p, 1)


def _exposure(audit: AuditReport) -> str:
    """How exposed people are where nothing was promised, by the strongest attack on a person named in advance."""
    first = leading(audit)
    assert first is not None
    if not is_share(first) or math.isnan(first.prior):
        return "Nothing was promised about this target: read the figures below."
    won = surely_won(first)
    if won <= 0:
        return "No attack did clearly better than guessing. That is no promise: a better one may."
    words = next(words for least, words in EXPOSED if won >= least)
    who, about = ("The most exposed people", " about one of them") if first.named else ("People", "")
    verb = "recognises" if first.kind == RECOGNITION else "is right"
    told = in_cases(audit, first).removeprefix(verb.removeprefix("is "))
    return f"{who} are {words}: an attacker {verb}{about}{told}."


def next_steps(audit: AuditReport) -> list[str]:
    """What to do now."""
    verdict = audit.verdict
    if not audit.findings:
        return ["Name attacks that apply to this target, or leave attacks= out."]
    if verdict == REFUTED:
        return list(_after_refutation(audit))
    if verdict == INCONCLUSIVE:
        return list(_after_doubt(audit))
    if verdict == UNBOUNDED:
        return [
            "Treat the model or the table as personal data: do not hand it to people who may not see the data.",
            "To put a limit on it, make it with leakcap (a plan or a private estimator) and a cap. A certificate then "
            "bounds every attack, not only those that were tried here.",
        ]
    return [
        "Publish, if everything else is in order. The promise is the certificate; this page only tried to break it."
    ]


def _after_refutation(audit: AuditReport) -> list[str]:
    refuted = [one for one in audit.findings if one.verdict == REFUTED]
    steps = [
        "Publish nothing that was made in this way, until the fault is found. Figures that hold do not make it safe.",
        "If something is published already, tell the person responsible for data protection today. Then audit once "
        "more: it helps to find the fault.",
    ]
    names = {one.attack for one in refuted}
    if "law of the noise" in names:
        steps.append(
            "The noise is not the one that was certified: look at all code between the calibrated noise and the "
            "released numbers (scale, a square or a root too many, the wrong data underneath)."
        )
    if any(name.partition(",")[0] == "secret" for name in names):
        steps.append("The secret world is not drawn evenly: look at how it is drawn, and from what.")
    if "numbers drawn" in names:
        steps.append(
            "The random numbers are too coarse, repeat each other or are not normal: look at where they come from."
        )
    if "predictable" in names:
        steps.append(
            "The randomness can be predicted: look for a seed, or a generator that is set up for every release."
        )
    if any("as seen" in name for name in names) and not any("claimed" in name for name in names):
        steps.append("Some numbers leave with less noise than is claimed for them, or with none: look for those first.")
    steps.append("Keep this page and the stored plan: whoever looks for the fault needs both.")
    return steps


def _after_doubt(audit: AuditReport) -> list[str]:
    undecided = [one for one in audit.findings if one.verdict == INCONCLUSIVE]
    counts = [releases_needed(audit, one) for one in undecided]
    known = [count for count in counts if count is not None]
    enough = max([*known, *([4 * audit.trials] if None in counts else [])])
    # Round up to two digits: nobody types 61,359.
    size = 10 ** max(math.floor(math.log10(enough)) - 1, 0)
    asked = math.ceil(enough / size) * size
    option = {"models": "models", "canaries": "count"}.get(things(audit), "trials")
    return [
        "You may publish on the strength of the certificate: this page only tried to break it. If your rules ask for "
        "an audit without open figures, wait for a larger one.",
        f"Ask whoever ran it to repeat it with about {asked:,} {things(audit)} ({option}={asked}) instead of "
        f"{audit.trials:,}. That will most likely show whether the limit is kept.",
    ]


def differing(question: str) -> str:
    """What tells a question from its neighbours, which have other numbers."""
    found = NUMBERS.search(question)
    return spaced(question[found.start() :] if found else question)


def spaced(question: str) -> str:
    """Per cent signs as on other pages, and no idle decimals."""
    return re.sub(r"(\d)(?:\.0+)?%", f"\\1{UNBROKEN}%", question)
