"""The data that the page needs besides the other routes: what can be chosen, words, attention, and losses of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from unmask import infer, recipes
from unmask.api.part_list import list_parts
from unmask.axes import rules
from unmask.errors import require
from unmask.infer.generation_loop import reader_of
from unmask.recipe import MAIN, Recipe, Track
from unmask.serving.call import Call, Route
from unmask.serving.models import Served
from unmask.serving.refused import Refused
from unmask.serving.service import apart
from unmask.settings import flat
from unmask.text.boundaries import available
from unmask.text.columns import BEGINS
from unmask.text.encode import PLACES, encode_documents
from unmask.train import log

MOST_TOKENS: Final = 128  # of a text whose attention is shown: the answer grows with the square of its tokens
MOST_POINTS: Final = 400  # of a curve
LONGEST: Final = 20_000  # characters of a text whose words are found
DIGITS: Final = 4  # of a weight


@dataclass(frozen=True)
class Words:
    """The body of /models/NAME/words."""

    text: str

    def __post_init__(self) -> None:
        require(
            len(self.text) <= LONGEST,
            "a text may have {most:,} characters here, got {got:,}: send a shorter one",
            most=LONGEST,
            got=len(self.text),
        )


@dataclass(frozen=True)
class Attention:
    """The body of /models/NAME/attention."""

    text: str
    layer: int = 1  # counted from 1


async def choices(call: Call) -> Any:
    """All that a visitor can choose: models, recipes with the names of their settings, indexes, units and views."""
    return {
        "models": [_model(served) for served in call.service.models.all()],
        "recipes": _recipes(),
        "indexes": list(call.service.indexes),
        "units": _parts("units"),
        "views": _parts("see"),
    }


def _model(served: Served) -> dict[str, Any]:
    recipe = served.model.recipe
    about = {"name": served.name, "recipe": recipe.name, "size": recipe.size, "uses": list(served.uses)}
    # a model that writes a text from another one does not predict the words of the first
    continues = "text-generation" in served.uses and not reader_of(served.model).second
    more = {"pairs": "rerank" in served.uses, "continues": continues}
    return about | more | _settings(recipe)


@cache
def _recipes() -> list[dict[str, Any]]:
    return [
        {"name": entry.name, "year": entry.year, "paper": entry.paper, "idea": entry.idea}
        | _settings(recipes.get(entry.name))
        for entry in recipes.entries()
    ]


@cache
def _parts(axis: str) -> list[dict[str, str]]:
    return [{"name": part.name, "about": part.about} for part in list_parts(axis)]


def _settings(recipe: Recipe) -> dict[str, Any]:
    """The stages and tracks of a recipe, and for each track the names and values of the settings that the page changes."""
    tracks = {name: _of_track(recipe, name) for name in recipe.all_tracks(recipe.schedule[-1])}
    return {"stages": len(recipe.schedule), "tracks": tracks}


def _of_track(recipe: Recipe, name: str) -> dict[str, Any]:
    """If a track has no part of its own, the part of the recipe is changed. Of several rules of hiding, the first that has a
    budget is."""
    values, track = flat(recipe), Track() if name == MAIN else recipe.tracks[name]
    hide, view = ("" if part is None else f"tracks.{name}." for part in (track.hide, track.see))
    count = len(rules(recipe.hide if track.hide is None else track.hide))
    parts = ["hide", *(f"hide.{number}" for number in range(count))]
    known = {
        "budget": [f"{hide}{part}.budget" for part in parts],
        "units": [f"{hide}{part}.units" for part in parts],
        "view": [f"{view}see"],
    }
    found = {word: next((one for one in names if one in values), None) for word, names in known.items()}
    return {word: {"setting": name, "value": values[name]} for word, name in found.items() if name is not None}


async def words(call: Call) -> Any:
    """The tokens of a text with their characters and the number of their word."""
    body: Words = call.body
    served = call.service.models.get(call.path["model"])
    return await apart(lambda: _words(served, body.text), len(body.text))


def _words(served: Served, text: str) -> list[dict[str, Any]]:
    tokenizer = served.model.tokenizer
    (found,) = encode_documents([text], tokenizer, available("auto"), places=True)
    word = np.cumsum(found.columns["word"].values == BEGINS)
    return [
        {"text": tokenizer.readable(int(i)), "start": int(start), "end": int(end), "word": int(number)}
        for i, (start, end), number in zip(found.ids, found.columns[PLACES].values, word, strict=True)
    ]


async def attention(call: Call) -> Any:
    """The attention weights of one layer: for each head, each token that reads, and each token that is read."""
    body: Attention = call.body
    served = call.service.models.get(call.path["model"])
    (ids,) = await call.service.tokens(served, [body.text], truncate=None)
    if len(ids) > MOST_TOKENS:
        raise Refused(
            422,
            f"attention is shown for up to {MOST_TOKENS} tokens, got {len(ids)}: send a shorter text",
            limit="tokens",
        )

    def run(values: list[Any]) -> Sequence[Any]:
        return [infer.attention(served.model, text).value for text in values]

    (found,) = await call.service.run(served, "attention", run, [body.text], [len(ids)])
    count = len(found.layers)
    require(
        1 <= body.layer <= count,
        "layer must be between 1 and {count}, got {layer}",
        count=count,
        layer=body.layer,
    )
    weights = found.layers[body.layer - 1]
    return {
        "tokens": found.tokens, "layers": count, "layer": body.layer, "heads": len(weights),
        "weights": np.round(weights.numpy().astype(np.float64), DIGITS).tolist(),
    }  # fmt: skip


async def losses(call: Call) -> Any:
    """The losses of the runs that are served, and of those in the folder --runs: the curves of their training."""
    folders = call.service.models.folders()
    return await apart(lambda: [_curve(name, log.read(folder)) for name, folder in sorted(folders.items())], LONGEST)


def _curve(name: str, records: list[dict[str, Any]]) -> dict[str, Any]:
    """The points [step, loss] of a run, in training and on held-out text. Of many points, some evenly spaced are kept."""
    trained = [[one["step"], one["loss"]] for one in records if "loss" in one and "step" in one]
    tried = [[one["step"], one["validation_loss"]] for one in records if "validation_loss" in one]
    kept = np.unique(np.linspace(0, max(len(trained) - 1, 0), MOST_POINTS).round().astype(int)).tolist()
    done = bool(records) and bool(records[-1].get("done"))
    return {"name": name, "training": [trained[i] for i in kept] if trained else [], "held_out": tried, "done": done}


ROUTES = (
    Route("/choices", choices, "The models, recipes, indexes and parts that can be chosen"),
    Route("/losses", losses, "The losses of runs during their training"),
    Route("/models/{model}/words", words, "The tokens of a text with their characters and words", Words),
    Route("/models/{model}/attention", attention, "The attention weights of one layer", Attention),
)
