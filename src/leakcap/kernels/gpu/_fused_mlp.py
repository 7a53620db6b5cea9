"""Three-layer networks in all worlds: two products on tensor cores, and all that lies between in one Triton kernel.

Numbers enter tensor cores as limbs: an f32 number is the sum of three bf16 ones, and leaving out the products of two
small limbs costs no more than rounding does. One limb is bf16 arithmetic, two keep 16 bits, three keep f32's 24. Sums
are f32, as is all that is kept from step to step.

Biases are weights of a neuron that is always 1, one in each layer, so nothing treats them apart.

Bytes of a step, for `w` worlds, `h` neurons in the first layer and `n` rows: the table of `w h n` numbers is written
by the first product, read by the kernel, which writes the gradient there in limbs, and read by the second product.
"""

from __future__ import annotations

import numpy as np

from leakcap.ground.arrays import Floats
from leakcap.kernels.gpu._triton import jit, tl
from leakcap.kernels.gpu.descent import Descent, repeat
from leakcap.kernels.gpu.device import Tensor, load, send

__all__ = ["LIMBS", "train"]

LIMBS = {"bf16": 1, "tf32": 2, "f32": 3}
ROWS = {1: 32, 2: 16, 3: 16}  # of the data, for a step of the kernel: one warp's work, so no warp waits for another
PROGRAMS = 16384  # about how many share the work
RUNS = 32  # parts of the sum over rows: tensor cores cut off what they add, too much for one long sum
NEVER = -(2.0**20)  # the bias of classes that only fill a tile


