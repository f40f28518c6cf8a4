"""No network for the kernels that tests start: Python imports this by its name when it begins."""

import sys

LOOPBACK = {"127.0.0.1", "::1", "localhost", "0.0.0.0", "", None}


def guard(event: str, arguments: tuple) -> None:
    """An audit hook: an error, whatever a library would make of it, at the first step outside."""
    if event == "socket.connect":
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None  # a path: on this machine
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host not in LOOPBACK:
        raise RuntimeError(f"a notebook wants the network: {event} {host}")


sys.addaudithook(guard)
