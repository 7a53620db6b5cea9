"""What nats mean for attackers who name, claim, guess the sample or rebuild: beside the best of them, listed."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest

import leakcap as lc
from leakcap.certificates.obfuscation import ObfuscationCertificate
from leakcap.convert import posterior
from leakcap.errors import InputError, LeakcapError
from leakcap.obfuscation.certified import claims_right
from leakcap.obfuscation.comparison import mask_nats
from leakcap.obfuscation.meaning import (
    average_membership,
    claim_precision,
    name_any_member,
    overlap_priors,
    reconstruction,
)
from leakcap.obfuscation.obfuscated import Obfuscated
from leakcap.obfuscation.sampled import draw_mixed
from tests.claims.obfuscation.brute_force import densities, samples, truth
from tests.claims.obfuscation.cases import CASES, law, rows

NOISES = (0.02, 0.1, 0.5)
CASE = "two classes, one row"


def unequal(seed=3):
    """Rows of lengths from .05 to 1, so that one released number tells a good deal about who is behind it."""
    pool = rows(8, 2, seed)
    return pool / np.linalg.norm(pool, axis=1)[:, None] * np.geomspace(0.05, 1, 8)[:, None]


POOL, LAW = unequal(), law([8], 2, 1, [[0, 0]])


def attackers(noise):
    """Of one release: the best namer, the best guesser of the sample, and the best at naming all of it."""
    density, cell = densities(POOL, LAW, noise)
    everyone = samples(LAW)
    inside = np.array([np.isin(np.arange(len(POOL)), some) for some in everyone]).astype(float)
    weight = density * cell / len(everyone)  # of each sample at each point
    named = (inside.T @ weight).max(axis=0).sum()
    shared = (inside @ inside.T / LAW.sampled) @ weight  # share of the sample that a guess contains
    return named, shared.max(axis=0).sum(), weight.max(axis=0).sum()


def best_claims(noise, unit, often):
    """Share of right ones among claims about a unit made in a share `often` of releases, where they are likeliest."""
    density, cell = densities(POOL, LAW, noise)
    inside = np.array([unit in some for some in samples(LAW)])
    right, every = (density[some].sum(axis=0) * cell / len(density) for some in (inside, inside | True))
    order = np.argsort(-right / every)
    total = np.cumsum(every[order])
    last = int(np.searchsorted(total, often))
    return right[order][: last + 1].sum() / total[last]


@pytest.mark.parametrize("noise", NOISES)
def test_no_other_attacker_gets_more_than_the_nats_allow(noise):
    exact = truth(POOL, LAW, noise)
    named, shared, whole = attackers(noise)
    assert 0.25 < named <= name_any_member(exact.whole, LAW)
    assert 0.25 < shared <= average_membership(exact.whole, LAW)
    assert 1 / 28 < whole <= reconstruction(exact.whole, 1 / 28)
    rate = 0.25
    for often in (rate, 0.5):
        claims = best_claims(noise, 7, often)
        assert rate < claims <= claim_precision(exact.nats[7], often, rate) + 1e-6
        assert claims <= claims_right(exact.tv, LAW.rates, often) + 1e-6


def test_planted_conversions_are_caught():
    """The paper's: a claim as a guess of prior q; a member's nats for naming anybody; Corollary 1 as printed."""
    exact = truth(POOL, LAW, 0.02)
    named = attackers(0.02)[0]
    assert best_claims(0.02, 7, 0.25) > posterior(exact.nats[7], 0.25) + 0.05
    assert named > posterior(exact.nats.min(), 0.25) + 0.05
    priors = [sum(comb(2, j) * comb(2, 2 - j) for j in range(least, 3)) / comb(8, 2) for least in (1, 2)]
    printed = np.mean([posterior(0.0, prior) for prior in priors])  # C(n, n-j) for C(N-n, n-j)
    assert printed < 0.25 - 0.05 < average_membership(0.0, LAW)  # a blind guess contains a quarter


def test_overlaps_in_several_classes_are_listed_ones():
    rules = law([4, 5], 2, 1, [[0, 1]])
    everyone = samples(rules)
    shared = [len(np.intersect1d(one, other)) for one, other in product(everyone, everyone)]
    listed = [np.mean(np.array(shared) >= least) for least in range(1, 5)]
    assert overlap_priors(rules) == pytest.approx(listed, rel=1e-8)


def test_nats_about_the_mask_are_a_mean_of_log_determinants():
    pool, rules = CASES[CASE]
    release, rng = Obfuscated(pool, rules, 0.3), np.random.default_rng(1)
    found = mask_nats(release, np.random.default_rng(1))
    each = []
    for _ in range(8):
        mixed = draw_mixed(rules, rng)
        mixture = mixed.weights @ pool[mixed.rows]
        each.append(np.linalg.slogdet(np.eye(1) + mixture @ mixture.T / 0.09)[1] / 2)
    assert found == pytest.approx(np.mean(each), rel=1e-9)


# The encoder's table


def pool_of(units=40, seed=5):
    rng = np.random.default_rng(seed)
    y = np.repeat(["a", "b"], units // 2)
    return rng.normal(size=(units, 4)) + (y == "b")[:, None], y


def encoder(**change):
    given = {"mix": 4, "rows_sampled": 20, "rows_released": 8, "noise": 0.5, "draws": 64, "seed": 1}
    return lc.obfuscation.Encoder(4, **(given | change))


@pytest.mark.filterwarnings("ignore::leakcap.errors.SimulationWarning", "ignore::leakcap.errors.UselessReleaseWarning")
def test_the_encoder_compares_all_accounts_and_spends_nothing():
    X, y = pool_of()
    owner = encoder()
    found = owner.compare(X, y)
    told = {bound.name: bound for bound in found.bounds}
    assert {"pairs", "log-det", "Type I", "RDP", "DP", "DP-CDA", "claims", "name one", "share", "rebuild"} <= set(told)
    assert found.best.success == min(told[name].success for name in ("pairs", "log-det", "Type I", "RDP"))
    assert told["name one"].success == pytest.approx(posterior(found.sample_nats, 0.5), rel=1e-9)
    assert told["claims"].success <= told["pairs"].success + 1e-9  # claims half of the time, drawn half of the time
    text = str(found)
    assert "Lowest valid bound on balanced success" in text and "no: class-wise mixing, without a mask" in text
    rebuilt = found.mask_rebuilt(error=0.01, missed=0.001, spread=0.3, tail=0.5)
    assert not rebuilt.is_guarantee and "If the assumptions held" in str(rebuilt)
    assert rebuilt.nats == found.mask_nats > found.sample_nats
    owner.encode(X, y)  # nothing was spent before
    certificate = owner.certificate
    assert isinstance(certificate, ObfuscationCertificate)
    assert certificate.membership_success == pytest.approx(told["pairs"].success, abs=0.02)
    with pytest.raises(LeakcapError, match="not pickled"):
        found.__reduce__()


def test_blocks_are_compared_by_our_accounts_alone():
    X, y = pool_of()
    found = encoder(blocks=2).compare(X, y)
    assert "RDP" not in {bound.name for bound in found.bounds} and found.best.name == "pairs"


@pytest.mark.parametrize("change", [{"noise": 0}, {"draws": 0}, {"noise": None, "cap": 0.6}])
def test_without_noise_or_draws_there_is_nothing_to_compare(change):
    X, y = pool_of()
    with pytest.raises(InputError, match="compare"):
        encoder(**change).compare(X, y)
