"""A label recipe applied to the label column of a file: labels in, cells of the published columns out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leakcap.labels.mechanisms.recipe import LabelRecipe
from leakcap.tables.label_column import LabelColumn

__all__ = ["observed_cells", "reading_code", "refuse_unfit", "secret_labels"]

MAX_LINE = 60  # letters of a mechanism's arguments in one line of code


def refuse_unfit(recipe: LabelRecipe, column: LabelColumn) -> None:
    """A file that has no room for what would be written."""
    column.refuse_names(recipe.columns(column.name))


def secret_labels(recipe: LabelRecipe, column: LabelColumn) -> npt.NDArray[Any]:
    """The labels as the recipe's mechanism takes them. Custodian side."""
    return column.codes(recipe.names, recipe.missing_as) if recipe.names else column.numbers()


def observed_cells(recipe: LabelRecipe, column: LabelColumn, observed: npt.NDArray[Any]) -> dict[str, Any]:
    """What is written into each of the columns that take the place of the labels."""
    names = recipe.columns(column.name)
    if observed.ndim == 2:
        return {name: observed[:, place] for place, name in enumerate(names)}
    if not recipe.names:
        return {names[0]: observed}
    return {names[0]: column.named(observed.astype(np.int64), recipe.names, recipe.missing_as)}


def reading_code(recipe: LabelRecipe, column: LabelColumn, file: str) -> str:
    """A few lines of Python that read the observations and apply Bayes' rule to them."""
    classes = recipe.names if recipe.is_wide else column.names(recipe.names, recipe.missing_as)
    arguments = [f"{name}={value!r}" for name, value in recipe.arguments(classes).items()]
    short = sum(map(len, arguments)) < MAX_LINE
    listed = ", ".join(arguments) if short else "".join(f"\n    {argument}," for argument in arguments) + "\n"
    columns = f"[{column.name + '='!r} + one for one in mechanism.classes]" if recipe.is_wide else repr(column.name)
    return (
        "import numpy as np, pandas as pd, leakcap as lc\n\n"
        f"table = {_reading_call(recipe, column, file)}\n"
        f"mechanism = lc.labels.{type(recipe.mechanism).__name__}({listed})\n"
        f"observed = table[{columns}]{'' if recipe.names else '.astype(float)'}\n"
        "log_prior = np.zeros(mechanism.n_classes)  # or what a model predicts, row by row\n"
        "posterior = mechanism.posterior(observed, log_prior)  # the probability of every class, in each row"
    )


def _reading_call(recipe: LabelRecipe, column: LabelColumn, file: str) -> str:
    if file.endswith(".parquet"):
        return f"pd.read_parquet({file!r})"
    options = "" if column.file.separator in (None, ",") else f", sep={column.file.separator!r}"
    if not recipe.is_wide:  # as text: names and values must come back to the last digit
        options += ", dtype=str, na_filter=False"
    return f"pd.read_csv({file!r}{options})"
