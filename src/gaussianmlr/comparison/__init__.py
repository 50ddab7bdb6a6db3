"""Comparisons: participants on the same splits with the same budget, paired tests, a verdict."""
