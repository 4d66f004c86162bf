"""Text formats: JSON from outside, and cells that a spreadsheet does not run."""
