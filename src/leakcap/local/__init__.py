"""Release without a trusted holder: records that leave with noise of their own."""

from leakcap.local.publish import PublishedTable, TablePlan, plan, publish

__all__ = ["PublishedTable", "TablePlan", "plan", "publish"]
