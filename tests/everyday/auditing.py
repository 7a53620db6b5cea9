"""Attack it, check it."""

from __future__ import annotations

import leakcap as lc
from tests.everyday.desk import Desk
from tests.everyday.lists import task


@task("Attack one's own release of heart patients", within=8, points=True)
def attacked(desk: Desk) -> float:
    heart = desk.heart()[["age", "chol"]].to_numpy()
    plan = lc.plan(lc.stats.mean, heart, cap=0.55, worlds=64)
    plan.release()
    report = lc.audit.run(plan, trials=1000)
    assert report.holds
    return 100 * max(0.0, report.measured - report.certified)


@task("Check a certificate: as its issuer, and as a reader", within=0)
def checked(desk: Desk) -> float:
    desk.heart()[["age", "chol"]].to_csv(desk.folder / "heart.csv", index=False)
    code, said = desk.run("leakcap release heart.csv --fn mean --columns age,chol --cap membership=0.55 --out heart")
    assert code == 0, said
    code, said = desk.run("leakcap check heart/public/certificate.json --custodian heart/custodian")
    assert code == 0 and "The certificate holds" in said
    code, said = desk.run("leakcap check --public heart/public/certificate.json")
    assert code == 0 and "The figures agree" in " ".join(said.split())
    return 0.0
