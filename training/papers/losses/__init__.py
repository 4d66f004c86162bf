"""Losses that only the reproduced papers use."""
