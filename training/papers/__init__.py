"""Reproductions of papers. Nothing outside this package imports it; the product does not need it."""
