"""What the encoder reads of a description: sentences, names, phrases, language."""
