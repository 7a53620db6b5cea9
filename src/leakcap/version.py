"""The version, for certificates."""

__version__ = "0.2.0"
