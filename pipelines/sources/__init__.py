"""Where messages come from. Every source is a PTransform `PBegin -> PCollection[Message]`."""
