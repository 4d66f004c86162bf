"""Fine-tuning, evaluation and export of encoders. Of the four packages, only this one uses torch and transformers."""
