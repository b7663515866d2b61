"""Make a row from a text, as the loader makes rows from prepared data. Without a tokenizer, a small one is trained."""

from __future__ import annotations

import dataclasses
import re
from functools import cache, lru_cache
from typing import Any

import numpy as np

from unmask import chance
from unmask.axes import Arrange, columns_of
from unmask.batch import Batch, Document
from unmask.data.arrange import Runs, special_ids
from unmask.data.loader import to_batch
from unmask.data.pack import pack
from unmask.data.shards import Texts
from unmask.errors import UserError, require
from unmask.recipe import Recipe
from unmask.text import Lexicon, Tokenizer, Words, encode_documents, train
from unmask.text.boundaries import HAN, available, classes_of, codes_of
from unmask.text.docstrings import docstrings
from unmask.text.encode import SIDE, encode_pairs
from unmask.text.sentences import sentence_starts

VOCABULARY = 2_000  # size of the tokenizer that is trained if none is given
PACKAGES = ("argparse", "difflib", "doctest", "email", "logging", "statistics", "typing", "urllib")
REPEATS, CHARACTER_REPEATS = 24, 200  # so that the text's short words and its characters become tokens
_LONG = re.compile(r"\w{11,}|[^\x00-\x7f]+")  # words that are cut into tokens, as a larger tokenizer cuts rare words
# A sentence task may draw a text from another document. If the user gives only one document, it draws from these.
OTHER = "The river freezes in winter. Children skate on the ice."
OTHER_HAN = "河水在冬天结冰。孩子们在上面滑冰。"


def small_tokenizer(kind: Any, text: str) -> Tokenizer:
    """A tokenizer of the recipe's kind. Its size is limited by the recipe and by the text that it is trained on."""
    return _trained(kind, text, VOCABULARY)


def learns(kind: Any) -> bool:
    """Whether a tokenizer of this kind is trained on text."""
    return kind.blank()[1] is not None


@lru_cache(maxsize=8)
def _trained(kind: Any, text: str, size: int) -> Tokenizer:
    sample = f"{text}\n{_other(text)}"
    odd = sorted({character for character in sample if not character.isascii()})
    texts = [*_documentation(), sample, *[_LONG.sub(" ", sample)] * REPEATS, *odd * CHARACTER_REPEATS]
    try:
        return train(dataclasses.replace(kind, vocab=min(size, kind.vocab)), texts)
    except UserError:
        if size < 100:
            raise
        return _trained(kind, text, size // 2)


@cache
def _documentation() -> tuple[str, ...]:
    return tuple(text for _, text in docstrings(PACKAGES, workers=1))


def first_row(
    recipe: Recipe, arrange: Arrange, text: str, tokenizer: Tokenizer, *, lexicon: Lexicon | None, length: int, seed: int,
    visit: int,
) -> tuple[Batch, list[str]]:  # fmt: skip
    """The first row of the text, and notes on it. Blank lines in the text separate documents."""
    parts = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    require(bool(parts), "there is no text to explain: give a sentence or more")
    notes: list[str] = []
    documents, own = _documents(arrange, parts, tokenizer, lexicon, notes)
    texts = Texts.of(documents)
    rng = chance.generator(seed, visit, 0, chance.purpose("arrange"))  # as the loader does for its first group
    runs = _of_user(arrange.ready(tokenizer).runs(texts, recipe.layout, length, rng), own, len(texts.ids))
    require(
        len(runs.label) > 0,
        (
            "{name} makes pairs of sentences, but this text has only one sentence: give two or more, or set "
            "arrange=Blocks"
        ),
        name=recipe.name,
    )
    specials, pad = special_ids(tokenizer, recipe.layout), tokenizer.vocabulary.pad
    rows = pack(texts, runs, specials, pad, length, arrange.packed)
    if ((runs.start >= own) & (runs.start < len(texts.ids))).any():
        notes.append(
            "the text is one document, so a built-in example text is used where a second document is needed: separate "
            "documents by a blank line"
        )
    notes += [f"{name}: {count}" for name, count in runs.notes.items()]
    if len(rows) > 1:
        notes.append(f"the text fills {len(rows)} rows of {length} tokens: this is the first")
    batch = to_batch(rows.take(np.array([0])), np.array([0]), np.array([visit]))
    return batch.replace(reuse=runs.reuse), notes


def _documents(
    arrange: Arrange, parts: list[str], tokenizer: Tokenizer, lexicon: Lexicon | None, notes: list[str]
) -> tuple[list[Document], int]:
    """The documents, and how many of their tokens come from the user. A sentence task may also use the other tokens."""
    words = available("auto")
    if words == "spaces" and any(map(_holds_han, parts)):
        notes.append("rjieba is not installed, so every Chinese character is a word: pip install 'unmask[zh]'")
    if SIDE in columns_of(arrange):
        return _pairs(parts, tokenizer, words, lexicon, notes)
    documents = [
        document for document in encode_documents(parts, tokenizer, words, lexicon, capitals=True) if len(document.ids)
    ]
    require(bool(documents), "the tokenizer finds no token in this text: give a sentence or more")
    own = sum(len(document.ids) for document in documents)
    if len(documents) == 1 and arrange.classes:
        documents += encode_documents([_other(parts[0])], tokenizer, words, lexicon, capitals=True)
    return documents, own


def _pairs(
    parts: list[str], tokenizer: Tokenizer, words: Words, lexicon: Lexicon | None, notes: list[str]
) -> tuple[list[Document], int]:
    """A document that is a pair: the first text and the second. A single text is cut after its first sentence."""
    if len(parts) == 1:
        starts = sentence_starts(parts[0], chinese=_holds_han(parts[0]))
        cut = next((int(start) for start in starts if start > 0), 0)
        require(
            cut > 0,
            "the recipe reads a source and a target, but this text has only one sentence: give both, with a blank line between",
        )
        parts = [parts[0][:cut], parts[0][cut:]]
        notes.append(
            "the first sentence is the source and the rest is the target: to give both, put a blank line between"
        )
    require(
        len(parts) == 2,
        "the recipe reads a source and a target, got {count} texts: give two, with a blank line between",
        count=len(parts),
    )
    found = encode_pairs(["\n".join(" ".join(part.split()) for part in parts)], tokenizer, words, lexicon)
    return found, len(found[0].ids)


def _of_user(runs: Runs, own: int, end: int) -> Runs:
    """Only the examples whose first text comes from the user."""
    texts = np.flatnonzero(runs.start < end)
    first = texts[np.unique(runs.example[texts], return_index=True)[1]]  # the first run of text of each example
    examples = np.flatnonzero(runs.start[first] < own)
    kept = np.isin(runs.example, examples)
    return dataclasses.replace(
        runs,
        start=runs.start[kept],
        length=runs.length[kept],
        segment=runs.segment[kept],
        example=np.searchsorted(examples, runs.example[kept]),
        summary=(np.cumsum(kept) - 1)[runs.summary[examples]],
        label=runs.label[examples],
    )


def _holds_han(text: str) -> bool:
    return bool((classes_of(codes_of(text)) == HAN).any())


def _other(text: str) -> str:
    return OTHER_HAN if _holds_han(text) else OTHER
