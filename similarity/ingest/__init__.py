"""Ingest: records, files and messages become documents in an index. All writes go through `write_path`."""
