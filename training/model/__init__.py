"""The dual encoder in torch: its weights, its head, texts to vectors."""
