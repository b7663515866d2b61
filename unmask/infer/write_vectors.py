"""Write vectors to a file. The suffix of its name selects the format."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from unmask.errors import require


def check_name(path: Path) -> None:
    """Refuse a name with an unknown suffix, before any work is done."""
    require(
        path.suffix.lower() in WRITERS,
        "the file for vectors must end in {writers}, got {path}: give a name with one of these suffixes",
        writers=", ".join(WRITERS),
        path=path,
    )


def write_vectors(path: Path, texts: Sequence[str], vectors: np.ndarray) -> None:
    """Write one vector per text: as an array (.npy), or as a row with the text and its numbers (.csv, .jsonl)."""
    check_name(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[path.suffix.lower()](path, texts, vectors)


def _npy(path: Path, texts: Sequence[str], vectors: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, vectors)


def _csv(path: Path, texts: Sequence[str], vectors: np.ndarray) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", *(f"v{i}" for i in range(vectors.shape[1]))])
        rows.writerows([text, *map(_number, row)] for text, row in zip(texts, vectors, strict=True))


def _jsonl(path: Path, texts: Sequence[str], vectors: np.ndarray) -> None:
    with path.open("w", encoding="utf-8") as file:
        for text, row in zip(texts, vectors, strict=True):
            numbers = [float(_number(value)) for value in row]
            file.write(json.dumps({"text": text, "vector": numbers}, ensure_ascii=False) + "\n")


def _number(value: np.float32) -> str:
    """The shortest text that is read back as the same float32."""
    return np.format_float_positional(value, unique=True, trim="0")


WRITERS: Final[dict[str, Callable[[Path, Sequence[str], np.ndarray], None]]] = {
    ".npy": _npy, ".csv": _csv, ".jsonl": _jsonl,
}  # fmt: skip
