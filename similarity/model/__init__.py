"""A bundle's parts: manifest, ONNX graph, calibration, runtimes, and what the library needs of an encoder."""
