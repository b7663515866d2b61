"""What is done with text before any model: train_tokenizer, prepare, make_lexicon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from unmask import screen, text
from unmask.api.choose_recipe import named
from unmask.api.paths import Paths, listed
from unmask.data.prepare import HOLDOUT
from unmask.data.prepare import prepare as prepare_shards
from unmask.errors import require
from unmask.progress import Progress, Tell, draw_notes, follow, tell_notes
from unmask.recipe import Recipe
from unmask.recipes import smallest
from unmask.text.boundaries import words_named


def train_tokenizer(
    corpus: Paths, out: str | Path, *, kind: str | None = None, recipe: str | Recipe | None = None,
    variant: str = "paper", settings: Sequence[str] = (), vocab: int | None = None, fold: bool = False,
    whole: bool = False, lines: bool = False, encoding: str = "utf-8", errors: str = "strict", seed: int = 0,
    overwrite: bool = False, tell: Tell = None,
) -> text.Tokenizer:  # fmt: skip
    """Train a tokenizer on a corpus and write it to `out`. `whole`, `lines`, `encoding`, `errors`: as for `prepare`.

    `kind`: "wordpiece" by default. `recipe`: instead of a kind, a recipe whose own kind is trained, with its vocabulary and
    case; `variant` and `settings` (such as "tokenizer.lowercase=false") are those of this recipe.
    `vocab`: how many tokens; None: the usual number, or as many as the text allows.
    `fold`: full-width letters, digits and marks are read as half-width ones, wherever the tokenizer is used.
    `tell`: a function for notes; without one they are warnings."""
    wanted = _wanted(kind, recipe, variant, settings, vocab)
    stream = text.Corpus(listed(corpus), errors=errors, encoding=encoding, seed=seed, whole=whole, lines=lines)
    made = text.train_to_file(stream, out, wanted, overwrite, at_most=vocab is None, fold=fold)
    tell_notes(Counter(stream.notes) + about_size(made, wanted), tell)
    return made


def _wanted(
    kind: str | None, recipe: str | Recipe | None, variant: str, settings: Sequence[str], vocab: int | None
) -> text.Kind:
    """The kind of tokenizer that a caller means."""
    if recipe is None:
        require(
            variant == "paper" and not settings,
            "--variant and --set change a recipe, and no recipe is named: add --for RECIPE, or leave them out",
        )
        return text.kind_named(kind or "wordpiece", vocab)
    require(
        kind is None,
        "--kind {kind} and --for {recipe} both name a kind of tokenizer: give one of them",
        kind=kind,
        recipe=recipe,
    )
    size = smallest(recipe) if isinstance(recipe, str) else None  # every size has the same tokenizer
    found: Any = named(recipe, size=size, variant=variant, settings=settings).tokenizer
    return found if vocab is None else replace(found, vocab=vocab)


def about_size(made: text.Tokenizer, wanted: text.Kind) -> Counter[str]:
    """A note if the text was too short for the usual number of tokens."""
    size = made.vocabulary.size
    if size >= wanted.vocab or wanted.at_most:
        return Counter()
    few = f"tokens are all that the text allows; the usual number is {wanted.vocab:,}, which needs more text"
    return Counter({few: size})


def prepare(
    corpus: Paths, out: str | Path, *, tokenizer: str | Path, words: str = "auto", words_from: Paths = (),
    lexicon: Paths = (), graph: str | Path | None = None, link_by: str | None = None, mention_id: str | None = None,
    capitals: bool = False, holdout: float = HOLDOUT, fold: bool = False, whole: bool = False, lines: bool = False,
    encoding: str = "utf-8", errors: str = "strict", seed: int = 0, workers: int | None = None, overwrite: bool = False,
    progress: Progress = True,
) -> dict[str, Any]:  # fmt: skip
    """Tokenise a corpus into shards, with the phrases and entities of a lexicon if one is given; returns the manifest.

    `words`: where words begin: auto, spaces, rjieba or none.
    `words_from`: files with words of your own for the Chinese segmenter.
    `graph`: a folder of 'unmask graph': its entities are found in the text and become the column `links`. `link_by`: which
    entity is meant if several have one name: prior (the one with the most triples, the default) or context. A JSON line
    with `mentions` (start, end, id) keeps them instead; `mention_id` is another name for their id.
    `capitals`: keep which words begin with a capital letter as the column `capital`, because a tokenizer may not.
    `whole`: a .txt file is one document, and its blank lines are text, for models of characters and bytes.
    `lines`: every line of a .txt file is a document. `encoding`: utf-8, gb18030, big5, utf-16 or another.
    `fold`: full-width letters, digits and marks are read as half-width ones; the data's tokenizer does so from then on.
    `errors`: "strict", or "replace" to read on where bytes are damaged.
    `holdout`: the share of tokens kept for validation. `seed`: of the documents that PATH:0.3 takes."""
    way = words_named(words)
    own = text.OwnWords.load(listed(words_from), way) if words_from else None
    known = text.Lexicon.load(listed(lexicon)) if lexicon else None
    stream = text.Corpus(listed(corpus), errors=errors, encoding=encoding, seed=seed, whole=whole, lines=lines)
    read = text.Tokenizer.load(tokenizer)
    records = prepare_shards(
        stream, read.folding() if fold else read, out, words=way, own=own, lexicon=known, capitals=capitals, holdout=holdout,
        workers=workers, overwrite=overwrite, **linking(graph, link_by, mention_id),
    )  # fmt: skip
    manifest = follow(records, progress, partial(screen.reading, title="preparing"))
    draw_notes(manifest["notes"], progress)
    return manifest


def linking(graph: str | Path | None, by: str | None, mention_id: str | None) -> dict[str, Any]:
    """How entities are linked, for `prepare`; {}: they are not."""
    if graph is None:
        options = {"--link-by": by, "--mention-id": mention_id}
        given = " and ".join(name for name, value in options.items() if value is not None)
        require(not given, "{given} has no effect without --graph: give a graph, or leave it out", given=given)
        return {}
    from unmask.knowledge import linker_of  # it imports torch

    return {"linker": linker_of(graph, by or "prior"), "graph": Path(graph), "mention_id": mention_id or "id"}


def make_lexicon(
    corpus: Paths, out: str | Path, *, graph: Paths = (), mining: text.Mining | None = None, lines: bool = False,
    encoding: str = "utf-8", errors: str = "strict", seed: int = 0, overwrite: bool = False, progress: Progress = True,
) -> dict[str, Any]:  # fmt: skip
    """Mine phrases from a corpus (none: ()) and take the names of a knowledge graph; returns what was written.

    `mining`: what makes a phrase, an `unmask.Mining`."""
    require(
        bool(corpus) or mining in (None, text.Mining()),
        "nothing is mined without a CORPUS: give one, or leave --least-... and --most-ngrams out",
    )
    stream = text.Corpus(listed(corpus), errors=errors, encoding=encoding, seed=seed, lines=lines) if corpus else None
    records = text.make_lexicon(
        stream, out, graph=listed(graph), mining=mining if corpus else None, overwrite=overwrite
    )
    summary = follow(records, progress, partial(screen.reading, title="mining", unit="words"))
    draw_notes(summary["notes"], progress)
    return summary
