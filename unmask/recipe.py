"""Recipe, Stage and Adapt: what a paper chose, as frozen values; dotted overrides; to and from JSON."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import json
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from unmask import formats
from unmask.axes import Arrange, Curve, Hide, Objective, Optimise, See, System, TokenizerKind
from unmask.errors import UserError, require, unknown

P = TypeVar("P")
LARGEST = 2**31  # no whole number of a recipe is as large


MAIN = "main"  # the track of a recipe's own fields


@dataclass(frozen=True)
class Stage:
    """One stretch of training."""

    share: float = 1.0  # of all steps
    rows: int = 256  # in a step
    length: int = 512  # tokens in a row
    # of each loss, by name: a number, or a curve of unmask.curves; 1 where none is given
    weights: dict[str, float | Curve] = field(default_factory=dict, metadata={"parts": "unmask.curves", "able": "at"})
    hide: Hide | tuple[Hide, ...] | None = None  # what this stage hides; none: what the recipe hides

    def __post_init__(self) -> None:
        require(0 < self.share <= 1, f"schedule.share must be in (0, 1], got {self.share}: write 0.9 for 90%")
        require(self.rows >= 1, f"schedule.rows must be 1 or more, got {self.rows}")
        require(self.length >= 8, f"schedule.length must be 8 or more tokens, got {self.length}")
        for name, weight in self.weights.items():
            number = isinstance(weight, int | float) and not isinstance(weight, bool)
            require(
                number or hasattr(weight, "at"),
                f"the weight of a loss must be a number or a curve such as Linear(first=1.0, last=0.0), got {weight!r} for "
                f"{name}",
            )


@dataclass(frozen=True)
class Track:
    """One way to make and read rows; what is none is as in the recipe. Tracks share each batch by rows."""

    share: float = 0.5  # of the rows of a batch; the recipe's own fields, the track "main", have the rest
    arrange: Arrange | None = None
    hide: Hide | tuple[Hide, ...] | None = None
    see: See | None = None
    segments: tuple[int, ...] = ()  # the number of each segment of the layout in this track; (): 0, 1, ...
    predict: tuple[str, ...] | None = None  # the objectives that are asked; none: all

    def __post_init__(self) -> None:
        require(
            0 < self.share <= 1, f"tracks.*.share must be in (0, 1], got {self.share}: write 0.5 for half of the rows"
        )


@dataclass(frozen=True)
class FullTrack:
    """A track with every choice made."""

    share: float
    arrange: Arrange
    hide: Hide | tuple[Hide, ...]
    see: See
    segments: tuple[int, ...]
    predict: tuple[str, ...] | None


@dataclass(frozen=True)
class Continuing:
    """How a model that is trained already goes on with other text: gently, or it forgets what it knows."""

    rate: float = 5e-5  # highest learning rate at width 768; other widths take it in inverse proportion
    warmup: float = 0.1  # share of the steps

    def __post_init__(self) -> None:
        require(self.rate > 0, f"continuing.rate must be over 0, got {self.rate}")
        require(0 <= self.warmup < 1, f"continuing.warmup must be in [0, 1), got {self.warmup}: a share of all steps")


@dataclass(frozen=True)
class Adapt:
    """How a paper adapts its model to tasks; a task may say otherwise."""

    rate: float = 5e-5  # highest learning rate at width 768; other widths take it in inverse proportion
    warmup: float = 0.1  # share of the steps
    epochs: float = 3.0  # times the examples are read
    decay: float = 0.01  # of the weights
    layer_decay: float = 1.0  # rate of a layer as a share of the rate of the layer above it; 1: all layers alike
    language: float = 0.0  # weight of predicting the next token in addition to the task
    pooler: bool = True  # a dense layer before the output, in models that see everything
    activation: Literal["tanh", "gelu"] = "tanh"  # of that layer, where a task has it

    def __post_init__(self) -> None:
        require(self.rate > 0, f"adapt.rate must be over 0, got {self.rate}")
        require(0 <= self.warmup < 1, f"adapt.warmup must be in [0, 1), got {self.warmup}: a share of all steps")
        require(self.epochs > 0, f"adapt.epochs must be over 0, got {self.epochs}")
        require(self.decay >= 0, f"adapt.decay must be 0 or more, got {self.decay}")
        require(
            0 < self.layer_decay <= 1,
            f"adapt.layer_decay must be in (0, 1], got {self.layer_decay}: 1 gives all layers the same rate",
        )
        require(self.language >= 0, f"adapt.language must be 0 or more, got {self.language}")


@dataclass(frozen=True)
class Recipe:
    """A method: it hides something, lets every position see something, predicts something with a backbone."""

    name: str
    size: str
    tokenizer: TokenizerKind
    layout: str
    arrange: Arrange
    hide: Hide | tuple[Hide, ...]  # one rule, or several that are applied in order
    see: See
    system: System
    predict: dict[str, Objective]
    optimise: Optimise
    schedule: tuple[Stage, ...]
    variant: str = "paper"
    family: str | None = None  # what its results are called elsewhere; none: as their parts say
    adapt: Adapt = Adapt()
    continuing: Continuing = Continuing()
    shrink: bool = False  # may a short budget take smaller steps and shorter rows? for sizes that no paper has
    reads: int | None = None  # longest text its model reads, in tokens, if the schedule does not say it (see `longest`)
    segments: tuple[int, ...] = ()  # the number of each segment of the layout; (): 0, 1, ...
    tracks: dict[str, Track] = field(default_factory=dict)  # other ways to make and read some of the rows
    writes_with: str | None = None  # the track that a model writes text with; none: "main", if it can

    def __post_init__(self) -> None:
        require(
            bool(self.schedule) and all(isinstance(stage, Stage) for stage in self.schedule),
            f"schedule must be made of stages, got {self.schedule}: set schedule.0.length or schedule.0.share",
        )
        total = sum(stage.share for stage in self.schedule)
        require(abs(total - 1) < 1e-6, f"the shares of the schedule's stages must add up to 1, got {total:g}")
        require(self.reads is None or self.reads >= 8, f"reads must be none or 8 or more tokens, got {self.reads}")
        shares = sum(track.share for track in self.tracks.values())
        require(
            shares < 1 + 1e-9,
            f"the shares of tracks must add up to 1 at most, and {MAIN!r} has the rest, got {shares:g}",
        )
        require(
            self.writes_with is None or self.writes_with in (MAIN, *self.tracks),
            f"writes_with names no track, got {self.writes_with!r}: use {', '.join((MAIN, *self.tracks))}, or none",
        )

    def all_tracks(self, stage: Stage | None = None) -> dict[str, FullTrack]:
        """Every track with its choices made, "main" first; `stage`: with what this stage hides."""
        hide = self.hide if stage is None or stage.hide is None else stage.hide
        rest = 1 - sum(track.share for track in self.tracks.values())
        rest = 0.0 if rest < 1e-9 else rest  # thirds and sixths do not add up exactly
        main = FullTrack(rest, self.arrange, hide, self.see, self.segments, None)
        return {MAIN: main} | {name: _full(track, main) for name, track in self.tracks.items()}

    @property
    def writing(self) -> str:
        """The name of the track that a model writes with."""
        return self.writes_with or MAIN

    @property
    def writes(self) -> frozenset[str]:
        """What a model can write: "left" for more of a text, "prefix" for a second text."""
        return self.all_tracks()[self.writing].see.gives & {"left", "prefix"}

    @property
    def longest(self) -> int:
        """The longest text that its model reads, in tokens: never at positions that it was not trained on.

        A network with learned positions knows those of the longest rows of its schedule. `reads` says more: of a model
        from elsewhere or one that goes on from an earlier training, what it was trained on there; of an adapted one,
        what it was adapted with."""
        backbone = self.system.backbone
        trained = max(stage.length for stage in self.schedule) if backbone.bounded else backbone.length
        return min(trained if self.reads is None else self.reads, int(backbone.length))

    @property
    def step_tokens(self) -> float:
        """Tokens of a step, padding included: the mean over the schedule."""
        return sum(stage.share * stage.rows * stage.length for stage in self.schedule)

    def replace(self, **changes: Any) -> Recipe:
        return dataclasses.replace(self, **changes)


def _full(track: Track, main: FullTrack) -> FullTrack:
    return FullTrack(
        track.share,
        track.arrange or main.arrange,
        track.hide or main.hide,
        track.see or main.see,
        track.segments,
        track.predict,
    )


def to_json(recipe: Recipe) -> str:
    return json.dumps(as_data(recipe), indent=1)


def as_data(recipe: Recipe) -> dict[str, Any]:
    """A recipe as it is written to a file: dicts, lists and numbers, with the number of the format."""
    return {"format": formats.NEWEST} | plain(recipe)


def from_json(text: str, where: str = "this JSON") -> Recipe:
    """The recipe written by `to_json`; `where` names the source in errors."""
    try:
        data = formats.upgraded(json.loads(text), where)
    except json.JSONDecodeError as error:
        raise UserError(f"{where} is damaged or not a recipe: {error}") from None
    try:
        recipe = _part(data)
    except TypeError as error:
        raise UserError(f"{where} is damaged or not a recipe: {error}") from None
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    require(isinstance(recipe, Recipe), f"{where} is not a recipe")
    return recipe


def read_recipe(path: Path) -> Recipe:
    """The recipe in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is damaged or not a recipe: it is not UTF-8 ({error})") from None
    return from_json(text, str(path))


