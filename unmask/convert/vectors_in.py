"""Make a run of a file of word vectors: a baseline that every verb for runs can use (adapt, evaluate, compare ...).

The network is the table of vectors (`WordsAlone`), or a network above it with random weights. The tokenizer finds the words of the file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as Backend
from tokenizers import models, normalizers, pre_tokenizers

from unmask.axes import columns_of
from unmask.backbone import WordsAlone
from unmask.counted import counted
from unmask.data import FullRows
from unmask.errors import require
from unmask.hide import Nothing
from unmask.infer.model import Model, save_run
from unmask.recipe import Adapt, Recipe, Stage
from unmask.see import Everything
from unmask.settings import override
from unmask.system import Single
from unmask.text import Tokenizer, WholeWords
from unmask.text.boundaries import HAN, classes_of, codes_of
from unmask.text.tokenizer import BERT_NAMES
from unmask.text.word_tokens import SPELLING
from unmask.train import AdamW
from unmask.vectors import read_vectors

LENGTH = 512  # tokens of a text; there are no positions, so any number would do
RATE_OF_LAYERS = 1e-3  # of a network above the vectors, at any width
CHINESE = 0.5  # share of the words with Chinese characters from which text is cut into its most likely words


@dataclass(frozen=True)
class VectorReport:
    """The result of an import."""

    recipe: str
    words: int
    dims: int
    notes: tuple[str, ...]


def import_vectors(
    file: str | Path, out: str | Path, *, settings: Sequence[str] = (), overwrite: bool = False
) -> VectorReport:
    """Read a file of word vectors and write a run folder. Tokens without a vector are zeros.

    `settings`: changes of the recipe, such as a network above the vectors, which has random weights."""
    vectors = read_vectors(file)
    words = [word for word in vectors.words if word not in BERT_NAMES]
    recipe = _changed(_recipe(len(words) + len(BERT_NAMES), vectors.dims), settings)
    tokenizer = _tokenizer(words, spelled=SPELLING in columns_of(recipe.system.backbone))
    system: Any = recipe.system.build(recipe, tokenizer.vocabulary, 0)
    table = system.backbone.embed.token.weight
    require(
        tuple(table.shape[1:]) == (vectors.dims,) and not table.is_meta,
        "the vectors of {file} have {dims} dimensions, and the network has a table of embeddings of {width}: set "
        "system.backbone.embedding={dims}, or choose a network that has such a table, such as SpelledBiLSTM",
        file=file,
        dims=vectors.dims,
        width="none" if table.is_meta else table.shape[1],
    )
    with torch.no_grad():
        table.zero_()
        rows = [tokenizer.backend.token_to_id(word) for word in words]
        table[rows] = torch.from_numpy(vectors.matrix[[vectors.places[word] for word in words]])
    notes = tuple(counted(count, text) for text, count in vectors.notes.items())
    report = VectorReport(recipe.name, len(words), vectors.dims, notes)
    save_run(Model(system.eval(), recipe, tokenizer, Path(out)), out, overwrite=overwrite)
    return report


def _changed(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """The recipe with the settings of the user. A network with layers learns at the rate of such networks."""
    made = override(recipe, settings)
    backbone = made.system.backbone
    if backbone.layers and made.adapt == recipe.adapt:
        made = made.replace(adapt=Adapt(rate=RATE_OF_LAYERS * backbone.width / 768, epochs=10, pooler=False))
    if SPELLING in columns_of(backbone):
        made = made.replace(tokenizer=WholeWords(vocab=recipe.tokenizer.vocab, split="words", spelled=True))
    return made


def _recipe(vocab: int, width: int) -> Recipe:
    return Recipe(
        name="word-vectors", size="base", tokenizer=WholeWords(vocab=vocab), layout="a", arrange=FullRows(), hide=Nothing(),
        see=Everything(), system=Single(backbone=WordsAlone(width=width, length=LENGTH)), predict={}, optimise=AdamW(rate=1e-3),
        schedule=(Stage(length=LENGTH),), reads=LENGTH, adapt=Adapt(rate=1e-2, epochs=10, pooler=False),
    )  # fmt: skip


def _tokenizer(words: list[str], *, spelled: bool = False) -> Tokenizer:
    """Words are runs of letters and digits, or single marks, as `unmask vectors` finds them. Where words are Chinese, which has
    no spaces, the most likely sequence of known words is taken. `spelled`: keep the spelling of each word, with its capitals;
    then Chinese words are those of the segmenter."""
    han = sum(bool((classes_of(codes_of(word)) == HAN).any()) for word in words)
    names = [*BERT_NAMES, *words]
    if han > CHINESE * len(words) and not spelled:
        # words come about as often as 1 / their rank (Zipf's law), and the files have the most frequent first
        model: Any = models.Unigram([(name, -math.log(rank)) for rank, name in enumerate(names, 1)], unk_id=1)
    else:
        model = models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="[UNK]")
    backend = Backend(model)
    if not any(word != word.lower() for word in words):
        backend.normalizer = normalizers.Lowercase()
    blank = WholeWords(split="words", spelled=True).blank()[0]
    backend.pre_tokenizer = blank.pre_tokenizer if spelled else pre_tokenizers.BertPreTokenizer()
    backend.add_special_tokens(BERT_NAMES)
    return Tokenizer(backend)
