"""Modes whose secret is a fresh half: does the promised information hold for laws that fool an estimate?

Pools of twenty people have 184,756 halves: the answer is known in each, so the true information of a released value is
an integral. Every comparison of counts states its false-alarm rate, 1e-4 or less; generators are fixed.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.signal import fftconvolve
from scipy.special import ndtr
from scipy.stats import binom, kstest, norm

import leakcap as lc
from leakcap.ground.cores import Machine
from leakcap.modes import NoiseSettings, confidence, empirical
from leakcap.noise import Seeded
from leakcap.worlds import Worlds, independent_worlds
from tests.claims.leakage.oracle import Line, all_halves
from tests.claims.worlds.laws import halves, thirds

N = 20
CODES = np.flatnonzero(np.bitwise_count(np.arange(2**N)) == N // 2)
POSITION = np.zeros(2**N, dtype=np.int64)
POSITION[CODES] = np.arange(len(CODES))
MASKS = (CODES[:, None] >> np.arange(N)) & 1 == 1
LINE = MASKS @ np.random.default_rng(0).standard_normal(N)
LINE = (LINE - LINE.mean()) / LINE.std()
DESIGN = independent_worlds(N, 1, np.random.default_rng(0)).design
ORDER = np.random.default_rng(1).permutation(len(CODES))


def event(worlds):
    """1 in so many halves, 0 in the others."""
    return np.isin(np.arange(len(CODES)), ORDER[:worlds]).astype(float)


RARE = 18  # of 184,756: a probability of 1e-4
ANSWERS = {
    "heavy tail": np.exp(2 * LINE)[:, None],
    "rare event": event(RARE)[:, None],
    "event": event(5173)[:, None],  # 2.8 %
    "line and event": np.stack([LINE, 5 * event(1850)], axis=1),
    "line and rare event": np.stack([LINE, event(RARE)], axis=1),
}
DISTINCT = {}
for _name, _answers in ANSWERS.items():
    _values, _counts = np.unique(_answers[:, 0], return_counts=True)
    DISTINCT[_name] = (_values[:, None], _counts) if _answers.shape[1] == 1 else (_answers, np.ones(len(CODES)))
SETTINGS = NoiseSettings("best", 0.0, "equal", None, Machine(2**28), True, (), ())


@pytest.fixture(autouse=True)
def short_curve(monkeypatch):
    """The curve of these certificates is one function of the information; a single point of it saves the time."""
    monkeypatch.setattr("leakcap.modes.by_information.priors_for", lambda m, wanted: (Fraction(1, 2),))


@functools.cache
def drawn(m, *seed):
    """Worlds, and where among all halves they are: the same for all answers, whose tests are judged one by one."""
    places = np.random.default_rng(seed).integers(len(CODES), size=m)
    return Worlds(np.packbits(MASKS[places], axis=1), N, Fraction(1, 2), paired=False, design=DESIGN), places


def simulate(answers, m, *seed):
    worlds, places = drawn(m, *seed)
    return worlds, answers[places]


def information(coordinates, deviations, counts):
    """I(X; M(X) + noise) for a uniform half X: entropy of the noised answer minus that of the noise, by a histogram.

    Answers are shared between neighbouring bins, which adds a little to their spread: at most `parts^-2 / 12` nats too
    much in each direction, so the comparison errs on the strict side.
    """
    r = len(deviations)
    parts = 64 if r == 1 else 10
    if r == 0:
        return 0.0
    places = [(c - c.min()) / d * parts + 8 * parts for c, d in zip(coordinates.T, deviations, strict=True)]
    whole = [p.astype(int) for p in places]
    rest = [p - w for p, w in zip(places, whole, strict=True)]
    shape = [int(p.max()) + 8 * parts + 2 for p in places]
    mass = np.zeros(shape)
    for corner in np.ndindex(*(2,) * r):
        weight = counts * np.prod([f if c else 1 - f for f, c in zip(rest, corner, strict=True)], axis=0)
        index = np.ravel_multi_index([w + c for w, c in zip(whole, corner, strict=True)], shape)
        mass += np.bincount(index, weight, mass.size).reshape(shape)
    kernel = norm.pdf(np.arange(-8 * parts, 8 * parts + 1) / parts)
    kernel = kernel / kernel.sum() if r == 1 else np.outer(kernel, kernel) / kernel.sum() ** 2
    law = np.maximum(fftconvolve(mass / counts.sum(), kernel, mode="same"), 1e-300)
    return float((kernel * np.log(kernel)).sum() - (law * np.log(law)).sum())


def released_coordinates(mechanism, answers, clipped=True):
    """What confidence mode adds its noise to, in every one of the halves."""
    space = mechanism.noise.space
    if not space.rank:
        return np.zeros((len(answers), 0))
    coordinates = np.einsum("wd,rd->wr", (answers - space.centre) * space.scale, space.directions)
    return np.clip(coordinates, mechanism.low, mechanism.high) if clipped else coordinates


def test_the_integral_agrees_with_a_quadrature():
    """Two equally likely answers, and ten unequal ones, against the trapezoidal rule."""
    for z in (np.array([0.0, 1.5]), np.random.default_rng(0).standard_normal(10) * 2):
        for deviation in (0.4, 3.0):
            exact = Line(z, deviation).information()
            found = information(z[:, None], np.array([deviation]), np.ones(len(z)))
            assert found == pytest.approx(exact, abs=64.0**-2 / 12 + 1e-6)
    flat = np.stack([np.array([0.0, 1.5, 0.3]), np.zeros(3)], axis=1)
    exact = Line(flat[:, 0], 0.7).information()
    assert information(flat, np.array([0.7, 1.0]), np.ones(3)) == pytest.approx(exact, abs=2 * 10.0**-2 / 12)


def covered(name, beta, gamma, runs, m=128, shown=False, clipped=True, claimed_gamma=None):
    """In how many runs the true information exceeds the certified one.

    With `shown`, the first pilot world is one in which the event happens: the promise holds given the pilot, and
    otherwise the event would be clipped away in most runs.
    """
    answers, failed = ANSWERS[name], 0
    happens = np.flatnonzero(answers[:, -1])
    for run in range(runs):
        worlds, outputs = simulate(answers, m, run, 5)
        if shown:
            outputs[0] = answers[np.random.default_rng([run, 9]).choice(happens)]
        caps = (lc.mutual_information(beta),)
        mechanism, certificate = confidence.certified(
            outputs, worlds, caps, SETTINGS, gamma=claimed_gamma or gamma, rerun=None, draw=None
        )
        assert certificate.mutual_information <= beta
        rows, counts = DISTINCT[name]
        true = information(released_coordinates(mechanism, rows, clipped), mechanism.noise.deviations, counts)
        failed += true > certificate.mutual_information + 1e-12
    return failed


CASES = {
    "heavy tail": {"name": "heavy tail", "beta": 0.01, "gamma": 0.1, "runs": 80},
    "rare event": {"name": "rare event", "beta": 2.0**-11, "gamma": 0.1, "runs": 50},
    "rare event, seen by the pilot": {
        "name": "rare event",
        "beta": 2.0**-11,
        "gamma": 0.1,
        "runs": 80,
        "shown": True,
    },
    "event, seen by the pilot": {
        "name": "event",
        "beta": 0.001,
        "gamma": 0.1,
        "runs": 150,
        "m": 64,
        "shown": True,
    },
    "two outputs": {"name": "line and event", "beta": 0.1, "gamma": 0.2, "runs": 40, "shown": True},
}


@pytest.mark.parametrize("name", CASES)
def test_confidence_mode_covers_heavy_tails_and_rare_events(name):
    case = CASES[name]
    assert covered(**case) <= binom.isf(1e-4, case["runs"], case["gamma"])


def test_a_planted_half_margin_is_caught():
    """`gamma^(1/4)` halves the margin on the deviation: an event that shows in 2.8 % of halves is then missed."""
    case = CASES["event, seen by the pilot"]
    failed = covered(**case, claimed_gamma=case["gamma"] ** 0.25)
    assert failed > binom.isf(1e-4, case["runs"], case["gamma"])


def test_planted_answers_that_are_not_clipped_are_caught():
    """Noise for what the pilot saw, and a heavy tail that the pilot did not see released as it is."""
    case = CASES["heavy tail"]
    failed = covered(**case, clipped=False)
    assert failed > binom.isf(1e-4, case["runs"], case["gamma"])


def test_the_released_value_has_the_law_that_was_integrated():
    """3,000 releases, from fresh halves, against the mixture over all halves; Kolmogorov-Smirnov, 1e-5."""
    answers = ANSWERS["heavy tail"]
    worlds = independent_worlds(N, 64, np.random.default_rng(3))

    def rerun(mask):
        return answers[POSITION[mask @ (1 << np.arange(N))]]

    outputs = np.array([rerun(mask) for mask in worlds.masks()])

    def draw(randomness):
        return independent_worlds(N, 1, randomness.bits()).mask(0)

    caps = (lc.mutual_information(2.0),)
    mechanism, _ = confidence.certified(outputs, worlds, caps, SETTINGS, gamma=0.1, rerun=rerun, draw=draw)
    randomness = Seeded(4)
    space, (deviation,) = mechanism.noise.space, mechanism.noise.deviations
    found = np.array([mechanism.vector(randomness)[0] for _ in range(3000)])
    found = (found - space.centre[0]) * space.scale[0] * space.directions[0, 0]

    def agrees(coordinates, scale):
        some = np.quantile(coordinates, (np.arange(3000) + 0.5) / 3000)  # a mixture of 3,000 stands for all halves
        return kstest(found, lambda x: ndtr((x[:, None] - some) / scale).mean(axis=1)).pvalue > 1e-5

    coordinates = released_coordinates(mechanism, answers)
    assert agrees(coordinates, deviation)
    # One half in fifty has an answer that the clip cuts off by far: none of them shows.
    wild = released_coordinates(mechanism, answers, clipped=False)
    most = max(-mechanism.low[0], mechanism.high[0]) + 6 * deviation
    assert (np.abs(wild) > most).mean() > 0.005
    assert np.abs(found).max() < most
    assert not agrees(coordinates + 0.2 * deviation, deviation)  # planted: off centre
    assert not agrees(coordinates, 1.3 * deviation)  # planted: another scale


# ---- the papers' rule ---------------------------------------------------------------------------------------------


def bit_entropy(p):
    return -p * math.log(p) - (1 - p) * math.log1p(-p)


def test_empirical_mode_misses_a_rare_event():
    """An event in one of ten thousand halves. 1,024 worlds do not show it in (1 - p)^1024 = 90 % of runs: no noise."""
    beta, p = 2.0**-11, RARE / len(CODES)
    caps = (lc.mutual_information(beta),)
    quiet, runs = 0, 40
    for run in range(runs):
        worlds, outputs = simulate(ANSWERS["line and rare event"], 1024, run, 6)
        mechanism, certificate = empirical.certified(outputs, worlds, caps, SETTINGS, rerun=None, draw=None)
        assert not certificate.is_guarantee
        assert certificate.mutual_information == pytest.approx(beta)
        quiet += mechanism.output_noise[1] == 0
    # Five standard errors around (1 - p)^1024: false alarms below 1e-5.
    expected = (1 - p) ** 1024
    assert abs(quiet / runs - expected) <= 5 * math.sqrt(expected * (1 - expected) / runs)
    assert quiet / runs > 0.75
    # In all of these the released event is exact: twice the information that is claimed for the whole release.
    assert bit_entropy(p) > 2 * beta
    # Alone, the event is given up after the first twenty worlds.
    quiet = 0
    for run in range(runs):
        worlds, outputs = simulate(ANSWERS["rare event"], 128, run, 7)
        mechanism, certificate = empirical.certified(outputs, worlds, caps, SETTINGS, rerun=None, draw=None)
        quiet += mechanism.noise.space.rank == 0 and certificate.worlds == 20
    assert quiet >= binom.ppf(1e-5, runs, (1 - p) ** 128)


def test_empirical_mode_claims_too_little_for_a_heavy_tail_where_confidence_mode_holds():
    beta, runs = 0.01, 40
    failed = 0
    for run in range(runs):
        worlds, outputs = simulate(ANSWERS["heavy tail"], 128, run, 5)
        caps = (lc.mutual_information(beta),)
        mechanism, certificate = empirical.certified(outputs, worlds, caps, SETTINGS, rerun=None, draw=None)
        true = information(ANSWERS["heavy tail"], mechanism.output_noise, np.ones(len(CODES)))
        failed += true > certificate.mutual_information + 64.0**-2 / 12
    # More often than any confidence of ten per cent allows: the same runs are all covered above.
    assert failed > binom.isf(1e-4, runs, 0.1)


def test_confidence_mode_releases_no_rare_event_that_its_pilot_did_not_see():
    worlds, outputs = simulate(ANSWERS["rare event"], 128, 8)
    assert not outputs.any()
    caps = (lc.mutual_information(2.0**-11),)
    happens = np.flatnonzero(ANSWERS["rare event"][:, 0])
    mechanism, certificate = confidence.certified(
        outputs,
        worlds,
        caps,
        SETTINGS,
        gamma=0.1,
        rerun=lambda mask: np.ones(1),
        draw=lambda randomness: MASKS[happens[0]],
    )
    assert certificate.mutual_information == 0
    assert mechanism.vector(Seeded(1))[0] == 0  # although the event happened


# ---- how many secrets there are -----------------------------------------------------------------------------------


def named(n, rate=1 / 2, success=0.9):
    X = np.random.default_rng(2).standard_normal((n, 1))
    cap = lc.identification(success)
    plan = lc.plan(lambda X: X.mean(axis=0), X, cap=cap, worlds=66, rate=rate, mode="confidence", seed=1)
    return plan.certificate.capped[0]


@pytest.mark.parametrize("n", [7, 8])
def test_identification_uses_the_number_of_possible_secrets(n):
    likeliest = max(halves(n).values())
    figure = named(n)
    assert figure.before == pytest.approx(likeliest, rel=1e-12)
    assert figure.before > 2.0**-n  # the planted fault: a half is not one of all subsets
    for rate, law in ((1 / 3, thirds(n)), (2 / 3, thirds(n))):
        assert named(n, rate).before >= max(law.values()) * (1 - 1e-12)


def test_naming_the_secret_half_stays_below_what_the_information_allows():
    """All halves of eight, one output: the best attacker against the bound with 1/70, and with 2^-8, planted."""
    outputs = all_halves(8) @ np.random.default_rng(3).standard_normal(8)
    for deviation in (2.0, 20.0):
        line = Line(outputs, deviation, points=2**14)
        success, information = line.curve([1])[0], line.information()
        assert success <= lc.convert.posterior(information, 1 / 70)
        if deviation == 20.0:
            assert success > lc.convert.posterior(information, 2.0**-8)


def test_large_pools_have_secrets_enough():
    figure = named(1100, success=1e-3)
    assert 0 < figure.before <= 1e-300
    assert figure.before >= 2.0**-1000 * (1 - 1e-12)
    assert figure.certified <= 1e-3
