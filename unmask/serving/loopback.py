"""Whether an address is this machine itself."""

from __future__ import annotations

import ipaddress
from typing import Final

HERE: Final = ("127.0.0.1", "localhost", "::1")  # the usual names of this machine


def is_here(host: str) -> bool:
    """Whether only this machine is reached by this name or address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """The name in a Host header, without the port: "localhost:8000", "[::1]:8000"."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()
