"""How good an encoder is, measured the same way for every method."""
