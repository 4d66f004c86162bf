"""A trained model as a bundle: ONNX graph, int8, quality gates, card.

The command is `python -m training.export`.
"""
