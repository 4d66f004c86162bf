"""The search service: nearest competitors over HTTP, and the page analysts use."""