@jit
def _split(a, LIMBS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Limbs of a number, the first ones by cutting bits off; those not asked for repeat the last."""
    if LIMBS == 1:
        high = a.to(tl.bfloat16)
        return high, high, high
    else:
        bits = a.to(tl.int32, bitcast=True)
        high = (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
        left = a - (bits & -65536).to(tl.float32, bitcast=True)
        if LIMBS == 2:
            middle = left.to(tl.bfloat16)
            return high, middle, middle
        else:
            bits = left.to(tl.int32, bitcast=True)
            middle = (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
            low = (left - (bits & -65536).to(tl.float32, bitcast=True)).to(tl.bfloat16)
            return high, middle, low


@jit
def _turned(a):  # type: ignore[no-untyped-def]
    return tl.trans(a[0]), tl.trans(a[1]), tl.trans(a[2])


@jit
def _add_product(total, a, b, LIMBS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The small products first."""
    if LIMBS > 2:
        total = tl.dot(a[2], b[0], total)
        total = tl.dot(a[1], b[1], total)
        total = tl.dot(a[0], b[2], total)
    if LIMBS > 1:
        total = tl.dot(a[1], b[0], total)
        total = tl.dot(a[0], b[1], total)
    return tl.dot(a[0], b[0], total)


@jit
def _collect(total, a, b, LIMBS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add a product to a long sum: by f32 addition, which rounds; tensor cores cut off."""
    if LIMBS == 1:
        return _add_product(total, a, b, LIMBS)
    else:
        return total + _add_product(tl.zeros_like(total), a, b, LIMBS)


@jit
def pass_through(  # type: ignore[no-untyped-def]
    table,  # (worlds, H1, padded): weights @ features of the first layer
    out1,  # as `table`, bf16: limbs of the gradient there; with one limb `table` itself
    out2,
    out3,
    weight2,  # (worlds, H2, H1)
    weight3,  # (worlds, H3, H2)
    labels,
    packed,
    slope2,  # (chunks, worlds, H2, H1): added up by the caller
    slope3,
    padded,
    tiles,  # of rows, for each chunk
    worlds,
    H1: tl.constexpr,
    H2: tl.constexpr,
    H3: tl.constexpr,
    ROWS: tl.constexpr,
    LIMBS: tl.constexpr,
):
    """Forwards from the first layer to the losses, and backwards again, for some rows of one world."""
    world, chunk = tl.program_id(0), tl.program_id(1)
    i1, i2, i3 = tl.arange(0, H1), tl.arange(0, H2), tl.arange(0, H3)
    w2 = _split(tl.load(weight2 + (world * H2 + i2[:, None]) * H1 + i1[None, :]), LIMBS)
    w3 = _split(tl.load(weight3 + (world * H3 + i3[:, None]) * H2 + i2[None, :]), LIMBS)
    t2 = tl.zeros((H2, H1), tl.float32)
    t3 = tl.zeros((H3, H2), tl.float32)
    masks = packed + world.to(tl.int64) * (padded // 8)
    first = chunk * tiles * ROWS
    last = tl.minimum(first + tiles * ROWS, padded)
    place = (world.to(tl.int64) * H1 + i1[:, None]) * padded + (first + tl.arange(0, ROWS))[None, :]
    ahead = tl.load(table + place)
    for start in range(first, last, ROWS):
        row = start + tl.arange(0, ROWS)
        a1 = tl.maximum(ahead.to(tl.float32), 0.0)
        ahead = tl.load(table + place + tl.where(start + ROWS < last, ROWS, 0))
        h1 = _split(a1, LIMBS)
        zero = tl.zeros((ROWS, H2), tl.float32)
        a2 = tl.maximum(_add_product(zero, _turned(h1), _turned(w2), LIMBS), 0.0)
        h2 = _split(a2, LIMBS)
        z3 = _add_product(tl.zeros((ROWS, H3), tl.float32), h2, _turned(w3), LIMBS)
        e = tl.exp(z3 - tl.max(z3, axis=1)[:, None])
        inside = (tl.load(masks + row // 8) >> (7 - row % 8)) & 1
        label = tl.where(inside != 0, tl.load(labels + row), -1)
        share = inside.to(tl.float32) / tl.sum(e, axis=1)
        d3 = _split(e * share[:, None] - (i3[None, :] == label[:, None]).to(tl.float32), LIMBS)
        t3 = _collect(t3, _turned(d3), h2, LIMBS)
        d2 = _split(tl.where(a2 > 0, _add_product(zero, d3, w3, LIMBS), 0.0), LIMBS)
        t2 = _collect(t2, _turned(d2), _turned(h1), LIMBS)
        d1 = _add_product(tl.zeros((ROWS, H1), tl.float32), d2, w2, LIMBS)
        d1 = _split(tl.where(a1 > 0, tl.trans(d1), 0.0), LIMBS)
        tl.store(out1 + place, d1[0])
        if LIMBS > 1:
            tl.store(out2 + place, d1[1])
        if LIMBS > 2:
            tl.store(out3 + place, d1[2])
        place += ROWS
    part = chunk * worlds + world
    tl.store(slope2 + (part * H2 + i2[:, None]) * H1 + i1[None, :], t2)
    tl.store(slope3 + (part * H3 + i3[:, None]) * H2 + i2[None, :], t3)


def train(rows: Tensor, labels: Tensor, packed: Tensor, descent: Descent) -> list[Tensor]:
    """Weight `(worlds, inputs, outputs)` and bias of each of three layers in turn; `rows` are f64."""
    torch = load()
    layers = descent.layers
    device, worlds, (n, inputs) = rows.device, len(packed), rows.shape
    limbs = LIMBS[descent.precision]
    at_once = ROWS[limbs]
    counts = [len(bias) for _, bias in layers]
    h1, h2 = (_power(count + 1) for count in counts[:2])
    h3 = _power(counts[2])
    padded, deep = _up(n, 8 * RUNS), _up(inputs + 1, 8)
    whole, scale, offset = _whole(rows)
    scale = torch.nn.functional.pad(scale, (0, deep - inputs), value=1.0).float()
    offset = torch.nn.functional.pad(offset, (0, deep - inputs)).float()
    table = torch.zeros((padded, deep), dtype=torch.float64, device=device)
    table[:n, :inputs] = whole
    table[:, inputs] = 1.0
    products = _Products(table, worlds * h1, limbs)
    starts = [
        _with_bias(layers[0], (h1, deep), constant=True),
        _with_bias(layers[1], (h2, h1), constant=True),
        _with_bias(layers[2], (h3, h2), constant=False),
    ]
    weights = [send(start, device, torch.float32).expand(worlds, *start.shape).clone() for start in starts]
    truth = torch.zeros(padded, dtype=torch.int32, device=device)
    truth[:n] = labels
    masks = torch.nn.functional.pad(packed, (0, padded // 8 - packed.shape[1]))
    tiles = -(-padded // at_once // max(1, PROGRAMS // worlds))
    chunks = -(-padded // at_once // tiles)
    slopes = [torch.empty((chunks, worlds, *start.shape), device=device) for start in starts[1:]]
    size = sum(((packed >> bit) & 1).sum(dim=1) for bit in range(8)).clamp(min=1)  # type: ignore[union-attr]
    share = [  # only real neurons learn
        (descent.rate / size)[:, None, None] * (torch.arange(start.shape[0], device=device) < count)[:, None]
        for start, count in zip(starts, counts, strict=True)
    ]

    def step() -> None:
        first = weights[0].flatten(0, 1)
        used = first * scale
        used[:, inputs] += (first * offset).sum(dim=1)
        activity, gradient = products.forward(used)
        pass_through[(worlds, chunks)](
            activity,
            *gradient,
            weights[1],
            weights[2],
            truth,
            masks,
            *slopes,
            padded,
            tiles,
            worlds,
            H1=h1,
            H2=h2,
            H3=h3,
            ROWS=at_once,
            LIMBS=limbs,
            num_warps=1,
        )
        slope = products.backward()
        slope = torch.addcmul(slope * scale, slope[:, inputs : inputs + 1], offset)
        found = [slope.view_as(weights[0]), *(slope.sum(dim=0) for slope in slopes)]
        for value, factor, change in zip(weights, share, found, strict=True):
            value.addcmul_(factor, change, value=-1)

    repeat(step, descent.steps, device)
    result = []
    for (weight, bias), value in zip(layers, weights, strict=True):
        into, out = weight.shape
        result += [value[:, :out, :into].transpose(1, 2), value[:, : len(bias), into]]
    return result


def _power(count: int) -> int:
    """The power of two that holds so many, as tiles need."""
    return max(16, 1 << (count - 1).bit_length())


def _up(size: int, to: int) -> int:
    return -(-size // to) * to


def _whole(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Whole numbers, scale and offset with `features = offset + scale * whole`, a scale and an offset per column.

    Where features are no such numbers, themselves, 1 and 0. Whole numbers up to 256 are bf16 numbers, so pixels and
    counts, standardised or not, need one limb where others need three.
    """
    torch = load()
    low, high = rows.aminmax(dim=0)
    whole, scale = torch.empty_like(rows), torch.empty_like(low)
    for first in range(0, len(low), 64):
        some = slice(first, first + 64)
        found = _steps(rows[:, some] - low[some], (high - low)[some])
        if found is None:
            return rows, torch.ones_like(low), torch.zeros_like(low)
        whole[:, some], scale[some] = found
    return whole, scale, low


def _steps(rows: Tensor, span: Tensor) -> tuple[Tensor, Tensor] | None:
    """Columns that begin at 0 as whole multiples, up to 256, of a scale each; None if some column is no such."""
    torch = load()
    steps = rows.sort(dim=0)[0].diff(dim=0)
    # The smallest step between two values that differ by more than rounding is a multiple of the scale.
    least = torch.where(steps > 1e-6 * span, steps, torch.inf).amin(dim=0) if len(rows) > 1 else span
    least = torch.where(least.isfinite() & (span > 0), least, 1.0)
    scale, open_ = least.clone(), torch.arange(len(span), device=rows.device)
    for part in range(1, 257):
        scale[open_] = least[open_] / part
        if (span[open_] > 256.5 * scale[open_]).any():
            return None
        multiple = rows[:, open_] / scale[open_]
        open_ = open_[(multiple - multiple.round()).abs().amax(dim=0) > 1e-9]
        if not len(open_):
            return (rows / scale).round(), scale
    return None


def _with_bias(layer: tuple[Floats, Floats], shape: tuple[int, int], constant: bool) -> Floats:
    """Weights and biases `(outputs, inputs)` as one padded matrix.

    After the last input comes the neuron that is 1; with `constant` the next layer gets one too. Otherwise this is
    the last layer, and classes that only fill the tile never happen.
    """
    weight, bias = layer
    into, out = weight.shape
    found = np.zeros(shape)
    found[:out, :into] = weight.T
    found[:out, into] = bias
    if constant:
        found[out, into] = 1.0
    else:
        found[out:, into] = NEVER
    return found


class _Products:
    """The two products with the features: `weights @ features` and, of what the kernel made of it, the gradient."""

    def __init__(self, table: Tensor, width: int, limbs: int) -> None:
        torch = load()
        rows, self.inputs = table.shape
        parts = _limbs(table, limbs)
        while len(parts) > 1 and not parts[-1].any():
            parts.pop()
        self.limbs = limbs
        pairs = [(i, j) for i in range(limbs) for j in range(len(parts)) if i + j < limbs]
        self.pairs = sorted(pairs, key=sum, reverse=True)  # small products first: they are lost beside a large sum
        self.right = torch.hstack([parts[j] for _, j in self.pairs])
        self.turned = [part.T.contiguous() for part in parts]
        kind = torch.bfloat16 if limbs == 1 else torch.float32
        self.activity = torch.empty((width, rows), dtype=kind, device=table.device)
        own = [torch.empty_like(self.activity, dtype=torch.bfloat16) for _ in range(limbs)] if limbs > 1 else []
        self.gradient = own or [self.activity]

    def forward(self, weights: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The table, and where its gradient goes: three tables, of which the last may be the same."""
        parts = _limbs(weights, self.limbs)
        _multiply(load().hstack([parts[i] for i, _ in self.pairs]), self.right.T, self.activity)
        return self.activity, (self.gradient + self.gradient[-1:] * 2)[:3]

    def backward(self) -> Tensor:
        torch = load()
        width, rows = self.activity.shape
        total = torch.zeros((width, self.inputs), device=self.activity.device)
        for i, j in self.pairs:
            runs = RUNS if i + j == 0 and self.limbs > 1 else 1
            left = self.gradient[i].view(width, runs, rows // runs).transpose(0, 1)
            right = self.turned[j].view(self.inputs, runs, rows // runs).permute(1, 2, 0)
            found = torch.empty((runs, width, self.inputs), device=self.activity.device)
            _multiply(left, right, found)
            total += found.sum(dim=0)
        return total


def _limbs(values: Tensor, count: int) -> list[Tensor]:
    """Limbs of numbers, rounded to the nearest."""
    found = []
    for _ in range(count):
        found.append(values.bfloat16())
        values = values - found[-1].to(values.dtype)
    return found


def _multiply(left: Tensor, right: Tensor, out: Tensor) -> None:
    torch = load()
    product = torch.mm if left.ndim == 2 else torch.bmm
    if not left.is_cuda:  # only to try kernels without a GPU: its products of bf16 round their results
        out.copy_(left.float() @ right.float())
    elif out.dtype == left.dtype:
        product(left, right, out=out)
    else:
        product(left, right, out_dtype=out.dtype, out=out)
