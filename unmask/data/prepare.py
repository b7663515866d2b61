"""Prepare: turn a corpus into shards. All cores tokenise, one process reads and writes, and memory is bounded."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unmask.batch import Document
from unmask.data.holdout import STRETCH, by_document, by_stretch
from unmask.data.shard_writer import Writer
from unmask.data.shards import GRAPH, MANIFEST, VERSION
from unmask.data.unknown_tokens import NOTED, Unknown, note_of
from unmask.data.workers import in_workers, used_workers
from unmask.errors import require
from unmask.text import Corpus, Lexicon, Linker, OwnWords, Tokenizer, Words, encode_documents
from unmask.text.atomic_write import check_free, drafted
from unmask.text.boundaries import CHINESE, available, segmenter
from unmask.text.encode import SIDE, encode_pairs
from unmask.text.links import LINKED, LINKS, UNLINKED, Mention

HOLDOUT = 0.005  # the usual share of tokens that is kept for validation
CHUNK = 1 << 19  # characters sent to a worker at a time
Given = tuple[str, tuple[Mention, ...] | None]  # a text, and the links that it brings
Worked = tuple[list[Document], Counter[str], Counter[str]]  # documents, unknown texts, notes


@dataclass(frozen=True)
class Reading:
    """How workers read and tokenise texts."""

    tokenizer: str  # its JSON
    words: Words
    own: OwnWords | None
    lexicon: Lexicon | None
    linker: Linker | None
    capitals: bool
    whole: bool
    pairs: bool  # each text is a source and a target
    dtype: str  # of ids


def prepare(
    corpus: Corpus,
    tokenizer: Tokenizer,
    out: str | Path,
    *,
    words: Words = "auto",
    own: OwnWords | None = None,
    lexicon: Lexicon | None = None,
    linker: Linker | None = None,
    graph: Path | None = None,
    mention_id: str = "id",
    capitals: bool = False,
    holdout: float = HOLDOUT,
    workers: int | None = None,
    overwrite: bool = False,
) -> Iterator[dict[str, Any]]:
    """Write shards to `out`, yielding a progress record per chunk; the last one is the manifest.

    `linker`: finds the entities of a graph. `graph`: the folder of its vectors, which is copied into the data.
    `mention_id`: the name of the id in the mentions that a text brings. `capitals`: add the column of words that begin with
    a capital letter."""
    require(
        0 <= holdout < 1,
        "holdout must be in [0, 1), got {holdout}: write 0.005 or 0.5% for half a percent",
        holdout=holdout,
    )
    out = Path(out)
    check_free(out, overwrite=overwrite, folder=True, marker=MANIFEST)
    found = available(words)
    if found == "rjieba":
        segmenter()  # fail now if it is not installed
    require(
        linker is None or not corpus.pairs,
        "--graph links entities in texts, but the corpus holds pairs of a source and a target: leave --graph out",
    )
    dtype = "uint16" if tokenizer.vocabulary.size <= 1 << 16 else "uint32"
    require(
        not capitals or not corpus.pairs,
        "--capitals has no effect, because the corpus holds pairs of a source and a target: leave it out",
    )
    reading = Reading(
        tokenizer.backend.to_str(), found, own, lexicon, linker, capitals, corpus.whole, corpus.pairs, dtype
    )
    with drafted(out, folder=True) as draft:
        writers = {split: Writer(draft, split, dtype) for split in ("train", "holdout")}
        unknown, notes = Unknown(), Counter[str]()
        texts = ((text, None) for text in corpus) if linker is None else corpus.with_mentions(mention_id)
        parts_of = _chunks(corpus, texts, warn=found != words)
        chunks = _tokenised(parts_of, reading, unknown, notes, used_workers(workers))
        for parts in (by_stretch if corpus.whole else by_document)(chunks, holdout):
            for writer, documents in zip(writers.values(), parts, strict=True):
                writer.add(documents)
            yield _counts(writers) | {"bytes": corpus.bytes_done, "bytes_total": corpus.bytes_total}
        for writer in writers.values():
            writer.close()
        require(
            writers["train"].tokens > 0,
            "the corpus gave no tokens to train on: check that it holds more than white space",
        )
        if holdout and not writers["holdout"].tokens:
            _none_held_out(corpus, writers["train"].tokens, holdout)
        tokenizer.save(draft / "tokenizer.json")
        if graph is not None:
            shutil.copytree(graph, draft / GRAPH)
        corpus.notes.update(notes + (linker.notes if linker is not None else Counter()))
        manifest = _manifest(corpus, tokenizer, reading, writers, unknown)
        (draft / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    yield manifest


def _manifest(
    corpus: Corpus, tokenizer: Tokenizer, reading: Reading, writers: dict[str, Writer], unknown: Unknown
) -> dict[str, Any]:
    """The manifest: what was prepared, how, and notes for the user."""
    counts = _counts(writers)
    not_known = unknown.record(tokenizer, counts["tokens"])
    notes = dict(corpus.notes) | (reading.own.notes if reading.own is not None else {})
    if not_known["share"] > NOTED:
        notes[note_of(not_known, tokenizer)] = not_known["tokens"]
    return {
        "version": VERSION,
        "tokenizer": tokenizer.checksum,
        "vocabulary": tokenizer.vocabulary.size,
        "ids_dtype": reading.dtype,
        "columns": writers["train"].columns,
        "words": reading.words,
        "words_from": list(reading.own.record) if reading.own is not None else [],
        "whole": corpus.whole,
        "lines": corpus.lines,
        "pairs": corpus.pairs,
        "encoding": corpus.encoding,
        "fold": tokenizer.folds,
        "lexicon": list(reading.lexicon.record) if reading.lexicon is not None else [],
        "links": reading.linker.record if reading.linker is not None else None,
        **counts,
        "unknown": not_known,
        "splits": {split: writer.shards for split, writer in writers.items()},
        "notes": notes,
    }


def _none_held_out(corpus: Corpus, tokens: int, holdout: float) -> None:
    """There is too little text to hold out a share of it. For texts read as a whole this is an error, otherwise a note."""
    least = math.ceil(1000 * STRETCH / tokens) / 10  # per cent
    advice = f"pass --holdout {least:g}% or more" if least < 50 else "use more text"
    require(
        not corpus.whole,
        (
            "--holdout {value:g}% of {tokens:,} tokens is less than {stretch} tokens, too few to measure a loss: "
            "{advice}, or pass --holdout 0 to hold out nothing"
        ),
        value=100 * holdout,
        tokens=tokens,
        stretch=STRETCH,
        advice=advice,
    )
    corpus.notes[f"tokens in one document, too few to hold some out: training has no held-out loss; {advice}"] = tokens


def _counts(writers: dict[str, Writer]) -> dict[str, int]:
    return {name: sum(getattr(writer, name) for writer in writers.values()) for name in ("tokens", "documents")}


def _tokenised(
    chunks: Iterator[list[Given]], reading: Reading, unknown: Unknown, notes: Counter[str], workers: int
) -> Iterator[list[Document]]:
    """Tokenised chunks, in the order of the corpus."""
    for worked in in_workers(_work, chunks, workers, start=_start_worker, given=(reading,)):
        yield _taken(worked, unknown, notes)


def _taken(worked: Worked, unknown: Unknown, notes: Counter[str]) -> list[Document]:
    unknown.add(worked[1])
    notes.update(worked[2])
    return worked[0]


def _chunks(corpus: Corpus, texts: Iterable[Given], warn: bool) -> Iterator[list[Given]]:
    """Texts in chunks of about CHUNK characters. With `warn`, count Chinese texts: their words will be single characters."""
    chunk: list[Given] = []
    size = 0
    for text, mentions in texts:
        chunk.append((text, mentions))
        size += len(text)
        if warn and CHINESE.search(text):
            corpus.notes[
                "Chinese documents with every character as a word; recipes that hide words (bert-wwm, ernie) need real words: pip install 'unmask[zh]'"
            ] += 1
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


_worker: dict[str, Any] = {}  # in a worker process: the settings it was started with


def _start_worker(reading: Reading) -> None:
    from tokenizers import Tokenizer as Backend

    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the pool is the parallelism
    _worker.update(reading=reading, tokenizer=Tokenizer(Backend.from_str(reading.tokenizer)))


def _work(given: list[Given]) -> Worked:
    """Documents, counts of the texts that are unknown to the tokenizer, and notes."""
    reading: Reading = _worker["reading"]
    unknown, notes = Counter[str](), Counter[str]()
    tokenizer, own, lexicon = _worker["tokenizer"], reading.own, reading.lexicon
    texts = [text for text, _ in given]
    if reading.pairs:
        encoded = encode_pairs(texts, tokenizer, reading.words, lexicon, own=own, unknown=unknown)
        documents = [document for document in encoded if _two_sides(document)]
    else:
        documents = encode_documents(
            texts, tokenizer, reading.words, lexicon, own=own, whole=reading.whole, unknown=unknown,
            linker=reading.linker, mentions=[mentions for _, mentions in given], notes=notes,
            capitals=reading.capitals,
        )  # fmt: skip
    if reading.linker is not None:
        links = sum(int((document.columns[LINKS].values != UNLINKED).sum()) for document in documents)
        notes[LINKED] += links
    found = [document for document in documents if len(document.ids)]
    return [replace(document, ids=document.ids.astype(reading.dtype)) for document in found], unknown, notes


def _two_sides(document: Document) -> bool:
    """Whether both sides of a pair have tokens: a text of characters that a tokenizer drops has none."""
    return len(np.unique(document.columns[SIDE].values)) == 2
