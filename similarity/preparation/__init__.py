"""Text preparation before encoding: name masking, origin sentences, phrases, language, legal forms."""
