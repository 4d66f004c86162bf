"""Fine-tuning, evaluation and export of encoders. The only home of torch and transformers."""
