"""Losses that only the commands of training.papers use; the losses of `training.train` are in training.losses."""
