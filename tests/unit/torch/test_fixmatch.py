"""FixMatch: rows without labels help, and what does not fit is refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakcap as lc
from leakcap.errors import InputError, NumericalError

torch = pytest.importorskip("torch")
from sklearn.base import clone  # noqa: E402
from torch import nn  # noqa: E402

from leakcap.labels.learning.agreement import Agreement, GivenViews  # noqa: E402

COLUMNS, ROWS = 30, 1000


def without(share: float) -> Any:
    """A view in which this share of columns is unknown."""
    return lambda x: x * (torch.rand_like(x) >= share) / (1 - share)


def layers() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(COLUMNS, 32), nn.ReLU(), nn.Linear(32, 2))


def for_clouds(device: str = "cpu", **changes: Any) -> Any:
    settings = {"weak": without(0.1), "strong": without(0.5), "steps": 300, "batch_size": 16, "learning_rate": 0.05}
    settings |= {"ema_decay": 0.98, "random_state": 0, "device": device}
    return lc.labels.FixMatch(layers(), **{**settings, **changes})


def clouds() -> tuple[Any, Any, Any]:
    """Two clouds that many weak columns tell apart, and the class of one row of each.

    The best possible rule is right in 99.3 %; the line between two rows in 90.6 %, in the mean.
    """
    draw = np.random.default_rng(0)
    y = draw.integers(0, 2, ROWS)
    X = draw.normal(0.45 * (2 * y - 1)[:, None], 1, (ROWS, COLUMNS))
    known = np.full(ROWS, -1)
    for name in (0, 1):
        known[np.flatnonzero(y == name)[0]] = name
    return X, y, known


def pictures(rows: int = 60) -> tuple[Any, Any]:
    draw = np.random.default_rng(0)
    y = draw.integers(0, 3, rows)
    x = draw.integers(0, 40, (rows, 8, 8, 3))
    x[np.arange(rows), :, :, y] += 150
    return x.astype(np.uint8), y


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4))


def test_rows_without_labels_help(device: str) -> None:
    """Twin: with no weight on them the two labels alone do clearly worse."""
    X, y, known = clouds()
    with_them = for_clouds(device).fit(X, known)
    alone = for_clouds(device, unlabelled_weight=0.0).fit(X, known)
    assert with_them.score(X, y) > 0.97
    assert alone.score(X, y) < 0.95
    assert with_them.n_steps_ == 300 and 0 < with_them.taught_share_ <= 1


@pytest.mark.parametrize(("aligned", "named"), [(True, [0, 1, 1, 0]), (False, [0, 0, 0, 0])])
def test_aligned_guesses_have_the_shares_of_the_labels_in_the_mean(*, aligned: bool, named: list[int]) -> None:
    X, _, _ = clouds()
    views = GivenViews(torch.from_numpy(X.astype(np.float32)), without(0.1), without(0.5))
    training = Agreement(
        for_clouds(aligned=aligned), views, torch.tensor([0, 1]), codes=torch.tensor([0, 1]), began=0.0
    )
    chances = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.95, 0.05]])  # a network that leans to the first
    for _ in range(1000):
        guesses = training.guesses(chances)
    assert guesses.argmax(1).tolist() == named
    assert guesses.sum(1).tolist() == pytest.approx([1.0] * 4)
    assert for_clouds(aligned=aligned, steps=60).fit(X, clouds()[2]).n_steps_ == 60


def test_pictures_flat_or_square_and_names_of_classes() -> None:
    x, y = pictures()
    names = np.array(["red", "green", "blue"])[y]
    square = lc.labels.FixMatch(small(), steps=30, batch_size=8, mu=2, device="cpu", random_state=0).fit(x, names)
    assert square.score(x, names) > 0.9 and square.classes_.tolist() == ["blue", "green", "red"]
    chances = square.predict_proba(x)
    assert chances.shape == (60, 3) and np.allclose(chances.sum(1), 1, atol=1e-5)
    flat = clone(square).set_params(shape=(8, 8, 3)).fit(x.reshape(60, -1).astype(float), names)
    assert np.allclose(flat.predict_proba(x.reshape(60, -1).astype(float)), chances, atol=1e-4)


def test_the_module_and_the_process_s_generator_are_left_alone() -> None:
    X, _, known = clouds()
    model = for_clouds(steps=5)
    before = [w.clone() for w in model.module.parameters()]
    state = torch.random.get_rng_state()
    first = model.fit(X, known).predict_proba(X)
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(w, old) for w, old in zip(model.module.parameters(), before, strict=True))
    assert np.array_equal(first, model.fit(X, known).predict_proba(X))
    assert not np.array_equal(first, model.set_params(random_state=1).fit(X, known).predict_proba(X))


def test_seconds_end_training_and_the_rate_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the clock every 20 steps, a second each: the next 20 are made only where they end in time."""
    X, _, known = clouds()
    for seconds, steps in ((3.0, 60), (3.9, 60), (4.0, 80), (0.5, 20)):
        now = iter(np.arange(0, 1000, 1.0))
        monkeypatch.setattr("leakcap.labels.learning.agreement.time.perf_counter", lambda now=now: next(now))
        assert for_clouds(seconds=seconds).fit(X, known).n_steps_ == steps


