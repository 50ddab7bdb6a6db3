"""Shared parts of all pages: application, access control, limits, server."""
