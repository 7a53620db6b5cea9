"""Worlds on an existing Dask cluster; one machine needs none of this.

`backend="dask"` starts workers on this machine, `"dask://host:port"` connects to a scheduler, and a
`distributed.Client` is taken as it is; `connect` says more. Data travel to every worker once. What is secret (which
world it was, the key of the bits) does not travel.
"""

from __future__ import annotations

from leakcap.cluster.connecting import Cluster, connect

__all__ = ["Cluster", "connect"]
