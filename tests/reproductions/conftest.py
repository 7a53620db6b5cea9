"""Tests that need torch are left out where it is not installed."""

from __future__ import annotations

import importlib.util

TORCH = ["test_label_dp_central.py", "test_label_dp_fixmatch.py", "test_label_dp_likelihood.py"]
collect_ignore = [] if importlib.util.find_spec("torch") else TORCH
