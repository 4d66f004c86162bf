"""The dual encoder in torch: the transformer's weights, the head on pairs, and the encoding of texts."""
