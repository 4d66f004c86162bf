"""From records, files and messages to documents in an index."""
