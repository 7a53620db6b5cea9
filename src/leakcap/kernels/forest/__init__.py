"""Trees and forests in all worlds at once."""

from leakcap.kernels.forest.entry import forest, leaves_of, predict_forest

__all__ = ["forest", "leaves_of", "predict_forest"]
