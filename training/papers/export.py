"""Exports the model of any method, IS-BERT with its convolutions included, as a bundle.

    python -m training.papers.export --model runs/sentences/best --output bundles

The options are those of training.export.
"""

from collections.abc import Sequence

from training.export import __main__ as command
from training.papers.sentence_models import load_sentence_encoder


def main(arguments: Sequence[str] | None = None) -> None:
    """Run training.export with the loader of these models."""
    command.main(arguments, load=load_sentence_encoder)


if __name__ == "__main__":
    main()
