"""Network services."""
