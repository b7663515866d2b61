"""Fingerprint: a hash of all that decides the vectors of a run. Vectors of two runs must not be compared."""

from __future__ import annotations

import hashlib
from pathlib import Path

from unmask import run

FILES = (run.RECIPE, run.TOKENIZER, run.WEIGHTS)


def fingerprint(folder: Path) -> str:
    """The hash of a run's recipe, tokenizer and weights."""
    found = hashlib.sha256()
    for name in FILES:
        with (folder / name).open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:32]
