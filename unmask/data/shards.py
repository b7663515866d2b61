"""Shards: prepared tokens and their columns on disk, memory-mapped; they serve every recipe with the same tokenizer.

A data folder holds `manifest.json`, `tokenizer.json` and, for each shard, these files:
    ids        the tokens                                    uint16, or uint32 for a large vocabulary
    sentence   index of the first token of each sentence     int64, and the number of tokens at the end
    document   index of the first sentence of each document  int64, and the number of sentences at the end
and one file for each column (`unmask.text.columns`). The manifest says which columns there are, and the kind, type,
trailing shape and fill value of each.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unmask.batch import Document
from unmask.data.format_1 import FlaggedWords, columns_of_format_1
from unmask.errors import UserError, require
from unmask.text.columns import Column, join_columns
from unmask.type_check import check_types

VERSION = 2
MANIFEST = "manifest.json"
GRAPH = "graph"  # the folder of the graph that `links` refer to
FIXED = {"ids": "", "sentence": "int64", "document": "int64"}  # files of every shard; the manifest has the type of ids
_MANIFEST: dict[str, Any] = {
    "splits": dict[str, tuple[dict[str, Any], ...]],
    "ids_dtype": Literal["uint16", "uint32"],
    "tokenizer": str,
    "words": str,
    "columns": dict[str, dict[str, Any]],
}
_COLUMN: dict[str, Any] = {"kind": Literal["run", "value"], "dtype": str, "shape": tuple[int, ...], "fill": int}
_SHARD: dict[str, Any] = {
    "name": str,
    "tokens": int,
    "sentences": int,
    "documents": int,
    "sha256": dict[str, str],
}


@dataclass(frozen=True)
class Shard:
    """The memory-mapped files of one shard."""

    ids: np.ndarray
    sentence: np.ndarray
    document: np.ndarray
    columns: dict[str, Column]


class Shards:
    """A folder of prepared data, opened and checked."""

    def __init__(self, folder: str | Path, *, verify: bool = True) -> None:
        self.folder = Path(folder)
        path = self.folder / MANIFEST
        require(
            path.is_file(),
            "{folder} is not prepared data: make it with 'unmask prepare CORPUS --tokenizer FILE --out FOLDER'",
            folder=folder,
        )
        try:
            self.manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            self.version = self.manifest.get("version")
        except (ValueError, AttributeError) as error:
            raise UserError(
                "{path} is damaged ({error}): prepare {folder} again", path=path, error=error, folder=folder
            ) from None
        require(
            self.version in (1, VERSION),
            (
                "{folder} was prepared in format {version}; this version of unmask reads the formats 1 and "
                "{version_2}: prepare it again"
            ),
            folder=folder,
            version=self.version,
            version_2=VERSION,
        )
        if self.version == 1:
            self.manifest["columns"] = columns_of_format_1(self.manifest)
        _check_manifest(self.manifest, path)
        if verify:
            self._verify()

    @property
    def tokens(self) -> int:
        return sum(shard["tokens"] for shard in self.manifest["splits"]["train"])

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that every shard has."""
        return tuple(self.manifest["columns"])

    def split(self, name: str) -> list[Shard]:
        """The shards of `train` or `holdout`."""
        return [self._map(entry["name"]) for entry in self.manifest["splits"].get(name, [])]

    def documents(self, name: str) -> int:
        """The number of documents of a split."""
        return sum(shard["documents"] for shard in self.manifest["splits"].get(name, []))

    def _map(self, shard: str) -> Shard:
        ids, sentence, document = (
            self._file(shard, name, dtype or self.manifest["ids_dtype"]) for name, dtype in FIXED.items()
        )
        return Shard(ids, sentence, document, {name: self._column(shard, name) for name in self.columns})

    def _column(self, shard: str, name: str) -> Column:
        record = self.manifest["columns"][name]
        values = self._file(shard, name, record["dtype"]).reshape(-1, *record["shape"])
        if self.version == 1 and name == "word":
            return FlaggedWords(values)
        return Column(values, record["kind"], record["fill"])

    def _file(self, shard: str, name: str, dtype: str) -> np.ndarray:
        path = self.folder / f"{shard}.{name}"
        if path.stat().st_size == 0:  # an empty file cannot be memory-mapped
            return np.zeros(0, dtype)
        return np.asarray(np.memmap(path, mode="r", dtype=dtype))

    def _verify(self) -> None:
        for entry in [entry for split in self.manifest["splits"].values() for entry in split]:
            for column, expected in entry["sha256"].items():
                path = self.folder / f"{entry['name']}.{column}"
                require(path.is_file(), "{path} is missing: prepare {folder} again", path=path, folder=self.folder)
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
                if found != expected:
                    raise UserError(
                        "{path} is damaged (its checksum differs from the manifest): prepare {folder} again",
                        path=path,
                        folder=self.folder,
                    )


