"""A table of means by group, released with error bars."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import leakcap as lc

COLUMNS = ["mean radius", "mean texture", "mean smoothness", "mean symmetry"]
data = load_breast_cancer(as_frame=True).frame


def means(rows):
    """Both groups are known beforehand, so neither can appear or vanish."""
    return {name: rows.loc[rows["target"] == code, COLUMNS].mean() for name, code in GROUPS.items()}


GROUPS = {"malignant": 0, "benign": 1}
plan = lc.plan(means, data, cap=lc.membership(0.55), strata="target", worlds=128, draws=2048)
release = plan.release()
low, high = (ends.reshape(len(GROUPS), -1) for ends in release.interval(0.95))
limit = lc.convert.percent_up(release.certificate.membership_success)
print("any person's participation is guessed with at most", limit)

figure, panels = plt.subplots(1, len(COLUMNS), figsize=(8, 2.6), layout="constrained")
for number, (panel, column) in enumerate(zip(panels, COLUMNS, strict=True)):
    for place, name in enumerate(GROUPS):
        value = release.value[name][column]
        ends = [[value - low[place, number]], [high[place, number] - value]]
        panel.errorbar([place], [value], yerr=ends, fmt="o", capsize=4, color=f"C{place}")
    panel.set(title=column, xticks=range(len(GROUPS)), xticklabels=GROUPS, xlim=(-0.6, 1.6))
figure.savefig(Path(sys.argv[1] if sys.argv[1:] else ".") / "example-table.png", dpi=110)