def plain(value: Any) -> Any:
    """A part as dicts, lists and numbers; it is written with its qualified name."""
    if dataclasses.is_dataclass(value):
        return {"part": public_name(type(value))} | {
            f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)
        }
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def public_name(part: type) -> str:
    """The name of a part in files: the package that exports it and its class, so that a file may move."""
    return ".".join([*part.__module__.split(".")[:2], part.__qualname__])


def _part(value: Any) -> Any:
    """The reverse of `plain`. Only names under `unmask.` are ever imported."""
    if isinstance(value, list):
        return tuple(_part(item) for item in value)
    if not isinstance(value, dict):
        return value
    values = {key: _part(item) for key, item in value.items() if key != "part"}
    if "part" not in value:
        return values
    module, _, name = str(value["part"]).rpartition(".")
    require(module.startswith("unmask."), f"a recipe may only name parts of unmask, got {value['part']!r}")
    try:
        part = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise UserError(f"this recipe names a part that does not exist here: {value['part']}") from None
    require(dataclasses.is_dataclass(part), f"{value['part']} is not a part")
    check_types(typing.get_type_hints(part), values, f"{part.__name__}.")
    return part(**values)


def check_types(hints: Mapping[str, Any], values: Mapping[str, Any], before: str) -> None:
    """Refuse values that are not of the types they must have: what a file holds may be anything.

    `before` stands before a value's name in the error."""
    for name, value in values.items():
        large = f" below {LARGEST:,}" if isinstance(value, int) and abs(value) >= LARGEST else ""
        require(
            name not in hints or _is(value, hints[name]),
            f"{before}{name} must be {_spell(hints.get(name))}{large}, got {value!r:.60}",
        )


