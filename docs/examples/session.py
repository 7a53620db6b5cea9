"""Many questions under one cap: each is charged to everybody's clock, and the last is asked when it is spent."""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

import leakcap as lc

patients = load_diabetes(as_frame=True, scaled=False).frame
ledger = f"sqlite:///{tempfile.mkdtemp()}/ledger.db"  # a file of your own: it knows what was spent, also tomorrow
session = lc.Session(patients, cap=0.60, ledger=ledger, name="diabetes study")

ages = [30, 40, 50, 60]
counts, spent = [], []
for age in ages:
    answer = session.count(where=f"age > {age}", share=0.1)
    (low,), (high,) = answer.interval(0.95)
    counts.append((answer.value, low, high))
    spent.append(1 - session.remaining.share)
bmi = session.mean("bmi", bounds=(15, 50), share=0.2)
spent.append(1 - session.remaining.share)
success = lc.convert.percent_up(session.remaining.success)
print(f"mean bmi {bmi.value:.1f}; five answers, {session.remaining.share:.0%} left; in the end at most {success}")

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
for age, (value, low, high) in zip(ages, counts, strict=True):
    left.errorbar([age], [value], yerr=[[value - low], [high - value]], fmt="o", capsize=4, color="C0")
left.set(xlabel="older than", ylabel="patients")
right.step(range(1, 6), spent, where="post")
right.set(xlabel="answers", ylabel="spent of the cap", ylim=(0, 1), xticks=range(1, 6))
figure.savefig(Path(sys.argv[1] if sys.argv[1:] else ".") / "example-session.png", dpi=110)
