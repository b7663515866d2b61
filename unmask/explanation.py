"""Explanation: one text through every step of the house, with the very parts that train, as data."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from unmask import chance, recipes, see, system
from unmask.batch import Batch, Document
from unmask.data.arrange import ROLES, Runs
from unmask.data.loader import Group, collate
from unmask.data.pack import pack
from unmask.data.shards import Texts
from unmask.errors import Mistake, require
from unmask.recipe import Recipe
from unmask.text import Tokenizer, Words, encode_documents, train
from unmask.text import layout as layouts
from unmask.text.boundaries import HAN, classes_of, codes_of
from unmask.text.docstrings import docstrings

How = Literal["mask", "random", "keep"]  # what stands in place of a hidden token

VOCABULARY = 2_000  # of the tokenizer trained for want of another
PACKAGES = ("argparse", "difflib", "doctest", "email", "logging", "statistics", "typing", "urllib")
REPEATS, CHARACTER_REPEATS = 24, 200  # so that the text's short words and its characters become tokens
_LONG = re.compile(r"\w{11,}|[^\x00-\x7f]+")  # words that a tokenizer cuts, as a larger one would cut rarer words
# A sentence task may draw a text from another document. Where the user gives only one, it draws from these.
OTHER = "The river freezes in winter. Children skate on the ice."
OTHER_HAN = "河水在冬天结冰。孩子们在上面滑冰。"

_SIGNS = str.maketrans({"\n": "⏎", "\t": "⇥", "\r": "⏎"})


@dataclass(frozen=True)
class Token:
    """One token of the row, as the model reads it."""

    text: str  # what stands there after hiding
    original: str  # what stood there before
    word: int  # number of the word in the row; -1 on special tokens
    sentence: int  # number of the sentence in the row; -1 on special tokens
    segment: int
    position: int
    special: bool
    hidden: How | None  # None: not hidden in place
    rank: int
    example: int


class Choice(NamedTuple):
    """One choice of the recipe."""

    axis: str  # arrange, hide, see, predict
    part: str  # its name and values
    meaning: str  # the first line of its documentation


class Target(NamedTuple):
    """One token to be predicted."""

    place: int  # where the prediction is made
    text: str
    span: tuple[int, int]  # first and last place of the hidden run it belongs to


class Answer(NamedTuple):
    """The class of one example, which the sentence task predicts."""

    place: int  # of the summary token it is read off
    label: int


@dataclass(frozen=True)
class Explanation:
    """What became of a text: the first row that was made of it, without its padding."""

    recipe: str
    size: str
    idea: str  # hide ..., see ..., predict ...
    seed: int
    visit: int
    choices: tuple[Choice, ...]
    tokens: tuple[Token, ...]
    visible: tuple[tuple[bool, ...], ...]  # T T, may the query (first) see the key (second)?
    targets: tuple[Target, ...]
    answers: tuple[Answer, ...]  # one per example; none without a sentence task
    classes: int  # of the sentence task; 0 without one
    notes: tuple[str, ...]  # the tokenizer used, what was added, what was cut


def explain(
    recipe: Recipe, text: str, *, tokenizer: Tokenizer | None = None, seed: int = 0, visit: int = 0
) -> Explanation:
    """Take a text through the house. Blank lines in it separate documents."""
    require(visit >= 0, f"visit must be 0 or more, got {visit}")
    parts = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    require(bool(parts), "there is no text to explain: give a sentence or more")
    notes: list[str] = []
    if tokenizer is None:
        tokenizer = _small_tokenizer(recipe.tokenizer, text)
        notes.append(
            f"tokenizer: a {type(recipe.tokenizer).__name__} of {tokenizer.vocabulary.size:,} tokens, trained for this "
            "on the text and on documentation of Python"
        )
    else:
        notes.append(f"tokenizer: the one given, of {tokenizer.vocabulary.size:,} tokens")
    system.check(recipe, tokenizer.vocabulary)
    documents, own = _documents(recipe, parts, tokenizer, notes)
    group = _group(recipe, documents, own, tokenizer, seed, visit, notes)
    batch = collate([(group, np.array([0]))])
    batch = recipe.hide.apply(batch, tokenizer.vocabulary, seed)  # type: ignore[attr-defined]
    batch = batch.replace(rank=recipe.see.rank(batch))  # type: ignore[attr-defined]
    return _explanation(recipe, batch, tokenizer, seed, visit, notes)


def to_json(explanation: Explanation) -> dict[str, Any]:
    """The explanation as dicts, lists, words and numbers."""
    return dataclasses.asdict(explanation) | {
        "choices": [choice._asdict() for choice in explanation.choices],
        "tokens": [dataclasses.asdict(token) for token in explanation.tokens],
        "visible": [list(row) for row in explanation.visible],
        "targets": [target._asdict() | {"span": list(target.span)} for target in explanation.targets],
        "answers": [answer._asdict() for answer in explanation.answers],
        "notes": list(explanation.notes),
    }


def _small_tokenizer(kind: Any, text: str, size: int = VOCABULARY) -> Tokenizer:
    """A tokenizer of the recipe's kind, as large as the recipe and what there is to train on allow."""
    sample = f"{text}\n{_other(text)}"
    odd = sorted({character for character in sample if not character.isascii()})
    texts = [*_documentation(), sample, *[_LONG.sub(" ", sample)] * REPEATS, *odd * CHARACTER_REPEATS]
    try:
        return train(dataclasses.replace(kind, vocab=min(size, kind.vocab)), texts)
    except Mistake:
        if size < 100:
            raise
        return _small_tokenizer(kind, text, size // 2)


@cache
def _documentation() -> tuple[str, ...]:
    return tuple(text for _, text in docstrings(PACKAGES, workers=1))


def _holds_han(text: str) -> bool:
    return bool((classes_of(codes_of(text)) == HAN).any())


def _other(text: str) -> str:
    return OTHER_HAN if _holds_han(text) else OTHER


def _documents(recipe: Recipe, parts: list[str], tokenizer: Tokenizer, notes: list[str]) -> tuple[list[Document], int]:
    """The documents, and how many tokens of them are the user's; the rest is there to be drawn from."""
    words: Words = "auto" if importlib.util.find_spec("rjieba") else "spaces"
    if words == "spaces" and any(map(_holds_han, parts)):
        notes.append("rjieba is not installed, so every Chinese character is a word: pip install 'unmask[zh]'")
    documents = [document for document in encode_documents(parts, tokenizer, words) if len(document.ids)]
    require(bool(documents), "the tokenizer finds no token in this text: give a sentence or more")
    own = sum(len(document.ids) for document in documents)
    if len(documents) == 1 and recipe.arrange.classes:  # type: ignore[attr-defined]
        documents += encode_documents([_other(parts[0])], tokenizer, words)
    return documents, own


def _group(
    recipe: Recipe, documents: list[Document], own: int, tokenizer: Tokenizer, seed: int, visit: int, notes: list[str]
) -> Group:
    """The user's documents arranged and packed, in rows just long enough for them."""
    texts, layout, arrange = Texts.of(documents), recipe.layout, recipe.arrange
    items = layouts.items(layout, 2 if "b" in layout.split() else 1)
    specials = {item.name: tokenizer.role(item.name) for item in items if not item.is_text}
    needed = len(texts.ids) + len(documents) * sum(not item.is_text for item in items)
    length = min(-(-needed // 8) * 8, recipe.schedule[0].length)
    rng = chance.generator(seed, visit, 0, chance.purpose("arrange"))  # as the loader does for its first group
    runs = _of_user(arrange.runs(texts, layout, length, rng), own, len(texts.ids))  # type: ignore[attr-defined]
    pad = tokenizer.vocabulary.pad
    rows = pack(texts, runs, [specials.get(role, pad) for role in ROLES], pad, length, arrange.packed)  # type: ignore[attr-defined]
    if ((runs.start >= own) & (runs.start < len(texts.ids))).any():
        notes.append(
            "the text is one document, so what is drawn from another one is a line of ours: "
            "separate documents by a blank line"
        )
    notes += [f"{name}: {count}" for name, count in runs.notes.items()]
    if len(rows) > 1:
        notes.append(f"the text fills {len(rows)} rows of {length} tokens: this is the first")
    return Group(rows, np.arange(len(rows)), 0, visit, runs.notes)


def _of_user(runs: Runs, own: int, end: int) -> Runs:
    """Only the examples whose first text is the user's."""
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


def _explanation(
    recipe: Recipe, batch: Batch, tokenizer: Tokenizer, seed: int, visit: int, notes: list[str]
) -> Explanation:
    size = int(batch.real[0].sum())
    classes = int(recipe.arrange.classes)  # type: ignore[attr-defined]
    places = zip(batch.summary.tolist(), batch.label.tolist(), batch.counted.tolist(), strict=True)
    return Explanation(
        recipe=recipe.name,
        size=recipe.size,
        idea=next((entry.idea for entry in recipes.entries() if entry.name == recipe.name), ""),
        seed=seed,
        visit=visit,
        choices=tuple(_choices(recipe)),
        tokens=tuple(_tokens(batch, tokenizer))[:size],
        visible=tuple(tuple(row) for row in see.visible(batch)[0, :size, :size].tolist()),
        targets=tuple(Target(place, _spell(tokenizer, i), span) for place, i, span in _predicted(batch)),
        answers=tuple(Answer(place, label) for place, label, counted in places if counted) if classes else (),
        classes=classes,
        notes=tuple(notes),
    )


def _choices(recipe: Recipe) -> Iterator[Choice]:
    parts = {"arrange": recipe.arrange, "hide": recipe.hide, "see": recipe.see}
    parts |= {f"predict {name}": part for name, part in system.objectives(recipe).items()}
    for axis, part in parts.items():
        yield Choice(axis, _words(part), (inspect.getdoc(part) or "").split("\n")[0].replace("`", ""))


def _words(value: Any) -> str:
    """A part in words: its name and its values."""
    if dataclasses.is_dataclass(value):
        values = [f"{f.name} {_words(getattr(value, f.name))}" for f in dataclasses.fields(value)]
        return type(value).__name__ + (f" ({', '.join(values)})" if values else "")
    if isinstance(value, tuple):
        return " ".join(map(_words, value)) or "none"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _predicted(batch: Batch) -> list[tuple[int, int, tuple[int, int]]]:
    """(place, token, span) of every prediction: in a batch of one row a flat index is a place."""
    if batch.targets is None:
        return []
    columns = (batch.targets.where, batch.targets.ids, batch.targets.start, batch.targets.end, batch.targets.weight)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [(place, i, (start, end)) for place, i, start, end, weight in rows if weight]


def _tokens(batch: Batch, tokenizer: Tokenizer) -> Iterator[Token]:
    # a prediction made within the run it belongs to is of a token hidden in place; any other is of one further on
    hidden = {place: i for place, i, (start, end) in _predicted(batch) if start <= place <= end}
    assert batch.rank is not None
    columns = (batch.ids, batch.word, batch.sentence, batch.segment, batch.position, batch.rank, batch.example)
    for place, values in enumerate(zip(*(column[0].tolist() for column in columns), strict=True)):
        i, word, sentence, segment, position, rank, example = values
        original = hidden.get(place, i)
        how = _how(i, original, tokenizer.vocabulary.mask) if place in hidden else None
        yield Token(
            text=_spell(tokenizer, i), original=_spell(tokenizer, original), word=word, sentence=sentence,
            segment=segment, position=position, special=word < 0, hidden=how, rank=rank, example=example,
        )  # fmt: skip


def _how(now: int, before: int, mask: int | None) -> How:
    if now == before:
        return "keep"
    return "mask" if now == mask else "random"


def _spell(tokenizer: Tokenizer, i: int) -> str:
    """A token as a person would write it; a part of a character as the vocabulary writes it."""
    text = tokenizer.readable(i)
    return text if "\ufffd" not in text else tokenizer.token(i)


def shown(text: str) -> str:
    """A token without the sign of its place in the word, white space made visible."""
    return text.removeprefix("##").removeprefix("▁").strip(" ").translate(_SIGNS) or "␣"


def continues(tokens: tuple[Token, ...], place: int) -> bool:
    """Whether a token goes on with the word of the one before it."""
    return place > 0 and tokens[place].word >= 0 and tokens[place].word == tokens[place - 1].word


def drawn_as(token: Token) -> str:
    """What a token is drawn as: special, plain, or the way it is hidden."""
    return token.hidden or ("special" if token.special else "plain")
