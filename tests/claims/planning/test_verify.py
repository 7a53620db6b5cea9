"""Proposed noise: figures against quadrature that shares no code with the library, attempts, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import leakcap as lc
from leakcap.leakage import proposals
from leakcap.planning.making import stored_plan
from tests.claims.noise import gaussian_oracle as oracle

HALVES = oracle.halves(8)
POOL = np.random.default_rng(3).standard_normal((8, 2)) * [1.0, 0.4]
MARGIN = 0.02  # of the certifying draws


def made(fn, cap=0.8, **options):
    return lc.plan(fn, POOL, cap=cap, worlds=HALVES, seed=1, design="worlds", **{"draws": 2**14, **options})


@pytest.fixture(scope="module")
def line():
    return made(lambda x: x[:, 0].mean())


@pytest.fixture(scope="module")
def plane():
    return made(lambda x: x.mean(axis=0))


def close(found, right):
    (figure,) = found.capped
    assert right <= figure.certified <= right + MARGIN
    assert found.kept == (figure.certified <= figure.limit)


def test_one_covariance_equals_quadrature_and_its_plan_releases_with_it(plane):
    wide = np.array([[0.32, 0.13], [0.13, 0.19]])
    found = lc.verify(plane, wide)
    masks = plane.worlds.masks()
    close(found, oracle.membership(oracle.joint(plane.outputs, wide, fine=121), masks))
    assert found.kept and np.allclose(found.plan.noise.covariance(), wide)
    assert found.certificate == found.plan.certificate and found.certificate.sampler_distance > 0


def test_planted_noise_that_is_turned_is_told_from_the_proposal(plane):
    """Certifying the turned noise for these outputs would say something else: the test above sees the difference."""
    wide = np.array([[0.32, 0.13], [0.13, 0.19]])
    quarter = np.array([[0.0, -1.0], [1.0, 0.0]])
    masks = plane.worlds.masks()
    right = oracle.membership(oracle.joint(plane.outputs, wide, fine=121), masks)
    turned = oracle.membership(oracle.joint(plane.outputs, quarter @ wide @ quarter.T, fine=121), masks)
    assert abs(turned - right) > MARGIN


def test_too_little_noise_is_not_kept_and_makes_no_plan(plane):
    found = lc.verify(plane, np.eye(2) * 1e-3)
    assert not found.kept and found.plan is None and found.certificate is None
    assert "not kept" in repr(found)


def widths(plan):
    """Twelve times the variance in a third of the worlds: those with the largest outputs."""
    large = plan.outputs[:, 0] > np.quantile(plan.outputs[:, 0], 2 / 3)
    return np.where(large, 0.6, 0.05)[:, None, None] * np.eye(plan.outputs.shape[1])


def test_noise_of_its_own_in_every_world_equals_a_direct_sum(line):
    each = widths(line)
    right = oracle.membership(oracle.joint(line.outputs, each, fine=4001), line.worlds.masks())
    close(lc.verify(line, each), right)


def test_two_outputs_with_noise_of_their_own_in_every_world_equal_quadrature(plane):
    each = widths(plane)
    close(lc.verify(plane, each), oracle.membership(oracle.joint(plane.outputs, each, fine=181), plane.worlds.masks()))


def test_a_planted_posterior_without_log_det_is_caught(line, monkeypatch):
    each = widths(line)
    right = oracle.membership(oracle.joint(line.outputs, each, fine=4001), line.worlds.masks())
    view = proposals._view
    roots = np.log(np.sqrt(each[:, 0, 0]))
    monkeypatch.setattr(proposals, "_view", lambda logits, *rest: view(logits + roots, *rest))
    (figure,) = lc.verify(line, each).capped
    assert not right <= figure.certified <= right + MARGIN


@pytest.mark.parametrize(
    "cap", [lc.mutual_information(1.0), lc.any_inference(0.1, 0.5), lc.true_positive_rate(0.1, 0.5)]
)
def test_other_caps_equal_a_direct_sum(cap):
    plan = made(lambda x: x[:, 0].mean(), cap)
    each, masks = widths(plan), plan.worlds.masks()
    table = oracle.joint(plan.outputs, each, fine=4001)
    right = {
        "MutualInformation": lambda: oracle.information(table),
        "AnyInference": lambda: oracle.any_inference(table, 7),
        "TruePositiveRate": lambda: oracle.recognised(table, masks, 0.1),
    }[type(cap).__name__]()
    (figure,) = lc.verify(plan, each).capped
    assert right <= figure.certified <= right + 0.08  # sticks at fixed cuts bound a test from above


class Laplace:
    def __init__(self, scale, d=1):
        self.scale, self.d = scale, d

    def log_density(self, x):
        return -np.abs(x).sum(axis=1) / self.scale

    def draw(self, rng, size):
        return rng.laplace(scale=self.scale, size=(size, self.d))


def test_noise_known_by_its_density_equals_a_direct_sum(line):
    scale = 0.2
    grid = np.linspace(-6, 6, 20001)
    table = np.exp(-np.abs(grid - line.outputs) / scale) / (2 * scale) * (grid[1] - grid[0]) / len(line.outputs)
    found = lc.verify(line, Laplace(scale))
    close(found, oracle.membership(table, line.worlds.masks()))
    assert found.plan is None and "not released" in found.remark


def test_noise_outside_that_tells_the_noise_inside_is_not_counted():
    """A constant beside the mean, whose noise nearly repeats that of the mean: what is left is hidden."""
    plan = made(lambda x: np.array([x[:, 0].mean(), 5.0]))
    both = np.array([[0.2, 0.19], [0.19, 0.2]])
    left = 0.2 - 0.19**2 / 0.2
    right = oracle.membership(oracle.joint(plan.outputs[:, 0], [[left]], fine=4001), plan.worlds.masks())
    close(lc.verify(plan, both), right)


def test_noise_that_depends_on_the_world_tells_about_it_in_a_constant_output():
    plan = made(lambda x: np.array([x[:, 0].mean(), 5.0]))
    masks, each = plan.worlds.masks(), np.tile(np.diag([0.3, 0.05]), (len(HALVES), 1, 1))
    same = lc.verify(plan, each).capped[0].certified
    each[masks[:, 0], 1, 1] = 5.0  # wide where the first person takes part
    assert lc.verify(plan, each).capped[0].certified > same + 0.2


def test_every_proposal_is_an_attempt_with_a_share_of_its_own(line):
    gamma = line.certificate.gamma
    found = [lc.verify(line, [[0.1]]), lc.verify(line, Laplace(0.2)), lc.verify(line, widths(line))]
    numbers = [one.attempt for one in found]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
    for one in found:
        assert one.gamma_used == pytest.approx(gamma / (one.attempt * (one.attempt + 1)))


def test_with_a_checkpoint_proposals_do_not_share_an_attempt(tmp_path):
    def begun():
        return lc.plan(
            lambda x: x.mean(axis=0),
            POOL,
            cap=0.8,
            worlds=HALVES,
            design="worlds",
            draws=512,
            checkpoint=tmp_path / "c",
        )

    plan, law = begun(), Laplace(0.2, d=2)
    found = [lc.verify(plan, np.eye(2)), lc.verify(plan, 2 * np.eye(2)), lc.verify(plan, law), lc.verify(plan, law)]
    assert len({plan.certificate.attempt, *(one.attempt for one in found)}) == 5
    released = found[0].plan.release()
    again = lc.verify(begun(), np.eye(2))  # the same question: the same draws, and the release that was made
    assert again.certificate == found[0].certificate
    assert np.array_equal(again.plan.release().outputs, released.outputs)


REFUSED = {
    "singular": np.diag([7.25, 0.0]),
    "negative": np.diag([7.25, -7.25]),
    "nothing": np.zeros((2, 2)),
    "not symmetric": np.array([[7.25, 7.0], [0.0, 7.25]]),
    "not finite": np.array([[7.25, np.nan], [np.nan, 7.25]]),
    "one number too many": np.eye(3) * 7.25,
    "one world too few": np.tile(7.25 * np.eye(2), (len(HALVES) - 1, 1, 1)),
    "singular in one world": np.concatenate([np.tile(7.25 * np.eye(2), (len(HALVES) - 1, 1, 1)), [np.diag([7.25, 0])]]),
    "words": "7.25",
    "ragged": [[7.25], [7.25, 7.25]],
    "none": None,
}


@pytest.mark.parametrize("name", REFUSED)
def test_noise_that_is_none_is_refused_and_no_value_is_quoted(plane, name):
    with pytest.raises(lc.InputError) as refusal:
        lc.verify(plane, REFUSED[name])
    assert "7.25" not in str(refusal.value) and not re.search(r"\d\.\d", str(refusal.value))


class Broken(Laplace):
    def __init__(self, draw=None, log=None):
        super().__init__(0.2)
        self.drawn, self.log = draw, log

    def draw(self, rng, size):
        return super().draw(rng, size) if self.drawn is None else self.drawn(size)

    def log_density(self, x):
        return super().log_density(x) if self.log is None else self.log(x)


def fails(_):
    raise ValueError("the secret 7.25")


@pytest.mark.parametrize(
    "proposal",
    [
        Broken(draw=lambda size: np.zeros((size, 2))),
        Broken(draw=lambda size: np.full((size, 1), np.nan)),
        Broken(draw=fails),
        Broken(log=fails),
        Broken(log=lambda x: x),
        Broken(log=lambda x: np.full(len(x), np.nan)),
        Broken(log=lambda x: np.full(len(x), np.inf)),
        Broken(log=lambda x: np.full(len(x), -np.inf)),
    ],
)
def test_densities_that_fail_are_refused_and_their_words_are_not_repeated(line, proposal):
    with pytest.raises(lc.InputError) as refusal:
        lc.verify(line, proposal)
    assert "7.25" not in str(refusal.value) and refusal.value.__context__ is None


def test_other_modes_are_refused_with_the_reason():
    plan = lc.plan(lambda x: x.mean(axis=0), POOL, cap=0.95, worlds=64, seed=1, mode="empirical")
    with pytest.raises(lc.InputError, match="mode 'exact'"):
        lc.verify(plan, np.eye(2))


@pytest.mark.parametrize("ask", [lambda plan: lc.verify(plan, [[1.0]]), lc.optimize_noise])
def test_given_inputs_and_parts_of_several_answers_are_refused_in_words(ask, tmp_path):
    """Of inputs, a plan out of a checkpoint too. A part's noise is fixed with the others', and not chosen later."""
    given = lc.plan(lambda x: x, inputs=[0.0, 1.0, 4.0], cap=lc.identification(0.6), checkpoint=tmp_path / "c")
    for plan in (given, stored_plan(tmp_path / "c")):
        with pytest.raises(lc.InputError, match="given inputs"):
            ask(plan)
    both = lc.plan_together([np.mean, np.max], POOL, cap=0.9, worlds=HALVES, draws=512)
    for part in both.apart(0.9):
        with pytest.raises(lc.InputError, match="parts of several answers"):
            ask(part)


def added_up(plan):
    """The figures that add up, from outputs and noise as they are: information by the covariance, and the signal."""
    spread = np.cov(plan.outputs.T, bias=True)
    whitened = np.linalg.solve(plan.noise.covariance(), spread)
    return np.linalg.slogdet(np.eye(len(spread)) + whitened)[1] / 2, np.trace(whitened)


def test_certificates_state_what_adds_up_of_the_noise_that_was_proposed(plane):
    found = lc.verify(plane, np.array([[0.32, 0.13], [0.13, 0.19]])).plan
    stated = found.certificate.log_det, found.certificate.signal
    assert stated == pytest.approx(added_up(found), rel=1e-9)
    assert stated != pytest.approx(added_up(plane), rel=0.01)  # planted: those of the noise before


def test_where_all_answers_are_equal_there_is_nothing_to_verify():
    with pytest.raises(lc.InputError, match="no noise is needed"):
        lc.verify(made(lambda x: 1.0), [[1.0]])
