"""Fit: check that the parts of a recipe fit together. Every need must be met, and every number must be in range.

Messages are composed from the facts that the parts declare (`unmask.axes`). The advice is a list of settings. A recipe
with these settings fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unmask.axes import FACTS, Hide, Need, Objective, PartLike, fact, gives_of, parts_in, rules
from unmask.batch import Vocabulary
from unmask.errors import UserError, require
from unmask.recipe import MAIN, FullTrack, Recipe
from unmask.settings import override
from unmask.system.objectives import asked, chosen, losses, objectives, predictions
from unmask.text import layout as layouts

MASK_TOKEN = "mask token"
AT_BUILD = (MASK_TOKEN, "one table", "clusters", "rotation")  # needs of any network; all others matter only in training
_MOST_SETTINGS = 3  # in one piece of advice


def check_fit(recipe: Recipe, vocabulary: Vocabulary) -> None:
    """Refuse a recipe whose numbers do not fit, or whose network cannot be built with its heads and this vocabulary."""
    _check_numbers(recipe)
    _check_weights(recipe)
    for unmet in _unmet(recipe, vocabulary):
        if unmet.need.fact in AT_BUILD:
            raise UserError(_message(recipe, unmet))


def check_training(recipe: Recipe, vocabulary: Vocabulary | None = None) -> None:
    """Refuse to train a recipe in which a part needs a fact that no part gives, or gives targets that no part reads."""
    unmet = next(_unmet(recipe, vocabulary), None)
    if unmet is not None:
        raise UserError(_message(recipe, unmet))
    unused = next(_unused(recipe), None)
    if unused is not None:
        path, part, name = unused
        raise UserError(
            (
                "{path}={part_kind} gives {words}, but no objective reads them, so the option has no effect: lower "
                "{path}.ahead, or add an objective with target={partition}"
            ),
            path=path,
            part_kind=type(part).__name__,
            words=fact(name).words,
            partition=name.partition(":")[2],
        )


@dataclass(frozen=True)
class Unmet:
    """A need that no part meets."""

    path: str  # the name of the part in settings
    part: PartLike
    need: Need
    track: str


_PER_RULE = frozenset({"covered", "from before", "one earlier"})  # facts that hold only for the targets of their rule


def _unmet(recipe: Recipe, vocabulary: Vocabulary | None) -> Iterator[Unmet]:
    for track, hide, parts in _parts(recipe):
        given = {name for _, part in parts for name in part.gives}
        if vocabulary is None or vocabulary.mask is not None:
            given.add(MASK_TOKEN)
        found = [gives_of(rule) for rule in rules(hide)]
        # what is true of the targets of each rule; a need must be met for all of them
        each = [given - (_PER_RULE - gives) for gives in found if "targets:tokens" in gives] or [given]
        for path, part in parts:
            for need in part.needs:
                columns = any(name.startswith("column:") for name in need.alternatives)
                if not columns and not all(given.intersection(need.alternatives) for given in each):
                    yield Unmet(path, part, need, track)  # columns are checked when the data is opened


def _unused(recipe: Recipe) -> Iterator[tuple[str, PartLike, str]]:
    for _, _, parts in _parts(recipe):
        read = {name for _, part in parts for need in part.needs for name in need.alternatives}
        for path, part in parts:
            for name in sorted(part.must_use - read):
                yield path, part, name


def _parts(recipe: Recipe) -> Iterator[tuple[str, Hide | tuple[Hide, ...], list[tuple[str, PartLike]]]]:
    """For each stage and track: the name of the track, what it hides, and all parts that it uses with their paths."""
    start = () if recipe.start is None else parts_in(recipe.start, "start")
    shared = [*parts_in(recipe.system, "system"), *start]
    for number, stage in enumerate(recipe.schedule):
        for name, track in recipe.all_tracks(stage).items():
            if recipe.takes_turns and not track.share:
                continue
            prefix = "" if name == MAIN else f"tracks.{name}."
            hide = f"schedule.{number}.hide" if name == MAIN and stage.hide is not None else f"{prefix}hide"
            own = [*parts_in(track.arrange, f"{prefix}arrange"), *parts_in(track.see, f"{prefix}see")]
            heads = [pair for n, p in chosen(recipe, track).items() for pair in parts_in(p, _path(name, track, n))]
            yield name, track.hide, [*own, *parts_in(track.hide, hide), *shared, *heads]


def _path(name: str, track: FullTrack, objective: str) -> str:
    """The name of an objective of a track in settings."""
    return f"tracks.{name}.own.{objective}" if objective in track.own else f"predict.{objective}"


def _message(recipe: Recipe, unmet: Unmet) -> str:
    """Which part needs what, why, and which settings help."""
    if unmet.need.fact == MASK_TOKEN:
        return _mask_message(recipe, unmet)
    words = " or ".join(fact(name).words for name in unmet.need.alternatives)
    advice = advice_for(recipe, unmet)
    shown = ", or ".join(" and ".join(settings) for settings in advice)
    return (
        f"{unmet.path}={type(unmet.part).__name__} needs {words}, because {unmet.need.because}, but no part of {recipe.name} gives "
        f"this: " + (f"set {shown}" if shown else f"choose another {unmet.path}")
    )


def _mask_message(recipe: Recipe, unmet: Unmet) -> str:
    return (
        f"{recipe.name} replaces tokens by [MASK], but the tokenizer has no mask token: train a tokenizer with "
        f"'unmask tokenizer', or set {unmet.path}.{unmet.need.unless}"
    )


def advice_for(recipe: Recipe, unmet: Unmet) -> list[list[str]]:
    """Up to two lists of settings, the shortest first. With each of them the recipe fits."""
    found: list[list[str]] = []
    waiting = [[setting] for setting in _helps(recipe, unmet)]
    tried: list[list[str]] = []
    while waiting and len(found) < 2:
        settings = waiting.pop(0)
        if settings in tried:
            continue
        tried.append(settings)
        left = _left(recipe, settings)
        if left is None:
            needed = _needed(recipe, settings)
            found += [needed] if needed not in found else []
        elif isinstance(left, Unmet) and len(settings) < _MOST_SETTINGS:
            waiting += [_with(settings, more) for more in _helps(recipe, left)]
    return found or [[other] for other in _others(unmet.path) if _left(recipe, [other]) is None][:2]


def _left(recipe: Recipe, settings: list[str]) -> Unmet | UserError | None:
    """The first problem that is left with these settings; None: everything fits."""
    try:
        changed = override(recipe, settings)
        _check_numbers(changed)
        unmet = next(_unmet(changed, None), None)
        if unmet is None:
            check_training(changed)
    except UserError as error:  # a setting that does not apply to this recipe, or an option without effect
        return error
    return unmet


def _with(settings: list[str], more: str) -> list[str]:
    """The settings with one more, which replaces an earlier setting of the same name."""
    name = more.partition("=")[0]
    return [*(one for one in settings if one.partition("=")[0] != name), more]


def _needed(recipe: Recipe, settings: list[str]) -> list[str]:
    """The settings without those that are not necessary."""
    for setting in settings:
        fewer = [one for one in settings if one != setting]
        if fewer and _left(recipe, fewer) is None:
            return _needed(recipe, fewer)
    return settings


def _helps(recipe: Recipe, unmet: Unmet) -> list[str]:
    """Settings that give the needed fact, or remove the need."""
    gives = [setting for name in unmet.need.alternatives for setting in fact(name).settings]
    own = [_in_track(recipe, unmet.track, setting) for setting in gives]
    return own + ([f"{unmet.path}.{unmet.need.unless}"] if unmet.need.unless else [])


def _in_track(recipe: Recipe, track: str, setting: str) -> str:
    """The setting for the track, if the track has its own part; otherwise the setting for the recipe."""
    name = setting.partition("=")[0]
    return f"tracks.{track}.{setting}" if track != MAIN and getattr(recipe.tracks[track], name, None) else setting


def _others(path: str) -> list[str]:
    """Settings that replace the part at this path by another part of its axis."""
    axis = path.rpartition(".")[2] if path.startswith("tracks.") else path
    known = dict.fromkeys(setting for one in FACTS.values() for setting in one.settings)
    return [path.removesuffix(axis) + setting for setting in known if setting.partition("=")[0] == axis]


def _check_numbers(recipe: Recipe) -> None:
    _check_loss_names(recipe)
    for stage in recipe.schedule:
        for track in recipe.all_tracks(stage).values():
            longest = max(rule.longest for rule in rules(track.hide))
            require(
                longest <= stage.length,
                (
                    "a hidden unit may have {longest} words or tokens, but a row has only {length} tokens: set "
                    "shorter hide.units, or raise schedule.*.length"
                ),
                longest=longest,
                length=stage.length,
            )
            together = [rule for rule in rules(track.hide) if "targets:tokens" in rule.gives]
            require(
                len(together) <= 1 or all(rule.in_place is not None for rule in together),
                "only rules that hide tokens in place can be used together, got hide={names}: use several Masked, or one rule",
                names=" and ".join(type(rule).__name__ for rule in together),
            )
    for name, network in recipe.system.networks.items():
        _check_network(name, recipe)
        known: int | None = getattr(network, "tasks") if "task embeddings" in network.gives else None  # noqa: B009
        require(
            known is None or known > len(recipe.tracks),
            "{recipe} has {count} tracks, but the {name} has embeddings for only {known} tasks: set system.{name}.tasks={count}",
            recipe=recipe.name,
            count=len(recipe.tracks) + 1,
            name=name,
            known=known,
        )
    layers = recipe.system.backbone.layers
    for name, part in objectives(recipe).items():
        require(
            part.layer is None or part.layer <= layers,
            (
                "predict.{name} reads layer {layer}, but the backbone has only {layers} layers: lower "
                "predict.{name}.layer"
            ),
            name=name,
            layer=part.layer,
            layers=layers,
        )
        require(
            part.layer is None or part.target is None or "decoder rows" not in gives_of(recipe.hide),
            "predict.{name} reads layer {layer} of the encoder, but a decoder predicts the targets: set predict.{name}.layer=none",
            name=name,
            layer=part.layer,
        )


def _check_loss_names(recipe: Recipe) -> None:
    known: dict[str, Objective] = {}
    for name, track in recipe.all_tracks().items():
        for objective, part in chosen(recipe, track).items():
            require(
                known.setdefault(objective, part) == part,
                "the track {name!r} has another objective with the name {objective!r} than the tracks before it: give it another name",
                name=name,
                objective=objective,
            )
    taken = sorted(set(recipe.system.losses) & set(objectives(recipe)))
    require(
        not taken,
        "{name} has an objective with the name {taken}, but system={system} adds a loss with this name: set system=Single, or "
        "give predict other names, such as predict={{replaced: Replaced}}",
        name=recipe.name,
        taken=", ".join(taken),
        system=type(recipe.system).__name__,
    )


def _check_network(name: str, recipe: Recipe) -> None:
    """Refuse a network, called `system.NAME`, that cannot read the recipe's rows."""
    network, rows = recipe.system.networks[name], max(stage.length for stage in recipe.schedule)
    require(
        rows <= network.length,
        (
            "rows of {rows} tokens are too long for a {name} of length {length}: lower schedule.*.length or raise "
            "system.{name}.length"
        ),
        rows=rows,
        name=name,
        length=network.length,
    )
    for track, choices in recipe.all_tracks().items():
        laid = 1 + max(item.segment for item in layouts.items(recipe.layout, 2 if "b" in recipe.layout.split() else 1))
        require(
            not network.segments or not choices.segments or laid <= len(choices.segments),
            (
                "the layout {layout!r} has {laid} kinds of segments, but the track {track!r} has numbers for only "
                "{count_of_segments}: set another layout"
            ),
            layout=recipe.layout,
            laid=laid,
            track=track,
            count_of_segments=len(choices.segments),
        )
        known = 1 + max(choices.segments, default=laid - 1)
        require(
            not network.segments or known <= network.segments,
            (
                "the layout {layout!r} has {known} kinds of segments, but the {name} distinguishes only "
                "{segments}: set system.{name}.segments={known}, or another layout"
            ),
            layout=recipe.layout,
            known=known,
            name=name,
            segments=network.segments,
        )


