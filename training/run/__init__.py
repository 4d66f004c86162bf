"""One run of the trainer: its task, its processes, and the files that it writes and continues from."""
