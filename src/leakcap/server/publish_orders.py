"""What a custodian may publish of a table, as an order: read from a form, and written as a command and as Python."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leakcap.server.refusals import Refusal
from leakcap.server.written_numbers import number_in
from leakcap.tables.distilled import BOOSTED, DISTILLED

__all__ = [
    "CHOICES",
    "DISTILLED_WORDS",
    "MODEL_WORDS",
    "PROMISES",
    "STATISTICS",
    "TEACHERS",
    "asked_of",
    "command_words",
    "python_words",
    "setting_words",
    "shown",
]

STATISTICS = {
    "mean": "averages",
    "sum": "sums",
    "median": "medians",
    "covariance": "variances and covariances",
    "histogram": "shares in ten bins",
}
MODEL_WORDS = {
    "LogisticRegression": "a classifier: logistic regression",
    "GaussianNB": "a classifier: naive Bayes",
    "RandomForestClassifier": "a classifier: a forest of trees",
    "Ridge": "a regression: least squares with a penalty",
    "KMeans": "groups of like rows: K-Means",
}
DISTILLED_WORDS = {
    "boosted": "a classifier: boosted trees",
    "neighbours": "a classifier: nearest neighbours",
}
CHOICES = STATISTICS | MODEL_WORDS | DISTILLED_WORDS
TEACHERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {  # with settings that suit the few rows of a block
    "boosted": (BOOSTED, {"max_iter": 20, "min_samples_leaf": 5}),
    "neighbours": ("sklearn.neighbors:KNeighborsClassifier", {"n_neighbors": 5}),
}
PREDICTS = {"LogisticRegression": "classes", "GaussianNB": "classes", "RandomForestClassifier": "classes"}
PREDICTS |= {"Ridge": "numbers"} | dict.fromkeys(DISTILLED_WORDS, "classes")
PROMISES = {
    "worlds": "Which half of the people was used?",
    "bits": "Does this person take part?",
    "pool": "Is this person in the data at all?",
}
BOUNDED = ("mean", "sum", "covariance")  # statistics that a pool cap takes with ranges alone
WORLDS = 1024  # of a model that is no sum: it is fitted in each
BINS, STEPS = 10, 100


def asked_of(
    given: Mapping[str, str],
    columns: Sequence[str],
    held: Mapping[str, Any],
    *,
    file: Path,
    public: Path | None = None,
) -> dict[str, Any]:
    """The order of a form, about a file and public rows beside it; a `Refusal` that says what is missing."""
    fields = held["columns"]
    known = {one["name"] for one in fields}
    fn, unit, target = given.get("fn", ""), given.get("unit", ""), given.get("target", "")
    if fn not in CHOICES:
        raise Refusal(400, "Choose what to publish: averages, sums, a model or another of the list.")
    wants = PREDICTS.get(fn)
    if wants and target not in known - {unit}:
        raise Refusal(400, "Choose the column that the model predicts.")
    target = target if wants else ""
    chosen = [one for one in columns if one in known and one not in (unit, target) and "," not in one]
    if not chosen:
        raise Refusal(400, "Choose the columns that it is about.")
    ranges = _ranges(given, fields)
    promise = given.get("promise", "")
    if fn == "histogram" and (len(chosen) > 1 or chosen[0] not in ranges):
        raise Refusal(400, "Choose one column for the bins, and write its range: bins must not come from the data.")
    share = None
    if fn in TEACHERS:
        share = _public_share(given, unit in known, public)
    return {
        "file": str(file),
        "public": None if public is None or fn not in TEACHERS else str(public),
        "public_share": share,
        "fn": fn,
        "columns": chosen,
        "target": target or None,
        "unit": unit if unit in known else None,
        "rows": max(1, int(number_in(given.get("rows") or "1", "the most rows of one person"))),
        "success": number_in(given.get("cap", ""), "the cap, in per cent") / 100,
        "bounds": {name: ranges[name] for name in (*chosen, target) if name in ranges},
        "classes": [one.strip() for one in given.get("classes", "").split(",") if one.strip()] if wants else [],
        "groups": int(number_in(given.get("groups") or "3", "how many groups")) if fn == "KMeans" else None,
        "promise": promise if promise in PROMISES else "",
    }


def _public_share(given: Mapping[str, str], has_unit: bool, public: Path | None) -> float | None:
    """Of the people whose features are public, where there is no file of public rows."""
    if public is not None:
        return None
    text = given.get("public_share", "").strip()
    if not text:
        raise Refusal(
            400,
            "This model is released by its votes on public rows: bring a file of them, or write for which share of "
            "the people the chosen columns are public.",
        )
    share = number_in(text, "the share of people whose columns are public, in per cent") / 100
    if share >= 1 or not has_unit:
        raise Refusal(
            400,
            "Write a share below 100 %, and say whose row it is: who is public follows from people's own names alone.",
        )
    return share


def whole_ranges(order: Mapping[str, Any]) -> bool:
    """Whether everything that is summed has a range that does not come from the data."""
    of_numbers = order["target"] if PREDICTS.get(order["fn"]) == "numbers" else None
    return all(name in order["bounds"] for name in (*order["columns"], *filter(None, [of_numbers])))


def command_words(order: Mapping[str, Any], file: str, out: str, public: str = "") -> list[str]:
    """The release as words of the command line; `public` names the file of public rows, where there is one."""
    of_pool = order["promise"] == "pool"
    kind = "pool" if of_pool else "membership"
    words = ["release", file, "--fn", order["fn"], "--cap", f"{kind}={order['success']:g}", "--out", out]
    words += ["--columns", ",".join(order["columns"]), "--missing", "drop"]
    if order["unit"]:
        words += ["--unit", order["unit"]]
    if order["target"]:
        words += ["--target", order["target"]]
    for word in setting_words(order):
        words += ["--setting", word]
    if order["fn"] in TEACHERS:
        words[words.index("--fn") + 1] = DISTILLED
        words += ["--teacher", TEACHERS[order["fn"]][0]]
        words += ["--rows-per-unit", str(order["rows"])] if order["unit"] and of_pool else []
        share = order["public_share"]
        return [*words, *(["--public-rows", public] if share is None else ["--public-share", f"{share:g}"])]
    if of_pool:
        for name, (low, high) in order["bounds"].items():
            words += ["--bounds", f"{name}={low:g},{high:g}"]
        words += ["--rows-per-unit", str(order["rows"])] if order["unit"] else []
    elif order["promise"]:
        words += ["--design", order["promise"]]
        words += ["--worlds", str(WORLDS)] if order["promise"] == "worlds" and order["fn"] in MODEL_WORDS else []
    return words + _cut_points(order)


def python_words(order: Mapping[str, Any]) -> str:
    """The same in Python."""
    suffix = Path(order["file"]).suffix
    used = [*order["columns"], *filter(None, [order["target"]])]
    read = "read_parquet" if suffix == ".parquet" else "read_csv"
    lines = [
        f'table = pd.{read}("table{suffix}").dropna(subset={used!r})',
        f"rows = table[{order['columns']!r}]",
    ]
    unit = f", unit=table[{order['unit']!r}].to_numpy()" if order["unit"] else ""
    if order["fn"] in TEACHERS:
        return "\n".join([*_distilled_lines(order, lines, unit), ""])
    return "\n".join([*(_model_lines if order["target"] or order["groups"] else _lines)(order, lines, unit), ""])


def shown(order: Mapping[str, Any], out: str) -> str:
    """The command as it is shown: with the names that the custodian's own files have."""
    public = f"public{Path(order['public']).suffix}" if order["public"] else ""
    return shlex.join(["leakcap", *command_words(order, f"table{Path(order['file']).suffix}", out, public)])


