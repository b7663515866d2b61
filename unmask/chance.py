"""Counter-based randomness: a hash of counters instead of a generator; the same for numpy and torch, on any device.

Every random choice about data is a pure function of (seed, row, visit, position, purpose). The hash is the finaliser of
splitmix64. 64-bit products wrap around, and a mask makes the right shift logical.
"""

from __future__ import annotations

from typing import Any

Array = Any  # an int64 numpy array or torch tensor; both know * + ^ >> &

_GOLDEN, _FIRST, _SECOND = -7046029254386353131, -4658895280553007687, -7723592293110705685
_UNIT = 1.0 / (1 << 24)


def purpose(name: str) -> int:
    """A stable number for the name of a purpose, so that different purposes have different draws."""
    number, data = 1469598103934665603, name.encode()
    for place in range(len(data)):  # torch.compile cannot iterate over bytes
        number = ((number ^ data[place]) * 1099511628211) & 0x7FFFFFFFFFFFFFFF
    return number


def _mix(x: Array) -> Array:
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * _FIRST
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * _SECOND
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


def draw(like: Array, *counters: Array | int) -> Array:
    """A 63-bit number for every element of `like` (the innermost counter), given the other counters.

    Arrays must broadcast against each other; plain numbers apply to every element.
    """
    state = like * 0
    for counter in (*counters, like):
        if isinstance(counter, int):
            counter = _signed(counter)
        state = _mix((state ^ counter) + _GOLDEN)
    return state & 0x7FFFFFFFFFFFFFFF


def uniform(like: Array, *counters: Array | int) -> Array:
    """A number in [0, 1) per element, with 24 random bits: the same float32 on every device."""
    return (draw(like, *counters) >> 39) * _UNIT


def below(limit: Array | int, like: Array, *counters: Array | int) -> Array:
    """A whole number in [0, limit) per element."""
    return draw(like, *counters) % limit


def _signed(number: int) -> int:
    number &= 0xFFFFFFFFFFFFFFFF
    return number - (1 << 64) if number >> 63 else number


def generator(*counters: int) -> Any:
    """A numpy generator with these counters as its key (Philox), for choices that need many kinds of draws."""
    import numpy as np

    key = draw(np.zeros(2, dtype=np.int64) + np.arange(2), *counters)
    return np.random.Generator(np.random.Philox(key=key.astype(np.uint64)))


def seed_torch(number: int, *, device: str = "cpu") -> None:
    """Seed the generator that torch draws from on this device.

    `torch.manual_seed` seeds all kinds of devices. For each kind that is not in use it formats the stack of calls, which
    takes longer than many operations of a small network."""
    import torch

    if device == "cpu":
        torch.default_generator.manual_seed(number)
    else:
        torch.manual_seed(number)
