"""Attacks on encoded sets: who was drawn, what was mixed, and which of two pools was encoded."""
