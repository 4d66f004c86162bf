"""Text formats: strict JSON, safe spreadsheet cells, and printable text for terminals."""
