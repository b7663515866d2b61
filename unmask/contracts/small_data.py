"""Small data for contracts: English sentences, a tokenizer of any kind trained on them, and shards made from them."""

from __future__ import annotations

import dataclasses
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from unmask import text
from unmask.data.prepare import prepare
from unmask.text.encode import SIDE
from unmask.text.lexicon import LEVELS
from unmask.vectors import WordVectors, write_vectors

VOCABULARY = 300  # the largest number of tokens: small, so that some words have several tokens
DOCUMENTS = 120
SUBJECTS = "the doctor|a patient|the old engine|our server|the judge|a small company|the river|my teacher".split("|")
VERBS = "examined repaired ignored described followed measured sold opened".split()
OBJECTS = "the report|an open wound|three valves|the case|a long bridge|the data|no evidence|every window".split("|")
TAILS = "in the morning|without delay|after the storm|for the third time|near London|despite the rain".split("|")
LEXICON = "open wound\tphrase\nthird time\tphrase\nlong bridge\tphrase\nLondon\tentity\n"


def documents(count: int = DOCUMENTS, seed: int = 0) -> list[str]:
    """Documents of one to four paragraphs, each of one to six sentences."""
    dice = random.Random(seed)
    return ["\n".join(_paragraph(dice) for _ in range(dice.randint(1, 4))) for _ in range(count)]


def pair_lines(count: int = 4 * DOCUMENTS, seed: int = 0) -> str:
    """JSON lines of pairs: some words, and the same words in the opposite order."""
    dice = random.Random(seed)
    words = [_sentence(dice).split()[: dice.randint(1, 5)] for _ in range(count)]
    return "\n".join(json.dumps({"source": " ".join(some), "target": " ".join(some[::-1])}) for some in words)


def _paragraph(dice: random.Random) -> str:
    return " ".join(_sentence(dice) for _ in range(dice.randint(1, 6)))


def _sentence(dice: random.Random) -> str:
    """A sentence. Some end with a rare random word, so that every tokenizer splits some words into pieces."""
    words = " ".join(dice.choice(part) for part in (SUBJECTS, VERBS, OBJECTS, TAILS))
    rare = "".join(dice.choice("aeioulmnrst") for _ in range(9))
    end = dice.choice([".", ".", "!", "?", f" of {rare}."])
    return words[0].upper() + words[1:] + end


class SmallData:
    """Tokenizers and prepared data in a temporary folder. Each is made once, when it is first needed."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="unmask_contracts_")  # deleted together with this object
        self.folder = Path(self._temporary.name)
        self._made: dict[tuple[Any, bool, bool], tuple[text.Tokenizer, Path]] = {}

    def of(self, kind: Any, columns: frozenset[str]) -> tuple[text.Tokenizer, Path]:
        """A tokenizer of this kind with a small vocabulary, and data with these columns."""
        small, marked = dataclasses.replace(kind, vocab=min(kind.vocab, VOCABULARY)), bool(columns & set(LEVELS))
        key = (small, marked, SIDE in columns)
        if key not in self._made:
            self._made[key] = self._make(*key)
        return self._made[key]

    def _make(self, kind: Any, marked: bool, pairs: bool) -> tuple[text.Tokenizer, Path]:
        out, corpus = self.folder / f"data_{len(self._made)}", self.folder / ("pairs.jsonl" if pairs else "text.txt")
        corpus.write_text(pair_lines() if pairs else "\n\n".join(documents()), encoding="utf-8")
        tokenizer = text.train(kind, documents(), at_most=True)
        lexicon = self._lexicon() if marked else None
        for _ in prepare(text.Corpus([corpus]), tokenizer, out, holdout=0.05, workers=1, lexicon=lexicon):
            pass
        return tokenizer, out

    def vectors(self, dims: int) -> Path:
        """A file of word vectors of the words of the data."""
        path = self.folder / f"vectors_{dims}.txt"
        words = sorted({word for document in documents() for word in document.lower().split()})
        matrix = np.random.default_rng(0).standard_normal((len(words), dims)).astype(np.float32)
        write_vectors(WordVectors(tuple(words), matrix), path, overwrite=True)
        return path

    def _lexicon(self) -> text.Lexicon:
        path = self.folder / "lexicon.tsv"
        path.write_text(LEXICON, encoding="utf-8")
        return text.Lexicon.load([path])
