"""Checks of data before training: what would be misread, and what is likely a slip."""
