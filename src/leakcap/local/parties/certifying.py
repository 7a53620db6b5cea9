"""What is certified of an answer that parties computed together: from the question alone, before anybody meets."""

from __future__ import annotations

import numpy as np

from leakcap.certificates.parties import PartiesCertificate
from leakcap.ground.proofs import proves
from leakcap.local.parties.law import COARSE, CoinNoise, calibrated
from leakcap.local.parties.question import JointQuestion
from leakcap.version import __version__

__all__ = ["certified", "promise"]

ROUNDING = 1e-12
ASSUMED = (
    "All parties follow the protocol (semi-honest): they may look at everything they have, but change nothing. Whoever "
    "sends other numbers than its rows bring makes another answer; whoever tosses no coins of its own adds none.",
    "Fewer than half of the parties put together what they know; as many as stated. More of them open everything.",
    "Nobody else reads the wires: TLS, or a network of their own.",
    "Every party's coins and shares come from its operating system, and it forgets them.",
    "Everybody has one row in all, at one party: whoever has rows at several is as many people.",
    "Bounds, columns, bins and the number of rows a party may have were agreed on without looking at the rows.",
)
NOT_PROMISED = (
    "What the answer says about people in general may be applied to anybody: that is what it is computed for.",
    "A second answer about the same rows adds to this one: squares of the distance add up. No ledger counts them here.",
    "A party that is told the answer may be lied to by others who change theirs: nobody checks that rows are true.",
    "How long a party takes, and that it takes part, is not hidden.",
)


def promise(question: JointQuestion) -> PartiesCertificate:
    """The certificate that an answer to a question will have: it follows from the question alone.

    Args:
        question: what parties agree on.

    Returns:
        The certificate, before anybody has met anybody.

    Raises:
        CapError: no noise that parties can toss together keeps the cap.

    Examples:
        >>> from leakcap.local import JointQuestion, promise
        >>> question = JointQuestion("mean", ("age",), {"age": (0, 110)}, cap=0.6)
        >>> round(promise(question).membership_success, 4)
        0.6
    """
    nobody = question.brought(np.empty((0, len(question.read_columns))))
    return certified(question, calibrated(nobody.extent, question.caps))


@proves("parties")
def certified(question: JointQuestion, noise: CoinNoise) -> PartiesCertificate:
    """The certificate. Nothing in it depends on anybody's rows."""
    law, bits = noise.law, question.design == "bits"
    return PartiesCertificate(
        kind="parties",
        design=question.design,
        question=question.to_json(),
        cap=question.cap,
        membership_success=noise.success,
        # A person who is not there at all is as one whose coin says no: half of what the coin tells.
        pool_membership_success=(0.25 + noise.success / 2) * (1 + ROUNDING) if bits else noise.success,
        replaced_success=noise.replaced,
        distance=noise.everywhere,
        sampler_distance=noise.distance,
        parties=question.parties,
        threshold=question.threshold,
        outputs=len(noise.deviations),
        coins=law.count,
        noise=(
            f"The sum, in each number, of {law.coarse:,} fair coins of weight {COARSE}, {law.filling:,} of weight 1 "
            f"and {law.dither:,} of weights 1/2, 1/4 and so on, less its mean: a binomial law, within "
            f"{noise.distance:.2g} of normal noise in all numbers together. Every coin is the exclusive or of coins of "
            f"{question.threshold + 1:,} parties, so that no {question.threshold:,} of them know any."
        ),
        known=(
            "Public: the question, with its bounds, cap and bins; who the parties are; the noise's law and size; the "
            "noisy answer; this page.",
            f"Public: that no party has more than {question.rows:,} rows. How many it has is not: everybody sends as "
            "much as if it had so many."
            if bits
            else "Not public: how many rows a party has, or all of them together, but for the noisy count that the "
            "answer may hold.",
            "Not secret: how many messages there are and how long: they are the same for all rows.",
            "Opened: the noisy sums, once. Every other value stays in shares, which are dropped.",
        ),
        assumptions=ASSUMED,
        not_promised=NOT_PROMISED,
        theorems=("parties", "pool"),
        leakcap_version=__version__,
    )
