"""What answers over the network."""
