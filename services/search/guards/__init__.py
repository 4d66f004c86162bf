"""What stands before the routes, and how the process is run: keys, limits, overload, metrics, logs, stopping."""
