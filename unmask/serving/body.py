"""Bodies: JSON that a client sends becomes a record. The fields of the record are the description of the body too."""

from __future__ import annotations

import dataclasses
import json
import typing
from typing import Any, NoReturn, TypeVar

from unmask.errors import UserError, require, unknown
from unmask.type_check import fits, hints_of, is_union, spell

R = TypeVar("R")
_JSON: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def read_body(body: bytes, kind: type[R]) -> R:
    """The record of a body. Fields that are null have their defaults, as OpenAI's clients expect."""
    try:
        values = json.loads(body, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise UserError("the body is not UTF-8 ({error}): send JSON in UTF-8", error=error) from None
    except RecursionError:
        raise UserError("the body is nested too deeply: send the fields of this route") from None
    except ValueError as error:
        raise UserError("the body is not JSON ({error}): send a JSON object", error=error) from None
    return record_of(values, kind, "the body")


def record_of(values: Any, kind: type[R], where: str) -> R:
    """A record from parsed JSON. `where`: the name of the values in errors."""
    known = [field for field in dataclasses.fields(kind) if field.init]  # type: ignore[arg-type]
    require(
        isinstance(values, dict),
        "{where} must be a JSON object with {names}, got {values!r:.60}",
        where=where,
        names=", ".join(field.name for field in known),
        values=values,
    )
    strange = next((name for name in values if name not in {field.name for field in known}), None)
    if strange is not None:
        raise unknown(f"field of {where}", strange, [field.name for field in known])
    given = {name: frozen(value) for name, value in values.items() if value is not None}
    hints = hints_of(kind)  # type: ignore[arg-type]
    for field in known:
        if field.name not in given and _needed(field):
            raise UserError(
                "{where} has no {name!r}: give {spell}",
                where=where,
                name=field.name,
                spell=spell_json(hints[field.name]),
            )
    return kind(**{name: _checked(value, hints[name], name) for name, value in given.items()})


def _needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def frozen(value: Any) -> Any:
    """JSON with tuples for lists."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def _checked(value: Any, hint: Any, name: str) -> Any:
    record = next((one for one in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(one)), None)
    if record is not None:
        return record_of(value, record, repr(name))  # type: ignore[arg-type]
    if not fits(value, hint):
        raise UserError("{name} must be {spell}, got {value!r:.60}", name=name, spell=spell_json(hint), value=value)
    _check_characters(value, name)
    return value


def _check_characters(value: Any, name: str) -> None:
    """Refuse half characters, which JSON can hold and UTF-8 cannot."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise UserError(
                "{name} holds half a character at {at}: send whole characters", name=name, at=error.start
            ) from None
    elif isinstance(value, tuple) and value and not isinstance(value[0], int | float):
        for one in value:
            _check_characters(one, name)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def spell_json(hint: Any) -> str:
    """What a field may hold, in words."""
    options = [option for option in (typing.get_args(hint) if is_union(hint) else (hint,)) if option is not type(None)]
    return " or ".join(dict.fromkeys(_spelled(option) for option in options))


def _spelled(option: Any) -> str:
    if typing.get_origin(option) is tuple:
        inside = typing.get_args(option)[0]
        return {str: "a list of texts", int: "a list of token ids"}.get(inside, "a list of lists")
    return "a text" if option is str else spell(option)


def _field_schema(field: dataclasses.Field[Any], hint: Any) -> dict[str, Any]:
    """A field that has a default may be null."""
    found = schema_of(hint)
    options = found.get("anyOf", [found])
    null = {"type": "null"}
    return found if _needed(field) or not found or null in options else {"anyOf": [*options, null]}


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON schema of a type."""
    if hint is Any:
        return {}
    if dataclasses.is_dataclass(hint):
        known = [field for field in dataclasses.fields(hint) if field.init]
        needed = [field.name for field in known if _needed(field)]
        hints = hints_of(hint)  # type: ignore[arg-type]
        return {
            "type": "object", "properties": {field.name: _field_schema(field, hints[field.name]) for field in known},
            "required": needed, "additionalProperties": False,
        }  # fmt: skip
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if is_union(hint):
        return {"anyOf": [schema_of(option) for option in inside]}
    if origin is typing.Literal:
        return {"enum": list(inside)}
    if origin is tuple:
        return {"type": "array", "items": schema_of(inside[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(inside[1])}
    return {"type": _JSON[hint]}
