"""Prediction at scale: streams of inputs, writers of results, clusters, data matched to a model."""
