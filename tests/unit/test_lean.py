"""What computes runs with the numerical libraries alone: kernels, leakage, noise and labels need no tables or pages.

The test hides every other library from fresh processes, imports these rooms, one in each, and uses them.
"""

from __future__ import annotations

import functools

import pytest

from tests.unit.fresh import ran

HIDDEN = ["pandas", "pyarrow", "jinja2", "markupsafe", "rich", "typer", "click", "matplotlib", "cryptography", "polars"]

HIDING = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HIDDEN!r}:
            raise ImportError(f"{{name}} is hidden")
sys.meta_path.insert(0, Hidden())
"""

WORK = {
    "kernels": """
import numpy as np
from leakcap import kernels, stats
from leakcap.worlds import Units, draw_worlds
worlds = draw_worlds(40, 8, np.random.default_rng(0))
rows = np.arange(80.0).reshape(40, 2)
served = kernels.kernel_of(stats.mean)((rows,), Units.of(40, None), worlds)
assert np.allclose(served, [rows[mask].mean(axis=0) for mask in worlds.masks()])
""",
    "leakage": """
import numpy as np
import leakcap.leakage.certify, leakcap.leakage.collusion
from leakcap.leakage.measures import thresholds
assert (thresholds(0.5) > 0.5).all()
""",
    "noise": """
import leakcap.noise.calibrate, leakcap.noise.estimate
from leakcap.noise import Seeded, sampler_distance
assert 0 < sampler_distance(2, 10.0) < 1e-3
assert len(Seeded(0).normals(5)) == 5
""",
    "labels": """
import numpy as np
from leakcap.labels import KRR, Classifier
from sklearn.linear_model import LogisticRegression
krr = KRR(8.0, 2)
seen = krr.privatize(np.arange(60) % 2)
model = Classifier(LogisticRegression(), krr).fit(np.arange(60)[:, None] % 2 * 1.0, seen)
assert model.predict([[1.0]])[0] in (0, 1)
""",
    "obfuscation": """
import sys
import numpy as np
from leakcap.obfuscation import Encoder
import leakcap.obfuscation.network, leakcap.obfuscation.state_dict
y = np.repeat(["no", "yes"], 40)
X = np.random.default_rng(0).normal(size=(80, 6)) + 4 * (y == "yes")[:, None] * np.eye(6)[0]
encoder = Encoder(6, mix=2, rows_released=40, noise=0.01, draws=0)
encoder.encode(X, y)
assert encoder.predict(lambda rows: rows[:, :2], X).shape == (80,)
assert not {"torch", "matplotlib", "pandas"} & set(sys.modules)
""",
}


@functools.cache
def said() -> dict[str, str]:
    """What the work in each room said, in a process of its own."""
    return ran(
        {**{room: f"{code}\nprint('done')" for room, code in WORK.items()}, "table": "import pandas"}, first=HIDING
    )


@pytest.mark.parametrize("room", WORK)
def test_it_computes_with_the_numerical_libraries_alone(room: str) -> None:
    assert said()[room] == "done"


def test_what_is_hidden_is_hidden() -> None:
    """The twin: a table cannot be read in such a process."""
    assert "pandas is hidden" in said()["table"]
