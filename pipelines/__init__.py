"""Apache Beam pipelines: stream companies into an index, replay dead letters, and re-embed an index on schedule."""
