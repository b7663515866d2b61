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
