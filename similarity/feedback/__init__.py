"""What people add to an index and what no re-embed may lose: their verdicts on hits, and their saved lists."""
