"""Published records: the cap holds for every row, other rows tell what the proof says, and rows share no noise.

What is claimed is compared with integrals that are written out here. Planted: one noise for all rows, noise of half the
size, and the claim that a secret order tells no more than a row alone.
"""

from __future__ import annotations

import functools
import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest

import leakcap as lc
from leakcap.certificates.text import promise
from leakcap.local.rows import surplus_of_an_order
from leakcap.noise import Seeded
from leakcap.planning import several_secrets
from tests.refusals import refusal

LIST = np.array([0.0, 1.0, 1.5, 4.0, 7.0])
PRIOR = (0.35, 0.05, 0.2, 0.3, 0.1)
NAMED = lc.identification(0.5)


@functools.cache
def planned(rows=None, prior=PRIOR, seed=1):
    return lc.local.plan(LIST[:, None], cap=NAMED, prior=prior, rows=rows, seed=seed)


def likelihoods(y, records, deviation):
    """`(len(y), records)`: densities, up to a factor that all share."""
    return np.exp(-0.5 * ((y[:, None] - records) / deviation) ** 2)


def entropy(p, axis):
    return -np.where(p > 0, p * np.log(np.maximum(p, 1e-300)), 0).sum(axis=axis)


def orders_told(records, deviation, cells=60):
    """What a row alone, and all rows together, tell about the record in the first row: sums over a grid of tables."""
    n = len(records)
    y = np.linspace(records.min() - 6 * deviation, records.max() + 6 * deviation, cells)
    mass = likelihoods(y, records, deviation)
    mass /= mass.sum(axis=0)  # a channel with finitely many outputs: the claim is about any
    alone = entropy(mass.mean(axis=1), 0) - entropy(mass, 0).mean()
    orders = list(itertools.permutations(range(n)))
    joint = np.zeros((n, *(cells,) * n))
    for order in orders:
        table = functools.reduce(np.multiply.outer, [mass[:, w] for w in order])
        joint[order[0]] += table / len(orders)
    table = joint.sum(axis=0)
    told = math.log(n) - (table * entropy(joint / np.maximum(table, 1e-300), 0)).sum()
    return float(alone), float(told)


@pytest.mark.parametrize(("records", "cells"), [((0.0, 1.0), 400), ((0.0, 1.0, 1.5), 60)])
@pytest.mark.parametrize("deviation", [0.1, 0.5, 2.0])
def test_a_secret_order_tells_more_than_a_row_alone_and_no_more_than_the_bound(records, cells, deviation):
    alone, told = orders_told(np.array(records), deviation, cells)
    bound = alone + surplus_of_an_order(len(records))
    assert told <= bound + 1e-9
    if deviation == 0.5:  # planted: the claim that all rows together tell about a row what it tells alone
        assert told > 1.1 * alone


def test_the_surplus_of_an_order_is_below_one_nat_and_exact_for_two():
    assert surplus_of_an_order(2) == pytest.approx(math.log(2) / 2)
    values = [surplus_of_an_order(n) for n in (2, 3, 10, 100, 16384)]
    assert values == sorted(values) and values[-1] < 1


def test_other_rows_tell_nothing_where_rows_are_drawn_by_themselves():
    """Two rows, all pairs of records: the posterior of the first, given both rows and the second record."""
    y = np.linspace(-4, 11, 40)
    mass = likelihoods(y, LIST, 1.3)
    prior = np.array(PRIOR)
    own = prior * mass / (mass @ prior)[:, None]
    joint = np.einsum("a,b,ya,zb->yzab", prior, prior, mass, mass)
    given = joint / joint.sum(axis=2, keepdims=True)  # of the first record, given both rows and the second record
    assert np.abs(given - own[:, None, :, None]).max() < 1e-12
    tied = joint * (1 + 5 * np.eye(5))  # planted: rows that are alike more often than by chance
    assert np.abs(tied / tied.sum(axis=2, keepdims=True) - own[:, None, :, None]).max() > 0.1


def named_right(rows, secrets, deviation, prior):
    chosen = (np.log(prior) - 0.5 * ((rows - LIST) / deviation) ** 2).argmax(axis=1)
    return float((chosen == secrets).mean())


def drawn_again(seed, count, prior):
    """The secrets of a seeded table: drawn before any noise."""
    return planned(count)._rows.secrets(Seeded(seed))