def _is(value: Any, hint: Any) -> bool:
    """Whether a value that was read is what a hint says, all through; whole numbers stay within reason."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if hint in (int, float):
        number = isinstance(value, int) or (hint is float and isinstance(value, float))
        return number and not isinstance(value, bool) and abs(value) < (LARGEST if hint is int else math.inf)
    if isinstance(hint, types.UnionType) or origin is typing.Union:
        return any(_is(value, option) for option in inside)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in inside)
    if origin is dict:
        return isinstance(value, dict) and all(_is(item, inside[1]) for item in value.values())
    if origin is tuple:
        if not isinstance(value, tuple | list):  # JSON has lists alone
            return False
        each = inside[:1] * len(value) if inside[1:] == (...,) else inside
        return len(value) == len(each) and all(map(_is, value, each))
    if getattr(hint, "_is_protocol", False):
        return dataclasses.is_dataclass(value)
    return hint is Any or isinstance(value, hint)


def flat(recipe: Recipe) -> dict[str, Any]:
    """Every value of a recipe under its dotted name; a part stands under its own name."""
    found: dict[str, Any] = {}

    def walk(prefix: str, value: Any) -> None:
        if dataclasses.is_dataclass(value):
            found[prefix] = type(value).__name__
            value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            if not value:
                return
        if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            value = dict(enumerate(value))
        if isinstance(value, dict) and value:
            for key, item in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), item)
        else:
            found[prefix] = value

    walk("", recipe)
    found.pop("")
    return found


def override(part: P, settings: Sequence[str]) -> P:
    """A recipe, or any part, with settings such as "hide.budget=0.2" or "arrange=Blocks(cross=false)" applied at once."""
    parsed = []
    for setting in settings:
        name, equals, text = setting.partition("=")
        require(bool(equals), f"a setting is written NAME=VALUE, got {setting!r}")
        parsed.append(_Setting(name.strip(), tuple(name.strip().split(".")), text.strip()))
    # a whole part comes first, so that "arrange=Blocks" and "arrange.cross=false" may be given in any order
    return _apply(part, sorted(_for_stages(part, parsed) + parsed, key=lambda setting: len(setting.path)))


@dataclass(frozen=True)
class _Setting:
    name: str  # as it was written
    path: tuple[str, ...]  # what is left of it below the current owner
    text: str


def _for_stages(part: Any, settings: list[_Setting]) -> list[_Setting]:
    """What is set of a recipe's `hide` holds in the stages, too, that hide something of their own."""
    own = [i for i, stage in enumerate(part.schedule) if stage.hide is not None] if isinstance(part, Recipe) else []
    hide = [setting for setting in settings if setting.path[0] == "hide"]
    return [dataclasses.replace(s, path=("schedule", str(i), *s.path)) for i in own for s in hide]


