"""From a corpus to shards: all cores tokenise, one process reads and writes, memory stays bounded."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import shutil
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from unmask.batch import Document
from unmask.data.holdout import STRETCH, Tokenised, by_document, by_stretch
from unmask.data.shards import VERSION, Writer
from unmask.errors import require
from unmask.text import Corpus, Lexicon, Tokenizer, Words, encode_documents
from unmask.text.boundaries import CHINESE, available
from unmask.text.lexicon import LEVELS

CHUNK = 1 << 19  # characters handed to a worker at a time
_worker: dict[str, Any] = {}


def prepare(
    corpus: Corpus,
    tokenizer: Tokenizer,
    out: str | Path,
    *,
    words: Words = "auto",
    lexicon: Lexicon | None = None,
    holdout: float = 0.005,
    workers: int | None = None,
    overwrite: bool = False,
) -> Iterator[dict[str, Any]]:
    """Write shards to `out`, yielding a progress record per chunk; the last one is the manifest."""
    require(0 <= holdout < 1, f"holdout must be in [0, 1), got {holdout}: write 0.005 or 0.5% for half a percent")
    out = Path(out)
    require(overwrite or not out.exists(), f"{out} exists already: choose another --out, or pass --overwrite")
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    draft.mkdir(parents=True)
    try:
        dtype = "uint16" if tokenizer.vocabulary.size <= 1 << 16 else "uint32"
        levels = LEVELS if lexicon is not None else ()
        writers = {split: Writer(draft, split, dtype, levels=levels) for split in ("train", "holdout")}
        found = available(words)
        texts = _chunks(corpus, warn=found != words)
        start = (tokenizer.backend.to_str(), found, dtype, lexicon, corpus.whole)
        chunks = _tokenised(texts, start, workers or os.cpu_count() or 1)
        for parts in (by_stretch if corpus.whole else by_document)(chunks, holdout):
            for writer, documents in zip(writers.values(), parts, strict=True):
                _add(writer, documents)
            yield _counts(writers) | {"bytes": corpus.bytes_done, "bytes_total": corpus.bytes_total}
        for writer in writers.values():
            writer.close()
        require(writers["train"].tokens > 0, "the corpus gave no tokens to train on: is it only white space?")
        if holdout and not writers["holdout"].tokens:
            _none_held_out(corpus, writers["train"].tokens, holdout)
        tokenizer.save(draft / "tokenizer.json")
        manifest = {
            "version": VERSION,
            "tokenizer": tokenizer.checksum,
            "vocabulary": tokenizer.vocabulary.size,
            "ids_dtype": dtype,
            "words": found,
            "whole": corpus.whole,
            "lines": corpus.lines,
            "fold": tokenizer.folds,
            "lexicon": list(lexicon.record) if lexicon is not None else [],
            **_counts(writers),
            "splits": {split: writer.shards for split, writer in writers.items()},
            "notes": dict(corpus.notes),
        }
        (draft / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        if out.exists():
            shutil.rmtree(out)
        draft.rename(out)
        yield manifest
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _none_held_out(corpus: Corpus, tokens: int, holdout: float) -> None:
    """Too little text to hold out a share of it: an error for texts read as a whole, otherwise a note."""
    least = math.ceil(1000 * STRETCH / tokens) / 10  # per cent
    advice = f"pass --holdout {least:g}% or more" if least < 50 else "use more text"
    require(
        not corpus.whole,
        f"--holdout {100 * holdout:g}% of {tokens:,} tokens is fewer than {STRETCH}, too few to measure a loss on: "
        f"{advice}, or pass --holdout 0 to hold out nothing",
    )
    corpus.notes[f"tokens in one document, too few to hold some out: training has no held-out loss; {advice}"] = tokens


def _counts(writers: dict[str, Writer]) -> dict[str, int]:
    return {name: sum(getattr(writer, name) for writer in writers.values()) for name in ("tokens", "documents")}


def _add(writer: Writer, documents: Tokenised) -> None:
    if documents:
        ids, word, sentences, *levels = (np.concatenate(column) for column in zip(*documents, strict=True))
        writer.add(ids, word, sentences, np.array([len(d[2]) for d in documents], dtype=np.int64), *levels)


def _tokenised(chunks: Iterator[list[str]], start: tuple[Any, ...], workers: int) -> Iterator[Tokenised]:
    """Chunks in the order of the corpus, tokenised by a pool that never runs far ahead; `start` is for _start_worker."""
    # forked workers share the parent's pages, the lexicon too; they touch only tokenizers and numpy, never torch
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(workers, context, _start_worker, start) as pool:
        waiting: deque[Future[Tokenised]] = deque()
        for chunk in chunks:
            waiting.append(pool.submit(_work, chunk))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _chunks(corpus: Corpus, warn: bool) -> Iterator[list[str]]:
    """Texts by the handful. With `warn`, Chinese ones are counted: their words will be single characters."""
    chunk: list[str] = []
    size = 0
    for text in corpus:
        chunk.append(text)
        size += len(text)
        if warn and CHINESE.search(text):
            corpus.notes["Chinese texts with every character as a word: for real words, pip install 'unmask[zh]'"] += 1
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _start_worker(tokenizer: str, words: Words, dtype: str, lexicon: Lexicon | None, whole: bool) -> None:
    from tokenizers import Tokenizer as Backend

    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the pool is the parallelism
    made = Tokenizer(Backend.from_str(tokenizer))
    _worker.update(tokenizer=made, words=words, dtype=dtype, lexicon=lexicon, whole=whole)


def _work(texts: list[str]) -> Tokenised:
    reading = (_worker["tokenizer"], _worker["words"], _worker["lexicon"])
    documents = encode_documents(texts, *reading, whole=_worker["whole"])
    return [_columns(document, _worker["dtype"]) for document in documents if len(document.ids)]


def _columns(document: Document, dtype: str) -> tuple[np.ndarray, ...]:
    sentences = np.diff(np.append(document.sentences, len(document.ids)))
    levels = [column for column in (document.phrase, document.entity) if column is not None]
    return document.ids.astype(dtype), document.word.astype(np.uint8), sentences, *levels
