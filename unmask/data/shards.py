"""Shards: uncorrupted tokens and their boundaries on disk, memory-mapped, good for every recipe of one tokenizer.

A data folder holds `manifest.json`, `tokenizer.json` and, for each shard, one file per column:
    ids        the tokens                                  uint16, or uint32 for a large vocabulary
    word       1 where a token begins a word               uint8
    sentence   index of the first token of each sentence   int64, and the number of tokens at the end
    document   index of the first sentence of each document  int64, and the number of sentences at the end
and, where it was prepared with a lexicon:
    phrase     0 in no phrase, 1 begins one, 2 goes on with it   uint8
    entity     the same for entities                             uint8
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unmask.batch import Document
from unmask.errors import UserError, require
from unmask.text.lexicon import LEVELS
from unmask.type_check import check_types

VERSION = 1
COLUMNS = ("ids", "word", "sentence", "document")
DTYPES = {"word": "uint8", "sentence": "int64", "document": "int64", "phrase": "uint8", "entity": "uint8"}
SHARD_TOKENS = 100_000_000
_MANIFEST: dict[str, Any] = {
    "splits": dict[str, tuple[dict[str, Any], ...]],
    "ids_dtype": Literal["uint16", "uint32"],
    "tokenizer": str,
    "words": str,
}
_SHARD: dict[str, Any] = {
    "name": str,
    "tokens": int,
    "sentences": int,
    "documents": int,
    "sha256": dict[str, str],
}


@dataclass(frozen=True)
class Shard:
    """One shard's columns, mapped and not read."""

    ids: np.ndarray
    word: np.ndarray
    sentence: np.ndarray
    document: np.ndarray
    phrase: np.ndarray | None = None
    entity: np.ndarray | None = None


class Writer:
    """Writes the shards of one split into a folder, and tells the manifest what it wrote."""

    def __init__(self, folder: Path, split: str, ids_dtype: str, *, levels: Sequence[str] = ()) -> None:
        self.folder, self.split, self.ids_dtype = folder, split, ids_dtype
        self.levels = tuple(levels)
        self.shards: list[dict[str, Any]] = []
        self._open: dict[str, Any] = {}
        self.tokens = self.sentences = self.documents = 0

    def add(
        self, ids: np.ndarray, word: np.ndarray, sentences: np.ndarray, documents: np.ndarray, *levels: np.ndarray
    ) -> None:
        """Append documents: tokens, word flags, tokens per sentence, sentences per document, a column per level."""
        if not self._open:
            self._start()
        here = self.shards[-1]
        self._write("ids", ids.astype(self.ids_dtype, copy=False))
        self._write("word", word.astype(np.uint8, copy=False))
        self._write("sentence", here["tokens"] + np.cumsum(sentences, dtype=np.int64) - sentences)
        self._write("document", here["sentences"] + np.cumsum(documents, dtype=np.int64) - documents)
        for level, units in zip(self.levels, levels, strict=True):
            self._write(level, units.astype(np.uint8, copy=False))
        for name, count in (("tokens", len(ids)), ("sentences", len(sentences)), ("documents", len(documents))):
            here[name] += count
            setattr(self, name, getattr(self, name) + count)
        if here["tokens"] >= SHARD_TOKENS:
            self.close()

    def close(self) -> None:
        """Finish the open shard: end marks, files closed, checksums noted."""
        if not self._open:
            return
        here = self.shards[-1]
        self._write("sentence", np.array([here["tokens"]], dtype=np.int64))
        self._write("document", np.array([here["sentences"]], dtype=np.int64))
        for column, (file, digest) in self._open.items():
            file.close()
            here["sha256"][column] = digest.hexdigest()
        self._open = {}

    def _start(self) -> None:
        name = f"{self.split}-{len(self.shards):05d}"
        self.shards.append({"name": name, "tokens": 0, "sentences": 0, "documents": 0, "sha256": {}})
        columns = (*COLUMNS, *self.levels)
        self._open = {column: ((self.folder / f"{name}.{column}").open("wb"), hashlib.sha256()) for column in columns}

    def _write(self, column: str, values: np.ndarray) -> None:
        file, digest = self._open[column]
        raw = values.tobytes()
        file.write(raw)
        digest.update(raw)


class Shards:
    """A prepared data folder, opened and checked."""

    def __init__(self, folder: str | Path, *, verify: bool = True) -> None:
        self.folder = Path(folder)
        path = self.folder / "manifest.json"
        require(path.is_file(), f"{folder} is not prepared data: make it with 'unmask prepare CORPUS --out {folder}'")
        try:
            self.manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            version = self.manifest.get("version")
        except (ValueError, AttributeError) as error:
            raise UserError(f"{path} is damaged ({error}): prepare {folder} again") from None
        require(version == VERSION, f"{folder} was prepared in format {version}, this is {VERSION}: prepare it again")
        _check_manifest(self.manifest, path)
        if verify:
            self._verify()

    @property
    def tokens(self) -> int:
        return sum(shard["tokens"] for shard in self.manifest["splits"]["train"])

    @property
    def columns(self) -> tuple[str, ...]:
        """What every shard holds: those of a lexicon only where there was one."""
        return (*COLUMNS, *(LEVELS if self.manifest.get("lexicon") else ()))

    def split(self, name: str) -> list[Shard]:
        """The shards of `train` or `holdout`."""
        return [self._map(entry) for entry in self.manifest["splits"].get(name, [])]

    def documents(self, name: str) -> int:
        """How many documents a split has."""
        return sum(shard["documents"] for shard in self.manifest["splits"].get(name, []))

    def _dtype(self, column: str) -> np.dtype:
        return np.dtype(self.manifest["ids_dtype"] if column == "ids" else DTYPES[column])

    def _map(self, entry: dict[str, Any]) -> Shard:
        return Shard(**{column: self._column(entry["name"], column) for column in self.columns})

    def _column(self, name: str, column: str) -> np.ndarray:
        path = self.folder / f"{name}.{column}"
        empty = path.stat().st_size == 0
        return (
            np.zeros(0, self._dtype(column))
            if empty
            else np.asarray(np.memmap(path, mode="r", dtype=self._dtype(column)))
        )

    def _verify(self) -> None:
        for entry in [entry for split in self.manifest["splits"].values() for entry in split]:
            for column, expected in entry["sha256"].items():
                path = self.folder / f"{entry['name']}.{column}"
                require(path.is_file(), f"{path} is missing: prepare {self.folder} again")
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
                if found != expected:
                    raise UserError(
                        f"{path} is damaged (its checksum is not the manifest's): prepare {self.folder} again"
                    )


