"""One question under all three promises: what each one hides, and what it costs."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import leakcap as lc

BOUNDS = {"mean radius": (5, 30), "mean texture": (5, 45)}  # not read off the data
data = load_breast_cancer(as_frame=True).frame[list(BOUNDS)]

plan = lc.plan(lc.stats.mean, data, cap=lc.membership(0.55))
compared = plan.compare(bounds=BOUNDS)
print(compared)

figure, panels = plt.subplots(1, len(BOUNDS), figsize=(7, 2.4), layout="constrained")
for place, (panel, column) in enumerate(zip(panels, BOUNDS, strict=True)):
    panel.barh([promise.name for promise in compared.promises], [promise.error[place] for promise in compared.promises])
    panel.set(title=column, xlabel="expected error")
    panel.invert_yaxis()  # the first choice on top
figure.savefig(Path(sys.argv[1] if sys.argv[1:] else ".") / "example-compare.png", dpi=110)
