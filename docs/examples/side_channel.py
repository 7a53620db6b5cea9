"""What a timing tells about a secret key, and how much of it noise takes away."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import leakcap as lc

BITS, ENOUGH = 8, 6  # of a key; right guesses among them that would be too many
keys = [np.array(list(np.binary_repr(number, BITS)), dtype=float) for number in range(2**BITS)]


def timings(key):
    """Microseconds of square-and-multiply: a bit that is set costs a multiplication, and the cache tells where."""
    spent = 5 + 3 * key + 0.5 * np.arange(BITS) * key
    return np.array([spent.sum(), spent[: BITS // 2].sum()])  # the whole run, and a probe half-way


def enough_right(keys):
    """Guesses are keys, and win where they have enough bits in common with the true one."""
    table = np.array(keys)
    return (table[:, None, :] == table).sum(axis=2) >= ENOUGH


plan = lc.plan(timings, inputs=keys, cap=lc.task(enough_right, 0.3), draws=8192)
release = plan.release()
(capped,) = plan.certificate.capped
noise = plan.noise.output_deviations.round(1)
print("noise:", noise, "us where keys differ by", plan.outputs.std(axis=0).round(1))
print(
    f"{ENOUGH} of {BITS} bits right: {capped.before:.1%} without the timing, at most",
    lc.convert.percent_up(capped.certified),
)

counts = np.arange(5, BITS + 1)
before = [lc.convert.bits_right(BITS, int(k)) for k in counts]
after = [plan.certificate.posterior(prior) for prior in before]
figure, axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
axes.bar(counts - 0.2, before, width=0.4, color="0.75", label="without the timing")
axes.bar(counts + 0.2, after, width=0.4, color="#1d3557", label="with the noisy timing, at most")
axes.axhline(1, color="#d1495b", linestyle=":", label="with the timing as it is, for most keys")
axes.set(xlabel=f"bits right, at least, of {BITS}", ylabel="success", xticks=counts)
axes.legend(fontsize=8)
figure.savefig(Path(sys.argv[1] if sys.argv[1:] else ".") / "example-side-channel.png", dpi=110)