def setting_words(order: Mapping[str, Any]) -> list[str]:
    """Settings of a model, as the command takes them."""
    return [f"{name}={value!r}" for name, value in _settings(order).items()]


def _lines(order: Mapping[str, Any], lines: list[str], unit: str) -> list[str]:
    fn, imports = f"lc.stats.{order['fn']}", ["import leakcap as lc", "import pandas as pd"]
    given = f"cap=lc.membership({order['success']:g}){unit}"
    if order["promise"] == "pool":
        ends = tuple([order["bounds"][name][at] for name in order["columns"]] for at in (0, 1))
        given = f"cap=lc.pool_membership({order['success']:g}), bounds={ends!r}{unit}"
        given += f", rows_per_unit={order['rows']}" if unit else ""
    elif order["promise"]:
        given += f", design={order['promise']!r}"
    if points := _points(order):
        imports = ["from functools import partial", "", *imports]
        name = "edges" if order["fn"] == "histogram" else "grid"
        fn = f"partial({fn}, {name}={points!r})"
    told = [f'release.save("{out}")' for out in ["out"]]
    return [*imports, "", *lines, f"release = lc.release({fn}, rows, {given})", *told]


def _model_lines(order: Mapping[str, Any], lines: list[str], unit: str) -> list[str]:
    of_pool = order["promise"] == "pool"
    cap = f"lc.{'pool_' if of_pool else ''}membership({order['success']:g})"
    options: dict[str, Any] = {}
    settings = _settings(order)
    if of_pool:
        goal = order["target"] if PREDICTS.get(order["fn"]) == "numbers" else None
        options["bounds"] = {name: ends for name, ends in order["bounds"].items() if name in order["columns"]}
        settings |= {"target_bounds": order["bounds"][goal]} if goal else {}
        options |= {"rows_per_unit": order["rows"]} if unit else {}
    elif order["promise"]:
        options["design"] = order["promise"]
        settings |= {"worlds": WORLDS} if order["promise"] == "worlds" else {}
    given = "".join(
        f", {name}={value!r}" for name, value in (settings | ({"options": options} if options else {})).items()
    )
    fitted = f"rows, table[{order['target']!r}]" if order["target"] else "rows"
    return [
        "import leakcap as lc",
        "import pandas as pd",
        f"from leakcap.estimators import {order['fn']}",
        "",
        *lines,
        f"model = {order['fn']}(cap={cap}{given})",
        f"model.fit({fitted}{unit})",
        "print(model.certificate_)",
    ]