def test_what_comes_before_the_first_step_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views of 5 seconds, or a compiler's 30: the rest is training's, and a slow start is not taken for its pace."""
    X, _, known = clouds()
    for passed, steps in (([5, 6, 7], 60), ([30, 31, 32, 33], 80)):
        now = iter([0, *passed])
        monkeypatch.setattr("leakcap.labels.learning.agreement.time.perf_counter", lambda now=now: next(now))
        assert for_clouds(seconds=float(passed[-1])).fit(X, known).n_steps_ == steps


def test_a_compiled_network_learns_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, known, _ = clouds()
    plain = for_clouds(steps=20).fit(X, known).predict_proba(X)
    asked: list[nn.Module] = []

    def compile_nothing(net: nn.Module, **settings: Any) -> Any:
        asked.append(net)
        return net

    monkeypatch.setattr(torch, "compile", compile_nothing)
    assert np.array_equal(for_clouds(steps=20, compiled=True).fit(X, known).predict_proba(X), plain)
    assert len(asked) == 1


def test_teacher_and_student_of_pate() -> None:
    X, y, _ = clouds()
    one = for_clouds(steps=40)
    model = lc.labels.PATE(
        one, one, epsilon=8.0, n_teachers=12, queries=30, n_classes=2, semi_supervised=True, random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.75 and model.certificate_.epsilon == 8.0


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"module": "net"}, "nn.Module"),
        ({"strong": None}, "both views"),
        ({"confidence": 1.5}, "confidence"),
        ({"mu": 0}, "mu"),
        ({"seconds": -1.0}, "seconds"),
        ({"module": nn.Linear(COLUMNS, 1)}, "columns"),
        ({"weak": None, "strong": None}, "square colour pictures"),
        ({"shape": (8, 8, 3)}, "shape"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes: dict[str, Any], match: str) -> None:
    X, _, known = clouds()
    with pytest.raises(InputError, match=match):
        for_clouds().set_params(**changes).fit(X, known)


def test_rows_and_labels_that_do_not_fit_are_refused() -> None:
    X, _, known = clouds()
    holes = X.copy()
    holes[3, 1] = np.nan
    for rows, labels, match in (
        (holes, known, "missing"),
        (X, known[:-1], "one label"),
        (X, np.full(1000, -1), "no row has a label"),
        (X.astype(str), known, "numbers"),
    ):
        with pytest.raises(InputError, match=match):
            for_clouds().fit(rows, labels)
    x, y = pictures()
    with pytest.raises(InputError, match="0 to 255"):
        lc.labels.FixMatch(small(), steps=2, device="cpu").fit(x.astype(float) - 9, y)


def test_divergence_is_an_error_of_its_own() -> None:
    X, _, known = clouds()
    with pytest.raises(NumericalError, match="learning_rate"):
        for_clouds(learning_rate=1e18, steps=20).fit(X, known)
