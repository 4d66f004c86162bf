"""Runs a server and kills it, with all that it started, as soon as whoever started the guard is gone.

    python guard.py COMMAND [ARGUMENT...]

A test run that is killed with SIGKILL cleans nothing up, and Linux tells a child of its parent's death
only until the child changes its user or starts a further process: Elasticsearch does both. So this
process stands between: it holds the reading end of a pipe, which the system closes however the test
run ends. It uses no other file of this project and only the standard library.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading

PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    """Returns when no process of the server is left: whoever waits for that may start it again at once."""
    if sys.platform == "linux":
        # Orphans among the server's processes become children of this one, so that it can wait for them too.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    threading.Thread(target=_kill_at_end_of_input, args=(server.pid,), daemon=True).start()
    status = server.wait()
    _kill(server.pid)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-server.pid, 0)
    return status if status >= 0 else 128 - status


def _kill_at_end_of_input(group: int) -> None:
    while os.read(0, 4096):  # not by Python's own buffer, whose lock this thread would hold when the guard ends
        pass
    _kill(group)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
