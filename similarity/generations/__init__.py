"""Generations above the index contract: begin the first, re-embed into a new one, judge it, keep or remove it."""
