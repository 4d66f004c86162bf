"""The workspace of an index: verdicts of users on hits, and saved lists. A re-embed does not change it."""
