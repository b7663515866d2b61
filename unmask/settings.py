"""Settings: apply "hide.budget=0.2" or "arrange=Blocks(cross=false)" to a recipe, and list every value by its dotted name.

The type hint of a field says which values it accepts. If the hint is the protocol of an axis, the field accepts any part
of that axis. A new part keeps the values that it has in common with the old part, so that the size stays the same."""

from __future__ import annotations

import ast
import dataclasses
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from unmask.errors import UserError, require, unknown
from unmask.part_names import parts_of
from unmask.recipe import Recipe
from unmask.type_check import fits, hints_of, is_part, options, spell

P = TypeVar("P")
_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None, "null": None}


@dataclass(frozen=True)
class _Setting:
    name: str  # as it was written
    path: tuple[str, ...]  # the rest of the name, below the current owner
    text: str  # the value as it was written
    own: tuple[type, ...]  # parts of the user's recipe file, which the value may name too
    most: int | None = None  # of a stranger's setting: the largest number that it may hold


def flat(recipe: Recipe) -> dict[str, Any]:
    """Every value of a recipe by its dotted name; the value of a part is the name of its class."""
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


def override(part: P, settings: Sequence[str], *, own: Sequence[type] = (), most: int | None = None) -> P:
    """A recipe, or any part, with all settings applied. `own`: more parts that settings may name.

    `most`: the settings come from a stranger. They may hold no number over this, and no free text: it could be a path."""
    parsed = []
    for setting in settings:
        name, equals, text = setting.partition("=")
        require(bool(equals), "a setting is written as NAME=VALUE, got {setting!r}", setting=setting)
        require(
            not isinstance(part, Recipe) or name.strip() not in ("name", "size", "variant"),
            "{name} is only a label of the recipe, so setting it has no effect: choose a size with --size, a variant with --variant",
            name=name.strip(),
        )
        parsed.append(_Setting(name.strip(), tuple(name.strip().split(".")), text.strip(), tuple(own), most))
    # a whole part is set first, so that "arrange=Blocks" and "arrange.cross=false" may be given in any order
    ordered = sorted(_for_stages(part, parsed) + parsed, key=lambda setting: len(setting.path))
    changed: P = _apply(part, Any, ordered)
    return changed


def _for_stages(part: Any, settings: list[_Setting]) -> list[_Setting]:
    """Settings of `hide` of a recipe, copied to the stages that have their own `hide`."""
    own = [i for i, stage in enumerate(part.schedule) if stage.hide is not None] if isinstance(part, Recipe) else []
    hide = [setting for setting in settings if setting.path[0] == "hide"]
    return [dataclasses.replace(s, path=("schedule", str(i), *s.path)) for i in own for s in hide]


def _apply(owner: Any, hint: Any, settings: list[_Setting]) -> Any:
    """Apply settings to a value (the owner); `hint`: its type hint."""
    known = _children(owner)
    settings = _without_stars(owner, hint, known, settings)
    changed: dict[str, Any] = {}
    for key in dict.fromkeys(setting.path[0] for setting in settings if setting.path):
        mine = [setting for setting in settings if setting.path[0] == key]
        # a dict accepts a new name if its whole value is given
        if key not in known and not (isinstance(owner, dict) and len(mine[0].path) == 1):
            raise _unknown(owner, known, mine[0])
        value, inner = known.get(key), _hint_of(owner, hint, key)
        for setting in mine:
            value = _parsed(setting, value, inner) if len(setting.path) == 1 else value
        below = [dataclasses.replace(s, path=s.path[1:]) for s in mine if len(s.path) > 1]
        changed[key] = _apply(value, inner, below) if below else value
    if not changed:
        return owner
    if isinstance(owner, tuple):
        return tuple(changed.get(str(i), item) for i, item in enumerate(owner))
    return owner | changed if isinstance(owner, dict) else dataclasses.replace(owner, **changed)


def _children(owner: Any) -> dict[str, Any]:
    if isinstance(owner, tuple):
        return {str(i): item for i, item in enumerate(owner)}
    if isinstance(owner, dict):
        return {str(key): item for key, item in owner.items()}
    if dataclasses.is_dataclass(owner):
        return {f.name: getattr(owner, f.name) for f in dataclasses.fields(owner)}
    return {}


