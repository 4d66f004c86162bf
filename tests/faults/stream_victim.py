"""Runs `pipelines.stream` with a mistake planted in it, or with none: a process that a campaign kills.

    python -m tests.faults.stream_victim MISTAKE [ARGUMENT...]

It prints `began` when its imports, which take seconds, are done.
"""

import sys
from collections.abc import Callable
from typing import Any


def main(mistake: str, *arguments: str) -> None:
    """Runs the command."""
    import apache_beam.runners.portability.fn_api_runner
    import confluent_kafka

    from pipelines import stream

    del apache_beam, confluent_kafka
    if mistake:
        MISTAKES[mistake]()
    print("began", flush=True)
    stream.main(arguments)


def _commit_first() -> None:
    """Offsets are committed when they are read, before anything is written."""
    from pipelines.sources.kafka_reader import KafkaMark, KafkaReader

    honest = KafkaReader.get_checkpoint_mark

    def hasty(reader: KafkaReader) -> KafkaMark:
        mark = honest(reader)
        mark.finalize_checkpoint()
        return mark

    _replace(KafkaReader, get_checkpoint_mark=hasty)


def _buffer_across_bundles() -> None:
    """A batch that is not full waits for the next bundle instead of being settled at the end of its own."""
    from pipelines.transforms import EmbedAndWrite

    honest = EmbedAndWrite.start_bundle

    def start(writing: EmbedAndWrite) -> None:
        if not hasattr(writing, "_buffer"):
            honest(writing)

    _replace(EmbedAndWrite, start_bundle=start, finish_bundle=lambda writing: None)


def _forget_dead_letters() -> None:
    """A file of dead letters is finished only when its worker ends."""
    from pipelines.dead_letters import _WriteFile

    _replace(_WriteFile, start_bundle=lambda writing: None, finish_bundle=lambda writing: None)


def _replace(owner: type, **methods: Callable[..., Any]) -> None:
    for name, method in methods.items():
        setattr(owner, name, method)


MISTAKES: dict[str, Callable[[], None]] = {
    "commit before the write": _commit_first,
    "a buffer kept across bundles": _buffer_across_bundles,
    "dead letters kept open": _forget_dead_letters,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
