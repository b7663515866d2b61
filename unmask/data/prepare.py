"""Prepare: turn a corpus into shards. All cores tokenise, one process reads and writes, and memory is bounded."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import sys
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unmask.batch import Document
from unmask.data.holdout import STRETCH, by_document, by_stretch
from unmask.data.shard_writer import Writer
from unmask.data.shards import MANIFEST, VERSION
from unmask.data.unknown_tokens import NOTED, Unknown, note_of
from unmask.errors import require
from unmask.text import Corpus, Lexicon, OwnWords, Tokenizer, Words, encode_documents
from unmask.text.atomic_write import check_free, drafted
from unmask.text.boundaries import CHINESE, available, segmenter
from unmask.text.encode import SIDE, encode_pairs

HOLDOUT = 0.005  # the usual share of tokens that is kept for validation
CHUNK = 1 << 19  # characters sent to a worker at a time


@dataclass(frozen=True)
class Reading:
    """How workers read and tokenise texts."""

    tokenizer: str  # its JSON
    words: Words
    own: OwnWords | None
    lexicon: Lexicon | None
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
    holdout: float = HOLDOUT,
    workers: int | None = None,
    overwrite: bool = False,
) -> Iterator[dict[str, Any]]:
    """Write shards to `out`, yielding a progress record per chunk; the last one is the manifest."""
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
    dtype = "uint16" if tokenizer.vocabulary.size <= 1 << 16 else "uint32"
    reading = Reading(tokenizer.backend.to_str(), found, own, lexicon, corpus.whole, corpus.pairs, dtype)
    with drafted(out, folder=True) as draft:
        writers = {split: Writer(draft, split, dtype) for split in ("train", "holdout")}
        unknown = Unknown()
        chunks = _tokenised(_chunks(corpus, warn=found != words), reading, unknown, workers or os.cpu_count() or 1)
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
        notes[note_of(not_known)] = not_known["tokens"]
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
    chunks: Iterator[list[str]], reading: Reading, unknown: Unknown, workers: int
) -> Iterator[list[Document]]:
    """Tokenised chunks, in the order of the corpus. The pool of workers is never far ahead, so memory is bounded."""
    # forked workers share the memory of the parent, such as the lexicon; they use only tokenizers and numpy, never torch
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(workers, context, _start_worker, (reading,)) as pool:
        waiting: deque[Future[tuple[list[Document], Counter[str]]]] = deque()
        for chunk in chunks:
            waiting.append(pool.submit(_work, chunk))
            if len(waiting) > 2 * workers:
                yield _taken(waiting.popleft().result(), unknown)
        while waiting:
            yield _taken(waiting.popleft().result(), unknown)


def _taken(worked: tuple[list[Document], Counter[str]], unknown: Unknown) -> list[Document]:
    unknown.add(worked[1])
    return worked[0]


def _chunks(corpus: Corpus, warn: bool) -> Iterator[list[str]]:
    """Texts in chunks of about CHUNK characters. With `warn`, count Chinese texts: their words will be single characters."""
    chunk: list[str] = []
    size = 0
    for text in corpus:
        chunk.append(text)
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


def _work(texts: list[str]) -> tuple[list[Document], Counter[str]]:
    """Documents, and counts of the texts that are unknown to the tokenizer."""
    reading: Reading = _worker["reading"]
    unknown: Counter[str] = Counter()
    tokenizer, own, lexicon = _worker["tokenizer"], reading.own, reading.lexicon
    if reading.pairs:
        encoded = encode_pairs(texts, tokenizer, reading.words, lexicon, own=own, unknown=unknown)
        documents = [document for document in encoded if _two_sides(document)]
    else:
        documents = encode_documents(
            texts, tokenizer, reading.words, lexicon, own=own, whole=reading.whole, unknown=unknown
        )
    found = [document for document in documents if len(document.ids)]
    return [replace(document, ids=document.ids.astype(reading.dtype)) for document in found], unknown


def _two_sides(document: Document) -> bool:
    """Whether both sides of a pair have tokens: a text of characters that a tokenizer drops has none."""
    return len(np.unique(document.columns[SIDE].values)) == 2