def _hint_of(owner: Any, hint: Any, key: str) -> Any:
    """The type hint of a field, of an entry of a dict, or of an item of a tuple."""
    kind: type = type(owner)
    if dataclasses.is_dataclass(owner):
        return hints_of(kind).get(key, Any)
    inside = [typing.get_args(o) for o in options(hint) if typing.get_origin(o) is kind]
    if not inside:
        return Any
    repeated = isinstance(owner, dict) or inside[0][1:] == (...,)
    return inside[0][1 if isinstance(owner, dict) else 0] if repeated else inside[0][int(key)]


def _without_stars(owner: Any, hint: Any, known: Mapping[str, Any], settings: list[_Setting]) -> list[_Setting]:
    """Replace a star in a name by every entry of a tuple or dict. If a field may hold a tuple of parts but holds one part, the
    star means that part."""
    several = isinstance(owner, tuple | dict)
    one = not several and any(typing.get_origin(option) is tuple for option in options(hint))
    found = []
    for setting in settings:
        starred = setting.path[0] == "*" and (several or (one and len(setting.path) > 1))
        paths = [(key, *setting.path[1:]) for key in known] if several else [setting.path[1:]]
        found += [dataclasses.replace(setting, path=path) for path in (paths if starred else [setting.path])]
    return found


def _unknown(owner: Any, known: Mapping[str, Any], setting: _Setting) -> UserError:
    left = ".".join(setting.path)
    where = setting.name[: len(setting.name) - len(left)]
    below = "." + left if isinstance(owner, tuple) and not setting.path[0].isdecimal() else ""
    return unknown("setting", setting.name, [where + child + below for child in known])


def _parsed(setting: _Setting, old: Any, hint: Any) -> Any:
    """The value of a setting: one part or several, by name; or a number, true, false, none or a word."""
    if not any(map(_accepts_parts, options(hint))):
        return _word_or_number(setting.text, hint, setting)
    try:
        node = ast.parse(setting.text, mode="eval").body
    except SyntaxError:
        known = parts_of(hint, old, setting.own)
        raise UserError(
            "{name} must be {wanted}, got {text!r}",
            name=setting.name,
            wanted=_wanted(hint, old, known),
            text=setting.text,
        ) from None
    return _read(node, old, hint, setting)


def _accepts_parts(option: Any) -> bool:
    inside = [o for arg in typing.get_args(option) if arg is not ... for o in options(arg)]
    return is_part(option) or (typing.get_origin(option) in (tuple, dict) and any(map(is_part, inside)))


def _read(node: ast.expr, old: Any, hint: Any, setting: _Setting) -> Any:
    """The value of an expression for a field with this type hint."""
    for option in options(hint):
        inside = typing.get_args(option)
        if isinstance(node, ast.Tuple | ast.List) and typing.get_origin(option) is tuple and inside[1:] == (...,):
            before = [*(old if isinstance(old, tuple) else [old]), *[None] * len(node.elts)]
            items = enumerate(zip(node.elts, before, strict=False))
            return tuple(_read(item, kept, inside[0], _below(setting, str(i))) for i, (item, kept) in items)
        if isinstance(node, ast.Dict) and typing.get_origin(option) is dict:
            names = [str(_literal(ast.unparse(key))) if key else "**" for key in node.keys]
            pairs = zip(names, node.values, strict=True)
            return {
                name: _read(item, _children(old).get(name), inside[1], _below(setting, name)) for name, item in pairs
            }
    text, parts = ast.unparse(node), [is_part(option) for option in options(hint)]
    named = isinstance(node, ast.Name | ast.Call) and text.lower() not in _WORDS
    return (
        _read_part(node, old, hint, setting)
        if all(parts) or (any(parts) and named)
        else _word_or_number(text, hint, setting)
    )


def _below(setting: _Setting, key: str) -> _Setting:
    return dataclasses.replace(setting, name=f"{setting.name}.{key}")


