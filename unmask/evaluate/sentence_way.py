"""The ways in which a model scores a sentence. They follow from the facts of the recipe.

likelihood          the sum of log p(token | the tokens before it); or after it, for a model that sees only these
pseudo-likelihood   the sum of log p(token | all other tokens), one [MASK] at a time (Salazar et al. 2020). A decoder that writes
                    the whole text reads the tokens before the masked one too (BART); one that writes a window of the text
                    writes a window of one token (MASS)
replaced tokens     the sum of log p(the token was not replaced), by a network that reads what a generator wrote

A model that learned both to write and to fill in masked tokens scores in both ways, and the scores are added (GPT-BERT).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unmask.axes import Hide, gives_of, needs_of, rules
from unmask.errors import UserError, require
from unmask.infer.likelihood import predicts_next
from unmask.infer.model import Model
from unmask.recipe import MAIN, Recipe
from unmask.text import layout as layouts

ORIGINAL = "original scores"
TOKENS = "token scores"


@dataclass(frozen=True)
class SentenceWay:
    """How a sentence becomes rows, and where its tokens are scored."""

    name: Literal["likelihood", "pseudo-likelihood", "replaced tokens"]
    fact: str  # the objective that gives this fact scores the tokens
    track: str  # tokens see each other as in this track
    front: tuple[int, ...]  # special tokens before the sentence
    back: tuple[int, ...] = ()  # special tokens after it
    segments: tuple[int, ...] = ()  # the segments of the special tokens after it; the rest has segment 0
    masked: bool = False  # a sentence has a row for each of its tokens, in which [MASK] stands for this token
    earlier: int = 0  # 1: a token is predicted from the place before it
    second_stream: bool = False  # a query stream scores all tokens, in the order of the sentence
    rule: Hide | None = (
        None  # makes the rows of the decoder that predicts the masked token; None: the row itself predicts it
    )

    @property
    def next_token(self) -> bool:
        """Whether all tokens of a row are predicted from the place before: then the last token is not read."""
        return self.earlier == 1 and not self.masked


def ways_of(model: Model) -> tuple[SentenceWay, ...]:
    """The ways in which a model scores a sentence; their scores are added. The model must not be adapted."""
    recipe = model.recipe
    scores = gives_of(recipe.predict)
    if not scores & {ORIGINAL, TOKENS}:
        raise UserError(
            "{folder} cannot score sentences: it predicts {predict}; use a model that predicts tokens, or which tokens were "
            "replaced",
            folder=model.folder,
            predict=", ".join(recipe.predict) or "nothing",
        )
    networks = gives_of(recipe.system)
    if "decoder" in networks:
        return (_decoded(model),)
    if "original" in networks:  # the network has never read a [MASK]
        fact = ORIGINAL if ORIGINAL in scores else TOKENS
        return (SentenceWay("replaced tokens", fact, MAIN, *_around(model)),)
    if "second stream" in networks:
        return (SentenceWay("likelihood", TOKENS, MAIN, _begin(model), second_stream=True),)
    if not predicts_next(model):
        return (_masked(model, _view(recipe)),)
    written = SentenceWay("likelihood", TOKENS, recipe.writing, _begin(model), earlier=1)
    return (written, _masked(model, MAIN)) if "both sides" in recipe.see.gives else (written,)


def _masked(model: Model, name: str) -> SentenceWay:
    track = model.recipe.all_tracks()[name]
    earlier, sees = "one earlier" in gives_of(track.hide), track.see.gives
    front, back, segments = _around(model)
    return SentenceWay(
        "likelihood" if sees & {"left", "right"} else "pseudo-likelihood", TOKENS, name,
        _begin(model) if earlier or "left" in sees else front, back, segments, masked=True, earlier=int(earlier),
    )  # fmt: skip


def _decoded(model: Model) -> SentenceWay:
    """By a decoder, with the rows for a single token that a rule of `hide` makes."""
    tracks = model.recipe.all_tracks()
    pairs = [(name, rule) for name, track in tracks.items() for rule in rules(track.hide)]
    name, rule = next((pair for pair in pairs if "single tokens" in pair[1].gives), (MAIN, None))
    if rule is None:
        raise UserError(
            "{folder} cannot score sentences, because its decoder writes another text than its encoder reads: use a model that "
            "was pretrained on single texts, such as bart or bert",
            folder=model.folder,
        )
    require(
        "mask token" in needs_of(tracks[name].hide),
        "{folder} cannot score sentences, because its encoder has never read a [MASK]: use a model whose hide writes [MASK] into "
        "the text, such as bart with its own hide",
        folder=model.folder,
    )
    return SentenceWay("pseudo-likelihood", TOKENS, name, *_around(model), masked=True, rule=rule)


def _view(recipe: Recipe) -> str:
    """The track of a masked recipe that scores sentences: if it writes, the first one that sees only the left."""
    if recipe.writes:
        for name, track in recipe.all_tracks().items():
            if "left" in track.see.gives:
                return name
    return MAIN


def _begin(model: Model) -> tuple[int, ...]:
    """What training puts before a text: the first special tokens of the layout, or the end of the document before."""
    return tuple(model.opening) or (model.tokenizer.role("sep"),)


def _around(model: Model) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The special tokens before and after a single text, and the segments of those after it."""
    items = layouts.items(model.recipe.layout, 1)
    after = items[[item.name for item in items].index("a") + 1 :]
    ids = tuple(model.tokenizer.role(item.name) for item in after)
    return tuple(model.opening), ids, tuple(item.segment for item in after)
