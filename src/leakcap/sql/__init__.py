"""Private answers to questions in SQL: register tables once, then ask a session."""

from leakcap.sql.catalog import Catalog
from leakcap.sql.noised_keys import NoisedKeys, noised
from leakcap.sql.refusals import NotAnswered
from leakcap.sql.register import register

__all__ = ["Catalog", "NoisedKeys", "NotAnswered", "noised", "register"]
