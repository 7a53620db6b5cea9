"""Random views of pictures: those of `lc.labels.FixMatch`."""

from __future__ import annotations

from leakcap.labels.learning.picture_views import Album

__all__ = ["Album"]
