"""Installs and starts the real components that integration tests run against."""
