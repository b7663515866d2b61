"""The text that a language model is scored on: one stream of tokens, and the size of the original text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from unmask.data.arrange import ROLES, special_ids
from unmask.errors import require
from unmask.infer.model import Model
from unmask.text import Corpus, encode_documents
from unmask.text import layout as layouts
from unmask.text.boundaries import HAN, LETTER, classes_of, codes_of
from unmask.text.encode import kept

CHUNK = 1 << 20  # characters tokenised at once
_LOST = (
    "documents contain characters, case or accents that the tokenizer drops: dropped characters are not scored, so the "
    "scores look better than they are"
)


@dataclass(frozen=True)
class ScoredText:
    """Documents one after the other, with an end-of-document token after each, as in training.

    Another such token is placed before the first document. It is read but not scored, so that the first token of the text
    is scored like any other token. Bytes, characters and words are counts of the original text, without the white space
    that training drops (blank lines, and white space between documents). End-of-document tokens are not in these counts,
    although the model predicts them and their loss is included.
    """

    name: str  # the names of the files
    ids: np.ndarray  # the token ids; the first token is only read
    documents: int  # number of documents
    bytes: int  # number of UTF-8 bytes
    characters: int  # number of Unicode code points
    words: int | None  # number of words, separated by spaces; None: the script has no spaces between words
    notes: Counter[str] = field(default_factory=Counter)  # counts of what was cut or not understood

    @property
    def tokens(self) -> int:
        """The number of tokens that are scored."""
        return len(self.ids) - 1


def read_scored_text(
    model: Model, files: str | Path | Sequence[str | Path], *, whole: bool = False, lines: bool = False,
    encoding: str = "utf-8",
) -> ScoredText:  # fmt: skip
    """The stream of a corpus. Its notes count what was cut or not understood.

    `whole`, `lines`, `encoding`: as in `prepare`."""
    listed = [files] if isinstance(files, str | Path) else files
    corpus = Corpus(listed, encoding=encoding, whole=whole, lines=lines)
    pieces: list[np.ndarray] = [np.array([model.tokenizer.role("sep")])]
    counts: Counter[str] = Counter()
    for texts in _chunks(corpus):
        for text, document in zip(texts, encode_documents(texts, model.tokenizer, "none", whole=whole), strict=True):
            if len(document.ids):
                pieces += _in_layout(model, document.ids)
                counts.update(_counted(kept(text, whole=whole)))
                counts["lost"] += not _same(model.tokenizer.decode(document.ids.tolist()), text)
    require(
        counts["documents"] > 0,
        ("{files} holds no text that the tokenizer knows, so there is nothing to score"),
        files=files,
    )
    notes = Counter(corpus.notes) + Counter({_LOST: counts["lost"]})
    spaced = counts["letters"] >= counts["han"]
    return ScoredText(
        str(files), np.concatenate(pieces), counts["documents"], counts["bytes"], counts["characters"],
        counts["words"] if spaced else None, notes,
    )  # fmt: skip


def _in_layout(model: Model, ids: np.ndarray) -> Iterator[np.ndarray]:
    """One document with the special tokens around it."""
    specials = dict(zip(ROLES, special_ids(model.tokenizer, model.recipe.layout), strict=True))
    for item in layouts.items(model.recipe.layout, 1):
        yield ids if item.is_text else np.array([specials[item.name]])


def _counted(text: str) -> dict[str, int]:
    kinds = classes_of(codes_of(text))
    return {
        "documents": 1, "bytes": len(text.encode()), "characters": len(text), "words": len(text.split()),
        "letters": int((kinds == LETTER).sum()), "han": int((kinds == HAN).sum()),
    }  # fmt: skip


def _same(one: str, other: str) -> bool:
    return "".join(one.split()) == "".join(other.split())


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text)
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
