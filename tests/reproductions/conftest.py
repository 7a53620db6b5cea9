"""Tests that need torch are left out where it is not installed."""

from __future__ import annotations

import importlib.util

collect_ignore = [] if importlib.util.find_spec("torch") else ["test_label_dp_central.py"]
