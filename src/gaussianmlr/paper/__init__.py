"""Reproduction of the paper: tables and figures from cells, each cell from one training."""