def _check_manifest(manifest: dict[str, Any], path: Path) -> None:
    """Refuse a manifest that lacks what is read of it, or has it in another type."""
    for hints, values, where in (
        (_MANIFEST, manifest, f"{path} is damaged: "),
        *((_SHARD, entry, f"{path} is damaged: a shard's ") for split in _lists(manifest) for entry in split),
    ):
        lacking = sorted(hints.keys() - values.keys())
        require(not lacking, f"{where}{', '.join(lacking)} is missing; prepare {path.parent} again")
        check_types(hints, values, where)


def _lists(manifest: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The shards of each split, as far as they are such."""
    splits = manifest.get("splits")
    found = splits.values() if isinstance(splits, dict) else ()
    return [[entry for entry in split if isinstance(entry, dict)] for split in found if isinstance(split, list)]


@dataclass(frozen=True)
class Texts:
    """Some documents side by side in memory: the raw material of one group of rows."""

    ids: np.ndarray  # tokens of all documents
    word: np.ndarray  # bool, begins a word
    sentence: np.ndarray  # first token of each sentence, then the number of tokens
    document: np.ndarray  # first sentence of each document, then the number of sentences
    phrase: np.ndarray | None = None  # 0 in no phrase, 1 begins one, 2 goes on with it; None: not looked for
    entity: np.ndarray | None = None  # the same for entities

    @classmethod
    def of(cls, documents: list[Document]) -> Texts:
        """The same from documents just tokenised."""
        begins = np.cumsum([0, *(len(d.ids) for d in documents)])
        return cls(
            np.concatenate([d.ids for d in documents]).astype(np.int64),
            np.concatenate([d.word for d in documents]).astype(bool),
            np.concatenate([*(d.sentences + b for d, b in zip(documents, begins, strict=False)), begins[-1:]]),
            np.cumsum([0, *(len(d.sentences) for d in documents)]),
            **{level: _joined([getattr(d, level) for d in documents]) for level in LEVELS},
        )


class Collection:
    """All documents of a split as one numbered list, whatever shards they lie in."""

    def __init__(self, shards: list[Shard]) -> None:
        self.shards = [shard for shard in shards if len(shard.document) > 1]
        self.first = np.cumsum([0, *(len(shard.document) - 1 for shard in self.shards)])
        self.levels = [name for name in LEVELS if all(getattr(shard, name) is not None for shard in self.shards)]

    def __len__(self) -> int:
        return int(self.first[-1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """Tokens per document."""
        return np.concatenate([np.diff(shard.sentence[shard.document]) for shard in self.shards])

    def places(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The shard of each document, and the index of its first token there."""
        owners = np.searchsorted(self.first, numbers, side="right") - 1
        begins = np.empty(len(numbers), np.int64)
        for owner in np.unique(owners):
            mine, shard = owners == owner, self.shards[owner]
            begins[mine] = shard.sentence[shard.document[numbers[mine] - self.first[owner]]]
        return owners, begins

    def gather(self, numbers: np.ndarray) -> Texts:
        """The named documents, side by side, in this order."""
        ids, word, sentence, counts, at = [], [], [], [], 0
        units: dict[str, list[np.ndarray]] = {level: [] for level in self.levels}
        owners = np.searchsorted(self.first, numbers, side="right") - 1
        for number, owner in zip(numbers.tolist(), owners.tolist(), strict=True):
            shard, local = self.shards[owner], number - int(self.first[owner])
            s0, s1 = int(shard.document[local]), int(shard.document[local + 1])
            starts = shard.sentence[s0 : s1 + 1]
            t0, t1 = int(starts[0]), int(starts[-1])
            ids.append(shard.ids[t0:t1])
            word.append(shard.word[t0:t1])
            for level, found in units.items():
                found.append(getattr(shard, level)[t0:t1])
            sentence.append(starts[:-1] + (at - t0))
            counts.append(s1 - s0)
            at += t1 - t0
        return Texts(
            np.concatenate(ids).astype(np.int64),
            np.concatenate(word).astype(bool),
            np.concatenate([*sentence, [at]]).astype(np.int64),
            np.cumsum([0, *counts]),
            **{level: _joined(found) for level, found in units.items()},
        )


def _joined(columns: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """The columns of all documents as one; None where one of them has none."""
    return None if any(column is None for column in columns) else np.concatenate(columns)  # type: ignore[arg-type]
