"""Distillation: teacher targets, batches of neighbouring texts, and the task of the trainer."""
