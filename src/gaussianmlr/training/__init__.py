"""The training engine: from a recipe and data to a model, resumable bit for bit."""

from gaussianmlr._utils.progress import Watcher
from gaussianmlr.training.engine import Result, train
from gaussianmlr.training.fit import Fitted, evaluate, fit

__all__ = ["Fitted", "Result", "Watcher", "evaluate", "fit", "train"]
