"""Brings up processes that run `pipelines.stream` and may be killed: Beam, which takes seconds to import, is shared.

    python -m tests.faults.stream_nursery

A line of JSON on its input starts one: its `arguments`, its `log` file, and a `mistake` to plant, or none.
The process id comes back at once and the exit status at the end, each as a line. What is opened (index,
Kafka, encoder) is opened by the forked child alone, which runs the command as a user would.
"""

import ctypes
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Until the input ends."""
    _end_with_parent()
    _warm_up()
    for line in sys.stdin:
        wanted = json.loads(line)
        if (pid := os.fork()) == 0:
            _live(wanted)
        _say(pid)
        _say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _warm_up() -> None:
    """Imports what takes long and starts no thread: a fork takes one along and leaves the locks of others shut."""
    import apache_beam.runners.portability.fn_api_runner
    import confluent_kafka

    from similarity.preparation.language import detect_language

    del apache_beam, confluent_kafka
    detect_language("Reads a table that takes a second.")
    threads = list(Path("/proc/self/task").iterdir())
    if len(threads) != 1:
        sys.exit(f"{len(threads)} threads run after the imports; it would not be safe to fork")


def _live(wanted: dict[str, Any]) -> None:
    """The child's whole life."""
    _end_with_parent()
    status = 1
    try:
        log = os.open(wanted["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        from pipelines import stream

        if wanted["mistake"]:
            MISTAKES[wanted["mistake"]]()
        stream.main(wanted["arguments"])
        status = 0
    except SystemExit as end:
        sys.stderr.write(f"{end.code}\n")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


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

    def start(writing: Any) -> None:
        if not hasattr(writing, "_buffer"):
            writing._buffer, writing._bytes = [], 0

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


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
