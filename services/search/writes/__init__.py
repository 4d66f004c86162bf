"""Companies in: writes, bulk, erasure."""