def _apply(owner: Any, settings: list[_Setting], room: Mapping[str, str] | None = None) -> Any:
    """The owner with settings applied. `room`: a dict that takes new names; which parts it takes besides numbers."""
    known = _children(owner)
    if isinstance(owner, tuple | dict):  # schedule.*.length: of every stage
        settings = [
            dataclasses.replace(s, path=(key, *s.path[1:])) for s in settings for key in _meant(s.path[0], known)
        ]
    changed: dict[str, Any] = {}
    for key in dict.fromkeys(setting.path[0] for setting in settings):
        mine = [setting for setting in settings if setting.path[0] == key]
        if key not in known and not room:
            where = mine[0].name[: len(mine[0].name) - len(".".join(mine[0].path))]
            raise unknown("setting", mine[0].name, [where + child for child in known])
        value = known.get(key)
        for setting in mine:
            takes = room or (_room(owner, key) if not isinstance(value, dict) else None)
            if len(setting.path) == 1 and takes:
                value = _parse_number_or_part(setting.text, takes, setting.name)
            elif len(setting.path) == 1:
                value = _parse(setting.text, value, _hint(owner, key), setting.name)
        below = [dataclasses.replace(s, path=s.path[1:]) for s in mine if len(s.path) > 1]
        changed[key] = _apply(value, below, _room(owner, key)) if below else value
    if not changed:
        return owner
    if isinstance(owner, tuple):
        return tuple(changed.get(str(i), item) for i, item in enumerate(owner))
    return owner | changed if isinstance(owner, dict) else dataclasses.replace(owner, **changed)


def _meant(key: str, known: Mapping[str, Any]) -> list[str]:
    return list(known) if key == "*" else [key]


def _children(owner: Any) -> dict[str, Any]:
    if isinstance(owner, tuple):
        return {str(i): item for i, item in enumerate(owner)}
    if isinstance(owner, dict):
        return {str(key): item for key, item in owner.items()}
    if dataclasses.is_dataclass(owner):
        return {f.name: getattr(owner, f.name) for f in dataclasses.fields(owner)}
    return {}


def _hint(owner: Any, key: str) -> Any:
    if not dataclasses.is_dataclass(owner):
        return Any
    return typing.get_type_hints(type(owner)).get(key, Any)


def _room(owner: Any, key: str) -> Mapping[str, str] | None:
    """What a field takes besides numbers, or, if it is a dict, under new names; none: nothing else."""
    found = getattr(owner, "__dataclass_fields__", {}).get(key)
    return found.metadata if found is not None and found.metadata else None


