"""The sources of messages. Every source is a PTransform `PBegin -> PCollection[Message]`."""
