"""What the files of a label-private model hold, in words, and a few lines of Python that read them."""

from __future__ import annotations

from pathlib import Path

from leakcap.errors import InputError
from leakcap.labels.advice import advise
from leakcap.tables.label_column import LabelColumn
from leakcap.tables.learnt_labels import MODELS, LabelModel

__all__ = ["model_advice", "model_code", "model_holds", "model_learnt"]

MARKED = """\
features = np.stack([
    cells[one["column"]].astype(float) if one["value"] is None else text[one["column"]] == one["value"]
    for one in model["features"]
], axis=1)
scores = (features - model["mean"]) @ model["weights"] + model["intercept"]
"""
PLACED = """\
scores = np.tile(model["log_shares"], (len(cells), 1))
for one, edges, log_chances in zip(model["features"], model["edges"], model["log_chances"]):
    values = one["values"]
    numbers = cells[one["column"]].astype(float) if values is None else text[one["column"]].map(values.index)
    scores += np.array(log_chances)[np.searchsorted(edges, numbers, side="right")]
"""
PREDICTED = 'predicted = np.array(model["classes"])[scores.argmax(axis=1)]'
TAUGHT = """\
answers = pd.read_csv("answers.csv", dtype={"answer": str}, na_filter=False)
student = LogisticRegression(max_iter=300).fit(scores[answers["row"]], answers["answer"])  # or any other
predicted = student.predict(scores)"""
SUMS_HOLD = (
    "the noised sums by class, and the model that was made of them: plain numbers. predictions.csv has the class that "
    "the model names for every row, counted from 0"
)
VOTES_HOLD = (
    "the noised sums by class, and the model made of them that teachers learnt from: plain numbers. answers.csv has "
    "the rows that teachers were asked about, counted from 0, with their noised answers; predictions.csv what the "
    "student says of every row"
)

ADVISED = {  # in the words of the command, where it has any
    "Logistic": "--model logistic",
    "LDA": "LDA(readout='auto'), in Python",
    "Classifier": "--method responses",
}


def model_holds(model: LabelModel) -> str:
    """What was written, in words."""
    return SUMS_HOLD if model.request.method == "statistics" else VOTES_HOLD


def model_learnt(model: LabelModel) -> str:
    """What has learnt from how much, in words. Settings and public features alone."""
    count = len(model.features.columns)
    columns = f"{count} public column{'s' * (count > 1)}"
    if model.request.method == "statistics":
        return f"A model of noised sums ({model.request.model}), learnt from {columns}."
    settings = dict(model.estimator.certificate_.settings)
    return (
        f"A student of {settings['teachers']:,.0f} teachers, who were asked about {settings['questions']:,.0f} rows; "
        f"all of them learnt from {columns}."
    )


def model_advice(model: LabelModel) -> str:
    """What `advise` names, where that was not taken, by public facts alone; nothing for an epsilon that it refuses."""
    request, (rows, columns) = model.request, model.features.marked()[0].shape
    try:
        said = advise(request.epsilon, len(request.names), rows=rows, columns=columns, delta=request.delta)
    except InputError:
        return ""
    taken = request.method == "statistics" and said.model == MODELS[request.model].__name__ != "LDA"
    way = "--method statistics " if request.method == "pate" and said.model == "Logistic" else ""
    return "" if taken else f"For so many rows, columns and classes lc.labels.advise names {way}{ADVISED[said.model]}."


def model_code(model: LabelModel, column: LabelColumn) -> str:
    """Lines that read the model and predict by it, or teach a student; `DATA` stands for a table with these features.

    They need no label: the column of labels may be missing from that table.
    """
    teaches = model.request.method == "pate"
    file = "sums.json" if teaches else "model.json"
    return (
        "import json\nfrom pathlib import Path\n\nimport numpy as np, pandas as pd\n"
        + ("from sklearn.linear_model import LogisticRegression\n" if teaches else "")
        + f"\nmodel = json.loads(Path({file!r}).read_text())\n"
        f"cells = {_reading_call(column)}  # any rows with these columns\n"
        'text = cells.astype(object).fillna("").astype(str).apply(lambda one: one.str.strip())\n'
        + (PLACED if model.request.in_places else MARKED)
        + (TAUGHT if teaches else PREDICTED)
    )


def _reading_call(column: LabelColumn) -> str:
    name = Path(f"features{column.ending}").name
    if column.ending == ".parquet":
        return f"pd.read_parquet({name!r})"
    separator = "" if column.file.separator in (None, ",") else f", sep={column.file.separator!r}"
    return f"pd.read_csv({name!r}{separator}, dtype=str, na_filter=False)"
