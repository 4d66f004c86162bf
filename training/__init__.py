"""Fine-tuning, evaluation and export of encoders. The only package that uses torch and transformers."""
