"""On a GPU: ceilings, kernels, leakage and networks. `python -m benchmarks.gpu smoke|kernels|leakage|wagers|mlp`

Run where torch sees a GPU. Times are wall times around whole calls, data and masks sent to the device and results
brought back, unless a column says otherwise; compilation is apart.
"""

from __future__ import annotations

import itertools
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import Ridge

from benchmarks.records import record
from leakcap.datasets import data_path, dry_bean
from leakcap.errors import LeakcapError
from leakcap.ground.cores import Machine
from leakcap.kernels import gpu
from leakcap.kernels.gpu import _fused_mlp, leakage
from leakcap.kernels.gpu.device import load, on, send
from leakcap.leakage.confidence import upper
from leakcap.leakage.measures import thresholds
from leakcap.leakage.membership import UnitWagers, observe_units
from leakcap.leakage.posterior import Sampled
from leakcap.worlds import Worlds, draw_worlds


def main(names: list[str]) -> None:
    for name in names or list(PARTS):
        if name not in PARTS:
            sys.exit(f"no benchmark {name!r}: choose from {', '.join(PARTS)}")
        print(f"\n== {name}", flush=True)
        PARTS[name]()


def seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """The best of several, after one that compiles and warms up."""
    torch = load()
    took = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - began)
    return min(took[1:])


def store(name: str, seen: str) -> None:
    """Keep a figure with the name of this machine's GPU."""
    record(name, seen, machine=f"one {load().cuda.get_device_name()}")


# Ceilings -------------------------------------------------------------------------------------------------------------


def ceilings() -> dict[str, float]:
    """Operations per second of square products of random numbers, and bytes per second of a copy (read and written)."""
    torch = load()
    torch.backends.cuda.matmul.allow_tf32 = True
    found = {}
    for name, dtype, size in (
        ("bf16", torch.bfloat16, 8192),
        ("tf32", torch.float32, 8192),
        ("f64", torch.float64, 8192),
    ):
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.float32).to(dtype) for _ in range(2))
        found[name] = 2 * size**3 / seconds(lambda a=a, b=b: a @ b)
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = (torch.randn(8192, 8192, device="cuda") for _ in range(2))
    found["f32"] = 2 * 8192**3 / seconds(lambda: a @ b)
    a, b = (torch.randint(-128, 128, (8192, 8192), device="cuda", dtype=torch.int8) for _ in range(2))
    found["int8"] = 2 * 8192**3 / seconds(lambda: torch._int_mm(a, b.T))
    table = torch.randn(2**30, device="cuda")
    other = torch.empty_like(table)
    found["copy"] = 2 * 4 * 2**30 / seconds(lambda: other.copy_(table))
    return found


def smoke() -> None:
    torch = load()
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {torch.cuda.get_device_name()}")
    for name, rate in ceilings().items():
        unit = "TB/s" if name == "copy" else "Tflop/s"
        print(f"{name:>6}: {rate / 1e12:8.1f} {unit}", flush=True)


# Statistics -----------------------------------------------------------------------------------------------------------


def kernels(m: int = 1024) -> None:
    """Every kernel on Dry Bean and on a million rows, against plain fits in some worlds on this machine's CPU."""
    print(
        f"{m:,} worlds\n{'work':<14}{'rows x columns':>16}{'seconds':>10}{'Tflop/s':>10}{'a plain fit':>13}"
        f"{'loop / kernel':>15}{'largest difference':>20}"
    )
    rng = np.random.default_rng(0)
    try:
        beans = dry_bean().drop(columns="Class").to_numpy(dtype=np.float64)
    except LeakcapError:
        beans = rng.normal(size=(13_611, 16))
    groups = 3 * rng.normal(size=(7, 32))
    million = groups[rng.integers(7, size=1_000_000)] + rng.normal(size=(1_000_000, 32)) * np.linspace(1, 2, 32)
    for name, table in (("beans", beans), ("million", million)):
        store(f"gpu-kernels-{name}", _statistics(table, draw_worlds(len(table), m, rng), rng))


