"""Searches over recipes, by validation data alone."""

from gaussianmlr.tuning.search import Search, tune
from gaussianmlr.tuning.space import Dimension, space_of

__all__ = ["Dimension", "Search", "space_of", "tune"]