def test_every_row_keeps_the_cap_against_the_best_attacker():
    """20,000 rows: five deviations are .018, a false alarm in 10^6."""
    count, prior = 20_000, np.array(PRIOR)
    plan = lc.local.plan(LIST[:, None], cap=NAMED, prior=PRIOR, rows=count, seed=3)
    secrets = np.array(drawn_again(3, count, PRIOR))
    assert np.bincount(secrets) / count == pytest.approx(prior, abs=0.018)
    deviation = plan.noise.std
    made = plan.release().value
    seen = named_right(made, secrets, deviation, prior)
    assert seen <= plan.certificate.name_the_input_success + 0.018
    assert seen > 0.5 - 0.018  # and tight
    halved = LIST[secrets][:, None] + (made - LIST[secrets][:, None]) / 2  # planted: half the noise
    assert named_right(halved, secrets, deviation / 2, prior) > 0.5 + 0.05


def test_rows_have_noise_of_their_own(monkeypatch):
    """Neighbours' noise is uncorrelated: six deviations of 10,000 pairs are .06."""
    count = 10_001

    def correlation(seed):
        plan = lc.local.plan(LIST[:, None], cap=NAMED, prior=PRIOR, rows=[0] * count, seed=seed)
        noise = plan.release().value[:, 0] / plan.noise.std
        return abs(float(np.corrcoef(noise[1:], noise[:-1])[0, 1])) if noise.std() > 1e-3 else 1.0

    assert correlation(4) < 0.06
    honest = several_secrets.OneOfTheInputs.vector_of
    monkeypatch.setattr(  # planted: one noise for all rows
        several_secrets.OneOfTheInputs, "vector_of", lambda self, secret, _: honest(self, secret, Seeded(9))
    )
    assert correlation(5) > 0.06


