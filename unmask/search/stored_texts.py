"""Many texts in two files: all bytes one after another, and where each text begins. They are mapped, not read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from unmask.errors import UserError, require


class StoredTexts:
    """The texts of a folder by number. Only what is asked for is read from the disk."""

    def __init__(self, folder: Path, name: str) -> None:
        data, ends = _files(folder, name)
        require(
            data.is_file() and ends.is_file(),
            "{folder} is damaged, it has no {data}: make the index again",
            folder=folder,
            data=data.name,
        )
        try:
            self.ends = np.load(ends, mmap_mode="r")
        except ValueError as error:
            raise UserError("{ends} is damaged: {error}; make the index again", ends=ends, error=error) from None
        self.data = np.memmap(data, np.uint8, "r") if data.stat().st_size else np.zeros(0, np.uint8)
        whole = int(self.ends[-1]) if len(self.ends) else 0
        require(whole == len(self.data), "{data} is damaged: make the index again", data=data)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> str:
        begin = int(self.ends[number - 1]) if number else 0
        return bytes(self.data[begin : int(self.ends[number])]).decode("utf-8")


def write_texts(folder: Path, name: str, texts: Iterable[str], *, before: StoredTexts | None = None) -> None:
    """Write texts, after those that are stored already."""
    data, ends = _files(folder, name)
    at = int(before.ends[-1]) if before is not None and len(before) else 0
    found = [] if before is None else [np.asarray(before.ends)]
    new: list[int] = []
    with data.open("wb") as file:
        if before is not None:
            before.data.tofile(file)
        for text in texts:
            raw = text.encode("utf-8")
            file.write(raw)
            at += len(raw)
            new.append(at)
    np.save(ends, np.concatenate([*found, np.array(new, np.int64)]))


def _files(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.bin", folder / f"{name}.npy"
