"""Maintenance of an index and its workspace: erasure, backup, the audit record, outages in the log."""