def _read_part(node: ast.expr, old: Any, hint: Any, setting: _Setting) -> Any:
    """Read a part such as `Words` or `Blocks(cross=false)`. Its values must be named. If it replaces several parts, it keeps the
    values of the first."""
    old = old[0] if isinstance(old, tuple) and old else old
    known = parts_of(hint, old, setting.own)
    called, keywords, unnamed = (node.func, node.keywords, node.args) if isinstance(node, ast.Call) else (node, [], [])
    if not isinstance(called, ast.Name) or unnamed:
        wanted = _wanted(hint, old, known)
        part = known.get(called.id) if isinstance(called, ast.Name) else None
        raise UserError(
            "{name} must be {wanted}, with names for its values, got {unparse!r}{advice}",
            name=setting.name,
            wanted=wanted,
            unparse=ast.unparse(node),
            advice=f": write {setting.name}={_with_names(part, unnamed, keywords)}" if part else "",
        )
    if called.id not in known:
        number = ", which takes a number or a part," if {int, float} & set(options(hint)) else ""
        raise unknown(f"part for {setting.name}{number}", called.id, known)
    return _built(known[called.id], old, {keyword.arg or "**": keyword.value for keyword in keywords}, setting)


def _with_names(part: type, unnamed: list[ast.expr], keywords: list[ast.keyword]) -> str:
    """A part as it must be written: its values with the names that they probably have."""
    fields = [field.name for field in dataclasses.fields(part) if field.init]
    pairs = [*zip(fields, unnamed, strict=False), *((one.arg, one.value) for one in keywords)]
    return f"{part.__name__}({', '.join(f'{name}={ast.unparse(value)}' for name, value in pairs)})"


def _built(part: Any, old: Any, given: Mapping[str, ast.expr], setting: _Setting) -> Any:
    """Build a new part from the given values. Other values that it has in common with the old part are kept."""
    hints = hints_of(part)
    fields = {f.name: f for f in dataclasses.fields(part) if f.init}
    kept = {n: v for n, v in _children(old).items() if n in fields and fits(v, hints[n])} if is_part(type(old)) else {}
    values = dict(kept)
    for name, node in given.items():
        if name not in fields:
            raise unknown("setting", f"{setting.name}.{name}", [f"{setting.name}.{field}" for field in fields])
        values[name] = _read(node, kept.get(name, _default(fields[name])), hints[name], _below(setting, name))
    lacking = [name for name, field in fields.items() if name not in values and _default(field) is dataclasses.MISSING]
    require(
        not lacking,
        "{part} for {name} needs {lacking}: write {name}={part}({lacking_2})",
        part=part.__name__,
        name=setting.name,
        lacking=" and ".join(lacking),
        lacking_2=", ".join(f"{name}=..." for name in lacking),
    )
    return part(**values)


def _default(field: dataclasses.Field[Any]) -> Any:
    """The default of a field; `MISSING` if it has none."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _wanted(hint: Any, old: Any, known: Mapping[str, type]) -> str:
    """The allowed values of a field that accepts parts, for an error."""
    if float in options(hint):
        return f"a number, or one of {', '.join(known)} such as {next(iter(known), '')}()"
    return f"a part, such as {type(old).__name__ if is_part(type(old)) else next(iter(known), '')}()"


def _word_or_number(text: str, hint: Any, setting: _Setting) -> Any:
    name = setting.name
    named = any(typing.get_origin(o) is Literal and text in typing.get_args(o) for o in options(hint))
    value = text if named else _literal(text)  # "none" may be one of the words of a Literal
    value = float(value) if type(value) is int and float in options(hint) and int not in options(hint) else value
    require(fits(value, hint), "{name} must be {spell}, got {text!r}", name=name, spell=spell(hint), text=text)
    if setting.most is not None and not named:
        _check_stranger(value, name, setting.most)
    return value


def _check_stranger(value: Any, name: str, most: int) -> None:
    """Refuse a text, which could be a path, and a large number, which could fill the memory."""
    require(
        not isinstance(value, str | bytes),
        "{name} is a text, and a text cannot be set from outside: leave the setting out",
        name=name,
    )
    inside = value.items() if isinstance(value, dict) else value if isinstance(value, tuple | list | set) else ()
    for one in inside:
        _check_stranger(one, name, most)
    require(
        not isinstance(value, int | float) or abs(value) <= most,
        "{name} may be up to {most:,} here, got {value}",
        name=name,
        most=most,
        value=value,
    )


def _literal(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if not isinstance(value, list) else tuple(value)
