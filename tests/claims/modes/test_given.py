"""Given inputs: the secret is drawn by exactly the prior, and caps are kept against the best attacker.

What a plan certifies is compared with an integral over released values that is written out here. Planted: a secret that
is drawn uniformly, noise of half the size.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.audit.attacks import secret
from leakcap.audit.conversions import conversions
from leakcap.audit.recheck import findings
from leakcap.noise import Seeded
from leakcap.planning.entry import stored_plan
from leakcap.worlds import GivenInputs
from tests.refusals import refusal

PRIOR = (0.35, 0.05, 0.2, 0.3, 0.1)
NAMED = lc.identification(0.5)
INPUTS = (0.0, 1.0, 1.5, 4.0, 7.0)


def identity(x: Any) -> Any:
    return x


@functools.cache
def planned(cap=NAMED, prior=PRIOR, seed=1):
    return lc.plan(identity, inputs=list(INPUTS), prior=prior, cap=cap, seed=seed)


def named(deviation, prior=PRIOR):
    """How often the best attacker names the input: an integral over released values."""
    y, step = np.linspace(-9 * deviation, 7 + 9 * deviation, 2**14, retstep=True)
    table = np.exp(-0.5 * ((y[:, None] - np.array(INPUTS)) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
    return float(step * (table * np.array(prior)).max(axis=1).sum())


def test_the_cap_on_naming_the_input_is_kept_and_tight():
    plan = planned()
    true = named(plan.noise.std)
    assert true <= plan.certificate.name_the_input_success <= 0.5
    assert true > 0.4999
    assert named(plan.noise.std / 2) > 0.55  # planted: half the noise


def test_a_task_and_its_prior_are_weighed_by_the_chances():
    small = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])  # the first, or not
    plan = planned(lc.task(lambda inputs: [[float(x < 0.5), float(x > 0.5)] for x in inputs], 0.75))
    (figure,) = plan.certificate.capped
    assert figure.before == pytest.approx(0.65) and 0.65 < figure.certified <= 0.75
    y, step = np.linspace(-40, 50, 2**14, retstep=True)
    table = np.exp(-0.5 * ((y[:, None] - np.array(INPUTS)) / plan.noise.std) ** 2) / (
        plan.noise.std * np.sqrt(2 * np.pi)
    )
    true = float(step * ((table * np.array(PRIOR)) @ small).max(axis=1).sum())
    assert 0.7499 < true <= figure.certified


@pytest.mark.parametrize("cap", [lc.any_inference(0.1, 0.3), lc.mutual_information(0.3)])
def test_other_caps_are_kept_too(cap):
    (figure,) = planned(cap).certificate.capped
    assert cap.limit * 0.99 < figure.certified <= cap.limit


def test_a_uniform_prior_is_that_of_no_prior():
    alike, none = planned(prior=(0.2,) * 5), planned(prior=None)
    assert alike.certificate == none.certificate
    assert alike.run.worlds.shares is None


def test_the_secret_is_drawn_by_exactly_the_prior():
    inputs = GivenInputs.of(INPUTS, PRIOR)
    drawn = Counter(map(inputs.drawn, range(inputs.numbers)))
    assert [Fraction(drawn[i], inputs.numbers) for i in range(5)] == [Fraction(repr(p)) for p in PRIOR]
    odd = GivenInputs.of(range(3), [0.1, 0.2, 0.7000001])  # it adds up to 1 within a millionth
    assert odd.chances == (1000000, 2000000, 7000001) and odd.numbers == 10000001
    assert [odd.drawn(n) for n in (0, 999999, 1000000, 2999999, 3000000, 10000000)] == [0, 0, 1, 1, 2, 2]
    planted = Counter(range(5))  # planted: all alike
    assert [Fraction(planted[i], 5) for i in range(5)] != [Fraction(repr(p)) for p in PRIOR]


class Told:
    """Randomness whose number is known, with no noise to speak of."""

    def __init__(self, number):
        self.number, self.asked = number, []

    def below(self, n):
        self.asked.append(n)
        return self.number

    def normals(self, size):
        return np.zeros(size)


def test_what_leaves_is_the_stored_answer_of_the_input_that_was_drawn():
    plan = planned()
    inputs = plan.run.worlds
    for number in range(inputs.numbers):
        told = Told(number)
        vector = plan.releaser.vector(told)
        assert told.asked == [inputs.numbers]
        assert vector == pytest.approx([INPUTS[inputs.drawn(number)]], abs=plan.certificate.grid_step * plan.noise.std)


def test_an_audit_tells_a_secret_of_another_law():
    """False alarms: 1e-6 each."""
    shares = np.array(PRIOR)
    rng = np.random.default_rng(0)
    assert secret.by_prior(rng.choice(5, size=40_000, p=shares), shares, 1e-6).verdict != "refuted"
    assert secret.by_prior(rng.integers(5, size=4000), shares, 1e-6).verdict == "refuted"  # planted: all alike
    never = rng.choice(5, size=4000, p=np.array([0.4, 0, 0.2, 0.3, 0.1]))
    assert secret.by_prior(never, shares, 1e-6).verdict == "refuted"


def test_an_audit_of_a_plan_holds_and_is_not_about_people():
    plan = lc.plan(identity, inputs=list(INPUTS), prior=PRIOR, cap=lc.identification(0.5))
    report = lc.audit.run(plan, attacks=["world", "secret"], trials=3000)
    assert report.holds and "which of the inputs was used" in str(report)
    refusal(lambda: lc.audit.run(plan, attacks=["bayes"]), "no people")


def test_seeds_beyond_machine_numbers_draw_alike():
    n = 2**70 + 12345
    source = Seeded(3)
    drawn = [source.below(n) for _ in range(2000)]
    assert min(drawn) >= 0 and max(drawn) < n
    assert abs(np.mean([x / n for x in drawn]) - 0.5) < 5 * np.sqrt(1 / 12 / 2000)


def test_inputs_come_as_lists_arrays_tables_or_from_a_function():
    cap, more = lc.mutual_information(0.3), {"seed": 1, "draws": 256}
    rows = np.random.default_rng(0).normal(size=(6, 4))
    by_array = lc.plan(np.mean, inputs=rows, cap=cap, **more)
    by_list = lc.plan(np.mean, inputs=list(rows), cap=cap, **more)
    by_table = lc.plan(lambda row: float(row.to_numpy().mean()), inputs=pd.DataFrame(rows), cap=cap, **more)
    assert by_array.outputs.ravel() == pytest.approx(rows.mean(axis=1))
    assert np.array_equal(by_array.outputs, by_list.outputs)
    assert by_table.outputs.ravel() == pytest.approx(rows.mean(axis=1))
    drawn = lc.plan(np.mean, inputs=lambda rng: rng.normal(size=3), worlds=20, cap=cap, **more)
    assert drawn.worlds.m == 20 and len(np.unique(drawn.outputs)) == 20
    assert any("drawn for this list" in line for line in drawn.certificate.not_promised)
    again = lc.plan(np.mean, inputs=lambda rng: rng.normal(size=3), worlds=20, cap=cap, **more)
    assert np.array_equal(drawn.outputs, again.outputs)


def test_answers_that_are_all_equal_leave_without_noise():
    plan = lc.plan(lambda x: 3.5, inputs=[1, 2, 3], prior=[0.5, 0.25, 0.25], cap=lc.identification(0.6))
    assert plan.certificate.name_the_input_success == 0.5 and plan.certificate.mutual_information == 0
    assert plan.release().value == 3.5
    assert "the same for every input" in str(plan.certificate)


def test_the_interval_holds_the_answer_of_the_input_that_was_used():
    """False alarm: 1e-9, by a normal law of the count."""
    plan = planned()
    (_, width) = next(pair for pair in plan._widths() if pair[0] == 0.9)
    source, inside = Seeded(5), 0
    for _ in range(2000):
        told = Told(source.below(plan.run.worlds.numbers))
        told.normals = source.normals
        vector = plan.releaser.vector(told)
        inside += bool(abs(vector[0] - INPUTS[plan.run.worlds.drawn(told.number)]) <= width[0])
    assert 0.9 - 6 * np.sqrt(0.09 / 2000) < inside / 2000 < 0.97


# ---- refused in words ------------------------------------------------------------------------------------------------

SECRET = "8675309"


def refused(words, fn=identity, **given):
    given = {"inputs": [1.0, 2.0, 3.0], "cap": lc.identification(0.6), **given}
    data = given.pop("data", ())
    return refusal(lambda: lc.plan(fn, *data, **given), words, private=(SECRET,))


@pytest.mark.parametrize(
    "cap",
    [
        *(lc.membership(0.6), lc.mip(0.1), lc.name_a_member(0.6), lc.pool_membership(0.6), 0.6),
        *(lc.precision(0.5, 0.6), lc.true_positive_rate(0.01, 0.1)),
    ],
)
def test_caps_on_people_are_refused(cap):
    assert isinstance(refused("people in a pool", cap=cap), lc.CapError)


def test_inputs_that_are_none_are_refused():
    refused("two inputs at least", inputs=[])
    refused("two inputs at least", inputs=[float(SECRET)])
    refused("must be a list", inputs={SECRET: 1})
    refused("must be a list", inputs=SECRET)
    refused("one or the other", data=(np.arange(3.0),))
    refused("give these, too", inputs=None, prior=[0.5, 0.5])
    refused("leave it out", worlds=64)
    refused("leave prior out", inputs=lambda rng: rng.normal(), prior=[0.5, 0.5])
    refused("ValueError", inputs=lambda rng: int(f"not {SECRET}"))
    refused("number of inputs", inputs=lambda rng: rng.normal(), worlds="doubling")


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ([0.5, 0.5], "one probability for each"),
        ([0.5, 0.3, 0.1], "add up to 1"),
        ([0.5, 0.3, 0.2 + 1e-5], "add up to 1"),
        ([0.5, 0.6, -0.1], "above 0"),
        ([0.5, 0.5, 0.0], "above 0"),
        ([0.5, float("nan"), 0.5], "one probability"),
        ([0.5, float("inf"), 0.5], "one probability"),
        (["a", "b", "c"], "one probability"),
        (0.3, "one probability"),
        ([[0.5, 0.3, 0.2]], "one probability"),
    ],
)
def test_priors_that_are_none_are_refused(prior, words):
    refused(words, prior=prior)


def test_answers_that_cannot_be_released_are_refused():
    refused("cannot be released", fn=lambda x: np.zeros(int(x)))
    refused("NaN or infinite", fn=lambda x: np.inf if x == 2 else x)
    refused("raised ValueError, in line", fn=lambda x: float(f"no {SECRET}") if x == 2 else x)
    refused("no number", fn=lambda x: {})
    refused("rows, but there are 3 inputs", cap=lc.task(np.eye(4), 0.6))
    refused("already reaches", cap=lc.identification(0.3))
    refused("promises nothing", cap=lc.mutual_information(1.2))


@pytest.mark.parametrize(
    "given",
    [
        *({"unit": [1, 2, 3]}, {"strata": [1, 1, 2]}, {"rate": 0.25}, {"mode": "confidence"}, {"design": "bits"}),
        *({"bounds": (0, 1)}, {"rows_per_unit": 2}, {"ledger": "sqlite:///x"}, {"mechanism": "exponential"}),
    ],
)
def test_what_is_about_people_is_refused(given):
    refused("about people in a pool", **given)


def test_what_a_plan_and_its_certificate_cannot_say_of_people_is_refused():
    plan = planned()
    for call in (
        lambda: plan.exposure,
        plan.compare,
        plan.suggest,
        lambda: plan.certificate.given(1),
        lambda: plan.certificate.true_positive_rate(0.01),
        lambda: plan.recap(lc.membership(0.6)),
    ):
        refusal(call)


def test_a_recap_shares_the_right_to_release_and_counts_an_attempt():
    plan = lc.plan(identity, inputs=list(INPUTS), prior=PRIOR, cap=lc.identification(0.5))
    other = plan.recap(lc.identification(0.6))
    assert other.certificate.attempt > plan.certificate.attempt
    plan.release()
    refusal(other.release, kind=lc.AlreadyReleased)


def test_no_word_of_the_certificate_is_about_people(tmp_path):
    release = lc.release(identity, inputs=list(INPUTS), prior=PRIOR, cap=lc.identification(0.5))
    release.save(tmp_path / "out")
    told = [str(release.certificate), repr(release.certificate)]
    told += [path.read_text() for path in (tmp_path / "out").rglob("*.txt")]
    told += [(tmp_path / "out" / "public" / name).read_text() for name in ("certificate.html", "answer.json")]
    for text in told:
        body = re.sub(r"<[^>]*>", " ", text.split("</style>")[-1])
        for word in ("person", "people", "took part", "participa", "half", "pool", "member"):
            assert word not in body, f"{word}: {body[max(0, body.index(word) - 60) :][:120]}"
    assert "which of the 5 inputs was used" in " ".join(told[0].split())


def test_a_stored_plan_is_checked_to_the_last_digit(tmp_path):
    call = functools.partial(
        lc.plan, np.array, inputs=[[0.0, 1.0], [2.0, 1.0], [0.5, 3.0]], prior=[0.5, 0.25, 0.25], draws=1024
    )
    plan = call(cap=lc.identification(0.7), checkpoint=tmp_path / "plan")
    release = plan.release()
    again = stored_plan(tmp_path / "plan")
    claims = [*findings(release.certificate, again), *conversions(release.certificate)]
    assert len(claims) >= 9 and all(claim.holds for claim in claims), claims
    resumed = call(cap=lc.identification(0.7), checkpoint=tmp_path / "plan")
    assert np.array_equal(resumed.release().value, release.value)
    assert lc.Certificate.from_json(release.certificate.to_json()) == release.certificate
    forged = replace(release.certificate, name_the_input_success=0.51)
    assert not all(claim.holds for claim in findings(forged, again))  # planted: a better figure
    refusal(lambda: call(cap=lc.identification(0.7), checkpoint=tmp_path / "plan", clip=(0, 1)), "another release")
