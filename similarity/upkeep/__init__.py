"""What reaches across rooms: erasure, backup, the audit record, outages in the log."""