def _check_manifest(manifest: dict[str, Any], path: Path) -> None:
    """Refuse a manifest in which a field is missing or has a wrong type."""
    columns = manifest.get("columns")
    records = columns.values() if isinstance(columns, dict) else ()
    for hints, values, where in (
        (_MANIFEST, manifest, f"{path} is damaged: "),
        *((_COLUMN, record, f"{path} is damaged: a column's ") for record in records if isinstance(record, dict)),
        *((_SHARD, entry, f"{path} is damaged: a shard's ") for split in _lists(manifest) for entry in split),
    ):
        lacking = sorted(hints.keys() - values.keys())
        require(
            not lacking,
            "{where}{lacking} is missing: prepare {parent} again",
            where=where,
            lacking=", ".join(lacking),
            parent=path.parent,
        )
        check_types(hints, values, where)


def _lists(manifest: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The shards of each split that the manifest has."""
    splits = manifest.get("splits")
    found = splits.values() if isinstance(splits, dict) else ()
    return [[entry for entry in split if isinstance(entry, dict)] for split in found if isinstance(split, list)]


@dataclass(frozen=True)
class Texts:
    """Some documents, concatenated in memory; one group of rows is made from them."""

    ids: np.ndarray  # tokens of all documents
    sentence: np.ndarray  # first token of each sentence, then the number of tokens
    document: np.ndarray  # first sentence of each document, then the number of sentences
    columns: dict[str, Column]

    @classmethod
    def of(cls, documents: list[Document]) -> Texts:
        """Texts from documents that were just tokenised."""
        begins = np.cumsum([0, *(len(d.ids) for d in documents)])
        return cls(
            np.concatenate([d.ids for d in documents]).astype(np.int64),
            np.concatenate([*(d.sentences + b for d, b in zip(documents, begins, strict=False)), begins[-1:]]),
            np.cumsum([0, *(len(d.sentences) for d in documents)]),
            join_columns([d.columns for d in documents]),
        )


class Collection:
    """All documents of a split as one numbered list, over all shards."""

    def __init__(self, shards: list[Shard]) -> None:
        self.shards = [shard for shard in shards if len(shard.document) > 1]
        self.first = np.cumsum([0, *(len(shard.document) - 1 for shard in self.shards)])

    def __len__(self) -> int:
        return int(self.first[-1])

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The columns that all shards have, without entries."""
        return join_columns([{name: column[:0] for name, column in shard.columns.items()} for shard in self.shards])

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
        """The documents with these numbers, concatenated in this order."""
        owners = np.searchsorted(self.first, numbers, side="right") - 1
        return Texts.of([
            self._document(self.shards[owner], number - int(self.first[owner]))
            for number, owner in zip(numbers.tolist(), owners.tolist(), strict=True)
        ])  # fmt: skip

    def _document(self, shard: Shard, number: int) -> Document:
        sentences = shard.sentence[int(shard.document[number]) : int(shard.document[number + 1]) + 1]
        begin, end = int(sentences[0]), int(sentences[-1])
        columns = {name: shard.columns[name][begin:end] for name in self.columns}
        return Document(shard.ids[begin:end], sentences[:-1] - begin, columns)
