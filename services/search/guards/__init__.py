"""Middlewares before the routes, and the operation of the process: keys, limits, overload, metrics, logs, stopping."""
