"""Attacks by scores in shadow releases: LiRA, RMIA, thresholds."""
