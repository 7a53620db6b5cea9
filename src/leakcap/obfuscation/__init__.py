"""Learnable obfuscation: rows are mixed, masked and noised, and a server learns from what is left."""

from leakcap.obfuscation.encoder import Encoder
from leakcap.obfuscation.key import Key
from leakcap.obfuscation.models import as_classes

__all__ = ["Encoder", "Key", "as_classes"]
