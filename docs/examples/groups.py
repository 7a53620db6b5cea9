"""Means by group in which nobody can be seen to be in the data at all."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import leakcap as lc

GROUPS = {0: "malignant", 1: "benign"}  # declared: no group appears or vanishes with a person
BOUNDS = {"mean radius": (5, 30), "mean texture": (5, 45), "mean smoothness": (0, 0.2)}  # not read off the data
data = load_breast_cancer(as_frame=True).frame
means = lc.stats.group_by({"target": list(GROUPS)}, "mean", of=list(BOUNDS))

plan = lc.plan(means, data, cap=lc.pool_membership(0.55), bounds=BOUNDS)
release = plan.release()
low, high = (ends.reshape(release.value.shape) for ends in release.interval(0.95))
limit = lc.convert.percent_up(release.certificate.membership_success)
print("that anybody is in the data is guessed with at most", limit)

figure, panels = plt.subplots(1, len(BOUNDS), figsize=(7, 2.6), layout="constrained")
for number, (panel, column) in enumerate(zip(panels, BOUNDS, strict=True)):
    for place, code in enumerate(GROUPS):
        value = release.value.loc[code, column]
        ends = [[value - low[place, number]], [high[place, number] - value]]
        panel.errorbar([place], [value], yerr=ends, fmt="o", capsize=4, color=f"C{place}")
    panel.set(title=column, xticks=range(len(GROUPS)), xticklabels=GROUPS.values(), xlim=(-0.6, 1.6))
figure.savefig(Path(sys.argv[1] if sys.argv[1:] else ".") / "example-groups.png", dpi=110)
