"""A text as a language model is scored on it: one stream of tokens, and how much of the original text it stands for."""

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
    "documents hold characters (or case, or accents) that the tokenizer does not keep: they cost less than they should"
)


@dataclass(frozen=True)
class ScoredText:
    """Documents end to end, an end-of-document token after each, as in training.

    One such token also stands before the first document: it is read, not scored, so that the first token of the text
    is scored like any other. Bytes, characters and words are those of the original text; white space that training
    drops (blank lines, what stands between documents) is not among them, and neither are the ends of documents, though
    the model predicts them and their loss counts.
    """

    name: str  # of the files that it was read from
    ids: np.ndarray  # the first is only read
    documents: int
    bytes: int  # UTF-8
    characters: int  # Unicode code points
    words: int | None  # between spaces; None: the script puts none between words
    notes: Counter[str] = field(default_factory=Counter)  # what was cut or not understood

    @property
    def tokens(self) -> int:
        """How many are scored."""
        return len(self.ids) - 1


def read_scored_text(
    model: Model, files: str | Path | Sequence[str | Path], *, whole: bool = False, lines: bool = False,
    encoding: str = "utf-8",
) -> ScoredText:  # fmt: skip
    """The stream of a corpus; what was cut or not understood is counted in its notes.

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
    require(counts["documents"] > 0, f"{files} gives the tokenizer nothing to score: it holds no text that it knows")
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
