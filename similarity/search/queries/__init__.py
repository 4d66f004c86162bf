"""Queries: the question, its companies, and the query vector."""
