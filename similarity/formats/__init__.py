"""Formats: strict JSON, Unicode normal forms, Excel files, safe spreadsheet cells, printable text, whole files."""
