"""The search service: nearest competitors over HTTP, and the page analysts use."""

PROGRAM = f"python -m {__name__}"
"""Runs the service; the wheel holds this package as `similarity.service`."""
