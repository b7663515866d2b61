"""The writer of shards: writes documents to files, and records for the manifest what was written."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from unmask.batch import Document
from unmask.data.shards import FIXED
from unmask.errors import require
from unmask.text.columns import join_columns

SHARD_TOKENS = 100_000_000


class Writer:
    """Writes the shards of one split into a folder. The first document determines the columns."""

    def __init__(self, folder: Path, split: str, ids_dtype: str) -> None:
        self.folder, self.split, self.ids_dtype = folder, split, ids_dtype
        self.columns: dict[str, dict[str, Any]] = {}  # their descriptions for the manifest
        self.shards: list[dict[str, Any]] = []
        self._open: dict[str, Any] = {}
        self.tokens = self.sentences = self.documents = 0

    def add(self, documents: list[Document]) -> None:
        """Append documents."""
        if not documents:
            return
        self._check_columns(documents)
        if not self._open:
            self._start()
        here = self.shards[-1]
        begins = here["tokens"] + np.cumsum([0, *(len(document.ids) for document in documents)])
        sentences = here["sentences"] + np.cumsum([0, *(len(document.sentences) for document in documents)])
        self._write("ids", np.concatenate([d.ids for d in documents]).astype(self.ids_dtype, copy=False))
        self._write("sentence", np.concatenate([d.sentences + b for d, b in zip(documents, begins, strict=False)]))
        self._write("document", sentences[:-1])
        for name, column in join_columns([document.columns for document in documents]).items():
            self._write(name, column.values)
        counts = {"tokens": int(begins[-1]), "sentences": int(sentences[-1])}
        self._count(counts | {"documents": here["documents"] + len(documents)})

    def _count(self, counts: dict[str, int]) -> None:
        """Update the counts of the open shard; close it if it is full."""
        here = self.shards[-1]
        for name, count in counts.items():
            setattr(self, name, getattr(self, name) + count - here[name])
            here[name] = count
        if here["tokens"] >= SHARD_TOKENS:
            self.close()

    def close(self) -> None:
        """Finish the open shard: write the end marks, close the files, record the checksums."""
        if not self._open:
            return
        here = self.shards[-1]
        self._write("sentence", np.array([here["tokens"]]))
        self._write("document", np.array([here["sentences"]]))
        for column, (file, digest) in self._open.items():
            file.close()
            here["sha256"][column] = digest.hexdigest()
        self._open = {}

    def _check_columns(self, documents: list[Document]) -> None:
        for document in documents:
            found = {name: column.record for name, column in document.columns.items()}
            self.columns = self.columns or found
            require(
                found == self.columns,
                "all documents must have the same columns: the first one has {columns}, another one has {found}",
                columns=self.columns,
                found=found,
            )
        taken = sorted(self.columns.keys() & set(FIXED))
        require(
            not taken,
            ("a column may not be called {taken}, because a file of every shard has this name: choose another name"),
            taken=", ".join(taken),
        )

    def _start(self) -> None:
        name = f"{self.split}-{len(self.shards):05d}"
        self.shards.append({"name": name, "tokens": 0, "sentences": 0, "documents": 0, "sha256": {}})
        files = (*FIXED, *self.columns)
        self._open = {file: ((self.folder / f"{name}.{file}").open("wb"), hashlib.sha256()) for file in files}

    def _write(self, column: str, values: np.ndarray) -> None:
        file, digest = self._open[column]
        raw = values.astype(FIXED.get(column) or values.dtype, copy=False).tobytes()
        file.write(raw)
        digest.update(raw)
