"""An entry of a comparison: a recipe with settings, as the user writes it, or a file of settings from an earlier one."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

from unmask import recipes, run
from unmask.errors import UserError, require
from unmask.recipe import Recipe
from unmask.text.atomic_write import drafted
from unmask.type_check import check_types

_JOINT = re.compile(r"\+(?=[a-z_*])")  # a plus sign before a name: the one in 1e+3 is part of a number
_OWN = ("size", "variant", "name")  # settings of the entry itself, which are no values of its recipe
_LONGEST = 100  # letters of a folder's name
SETTINGS = ".json"  # the suffix of a file of settings
_FILE = {"recipe": str, "size": str, "variant": str, "settings": tuple[str, ...]}


@dataclass(frozen=True)
class Entry:
    """A recipe and its settings. The name is what the user wrote, or chose with name=; tables and folders show it."""

    name: str
    recipe: str  # its name, or a .py file
    size: str
    variant: str = "paper"
    settings: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: dict[str, Any]) -> Entry:
        """The entry of these values, as JSON holds them."""
        return cls(**values | {"settings": tuple(values["settings"])})

    def made(self) -> Recipe:
        return recipes.get(self.recipe, size=self.size, variant=self.variant, settings=list(self.settings))

    @property
    def key(self) -> str:
        """A hash of the recipe that is made: another one if a recipe file or the values of a recipe have changed."""
        return _key(self)

    def with_settings(self, more: Sequence[str]) -> Entry:
        """The same entry with more settings. They come last, so that they win."""
        return Entry(self.name, self.recipe, self.size, self.variant, (*self.settings, *more))

    @property
    def folder(self) -> str:
        """The name as the name of a folder, cut if it is long."""
        name = re.sub(r"[^A-Za-z0-9._+=,-]+", "_", self.name)
        return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{crc32(self.name.encode()):08x}"


@cache
def _key(entry: Entry) -> str:
    values = {name: value for name, value in run.as_data(entry.made()).items() if name != "written_by"}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def parse(text: str, *, size: str, settings: Sequence[str] = ()) -> Entry:
    """The entry `roberta+size=medium+hide.budget=0.4`. `size` and `settings` hold for every entry; its own win."""
    recipe, *given = _JOINT.split(text)
    like = read_settings(Path(recipe)) if recipe.endswith(SETTINGS) else Entry(text, recipe, size)
    wrong = next((one for one in given if "=" not in one), None)
    if wrong is not None or not recipe:
        raise UserError(
            "the entry {text!r} is not RECIPE+NAME=VALUE+NAME=VALUE: write, for example, roberta+hide.budget=0.4 or "
            "bert+size=small",
            text=text,
        )
    own = {key: value for key, value in (one.split("=", 1) for one in given) if key in _OWN}
    values = [one for one in given if one.split("=", 1)[0] not in _OWN]
    require(
        own.get("name", text).strip() != "",
        "the entry {text!r} has an empty name: write, for example, bart+name=shuffled+hide=(Rewrite, PermuteSentences)",
        text=text,
    )
    return Entry(
        own.get("name", text).strip(),
        like.recipe,
        own.get("size", like.size),
        own.get("variant", like.variant),
        (*settings, *like.settings, *values),
    )


def own_seeds(text: str) -> tuple[str, int | None]:
    """The entry `roberta+seeds=2` without its number of seeds, and this number."""
    plain, *own = re.split(r"\+seeds=([^+]*)", text)
    given = own[0::2]
    require(
        all(one.isdecimal() for one in given) and len(given) < 2,
        "the entry {text!r} must have one whole number of seeds: write, for example, roberta+seeds=2",
        text=text,
    )
    return plain + "".join(own[1::2]), int(given[0]) if given else None


def ablations(text: str, *, size: str, settings: Sequence[str] = ()) -> list[str]:
    """An entry whose tracks take turns, without each of its tracks, and with each alone."""
    text, seeds = own_seeds(text)
    entry = parse(text, size=size, settings=settings)
    recipe = entry.made()
    names = [name for name, track in recipe.all_tracks().items() if track.share > 0]
    require(
        recipe.takes_turns and len(names) > 1,
        "--ablate leaves out tracks that take turns, and {text} has none: leave it out, or compare entries with settings",
        text=text,
    )
    chosen = entry.name if entry.name != text else None  # the last name of an entry is the one that counts
    without = [
        f"{text}+schedule.*.turns.{name}=0" + (f"+name={chosen} without {name}" if chosen else "") for name in names
    ]
    alone = [
        f"{text}+schedule.*.turns={{'{name}': 1}}" + (f"+name={chosen} with {name} alone" if chosen else "")
        for name in names
    ]
    for one in without:
        try:
            parse(one, size=size, settings=settings).made()
        except UserError as error:
            raise UserError(
                "--ablate cannot leave out every track of {text}, because a stage has no other ({error}): use a schedule in which all "
                "tracks are read in every stage, such as ernie-2+variant=joint",
                text=text,
                error=error,
            ) from None
    same = "" if seeds is None else f"+seeds={seeds}"
    return [one + same for one in (text, *without, *alone)]


def check_entries(entries: Sequence[Entry]) -> None:
    """Refuse entries that cannot be told apart: two of one name, or two that are the same recipe."""
    require(bool(entries), "name at least one recipe to compare, such as roberta or roberta+hide.budget=0.4")
    made: list[tuple[Entry, Recipe]] = []
    for entry in entries:
        recipe = entry.made()
        for other, same in made:
            require(
                other.folder != entry.folder,
                "two entries have the name {name}: leave one out, or give one of them a setting",
                name=entry.name,
            )
            require(
                same != recipe,
                "{one} and {other} are the same recipe with the same values: leave one of them out",
                one=other.name,
                other=entry.name,
            )
        made.append((entry, recipe))


def write_settings(entry: Entry, file: Path, more: dict[str, Any]) -> None:
    """Write a file of settings, which `unmask pretrain --like` reads. `more`: where they come from."""
    with drafted(file) as draft:
        draft.write_text(json.dumps(asdict(entry) | more, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_settings(file: Path) -> Entry:
    require(file.is_file(), "there is no such file of settings: {file}", file=file)
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        kept = {name: values[name] for name in _FILE} | {"settings": tuple(values["settings"])}
    except (ValueError, KeyError, TypeError):
        raise UserError(
            "{file} is not a file of settings: give one that 'unmask compare --sweep' wrote, with {names}",
            file=file,
            names=", ".join(_FILE),
        ) from None
    check_types(_FILE, kept, f"{file}: ")
    return Entry(file.stem, kept["recipe"], kept["size"], kept["variant"], kept["settings"])
