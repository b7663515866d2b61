"""Tokenizer training: the same text gives the same tokenizer, in every process and on any number of cores.

The library counts words in hash tables, and their order differs from process to process. Counts are sums of whole numbers,
so most results do not depend on that order. This file corrects the results that do:
- The ids of marked characters ('##a', 'a</w>') follow the order of the hash table, and merges of equal count are sorted by
  these ids.
- If the alphabet has a limit, the order decides which of several characters of equal count are kept.
- The scores of a unigram model are sums of fractions, and its rarest characters get their scores one after the other.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import models, trainers

from unmask.errors import UserError, require
from unmask.text.atomic_write import check_free, drafted
from unmask.text.fold_width import folding
from unmask.text.tokenizer import BERT_NAMES, Kind, Tokenizer
from unmask.text.word_tokens import spaced

_PENALTY = 1e-4  # the difference that the library puts between the scores of characters that are in no piece
_DIGITS = 4  # decimals kept of the scores of a unigram model; sums in another order differ in the 13th
_Merging = trainers.BpeTrainer | trainers.WordPieceTrainer


def train(kind: Kind, texts: Iterable[str], *, at_most: bool = False, fold: bool = False) -> Tokenizer:
    """Train a tokenizer of this kind. `fold`: it reads full-width letters, digits and marks as half-width ones.

    If the corpus is too small for the vocabulary size, that is an error, unless `at_most`."""
    require(
        kind.vocab > len(BERT_NAMES),
        "vocab must be more than {count_of_bert_names} (the special tokens), got {vocab}",
        count_of_bert_names=len(BERT_NAMES),
        vocab=kind.vocab,
    )
    backend, trainer = kind.blank()
    if fold:
        backend.normalizer = folding(backend.normalizer)
    if trainer is not None:
        # an iterator can be read only once, and two passes may be needed
        texts = list(texts) if iter(texts) is texts else texts
        if Tokenizer(backend).of_words:
            texts = (spaced(text) for text in texts)
        backend = train_backend(backend, trainer, texts)
    size = backend.get_vocab_size()
    require(
        size <= kind.vocab,
        (
            "the characters of the corpus and the special tokens are already {size:,} tokens, but vocab is "
            "{vocab:,}: use --vocab {size} or more (in pretrain: --set tokenizer.vocab={size})"
        ),
        size=size,
        vocab=kind.vocab,
    )
    require(
        size == kind.vocab or at_most or kind.at_most,
        (
            "the corpus is large enough for {size:,} tokens only, but vocab is {vocab:,}: use --vocab {size} or "
            "less, or more text"
        ),
        size=size,
        vocab=kind.vocab,
    )
    return Tokenizer(backend)


def train_to_file(
    texts: Iterable[str], out: str | Path, kind: Kind, overwrite: bool = False, *, at_most: bool = False,
    fold: bool = False,
) -> Tokenizer:  # fmt: skip
    """Train a tokenizer and write it atomically; an existing file is an error unless `overwrite`."""
    out = Path(out)
    check_free(out, overwrite=overwrite)
    with drafted(out) as draft:
        tokenizer = train(kind, texts, at_most=at_most, fold=fold)
        tokenizer.save(draft)
    return tokenizer


def train_backend(backend: Backend, trainer: Any, texts: Iterable[str]) -> Backend:
    """The trained backend, read back from its own JSON: this rounds scores and removes the order of hash tables."""
    if isinstance(trainer, trainers.UnigramTrainer):
        return _unigram(backend, trainer, texts)
    if isinstance(trainer, _Merging):
        return _merges(backend, trainer, texts)
    backend.train_from_iterator(texts, trainer)
    return Backend.from_str(backend.to_str())


def _merges(backend: Backend, trainer: Any, texts: Iterable[str]) -> Backend:
    """Train with fixed ids for all characters. Finding the characters takes an extra pass over the text."""
    names = [token.content for token in trainer.special_tokens]
    marked = getattr(trainer, "continuing_subword_prefix", None) or getattr(trainer, "end_of_word_suffix", None)
    blank = backend.to_str()  # a trained backend has special tokens and would find them in the text
    if not marked:  # then ids follow the order of characters, and only a limit on the alphabet can differ
        backend.train_from_iterator(texts, trainer)
        limit = trainer.limit_alphabet
        if limit is None or sum(len(token) == 1 for token in backend.get_vocab()) < limit:
            return Backend.from_str(backend.to_str())
    # special tokens get their ids first, so all characters are passed as special tokens, and unmarked after training
    trainer.special_tokens = names + _symbols(Backend.from_str(blank), trainer, texts)
    backend = Backend.from_str(blank)
    backend.train_from_iterator(texts, trainer)
    state = json.loads(backend.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] in names]
    return Backend.from_str(json.dumps(state))


def _symbols(backend: Backend, trainer: Any, texts: Iterable[str]) -> list[str]:
    """Every character of the corpus in each marked form. If the alphabet has a limit, the most frequent ones are kept."""
    size, limit = trainer.vocab_size, trainer.limit_alphabet
    trainer.vocab_size, trainer.limit_alphabet = 0, None
    backend.train_from_iterator(texts, trainer)
    found = set(backend.get_vocab()) - {token.content for token in trainer.special_tokens}
    trainer.vocab_size, trainer.limit_alphabet = size, limit
    if limit is not None and sum(len(symbol) == 1 for symbol in found) > limit:
        kept = _most_frequent(trainer, limit)
        trainer.initial_alphabet = kept
        suffix = trainer.end_of_word_suffix or ""
        found = {symbol for symbol in found if symbol.removesuffix(suffix) in kept}
    return sorted(found, key=lambda symbol: (len(symbol) > 1, symbol))


def _most_frequent(trainer: Any, limit: int) -> list[str]:
    """The most frequent characters in the word counts of the trainer."""
    counts: Counter[str] = Counter()
    words: dict[str, int] = json.loads(trainer.__getstate__())["BpeTrainer"]["words"]
    for word, times in words.items():
        for character in word:
            counts[character] += times
    return sorted(counts, key=lambda character: (-counts[character], character))[:limit]


def _unigram(backend: Backend, trainer: Any, texts: Iterable[str]) -> Backend:
    blank, wanted = backend.to_str(), trainer.vocab_size
    try:
        backend.train_from_iterator(texts, trainer)
    except Exception as error:  # the library raises a plain Exception for this
        if "not large enough to contain all chars" not in str(error):
            raise
        raise _too_few(Backend.from_str(blank), trainer, texts) from None
    if backend.get_vocab_size() > wanted:
        raise _too_few(Backend.from_str(blank), trainer, texts)
    state = json.loads(backend.to_str())
    state["model"]["vocab"] = _settled(state["model"]["vocab"], len(trainer.special_tokens))
    return Backend.from_str(json.dumps(state))


def _settled(vocab: Sequence[tuple[str, float]], specials: int) -> list[tuple[str, float]]:
    """Round the scores, give the lowest score to all characters that are in no piece, and sort pieces by score."""
    learned = vocab[specials:]
    lowest = min(score for _, score in learned)

    def settled(piece: str, score: float) -> float:
        turn = (score - lowest) / _PENALTY
        left_over = len(piece) == 1 and turn < len(learned) and abs(turn - round(turn)) < 1e-6
        return round(lowest if left_over else score, _DIGITS)

    pieces = [(piece, settled(piece, score)) for piece, score in learned]
    return [*vocab[:specials], *sorted(pieces, key=lambda piece: (-piece[1], piece[0]))]


def _too_few(backend: Backend, trainer: Any, texts: Iterable[str]) -> UserError:
    """The error for a vocabulary without room for the characters of the corpus, the special tokens and one piece."""
    backend.model = models.BPE()
    backend.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=0, show_progress=False))
    least = backend.get_vocab_size() + len(trainer.special_tokens) + 1
    return UserError(
        (
            "the corpus has more different characters than a vocabulary of {vocab_size:,} tokens can hold: use "
            "--vocab {least} or more (in pretrain: --set tokenizer.vocab={least})"
        ),
        vocab_size=trainer.vocab_size,
        least=least,
    )
