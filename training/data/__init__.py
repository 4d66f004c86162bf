"""Pairs and texts: files to labelled pairs, splits by anchor, batches, checkpoint selection."""
