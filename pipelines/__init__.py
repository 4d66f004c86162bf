"""Apache Beam pipelines: descriptions stream in, the corpus is re-embedded on schedule."""
