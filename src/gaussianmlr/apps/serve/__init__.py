"""A model behind an HTTP JSON API."""
