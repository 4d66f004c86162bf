"""Ports for servers."""

import random
import socket
from contextlib import ExitStack

# Below the range that systems give to outgoing connections, so that a server that was killed finds its port free
# when it starts again, and away from the ports that servers have by default.
CHOICE = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """So many different ports of 127.0.0.1 on which nobody listens now."""
    ports: list[int] = []
    chance = random.SystemRandom()
    with ExitStack() as opened:
        while len(ports) < count:
            listener = opened.enter_context(socket.socket())
            port = chance.choice(CHOICE)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
    return ports


def someone_listens(port: int) -> bool:
    """Whether a server of this machine accepts connections on the port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
