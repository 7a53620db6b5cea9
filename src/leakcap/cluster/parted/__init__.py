"""Data in partitions: files, frames and streams that together are larger than memory, and one person's rows in many.

Partitions are read one after the other, a batch of rows at a time. Their rows are dealt by whose they are into shards,
so that everybody's rows lie together, in an order that hangs on nothing but these rows and a key.
"""

from __future__ import annotations

from leakcap.cluster.parted.partitions import Partitions, partitions
from leakcap.cluster.parted.rows import is_of_numbers
from leakcap.cluster.parted.shards import CarriedShard, Shard, Shards, dealt

__all__ = ["CarriedShard", "Partitions", "Shard", "Shards", "dealt", "is_of_numbers", "partitions"]
