"""Make word vectors from a corpus: cut it into words, count or train, write a file."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unmask.errors import require, unknown
from unmask.text import Corpus
from unmask.text.atomic_write import check_free
from unmask.vectors.components import ComponentTable
from unmask.vectors.cooccurrence import WIDEST, Table, count_pairs
from unmask.vectors.vector_file import WordVectors, write_vectors
from unmask.vectors.word2vec import gensim_models, train_gensim
from unmask.vectors.word_file import Cutting, WordCounts, write_words

Kind = Literal["skipgram", "cbow", "fasttext", "glove"]
KINDS: dict[str, Kind] = {"skipgram": "skipgram", "cbow": "cbow", "fasttext": "fasttext", "glove": "glove"}
WINDOWS: dict[Kind, int] = {"skipgram": 5, "cbow": 5, "fasttext": 5, "glove": 10}
EPOCHS: dict[Kind, int] = {"skipgram": 5, "cbow": 5, "fasttext": 5, "glove": 50}
NEGATIVE = 5  # wrong words for each right one


@dataclass(frozen=True)
class VectorTraining:
    """How word vectors are trained."""

    kind: str = "skipgram"
    dims: int = 100
    window: int | None = None  # words on each side; None: 10 for GloVe, as in its paper, otherwise 5
    epochs: int | None = None  # passes over the text, or over GloVe's table; None: 50 for GloVe, otherwise 5
    least_count: int = 5  # rarer words get no vector
    components: Path | None = None  # a table of components of characters, for GloVe

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of word vectors", self.kind, KINDS)
        require(self.dims >= 1, "--dims must be 1 or more, got {dims}", dims=self.dims)
        require(
            1 <= self.used_window <= WIDEST,
            "--window must be from 1 to {widest} words, got {window}",
            widest=WIDEST,
            window=self.window,
        )
        require(self.used_epochs >= 1, "--epochs must be 1 or more, got {epochs}", epochs=self.epochs)
        require(
            self.least_count >= 1, "--least-count must be 1 or more, got {least_count}", least_count=self.least_count
        )
        require(
            self.components is None or self.kind == "glove",
            "--components is for --kind glove, and --kind is {kind}: leave one of them out",
            kind=self.kind,
        )

    @property
    def used_window(self) -> int:
        return WINDOWS[KINDS[self.kind]] if self.window is None else self.window

    @property
    def used_epochs(self) -> int:
        return EPOCHS[KINDS[self.kind]] if self.epochs is None else self.epochs


def make_vectors(
    corpus: Corpus, out: str | Path, training: VectorTraining, cutting: Cutting, *, seed: int = 0,
    workers: int | None = None, overwrite: bool = False,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Train word vectors and write them; yields progress records, and at last a summary."""
    out = Path(out)
    check_free(out, overwrite=overwrite)
    components = None if training.components is None else ComponentTable.load(training.components)
    if training.kind != "glove":
        gensim_models()  # fail now if it is not installed
    counts, notes = WordCounts(), Counter[str]()
    made = [parent for parent in out.parents if not parent.exists()]
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        # next to the output, where there is room: the files are larger than the corpus
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
            file = Path(folder) / "words"
            yield from write_words(corpus, cutting, file, counts, workers=workers)
            notes.update(corpus.notes)
            vocabulary = _vocabulary(counts, training.least_count)
            vectors: WordVectors | None = None
            if training.kind == "glove":
                jobs = _glove(file, Path(folder), vocabulary, training, components, seed, workers, notes)
            else:
                jobs = train_gensim(
                    file, training.kind, dims=training.dims, window=training.used_window, epochs=training.used_epochs,
                    least_count=training.least_count, negative=NEGATIVE, seed=seed, workers=workers,
                )  # fmt: skip
            for step in jobs:
                if isinstance(step, WordVectors):
                    vectors = step
                else:
                    yield {"words": len(vocabulary), **step}
        assert vectors is not None
        write_vectors(vectors, out, overwrite=overwrite)
    except BaseException:
        for parent in made:
            if not any(parent.iterdir()):
                parent.rmdir()
        raise
    total = counts.counts.total()
    known = sum(count for word, count in counts.counts.items() if word in vectors.places)
    yield {
        "file": str(out), "kind": training.kind, "words": len(vectors.words), "dims": vectors.dims, "corpus_words": total,
        "coverage": known / total, "notes": dict(notes),
    }  # fmt: skip


def _vocabulary(counts: WordCounts, least: int) -> list[str]:
    found = counts.frequent(max(least, counts.floor + 1))
    require(
        len(found) >= 2,
        "only {found} words come {least} times or more in the corpus: give more text, or lower --least-count",
        found=len(found),
        least=least,
    )
    return [word for word, _ in found]


def _glove(
    file: Path, folder: Path, words: list[str], training: VectorTraining, components: ComponentTable | None, seed: int,
    workers: int | None, notes: Counter[str],
) -> Iterator[dict[str, Any] | WordVectors]:  # fmt: skip
    for counted in count_pairs(file, folder, words, training.used_window, workers=workers):
        if not isinstance(counted, Table):
            yield counted
    assert isinstance(counted, Table)
    require(len(counted.value) > 0, "no two words are near each other in the corpus: every line has one word")
    from unmask.vectors.glove import GloVe  # after the workers have ended: it imports torch

    parts = None
    if components is not None:
        parts = components.numbers(words)
        notes.update(components.notes(words))
    model = GloVe(counted, training.dims, seed=seed, parts=parts, components=len(components.names) if components else 0)
    for done in model.train(training.used_epochs):
        yield {"done": done.epoch, "done_total": training.used_epochs, "loss": done.loss}
    vectors = WordVectors(tuple(words), model.vectors())
    yield vectors if components is None else _with_unseen(vectors, components, model.component_vectors(), notes)


def _with_unseen(
    vectors: WordVectors, components: ComponentTable, trained: np.ndarray, notes: Counter[str]
) -> WordVectors:
    """Add the characters of the table that were never seen: each is the sum of its components."""
    known = {part for word in vectors.words for part in components.parts_of(word)}
    unseen = [one for one in components.unseen(vectors.words) if one not in vectors.places]
    added, without = list[str](), list[str]()
    for one in unseen:
        (added if known.issuperset(components.of[one]) else without).append(one)
    if added:
        notes[
            f"characters of the table are in no word of the corpus, such as {added[0]}: their vectors come from their parts"
        ] = len(added)
    if without:
        notes[
            f"characters of the table get no vector, such as {without[0]}: one of their parts is in no word of the corpus"
        ] = len(without)
    place = {name: number for number, name in enumerate(components.names)}
    rows = [trained[[place[part] for part in components.of[one]]].sum(0) for one in added]
    return WordVectors((*vectors.words, *added), np.concatenate([vectors.matrix, *(row[None] for row in rows)]))
