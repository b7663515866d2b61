"""Fingerprints: a stage is run again only if something that it is made from has changed, and then the change is named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from unmask.pipeline.call import near

_WORDS = {
    "start": "the stage or run that it starts from has changed",
    "code": "the recipe has changed",
    "tokenizer": "the tokenizer has changed",
}
_NOT_GIVEN: tuple[Any, ...] = (None, False, [], {})
LENGTH = 10  # hex digits of a fingerprint in the name of a folder


def digest(path: str | Path) -> str:
    """A hash of the content of a file. Its name and its date do not count."""
    file = Path(path)
    state = file.stat()
    return _digest(str(file), state.st_size, state.st_mtime_ns)


@cache  # a pipeline with ablations asks for the same files again and again
def _digest(path: str, size: int, changed: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def key_of(made_from: Mapping[str, Any]) -> str:
    """The fingerprint of what something is made from. Of files, only the content counts. What is not given does not count, so
    that a field of a later version changes no fingerprint."""
    given = {name: value for name, value in made_from.items() if value not in _NOT_GIVEN}
    plain = {name: list(value.values()) if isinstance(value, Mapping) else value for name, value in given.items()}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:LENGTH]


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """What is different: a sentence for each value. Values that are mappings hold files and their hashes."""
    for name in dict.fromkeys((*before, *now)):
        old, new = (None if one.get(name) in _NOT_GIVEN else one[name] for one in (before, now))
        if old == new:
            continue
        if isinstance(old, Mapping) or isinstance(new, Mapping):
            yield from _changed_files(old or {}, new or {})
        elif name in _WORDS:
            yield _WORDS[name]
        else:
            yield f"{name} was {_said(old)} and is now {_said(new)}"


def _changed_files(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    yield from (f"{near(name)} has changed" for name in new if name in old and old[name] != new[name])
    if list(old.values()) != list(new.values()):
        yield from (f"{near(name)} is new" for name in new if name not in old)
        yield from (f"{near(name)} is gone" for name in old if name not in new)


def _said(value: Any) -> str:
    return (
        "not given" if value in (None, [], "") else " ".join(map(str, value)) if isinstance(value, list) else str(value)
    )
