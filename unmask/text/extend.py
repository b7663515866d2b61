"""Extend a tokenizer by tokens for a new corpus. All old tokens keep their ids, and the new ones follow them.

Each kind of tokenizer takes new tokens in its own way, so that they are really matched:
- WordPiece: whole words that are split today. Matching takes the longest entry, so an entry is enough.
- BPE: its training goes on, from the old pieces. A new merge comes after all old ones and makes one new token.
- Unigram: pieces of a unigram model of the corpus, with its scores, which are log-probabilities.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import models, trainers

from unmask.errors import require
from unmask.text.tokenizer import BERT_NAMES, Tokenizer
from unmask.text.training import train_backend

_LEAST = 2  # a rarer token is not worth a row of the embeddings
_MARGIN = 0.01  # by how much the score of a unigram piece is above the score of the pieces that it replaces


@dataclass(frozen=True)
class NewToken:
    """A new token, and the old tokens that it replaces."""

    name: str
    pieces: tuple[int, ...]  # ids of the old tokens
    more: Any = None  # what else the model needs: the merge of BPE, the score of a unigram piece


@dataclass(frozen=True)
class Extended:
    """A tokenizer with new tokens at its end."""

    tokenizer: Tokenizer
    added: tuple[NewToken, ...]  # in the order of their ids


def extend(tokenizer: Tokenizer, texts: Iterable[str], tokens: int) -> Extended:
    """The tokenizer with up to this many new tokens: those that make the corpus shortest."""
    require(tokens >= 1, "the number of new tokens must be 1 or more, got {tokens}", tokens=tokens)
    state = json.loads(tokenizer.backend.to_str())
    kind = state["model"]["type"]
    require(
        kind in _FIND and not tokenizer.of_bytes,
        "a tokenizer with {kind} cannot be extended, because it never splits a word into pieces that it could join: train "
        "a new tokenizer with 'unmask tokenizer', and a new model with it",
        kind="a token for each byte" if kind in _FIND else "a token for each word or character",
    )
    added = _FIND[kind](tokenizer, state["model"], texts, tokens)
    require(
        bool(added),
        "no word of the corpus comes twice and is split into several known tokens, so there is nothing to add: give more text, "
        "or use the tokenizer as it is. Words with characters that it does not know are not added, and WordPiece reads each "
        "Chinese character as a word: for these, train a new tokenizer",
    )
    return Extended(_with(tokenizer, state, added), tuple(added))


def _with(tokenizer: Tokenizer, state: dict[str, Any], added: list[NewToken]) -> Tokenizer:
    """The tokenizer with new entries at the end of its vocabulary."""
    model, old = state["model"], tokenizer.backend.get_vocab(with_added_tokens=True)
    # a special token outside the vocabulary of the model would get another id when the file is read
    outside = sorted((token["id"], token["content"]) for token in state["added_tokens"])
    if isinstance(model["vocab"], list):
        known = {piece for piece, _ in model["vocab"]}
        model["vocab"] += [[name, 0.0] for _, name in outside if name not in known]
        model["vocab"] += [[new.name, new.more] for new in added]
    else:
        model["vocab"] |= {name: number for number, name in outside}
        model["vocab"] |= {new.name: number for number, new in enumerate(added, max(old.values()) + 1)}
    if "merges" in model:
        spaced = bool(model["merges"]) and isinstance(model["merges"][0], str)  # the format of earlier versions
        model["merges"] += [" ".join(new.more) if spaced else list(new.more) for new in added]
    made = Backend.from_str(json.dumps(state))
    wanted = old | {new.name: number for number, new in enumerate(added, len(old))}
    require(
        made.get_vocab(with_added_tokens=True) == wanted,
        "this tokenizer cannot be extended: the ids of its tokens are not the numbers from 0 to {last}",
        last=len(old) - 1,
    )
    return Tokenizer(made)


def _words(tokenizer: Tokenizer, texts: Iterable[str]) -> Counter[str]:
    """How often each word comes, as the tokenizer normalises and splits text."""
    backend, trainer = Backend(models.BPE()), trainers.BpeTrainer(vocab_size=0, show_progress=False)
    backend.normalizer, backend.pre_tokenizer = tokenizer.backend.normalizer, tokenizer.backend.pre_tokenizer
    backend.train_from_iterator(texts, trainer)
    found: dict[str, int] = json.loads(trainer.__getstate__())["BpeTrainer"]["words"]
    return Counter({word: times for word, times in sorted(found.items()) if times >= _LEAST})


def _split(tokenizer: Tokenizer, word: str, model: dict[str, Any]) -> list[Any]:
    """The tokens of a word; none if a part of it is unknown."""
    begin, end = model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or ""
    found: list[Any] = tokenizer.backend.model.tokenize(word)
    if any(token.id == tokenizer.vocabulary.unknown for token in found):
        return []
    spelled = "".join(token.value.removeprefix(begin if i else "") for i, token in enumerate(found))
    return found if spelled.removesuffix(end) == word else []


def _whole_words(
    tokenizer: Tokenizer, model: dict[str, Any], texts: Iterable[str], tokens: int
) -> list[NewToken]:  # fmt: skip
    """The words whose splitting costs most tokens."""
    found = []
    for word, times in _words(tokenizer, texts).items():
        pieces = tuple(token.id for token in _split(tokenizer, word, model))
        if len(pieces) > 1:
            found.append((-times * (len(pieces) - 1), word, pieces))
    return [NewToken(word, pieces) for _, word, pieces in heapq.nsmallest(tokens, found)]


def _merges(tokenizer: Tokenizer, model: dict[str, Any], texts: Iterable[str], tokens: int) -> list[NewToken]:
    """The merges that BPE would learn next on this corpus: again and again the most frequent pair of neighbours."""
    vocab, begin = model["vocab"], model.get("continuing_subword_prefix") or ""
    words, counts = [], []
    for word, times in _words(tokenizer, texts).items():
        split = [token.value for token in _split(tokenizer, word, model)]
        if len(split) > 1:
            words.append(split)
            counts.append(times)
    pairs: Counter[tuple[str, str]] = Counter()
    where: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for number, split in enumerate(words):
        for pair in pairwise(split):
            pairs[pair] += counts[number]
            where[pair].add(number)
    waiting = [(-times, pair) for pair, times in pairs.items()]
    heapq.heapify(waiting)
    pieces: dict[str, tuple[int, ...]] = {name: (number,) for name, number in vocab.items()}
    added: list[NewToken] = []
    while waiting and len(added) < tokens:
        times, pair = heapq.heappop(waiting)
        name = pair[0] + pair[1].removeprefix(begin)
        if -times != pairs[pair]:  # it was counted again since
            if pairs[pair] >= _LEAST:
                heapq.heappush(waiting, (-pairs[pair], pair))
            continue
        if -times < _LEAST or name in pieces:
            continue
        pieces[name] = pieces[pair[0]] + pieces[pair[1]]
        added.append(NewToken(name, pieces[name], pair))
        for number in sorted(where.pop(pair)):
            before = Counter(pairwise(words[number]))
            words[number] = _joined(words[number], pair, name)
            now = Counter(pairwise(words[number]))
            for other in {*before, *now}:
                pairs[other] += (now[other] - before[other]) * counts[number]
                if other not in before:
                    where[other].add(number)
                    heapq.heappush(waiting, (-pairs[other], other))
    return added


def _joined(split: list[str], pair: tuple[str, str], name: str) -> list[str]:
    """The pieces with every such pair joined, from left to right."""
    found: list[str] = []
    for piece in split:
        if found and (found[-1], piece) == pair:
            found[-1] = name
        else:
            found.append(piece)
    return found


def _unigram_pieces(
    tokenizer: Tokenizer, model: dict[str, Any], texts: Iterable[str], tokens: int
) -> list[NewToken]:  # fmt: skip
    """The pieces of a unigram model of the corpus whose splitting costs most tokens."""
    backend = Backend(models.Unigram())
    backend.normalizer, backend.pre_tokenizer = tokenizer.backend.normalizer, tokenizer.backend.pre_tokenizer
    size = len(model["vocab"]) + tokens
    trainer = trainers.UnigramTrainer(
        vocab_size=size, special_tokens=BERT_NAMES, unk_token=BERT_NAMES[1], show_progress=False
    )
    learned = json.loads(train_backend(backend, trainer, texts).to_str())["model"]["vocab"][len(BERT_NAMES) :]
    scores = dict(map(tuple, model["vocab"]))
    found = []
    for name, score in learned:
        pieces = tuple(token.id for token in _split(tokenizer, name, model))
        if name not in scores and len(pieces) > 1:
            found.append((-math.exp(score) * (len(pieces) - 1), name, score, pieces))
    added = []
    for _, name, score, pieces in sorted(heapq.nsmallest(tokens, found), key=lambda one: (len(one[1]), one[1])):
        scores[name] = round(max(score, _best(name, scores) + _MARGIN), 4)
        added.append(NewToken(name, pieces, scores[name]))
    return added


def _best(text: str, scores: dict[str, float]) -> float:
    """The highest sum of the scores of pieces that make up a text."""
    best = [0.0, *[-math.inf] * len(text)]
    for end in range(1, len(text) + 1):
        for start in range(end):
            best[end] = max(best[end], best[start] + scores.get(text[start:end], -math.inf))
    return best[-1]


_FIND: dict[str, Callable[[Tokenizer, dict[str, Any], Iterable[str], int], list[NewToken]]] = {
    "WordPiece": _whole_words,
    "BPE": _merges,
    "Unigram": _unigram_pieces,
}