class Known:
    """Randomness without noise, whose numbers and order are known."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def below(self, n):
        return self.numbers.pop(0)

    def normals(self, size):
        return np.zeros(size)

    def bits(self):
        return np.random.default_rng(7)


def rows_without_noise(rows, *numbers, prior=PRIOR):
    plan = lc.local.plan(LIST[:, None], cap=NAMED, prior=prior, rows=rows, seed=1)
    plan._one.randomness = Known(*numbers)
    return plan.release().value[:, 0]


def test_rows_are_the_records_that_were_drawn_held_or_shuffled():
    near = {"abs": 0.01}
    inputs = planned(2)._one.run.worlds
    first = [next(n for n in range(inputs.numbers) if inputs.drawn(n) == place) for place in range(5)]
    assert rows_without_noise(3, first[4], first[0], first[4]) == pytest.approx([7.0, 0.0, 7.0], **near)
    assert rows_without_noise([2, 2, 1]) == pytest.approx([1.5, 1.5, 1.0], **near)
    shuffled = rows_without_noise("all", prior=None)
    assert sorted(shuffled) == pytest.approx(LIST, **near)
    assert list(shuffled) != pytest.approx(list(LIST), **near)  # of 120 orders this generator gives another one


def test_one_record_is_the_plan_over_given_inputs():
    plan = planned()
    other = lc.plan(lambda x: x, inputs=LIST[:, None], prior=PRIOR, cap=NAMED, seed=1)
    assert plan.noise.std == other.noise.std and plan.certificate.capped == other.certificate.capped
    assert planned(5).noise.std == plan.noise.std


def test_certificates_of_tables_say_what_they_are_about():
    alone, table, order = planned(), planned(7).certificate, planned("all", None).certificate
    assert "published-rows" not in alone.certificate.theorems
    assert any("record itself" in line for line in alone.certificate.pool_public)
    for certificate in (table, order):
        assert "In each row of the table" in str(certificate) and "published-rows" in certificate.theorems
        assert lc.Certificate.from_json(certificate.to_json()) == certificate
        assert "stands where" in certificate.to_html(allow_simulation=True)
    assert "stands in a given row, even knowing all other rows" in promise(table)
    assert "sees a row alone" in promise(order) and "no two alike" in str(order) and "tells more" in promise(order)
    assert order.in_secret_order and not table.in_secret_order
    assert any("each row by itself" in line and "7 times" in line for line in table.not_promised)
    (line,) = [line for line in order.not_promised if "seen alone" in line]
    stated = float(line.split("at most ")[1].split(" nats")[0])
    bound = order.mutual_information + math.log(5) - math.log(120) / 5
    assert bound <= stated <= bound + 2e-4
    held = lc.local.plan(LIST[:, None], cap=NAMED, rows=[0, 3], seed=1).certificate
    assert any("relatives" in line for line in held.assumptions)


def test_tables_keep_their_columns_and_forms():
    people = pd.DataFrame({"age": [20.0, 30.0, 45.0], "income": [1.0, 5.0, 2.0]}, index=["a", "b", "c"])
    one = lc.local.publish(people, cap=lc.mutual_information(0.3), seed=1)
    assert list(one.value.index) == ["age", "income"]
    table = lc.local.publish(people, cap=lc.mutual_information(0.3), rows=4, seed=1)
    assert list(table.value.columns) == ["age", "income"] and table.value.shape == (4, 2)
    low, high = table.interval()
    assert low.shape == (4, 2) and (low < table.value.to_numpy()).all() and (high > table.value.to_numpy()).all()
    refusal(lambda: table.interval(0.9999), "levels")
    again = pickle.loads(pickle.dumps(table))
    assert again.value.equals(table.value) and again.certificate == table.certificate
    pictures = np.random.default_rng(0).normal(size=(6, 4, 3))
    assert lc.local.publish(pictures, cap=lc.mutual_information(0.3), rows=2, seed=1).value.shape == (2, 4, 3)


def test_intervals_hold_the_records():
    """2,000 rows at 95 %: five deviations are .025."""
    places = np.random.default_rng(0).integers(5, size=2000)
    table = lc.local.plan(LIST[:, None], cap=NAMED, rows=places, seed=6).release()
    low, high = table.interval()
    inside = (low[:, 0] <= LIST[places]) & (LIST[places] <= high[:, 0])
    assert inside.mean() > 0.95 - 0.025
    middle, half = (low + high)[:, 0] / 2, (high - low)[:, 0] / 4
    assert (np.abs(middle - LIST[places]) <= half).mean() < 0.85  # planted: half the width


def test_many_columns_need_no_square_of_them():
    """30,000 columns: a matrix of all pairs would take 7 GB."""
    wide = np.random.default_rng(0).normal(size=(8, 30_000))
    plan = lc.local.plan(wide, cap=lc.mutual_information(0.5), weights="equal", rows=2, seed=1, draws=512)
    assert plan.noise.space.rank == 7 and plan.release().value.shape == (2, 30_000)


@pytest.mark.parametrize("rows", [None, 3, "all"])
def test_a_plan_publishes_once(rows):
    plan = lc.local.plan(np.random.default_rng().normal(size=(6, 2)), cap=lc.mutual_information(0.3), rows=rows)
    plan.release()
    refusal(plan.release, "already", lc.AlreadyReleased)
    with pytest.raises(lc.LeakcapError, match="custodian-side"):
        pickle.dumps(plan)


PRIVATE = ("4711",)


@pytest.mark.parametrize(
    ("records", "options", "words"),
    [
        (LIST, {"cap": 0.6}, "nobody|people|inputs"),
        (LIST, {"cap": lc.membership(0.6)}, "nobody|people|inputs"),
        ([], {"cap": NAMED}, "two inputs"),
        ([4711.0], {"cap": NAMED}, "two inputs"),
        ([[1.0, 4711.0], [2.0], [3.0]], {"cap": NAMED}, "shape|form|differ"),
        (LIST, {"cap": NAMED, "prior": [0.3] * 5}, "add up"),
        (LIST, {"cap": NAMED, "rows": 0}, "rows"),
        (LIST, {"cap": NAMED, "rows": True}, "rows"),
        (LIST, {"cap": NAMED, "rows": [0, 4711]}, "outside"),
        (LIST, {"cap": NAMED, "rows": [-1]}, "outside"),
        (LIST, {"cap": NAMED, "rows": [0.5]}, "whole"),
        (LIST, {"cap": NAMED, "rows": []}, "rows"),
        (LIST, {"cap": NAMED, "rows": "every"}, "'all'"),
        (LIST, {"cap": NAMED, "rows": 2**30}, "at most"),
        (LIST, {"cap": NAMED, "rows": "all", "prior": PRIOR}, "leave prior out"),
        (LIST, {"cap": NAMED, "rows": 2, "checkpoint": "somewhere"}, "checkpoint"),
        (lambda rng: rng.normal(), {"cap": NAMED, "rows": [0]}, "places in a list"),
        (LIST, {"cap": NAMED, "inputs": [1]}, "inputs="),
        (LIST, {"cap": NAMED, "ledger": "file"}, "people"),
        (pd.DataFrame({"name": ["4711", "b"]}), {"cap": NAMED}, "encode text"),
    ],
)
def test_what_cannot_be_published_is_refused_in_words(records, options, words):
    refusal(lambda: lc.local.publish(records, **options), words, private=PRIVATE)
