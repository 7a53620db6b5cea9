"""Private answers to questions in SQL."""

from leakcap.sql.catalog import Catalog
from leakcap.sql.register import register

__all__ = ["Catalog", "register"]
