"""Attacks on one's own release: measured success beside the certified one."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

import leakcap as lc

plan = lc.plan(lc.stats.mean, load_iris().data, cap=lc.membership(0.6), worlds=64, draws=2048)
plan.release()  # this one is published; the audit makes others by the same code
report = lc.audit.run(plan, attacks=["bayes", "learned", "collude"], trials=2000)
print(report.sentence)

found = [one for one in report.findings if one.certified is not None and "as seen" not in one.attack]
figure, panel = plt.subplots(figsize=(7.6, 3.6), layout="constrained")
for place, one in enumerate(found):
    low, high = one.interval
    panel.plot([low, high], [place, place], color="C0", lw=4, alpha=0.35)
    panel.plot(one.measured, place, "o", color="C0", label="measured, and its interval" if not place else None)
    panel.plot(one.certified, place, "|", color="C3", ms=14, mew=2, label="certified: at most" if not place else None)
panel.set_yticks(range(len(found)), [f"{one.attack.split(',')[0]}: {one.question}" for one in found], fontsize=7)
panel.set(xlabel="share of guesses that are right", xlim=(0, 1))
panel.invert_yaxis()
panel.legend(fontsize=8, loc="upper right")
figure.savefig(Path(sys.argv[1] if sys.argv[1:] else ".") / "example-audit.png", dpi=110)