def _distilled_lines(order: Mapping[str, Any], lines: list[str], unit: str) -> list[str]:
    (module, _, kind), settings = TEACHERS[order["fn"]][0].partition(":"), TEACHERS[order["fn"]][1]
    own = {name: value for name, value in _settings(order).items() if name not in settings}
    of_pool = order["promise"] == "pool"
    cap = f"lc.{'pool_' if of_pool else ''}membership({order['success']:g})"
    given = "".join(f", {name}={value!r}" for name, value in own.items())
    given += f', options={{"rows_per_unit": {order["rows"]}}}' if unit and of_pool else ""
    told = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    imports = ["import leakcap as lc", "import pandas as pd", "from leakcap.estimators import Distilled"]
    if order["public"]:
        suffix = Path(order["public"]).suffix
        read = "read_parquet" if suffix == ".parquet" else "read_csv"
        lines = [*lines, f'public = pd.{read}("public{suffix}")[{order["columns"]!r}].dropna()']
    else:
        imports.append("from leakcap.tables.distilled import public_people")
        lines = [
            lines[0],
            f"apart = public_people(table[{order['unit']!r}], {order['public_share']:g})",
            f"public, table = table.loc[apart, {order['columns']!r}], table[~apart]",
            *lines[1:],
        ]
    return [
        *imports,
        f"from {module} import {kind}",
        "",
        *lines,
        f"model = Distilled({kind}({told}), {kind}(), queries=public, cap={cap}{given})",
        f"model.fit(rows, table[{order['target']!r}]{unit})",
        "print(model.certificate_)",
    ]


def _settings(order: Mapping[str, Any]) -> dict[str, Any]:
    """Of an estimator."""
    found: dict[str, Any] = {"n_clusters": order["groups"]} if order["groups"] else {}
    found |= TEACHERS[order["fn"]][1] if order["fn"] in TEACHERS else {}
    if order["promise"] == "pool" and order["classes"]:
        found["classes"] = list(order["classes"])
    return found


def _cut_points(order: Mapping[str, Any]) -> list[str]:
    """Bins, or a grid for medians, of declared ranges."""
    if not _points(order):
        return []
    (name, (low, high)), *_ = order["bounds"].items()
    bins = order["fn"] == "histogram"
    step = (high - low) / (BINS if bins else STEPS)
    return ["--bins" if bins else "--grid", f"{name}={low:.10g}:{high:.10g}:{step:.10g}"]


def _points(order: Mapping[str, Any]) -> list[float]:
    """Cut points of one column; none where there are none."""
    if order["fn"] not in ("histogram", "median") or len(order["columns"]) > 1 or not order["bounds"]:
        return []
    low, high = order["bounds"][order["columns"][0]]
    count = BINS if order["fn"] == "histogram" else STEPS
    return [float(f"{low + (high - low) * at / count:.10g}") for at in range(count + 1)]


def _ranges(given: Mapping[str, str], held: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """What was declared: two numbers for a column, or none."""
    found = {}
    for at, one in enumerate(held):
        low, high = given.get(f"low{at}", "").strip(), given.get(f"high{at}", "").strip()
        if low or high:
            try:
                ends = float(low), float(high)
            except ValueError:
                ends = (1.0, 0.0)
            if not -1e15 < ends[0] < ends[1] < 1e15:
                raise Refusal(400, f"Write two numbers for the range of {one['name']}, the smaller one first, or none.")
            found[one["name"]] = ends
    return found