def _statistics(table: np.ndarray, worlds: Worlds, rng: np.random.Generator) -> str:
    n, d = table.shape
    standard = (table - table.mean(axis=0)) / table.std(axis=0)
    target = standard @ rng.normal(size=d) + rng.normal(size=n)
    start = standard[rng.choice(n, 7, replace=False)]
    half = worlds.m // 2
    gram = 2 * half * n * (d + d * (d + 1) / 2)

    def ridge(rows: np.ndarray) -> np.ndarray:
        fit = Ridge(alpha=1.0).fit(standard[rows], target[rows])
        return np.append(fit.coef_, fit.intercept_)

    towards = np.linalg.eigh(np.cov(standard, rowvar=False))[1][:, :-5:-1].T

    def components(rows: np.ndarray) -> np.ndarray:
        own = np.linalg.eigh(np.cov(standard[rows], rowvar=False))[1][:, :-5:-1].T
        left, _, right = np.linalg.svd(towards @ own.T)
        return np.vstack([standard[rows].mean(axis=0), left @ right @ own])

    def centres(rows: np.ndarray) -> np.ndarray:
        return np.asarray(KMeans(7, init=start, n_init=1).fit(standard[rows]).cluster_centers_)

    works: list[tuple[str, Callable[[], np.ndarray], Callable[[np.ndarray], np.ndarray], float]] = [
        ("mean", lambda: gpu.means(table, worlds), lambda rows: table[rows].mean(axis=0), 2 * half * n * d),
        ("covariance", lambda: gpu.covariances(table, worlds), lambda rows: np.cov(table[rows], rowvar=False), gram),
        ("ridge", lambda: gpu.ridge(standard, target, worlds), ridge, gram),
        ("pca, 4", lambda: gpu.pca(standard, worlds, components=4), components, gram),
        ("k-means, 7", lambda: gpu.kmeans(standard, worlds, start), centres, 0.0),
    ]
    seen = []
    for name, kernel, plain, flops in works:
        found = kernel()
        took = seconds(kernel, 1 if name.startswith("k-") else 3)
        some = [0, 1, half, worlds.m - 1][: 2 if n > 100_000 else 4]
        masks = [worlds.mask(w) for w in some]
        began = time.perf_counter()
        expected = [plain(mask) for mask in masks]
        each = (time.perf_counter() - began) / len(some)
        apart = max(np.abs(found[w] - fit).max() / np.abs(fit).max() for w, fit in zip(some, expected, strict=True))
        rate = f"{flops / took / 1e12:.1f}" if flops else "-"
        print(
            f"{name:<14}{f'{n:,} x {d}':>16}{took:>10.4f}{rate:>10}{1000 * each:>10.2f} ms"
            f"{each * worlds.m / took:>15.0f}{apart:>20.1e}",
            flush=True,
        )
        seen.append(f"{name} {1000 * took:.1f} ms")
    return ", ".join(seen)


# Leakage --------------------------------------------------------------------------------------------------------------


def membership(n: int = 100_000, draws: int = 16_384, r: int = 64) -> None:
    """All units of many worlds: the product alone, and the whole call; errors against f64 for every unit."""
    print(f"{n:,} units, {draws:,} draws, {r} outputs. Digits are three int8 products; the f64 column is plain torch.")
    print(
        f"{'worlds':>8}{'cuts':>6}{'product':>10}{'Top/s':>8}{'posterior':>11}{'whole call':>12}{'f64':>9}"
        f"{'error':>10}{'of squares':>12}{'bound':>10}"
    )
    for m, sticks in ((1024, 0), (4096, 0), (4096, 9), (16_384, 0)):
        _observe(m, np.linspace(0.5, 0.9, sticks) if sticks else np.zeros(0), n, draws, r)
        load().cuda.empty_cache()


