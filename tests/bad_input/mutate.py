"""Mutations of files: bytes changed, or a value of a JSON file replaced or dropped. All a function of the seed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

VALUES: list[Any] = [1.5, 0.5, "x", "", None, [], {}, [1], -1, 0, 10**30, 1e300, True, False]


def mutations(raw: bytes, count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """So many mutants of a JSON file, each with what was done to it."""
    dice = random.Random(seed)
    value = json.loads(raw)
    for number in range(count):
        yield _bytes(raw, dice) if number % 4 == 0 else _values(value, dice)


def _bytes(raw: bytes, dice: random.Random) -> tuple[str, bytes]:
    place, what = dice.randrange(len(raw)), dice.choice(["flip", "cut", "not UTF-8", "insert"])
    middle = {"flip": bytes([raw[place] ^ 1 << dice.randrange(8)]), "not UTF-8": b"\xff", "insert": b"[\x00"}
    return f"{what} at {place}", raw[:place] + (middle[what] + raw[place + 1 :] if what in middle else b"")


def _values(whole: Any, dice: random.Random) -> tuple[str, bytes]:
    mutant = copy.deepcopy(whole)
    places = list(_places(mutant))[1:]
    high = [place for place in places if place[0].count(".") <= 2]
    path, owner, key = dice.choice(dice.choice([places, high]))
    if dice.random() < 0.2:
        del owner[key]
        return f"dropped {path}", json.dumps(mutant).encode()
    owner[key] = dice.choice(VALUES)
    return f"{path} = {owner[key]!r}", json.dumps(mutant).encode()


def _places(value: Any, path: str = "", owner: Any = None, key: Any = None) -> Iterator[tuple[str, Any, Any]]:
    yield path, owner, key
    items = value.items() if isinstance(value, dict) else enumerate(value[:20]) if isinstance(value, list) else ()
    for name, item in list(items)[:60]:
        yield from _places(item, f"{path}.{name}", value, name)
