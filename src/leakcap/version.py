"""The version, for certificates."""

__version__ = "0.1.0"