def _observe(m: int, cuts: np.ndarray, n: int, draws: int, r: int) -> None:
    where = on("cuda")
    rng = np.random.default_rng(m)
    worlds = draw_worlds(n, m, rng)
    points = rng.standard_normal((m, r)) * 0.35
    seen = points[rng.integers(m, size=draws)] + rng.standard_normal((draws, r))
    whole = seconds(lambda: gpu.unit_sums([seen], points, worlds, cuts), 3)
    found = gpu.unit_sums([seen], points, worlds, cuts)
    y, z, cut = send(seen, where), send(points, where), send(cuts - 0.5, where)
    posterior = seconds(lambda: leakage._evidence(y, z, True))
    table, signs = leakage._evidence(y, z, True).table, leakage._signs(worlds, None, where)
    product = seconds(lambda: leakage._reduce_fused(table, signs, cut, 0.0, n))
    plain = seconds(lambda: leakage._reduce_plain(table, signs, cut, 0.0, n), 1)
    exact = leakage._reduce_plain(table, signs, cut, 0.0, n)[0].cpu().numpy()
    error = np.abs(found.total - exact[0]).max() / draws
    squares = np.abs(found.squares / exact[1] - 1).max()
    flops = 3 * 2 * (m // 2) * n * draws
    print(
        f"{m:>8,}{len(cuts):>6}{product:>9.4f}s{flops / product / 1e12:>8.0f}{posterior:>10.4f}s{whole:>11.4f}s"
        f"{plain:>8.3f}s{error:>10.1e}{squares:>12.1e}{found.rounding:>10.1e}",
        flush=True,
    )
    if m == 4096 and not len(cuts):
        errors = f"largest error against f64 {error:.0e}, stated bound {found.rounding:.0e}"
        store("gpu-leakage", f"{whole:.3f} s, whole call; {errors}")


def wagers(n: int = 100_000, draws: int = 2048, r: int = 16, compared: int = 256) -> None:
    """Bounds by wagers for all units and nine cuts: torch in f64 against the CPU's loops, on the same releases.

    The capitals of some units are also added up by plain numpy in f64, without any loop of ours.
    """
    cuts, term = thresholds(0.5), 30.0
    print(f"{n:,} units, {draws:,} draws, {r} outputs, {len(cuts)} cuts")
    print(f"{'worlds':>8}{'whole call':>12}{'CPU':>9}{'bounds apart':>14}{'capitals, plain numpy':>23}")
    for m in (1024, 4096):
        rng = np.random.default_rng(m)
        worlds, points = draw_worlds(n, m, rng), rng.standard_normal((m, r)) * 0.35
        pilot = observe_units(Sampled(points, 256, np.random.SeedSequence(1)), worlds, cuts)
        placed = UnitWagers.placed(pilot, worlds.rate, draws, term)
        source = Sampled(points, draws, np.random.SeedSequence(2))
        began = time.perf_counter()
        here = observe_units(source, worlds, cuts, wagers=placed)
        on_cpu = time.perf_counter() - began
        there = partial(observe_units, source, worlds, cuts, machine=Machine(device="cuda"), wagers=placed)
        took, found = seconds(there, 3), there()
        pairs = ((here.balanced, found.balanced), (here.sticks, found.sticks), (here.naming, found.naming))
        apart = max(float(np.abs(upper(one, term) - upper(two, term)).max()) for one, two in pairs)
        error = _capitals_apart(source, worlds, placed, cuts, np.arange(0, n, n // compared))
        print(f"{m:>8,}{took:>11.3f}s{on_cpu:>8.2f}s{apart:>14.1e}{error:>23.1e}", flush=True)
        if m == 1024:
            record(
                "gpu-wagers",
                f"{took:.3f} s, whole call; {on_cpu:.1f} s by the CPU's loops; bounds differ by {apart:.0e} at most",
                machine=f"one {load().cuda.get_device_name()}",
                topic="On a GPU",
                claim=f"Bounds by wagers, {n:,} units x {m:,} worlds x {draws:,} draws x {len(cuts)} cuts, f64",
                command="python -m benchmarks.gpu wagers",
                asked="the same bounds as on the CPU",
            )


def _capitals_apart(source: Sampled, worlds: Worlds, placed: UnitWagers, cuts: np.ndarray, some: np.ndarray) -> float:
    """How far the device's logarithms of capitals are from plain numpy's, for some units; in f64 about 1e-12."""
    seen = np.concatenate([source.seen(block)[0] for block in range(source.blocks)])
    units, naming = placed.units[:, some], placed.naming
    left = gpu.unit_capitals(
        [seen],
        source.points,
        worlds=worlds,
        thresholds=cuts,
        chosen=some,
        units=(units.base, units.stake),
        naming=(naming.base, naming.stake),
    )
    logits = seen @ source.points.T - 0.5 * (source.points**2).sum(axis=1)
    posterior = np.exp(logits - logits.max(axis=1, keepdims=True))
    off = posterior @ worlds.columns(some) / posterior.sum(axis=1, keepdims=True) - worlds.rate
    error = 0.0
    for k, values in enumerate([np.abs(off), *(np.maximum(off + worlds.rate - cut, 0.0) for cut in cuts)]):
        factors = units.base[k].astype(np.float64) - units.stake[k].astype(np.float64) * values
        error = max(error, float(np.abs(np.log(factors).sum(axis=0) - left.units[k]).max()))
    return error


# Networks -------------------------------------------------------------------------------------------------------------


def mnist() -> tuple[np.ndarray, np.ndarray]:
    """All 70,000 digits, pixels between 0 and 1; without the file, random stand-ins like it."""
    try:
        with np.load(data_path("mnist.npz")) as held:
            pixels = np.concatenate([held["x_train"], held["x_test"]]).reshape(70_000, 784)
            return pixels / 255.0, np.concatenate([held["y_train"], held["y_test"]]).astype(np.int64)
    except LeakcapError:
        rng = np.random.default_rng(0)
        pixels = rng.integers(0, 256, (70_000, 784)) * (rng.random((70_000, 784)) < 0.2)
        return pixels / 255.0, rng.integers(0, 10, 70_000)


def networks(m: int = 1024, steps: int = 1500, compared: int = 8) -> None:
    """Example 4 of the paper PAC Privacy: 784-30-30-10, full-batch steps of 0.05, half of MNIST in each world.

    The paper names neither its start nor its scaling of pixels. Standardised ones came nearest to its accuracy of
    94.8 % (about 95 %; between 0 and 1: 92.4 % from one start, 93.6 % from another).
    """
    torch = load()
    pixels, labels = mnist()
    pixels = (pixels - 0.1307) / 0.3081
    rng = np.random.default_rng(4)
    worlds = draw_worlds(len(pixels), m, rng)
    sizes = (784, 30, 30, 10)
    start = [(rng.normal(size=(a, b)) * np.sqrt(2 / a), np.zeros(b)) for a, b in itertools.pairwise(sizes)]
    few = Worlds(worlds.packed[:compared], worlds.n, worlds.share, False, worlds.design)
    exact = gpu.mlp(pixels, labels, few, start, steps=steps, precision="f64")
    began = time.perf_counter()
    plain = _plain_training(pixels, labels, few, start, steps)
    took = (time.perf_counter() - began) / compared
    print(f"plain f32 training of one world after another: {took:.2f} s each, {_apart(plain, exact)}", flush=True)
    seen = [f"plain f32 training {took:.1f} s a world"]
    print(f"f64: accuracy on rows left out {_accuracy(exact, start, pixels, labels, few):.2%}")
    flops = 4.0 * len(pixels) * 784 * 30 * m * steps
    for precision in ("bf16", "tf32", "f32"):
        gpu.mlp(pixels, labels, worlds, start, steps=3, precision=precision)
        began = time.perf_counter()
        found = gpu.mlp(pixels, labels, worlds, start, steps=steps, precision=precision)
        took = time.perf_counter() - began
        done = flops * _fused_mlp.LIMBS[precision]  # products of limbs; pixels are one limb
        print(
            f"{precision:>5}: {m:,} worlds x {steps:,} steps in {took:.1f} s, first-layer products at "
            f"{done / took / 1e12:.0f} Tflop/s; {_apart(found[:compared], exact)}; accuracy "
            f"{_accuracy(found[:compared], start, pixels, labels, few):.2%}",
            flush=True,
        )
        seen.append(f"{precision} {took:.0f} s")
        torch.cuda.empty_cache()
    store("gpu-mlp", ", ".join(seen))
    blurred = pixels + 1e-3 * rng.normal(size=pixels.shape)  # no whole multiples: three limbs

    def some(steps: int) -> float:
        began = time.perf_counter()
        gpu.mlp(blurred, labels, worlds, start, steps=steps)
        return time.perf_counter() - began

    some(3)
    print(f"  f32: other features, {steps:,} steps in about {steps * (some(60) - some(10)) / 50:.1f} s (from 50 steps)")


def _plain_training(pixels: np.ndarray, labels: np.ndarray, worlds: Worlds, start: Any, steps: int) -> np.ndarray:
    """Torch's own modules and optimiser, f32, a world at a time."""
    torch = load()
    torch.backends.cuda.matmul.allow_tf32 = False
    found = []
    for mask in worlds.masks():
        rows = torch.tensor(pixels[mask], dtype=torch.float32, device="cuda")
        wanted = torch.tensor(labels[mask], device="cuda")
        layers = [torch.nn.Linear(*weight.shape, device="cuda") for weight, _ in start]
        for layer, (weight, bias) in zip(layers, start, strict=True):
            layer.weight.data.copy_(torch.tensor(weight.T.copy()))
            layer.bias.data.copy_(torch.tensor(bias))
        model = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
        optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
        for _ in range(steps):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(rows), wanted).backward()
            optimiser.step()
        parts = [p.detach().double().flatten() for x in layers for p in (x.weight.T, x.bias)]
        found.append(torch.cat(parts).cpu().numpy())
    return np.stack(found)


def _apart(found: np.ndarray, exact: np.ndarray) -> str:
    """Difference of weights against their size, and against how much worlds differ from each other."""
    each = np.linalg.norm(found - exact, axis=1)
    between = np.linalg.norm(exact - exact.mean(axis=0), axis=1).mean()
    size = np.linalg.norm(exact, axis=1).mean()
    share = f"{each.mean() / between:.1e} of how much worlds differ"
    return f"weights off by {each.mean() / size:.1e} (most {each.max() / size:.1e}), {share}"


def _accuracy(found: np.ndarray, start: Any, pixels: np.ndarray, labels: np.ndarray, worlds: Worlds) -> float:
    """Mean share of rows left out of a world that its network gets right."""
    torch = load()
    rows, right = send(pixels, on("cuda")), []
    layers = gpu.unflatten(found, start)
    for w, mask in enumerate(worlds.masks()):
        hidden = rows
        for i, (weight, bias) in enumerate(layers):
            hidden = hidden @ send(weight[w].copy(), rows.device) + send(bias[w].copy(), rows.device)
            hidden = torch.relu(hidden) if i < len(layers) - 1 else hidden
        right.append((hidden.argmax(dim=1).cpu().numpy() == labels)[~mask].mean())
    return float(np.mean(right))


PARTS = {"smoke": smoke, "kernels": kernels, "leakage": membership, "wagers": wagers, "mlp": networks}

if __name__ == "__main__":
    main(sys.argv[1:])