def _parse(text: str, old: Any, hint: Any, name: str) -> Any:
    """A value from the command line: a part by its name, or a number, true, false, none, a word."""
    if dataclasses.is_dataclass(old):
        return _parse_part(text, old, hint, name)
    named = any(typing.get_origin(o) is Literal and text in typing.get_args(o) for o in _options(hint))
    value = text if named else _literal(text)  # "none" may be a word of its own
    value = float(value) if _allows(hint, float) and type(value) is int and not _allows(hint, int) else value
    require(_fits(value, hint), f"{name} must be {_spell(hint)}, got {text!r}")
    return value


def _parse_part(text: str, old: Any, hint: Any, name: str) -> Any:
    """A part such as `Words` or `Blocks(cross=false)`, of the package and the axis of the part it replaces."""
    package = ".".join(type(old).__module__.split(".")[:2])
    axis = next((option for option in _options(hint) if getattr(option, "_is_protocol", False)), None)
    known = _parts(package, _abilities(type(old)) if axis is None else {n for n in dir(axis) if not n.startswith("_")})
    return _parse_one_of(text, known, f"a part, such as {type(old).__name__}()", name)


def _parse_number_or_part(text: str, room: Mapping[str, str], name: str) -> Any:
    value = _literal(text)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    known = _parts(room["parts"], {room["able"]})
    return _parse_one_of(text, known, f"a number, or one of {', '.join(known)} such as {next(iter(known))}()", name)


def _parts(package: str, abilities: set[str]) -> dict[str, Any]:
    """The parts of a package that have these abilities."""
    parts = vars(importlib.import_module(package)).items()
    return {
        n: p
        for n, p in parts
        if isinstance(p, type) and dataclasses.is_dataclass(p) and abilities <= {*dir(p), *p.__dataclass_fields__}
    }


def _parse_one_of(text: str, known: dict[str, Any], wanted: str, name: str) -> Any:
    """One of these parts, its values named; `wanted` says in errors what it must be."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise UserError(f"{name} must be {wanted}, got {text!r}") from None
    called, keywords = (node.func, node.keywords) if isinstance(node, ast.Call) else (node, [])
    require(
        isinstance(called, ast.Name) and not getattr(node, "args", ()),
        f"{name} must be {wanted}, its values named, got {text!r}",
    )
    if called.id not in known:  # type: ignore[attr-defined]
        raise unknown(f"part for {name}", called.id, known)  # type: ignore[attr-defined]
    part = known[called.id]()  # type: ignore[attr-defined]
    words = [(keyword.arg or "", ast.unparse(keyword.value)) for keyword in keywords]
    return _apply(part, [_Setting(f"{name}.{word}", (word,), text) for word, text in words])


def _abilities(part: type) -> set[str]:
    """What a part can do beyond holding its values: only a part that can do the same may take its place."""
    fields = {f.name for f in dataclasses.fields(part)}
    return {name for name in dir(part) if not name.startswith("_") and name not in fields}


def _literal(text: str) -> Any:
    words: dict[str, Any] = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if not isinstance(value, list) else tuple(value)


def _options(hint: Any) -> tuple[Any, ...]:
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    return typing.get_args(hint) if union else (hint,)


def _allows(hint: Any, kind: type) -> bool:
    return kind in _options(hint)


def _fits(value: Any, hint: Any) -> bool:
    for option in _options(hint):
        origin = typing.get_origin(option) or option
        if option is Any or (origin is Literal and value in typing.get_args(option)):
            return True
        if getattr(origin, "_is_protocol", False):  # where there is no part yet, no text can name one
            continue
        if isinstance(origin, type) and isinstance(value, origin) and (origin is bool or not isinstance(value, bool)):
            return True
    return False


def _spell(hint: Any) -> str:
    names: dict[Any, str] = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a word",
    }
    spelled = []
    for option in _options(hint):
        if typing.get_origin(option) is Literal:
            spelled.append("one of " + ", ".join(map(str, typing.get_args(option))))
        elif typing.get_origin(option) in (tuple, dict):
            spelled.append("a list" if typing.get_origin(option) is tuple else "named values")
        else:
            known = (
                "a part" if getattr(option, "_is_protocol", False) or dataclasses.is_dataclass(option) else str(option)
            )
            spelled.append("none" if option is type(None) else names.get(option, known))
    return " or ".join(spelled)
