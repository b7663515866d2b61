"""Small data for contracts: English sentences, a tokenizer of any kind trained on them, and shards made from them."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import string
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from unmask import text
from unmask.data.prepare import prepare
from unmask.knowledge import Training, linker_of, make_vectors
from unmask.text.encode import CAPITAL, SIDE
from unmask.text.lexicon import LEVELS
from unmask.text.links import LINKS
from unmask.vectors import WordVectors, write_vectors

VOCABULARY = 300  # the largest number of tokens: small, so that some words have several tokens
DOCUMENTS = 120
SUBJECTS = "the doctor|a patient|the old engine|our server|the judge|a small company|the river|my teacher".split("|")
VERBS = "examined repaired ignored described followed measured sold opened".split()
OBJECTS = "the report|an open wound|three valves|the case|a long bridge|the data|no evidence|every window".split("|")
TAILS = "in the morning|without delay|after the storm|for the third time|near London|despite the rain".split("|")
CONNECTIVES = ("However, ", "Therefore, ", "For example, ", "因此，", "但是，", "例如，", "", "")
# of a graph whose entities are in the sentences
TRIPLES = (
    ("London", "has", "a long bridge"), ("the river", "flows near", "London"), ("the doctor", "examined", "a patient"),
    ("my teacher", "lives in", "London"), ("the judge", "read", "the report"), ("our server", "holds", "the data"),
    ("the old engine", "has", "three valves"), ("a small company", "sold", "the old engine"),
    ("the storm", "broke", "every window"), ("an open wound", "is", "the case"), ("the rain", "is", "the storm"),
)  # fmt: skip
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


def _connected(document: str) -> str:
    """The document with connectives before some of its sentences."""
    dice = random.Random(document)
    return re.sub(r"(?<=[.!?] )(?=[A-Z])", lambda _: dice.choice(CONNECTIVES), document)


class SmallData:
    """Tokenizers and prepared data in a temporary folder. Each is made once, when it is first needed."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="unmask_contracts_")  # deleted together with this object
        self.folder = Path(self._temporary.name)
        self._made: dict[tuple[Any, ...], tuple[text.Tokenizer, Path]] = {}

    def of(
        self, kind: Any, columns: frozenset[str], *, connected: bool = False
    ) -> tuple[text.Tokenizer, Path]:  # fmt: skip
        """A tokenizer of this kind with a small vocabulary, and data with these columns. `connected`: some sentences begin
        with a connective."""
        small, marked = dataclasses.replace(kind, vocab=min(kind.vocab, VOCABULARY)), bool(columns & set(LEVELS))
        key = (small, marked, SIDE in columns, LINKS in columns, CAPITAL in columns, connected)
        if key not in self._made:
            self._made[key] = self._make(*key)
        return self._made[key]

    def _make(
        self, kind: Any, marked: bool, pairs: bool, linked: bool, capitals: bool, connected: bool
    ) -> tuple[text.Tokenizer, Path]:  # fmt: skip
        out, corpus = self.folder / f"data_{len(self._made)}", self.folder / ("pairs.jsonl" if pairs else "text.txt")
        texts = [_connected(one) for one in documents()] if connected else documents()
        corpus.write_text(pair_lines() if pairs else "\n\n".join(texts), encoding="utf-8")
        tokenizer = text.train(kind, texts, at_most=True)
        lexicon = self._lexicon() if marked else None
        graph = self._graph() if linked else None
        linker = linker_of(graph) if graph is not None else None
        for _ in prepare(
            text.Corpus([corpus]),
            tokenizer,
            out,
            holdout=0.05,
            workers=1,
            lexicon=lexicon,
            linker=linker,
            graph=graph,
            capitals=capitals,
        ):
            pass
        return tokenizer, out

    def vectors(self, dims: int) -> Path:
        """A file of word vectors of the words of the data."""
        path = self.folder / f"vectors_{dims}.txt"
        words = sorted({word for document in documents() for word in re.findall(r"\w+|[^\w\s]", document.lower())})
        matrix = np.random.default_rng(0).standard_normal((len(words), dims)).astype(np.float32)
        write_vectors(WordVectors(tuple(words), matrix), path, overwrite=True)
        return path

    def components(self) -> Path:
        """A table of components: each letter has two others."""
        path, letters = self.folder / "components.tsv", string.ascii_lowercase
        path.write_text("".join(f"{letters[i]}\t{letters[i - 5]}{letters[-i]}\n" for i in range(26)), encoding="utf-8")
        return path

    def _graph(self) -> Path:
        """The vectors of a small graph, whose entities are in the sentences."""
        triples, out = self.folder / "triples.tsv", self.folder / "vectors"
        triples.write_text("".join("\t".join(triple) + "\n" for triple in TRIPLES), encoding="utf-8")
        for _ in make_vectors([triples], out, Training(dims=64, epochs=1), holdout=0, overwrite=True):
            pass
        return out

    def _lexicon(self) -> text.Lexicon:
        path = self.folder / "lexicon.tsv"
        path.write_text(LEXICON, encoding="utf-8")
        return text.Lexicon.load([path])