def _check_weights(recipe: Recipe) -> None:
    known = [*predictions(recipe), *recipe.system.losses]
    for name in (name for stage in recipe.schedule for name in stage.weights):
        require(
            name in known or name in losses(recipe),
            "the schedule has a weight for the loss {name!r}, but there is no such loss: the losses are {known}",
            name=name,
            known=", ".join(known),
        )
    for name, track in recipe.tracks.items():
        unknown = [one for one in track.predict or () if one not in losses(recipe) and one not in known]
        require(
            not unknown,
            (
                "tracks.{name}.predict must contain only objectives of {name_2} ({known}), got {unknown}: remove "
                "the others"
            ),
            name=name,
            name_2=recipe.name,
            known=", ".join(known),
            unknown=unknown,
        )
    for name, whole in recipe.all_tracks().items():
        _check_left_out(recipe, name, whole)
    kept = {part.target for track in recipe.all_tracks().values() if track.share for part in asked(recipe, track)}
    for name, part in predictions(recipe).items():
        require(
            part.target is None or part.target in kept,
            (
                "predict.{name} predicts the targets {target!r}, but no track with rows keeps them: add {name!r} "
                "to the `predict` of a track"
            ),
            name=name,
            target=part.target,
        )


def _check_left_out(recipe: Recipe, name: str, track: FullTrack) -> None:
    """Refuse a track that leaves out an objective and keeps the targets that it reads: it would be computed all the same."""
    if track.predict is None or recipe.takes_turns:
        return
    kept = {part.target for part in asked(recipe, track)}
    for objective, part in predictions(recipe).items():
        require(
            objective in chosen(recipe, track)
            or part.asked_at == "examples"
            or (part.asked_at == "targets" and part.target not in kept),
            "tracks.{name}.predict leaves out {objective}, but keeps the targets that {objective} reads: add {objective!r} to it",
            name=name,
            objective=objective,
        )
