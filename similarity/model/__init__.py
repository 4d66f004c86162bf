"""A bundle's parts: manifest, calibration, ranker, runtimes of the graph, and the interface of an encoder."""
