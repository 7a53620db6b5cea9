"""Attacks, one idea each. They get what every attacker knows and releases to learn from; none is told what to find."""
