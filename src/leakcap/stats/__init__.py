"""Plain statistics to release: functions of the rows of one world.

Rows are an array or a table of numbers with one dimension (one column) or two (several columns). The answer has the
same shape whatever rows are in the world. For finite rows it is finite: a world without rows gets the fixed value 0.
Of a DataFrame of pandas or polars it is a table of the same library, with the names of the columns.
Missing values are not skipped: they make the answer NaN, which `plan` refuses.

Histograms give shares rather than counts: a world holds a part of the pool, and counts would shrink with it.
"""

from leakcap.stats.gram import gram
from leakcap.stats.group_by import group_by
from leakcap.stats.plain import categories, count, covariance, histogram, mean, median, quantile, share, sum, variance

__all__ = [
    "categories",
    "count",
    "covariance",
    "gram",
    "group_by",
    "histogram",
    "mean",
    "median",
    "quantile",
    "share",
    "sum",
    "variance",
]
