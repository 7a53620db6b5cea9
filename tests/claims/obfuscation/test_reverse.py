"""Theorem 7 put right: the prior is never below what masks drawn at random give; nothing of it is a guarantee."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammainc, ndtr

from leakcap.certificates.obfuscation import ObfuscationCertificate
from leakcap.errors import InputError
from leakcap.obfuscation import reverse
from leakcap.obfuscation.reverse import AssumedRows, reverse_engineering

NORMAL = AssumedRows(spread=1.0, tail=math.sqrt(2))  # rows of independent standard normals are such, exactly
DRAWN = 200_000


def imitated(shape, error, missed, centre=0.0):
    """Share of masks that the map `x -> x centre` imitates (Definition 8), rows being standard normal."""
    rng = np.random.default_rng(4)
    masks = rng.normal(size=(DRAWN, *shape)) / math.sqrt(shape[1]) - centre
    if shape[1] == 1:  # x W is normal with the deviation |W|
        lengths = np.linalg.norm(masks[..., 0], axis=1)
        return float((2 * ndtr(error / lengths) - 1 >= 1 - missed).mean())
    rows = np.random.default_rng(5).normal(size=(400, shape[0]))
    near = (np.linalg.norm(np.einsum("rj,wjk->wrk", rows, masks[:4000]), axis=2) < error).mean(axis=1)
    return float((near >= 1 - missed + 0.02).mean())  # 400 rows are a sample: only what is clearly near


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (3, 1), (2, 2)])
@pytest.mark.parametrize("error", [0.3, 1.0])
def test_no_map_imitates_more_masks_than_the_prior(shape, error):
    """Three errors of a share of so many masks are allowed."""
    found = reverse_engineering(0.0, shape=shape, error=error, missed=0.01, assumed=NORMAL)
    for centre in (0.0, 0.4):
        seen = imitated(shape, error, 0.01, centre)
        assert seen <= found.prior + 3 * math.sqrt(found.prior / 4000)


def test_a_planted_radius_is_caught():
    """Were masks within an eighth of the radius all that a map imitates, the simulated share would exceed it."""
    found = reverse_engineering(0.0, shape=(1, 1), error=1.0, missed=0.01, assumed=NORMAL)
    planted = 2 * float(ndtr(found.radius / 16)) - 1
    assert imitated((1, 1), 1.0, 0.01) > planted * 1.2


def test_the_inequality_of_the_constant_holds():
    """Rows that are 0 but for a share: |x|^2 exceeds its mean less t no more often than the constant says."""
    rng = np.random.default_rng(6)
    for share in (0.1, 0.5, 1.0):
        rows = rng.normal(size=400_000) * (rng.random(400_000) < share)
        kappa, fourth = rows.std(), (rows**4).mean()
        assert fourth <= 4 * math.sqrt(2) ** 4  # K of the standard normal serves them all
        for part in (0.1, 0.5, 0.9):
            t = part * kappa**2
            assert (rows**2 > kappa**2 - t).mean() >= t**2 / (4 * 4)


def test_more_nats_and_a_coarser_map_make_it_easier():
    def success(nats, error):
        return reverse_engineering(nats, shape=(4, 3), error=error, missed=0.005, assumed=NORMAL).success

    assert success(0.1, 0.2) < success(1.0, 0.2) < success(1.0, 0.4) <= 1.0
    large = reverse_engineering(1e4, shape=(1280, 500), error=0.1, missed=0.01, assumed=AssumedRows(0.02, 0.03))
    assert large.prior == 0.0 and large.log_prior < -1e5
    fano = (1e4 + math.log(2)) / -large.log_prior
    assert 1e4 / -large.log_prior < large.success < fano  # the root itself
    a = large.success
    divergence = a * (math.log(a) - large.log_prior) + (1 - a) * math.log1p(-a)
    assert divergence == pytest.approx(1e4, rel=1e-9)
    assert "e^-" in str(large)


def test_nothing_jumps_where_the_prior_becomes_too_small_for_a_number(monkeypatch):
    """Both ways of the prior and of the root agree on either side; the twin, Chernoff's bound, is far above."""
    errors = np.geomspace(1e-5, 0.03, 12)  # priors from e^-1000 to some that are numbers

    def found():
        return [reverse_engineering(30.0, shape=(10, 10), error=e, missed=0.01, assumed=NORMAL) for e in errors]

    usual = found()
    assert {one.prior > 0 for one in usual} == {True, False}
    monkeypatch.setattr(reverse, "LEAST_PRIOR", 1e-3)  # by logarithms wherever one can
    logs = found()
    for one, other in zip(usual, logs, strict=True):
        assert other.log_prior == pytest.approx(one.log_prior, rel=1e-9, abs=1e-6)
        assert other.success == pytest.approx(one.success, rel=1e-6)
    exact = gammainc(50.0, 0.05)
    assert reverse._log_chance(50.0, 0.05) >= math.log(exact)
    assert reverse._log_chance(50.0, 0.05) == pytest.approx(math.log(exact), abs=1e-6)
    chernoff = 50 * (1 - 0.001 + math.log(0.001))
    assert chernoff > math.log(exact) + 2
    priors = [one.log_prior for one in usual]
    assert priors == sorted(priors) and [one.success for one in usual] == sorted(one.success for one in usual)


def test_it_says_that_it_is_no_guarantee_and_is_in_no_certificate():
    found = reverse_engineering(0.1, shape=(2, 2), error=0.1, missed=0.01, assumed=NORMAL)
    assert str(found).startswith("If the assumptions held") and "no guarantee" in str(found)
    assert not found.is_guarantee
    assert not isinstance(found, ObfuscationCertificate)
    with pytest.raises(InputError, match="too large"):
        reverse_engineering(0.1, shape=(2, 2), error=0.1, missed=0.2, assumed=NORMAL)
    with pytest.raises(InputError, match="no rows are such"):
        AssumedRows(spread=2.0, tail=1.0)
