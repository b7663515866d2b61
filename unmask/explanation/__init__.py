"""Explanation: show, as data, how one text goes through every step of training. It uses the parts of training itself."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from unmask import recipes, see, system
from unmask.axes import ALL_TOKENS, columns_of, gives_of
from unmask.errors import UserError, require
from unmask.explanation import extract
from unmask.explanation.hidden_units import make
from unmask.explanation.records import Explanation, to_json
from unmask.explanation.text_row import first_row, learns, small_tokenizer
from unmask.recipe import MAIN, FullTrack, Recipe
from unmask.text import Lexicon, Tokenizer
from unmask.text.lexicon import LEVELS
from unmask.text.links import LINKS

__all__ = ["Explanation", "explain", "find_stage", "find_track", "to_json"]


def explain(
    recipe: Recipe, text: str, *, track: str = MAIN, tokenizer: Tokenizer | None = None, lexicon: Lexicon | None = None,
    stage: int | None = None, seed: int = 0, visit: int = 0,
) -> Explanation:  # fmt: skip
    """Take a text through every step of training. Blank lines separate documents.

    `stage` counts from 1; None is the last stage."""
    require(visit >= 0, "visit must be 0 or more, got {visit}", visit=visit)
    require(bool(text.strip()), "there is no text to explain: give a sentence or more")
    number = find_stage(recipe, stage)
    now, done = recipe.schedule[number - 1], sum(before.share for before in recipe.schedule[: number - 1])
    chosen = find_track(recipe, number, track)
    given, tokenizer = tokenizer, tokenizer or small_tokenizer(recipe.tokenizer, text)
    system.check_fit(recipe, tokenizer.vocabulary)
    notes = [_about_tokenizer(recipe, given, tokenizer), *_about_lexicon(recipe, chosen, lexicon)]
    row, more = first_row(
        recipe, chosen.arrange, text, tokenizer, lexicon=lexicon, length=now.length, seed=seed, visit=visit
    )
    row = row.replace(progress=torch.tensor(done))
    made = make(chosen, row, tokenizer.vocabulary, seed, system.asked(recipe, chosen))
    found = tuple(extract.found(made.before))
    units = tuple(extract.hidden_units(made, found))
    tokens = tuple(extract.tokens(made, tokenizer, units))
    seen = see.visible(made.batch)[0, : len(tokens), : len(tokens)].tolist()
    return Explanation(
        recipe=recipe.name,
        size=recipe.size,
        variant=recipe.variant,
        idea=next((entry.idea for entry in recipes.entries() if entry.name == recipe.name), ""),
        track=track,
        stage=number,
        stages=len(recipe.schedule),
        seed=seed,
        visit=visit,
        choices=tuple(extract.choices(recipe, chosen, now)),
        drawn=tuple(extract.drawn(recipe, track, chosen, made)),
        tokens=tokens,
        moved=made.moves,
        visible=tuple(map(tuple, seen)),
        found=found,
        units=units,
        targets=tuple(extract.targets(recipe, chosen, now, made.batch, tokenizer)),
        decoder=tuple(extract.decoder(made.batch, tokenizer)),
        questions=tuple(extract.questions(recipe, chosen, now, made.batch, done)),
        answers=tuple(extract.answers(chosen, made.batch)),
        classes=chosen.arrange.classes,
        tags=tuple(extract.tags(recipe, chosen, made.batch)),
        notes=(*notes, *more, *_about_network(recipe)),
        misfit=_misfit(recipe, tokenizer),
    )


def find_stage(recipe: Recipe, stage: int | None) -> int:
    """The number of a stage, counted from 1. None means the last stage."""
    count = len(recipe.schedule)
    number = count if stage is None else stage
    known = "one stage" if count == 1 else f"stages 1 to {count}"
    require(
        1 <= number <= count,
        "{name} has {known}, got {stage}: leave the stage out to get the last stage",
        name=recipe.name,
        known=known,
        stage=stage,
    )
    return number


def find_track(recipe: Recipe, stage: int, name: str) -> FullTrack:
    """The track with this name, as it is in a stage. Stages count from 1."""
    tracks = recipe.all_tracks(recipe.schedule[stage - 1])
    known = f"the tracks {', '.join(tracks)}" if recipe.tracks else f"only the track {MAIN}"
    require(
        name in tracks,
        "{name} has {known}, got {name_2!r}: use one of these, or leave the track out",
        name=recipe.name,
        known=known,
        name_2=name,
    )
    return tracks[name]


def _misfit(recipe: Recipe, tokenizer: Tokenizer) -> str:
    """Why the parts of a recipe cannot be trained together. Each of them can still be shown."""
    try:
        system.check_training(recipe, tokenizer.vocabulary)
    except UserError as error:
        return str(error)
    return ""


def _about_network(recipe: Recipe) -> Iterator[str]:
    """Notes about facts of the network that the matrix does not show."""
    memory = recipe.system.backbone.memory
    if memory:
        size = "in the cells of the network" if memory == ALL_TOKENS else f"up to {memory} tokens"
        yield f"every token also sees a memory of earlier rows, {size}"
    if extract.TWO_HALVES in gives_of(recipe.system):
        yield (
            "the matrix shows both halves of a vector together: the first half sees only its own token and the tokens before, and "
            "predicts the next one; the second half sees only its own token and those after, and predicts the previous one"
        )
    if "decoder" in gives_of(recipe.system):
        yield "the matrix shows the encoder; a token of the decoder sees itself, those before it, and the encoder's whole example"
    if "second stream" in gives_of(recipe.system):
        yield (
            "the matrix shows the stream that reads the tokens; a second stream predicts: at each place it sees what the "
            "token there sees, but not that token itself"
        )


def _about_tokenizer(recipe: Recipe, given: Tokenizer | None, used: Tokenizer) -> str:
    size = f"of {used.vocabulary.size:,} tokens"
    if given is not None:
        return f"tokenizer: the one given, {size}"
    trained = ", trained on this text and on Python's documentation" if learns(recipe.tokenizer) else ""
    return f"tokenizer: a {type(recipe.tokenizer).__name__} {size}{trained}"


def _about_lexicon(recipe: Recipe, track: FullTrack, lexicon: Lexicon | None) -> Iterator[str]:
    """Refuse a lexicon that has no effect. If a lexicon is missing, add a note that says what is hidden instead."""
    tracks = [one for stage in recipe.schedule for one in recipe.all_tracks(stage).values()]
    require(
        lexicon is None or any(map(_reads_lexicon, tracks)),
        "{name} hides no phrases and no entities, so a lexicon has no effect: leave it out",
        name=recipe.name,
    )
    if lexicon is None and _reads_lexicon(track):
        yield (
            "no lexicon was given, so words are hidden instead of phrases and entities: give one with --lexicon FILE; each "
            "line is an entry, a tab, and phrase or entity"
        )
    if LINKS in columns_of(track.hide):
        yield "entities come from the graph of prepared data, so none is linked here: the row is that of a text without any"


def _reads_lexicon(track: FullTrack) -> bool:
    return bool(columns_of(track.hide) & set(LEVELS))
