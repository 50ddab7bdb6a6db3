"""Shared utilities: atomic files, bounded reading, JSON, progress, provenance, checked arrays."""
