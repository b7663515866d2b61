"""Read and write config.json: translate the values of a network between Hugging Face's names and ours."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unmask.backbone import Transformer
from unmask.errors import require
from unmask.type_check import check_types

if TYPE_CHECKING:
    from unmask.convert.family import Family

# Fields that change what a network computes, each with the only value that our networks support.
ONLY: dict[str, Any] = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "pruned_heads": {},
}
TYPES: dict[str, Any] = {  # the types of the fields that are read for every family
    "model_type": str, "architectures": tuple[str, ...] | None, "pad_token_id": int | None, "id2label": dict[str, Any] | None,
    "problem_type": str | None, "tie_word_embeddings": bool | None,
}  # fmt: skip


def check_config(family: Family, config: Mapping[str, Any]) -> None:
    """Refuse a config.json with a value of the wrong type."""
    known, ours = family.config, typing.get_type_hints(family.network)
    dropouts = dict.fromkeys((known.label_dropout[0], known.before_choice[0]), float | None)
    hints: dict[str, Any] = {**dropouts, **TYPES, **known.types}
    for name, (theirs, default) in known.fields.items():
        hint = str if name == "activation" else ours[name]
        hints[theirs] = hint | None if default is None else hint
    check_types(hints, config, "config.json: ")


def read_values(family: Family, config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of our network with the values of config.json. A value that our network does not support is an error."""
    check_only(config, ONLY | dict(family.config.only))
    values = {ours: config.get(theirs, default) for ours, (theirs, default) in family.config.fields.items()}
    return values | ({"activation": activation(family, config)} if "activation" in values else {})


def read_transformer(family: Family, config: Mapping[str, Any], like: Transformer) -> Transformer:
    """A network with the values of config.json. Values that the file does not have are taken from `like`."""
    values = read_values(family, config)
    values["feedforward"] = values.get("feedforward") or 4 * values["width"]
    values["length"] -= family.position_offset(pad(family, config))
    # A single segment has no information: its row is added to the positions.
    values["segments"] = values["segments"] if values.get("segments", 0) > 1 else 0
    values["embedding"] = values["embedding"] if values.get("embedding") not in (None, values["width"]) else None
    return dataclasses.replace(like, **values)


def check_only(config: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Refuse a value of config.json that our network does not support."""
    for name, only in known.items():
        value = config.get(name, only)
        require(
            value == only,
            ("config.json says {name}={value!r}, the backbone here can only do {only!r}: choose another checkpoint"),
            name=name,
            value=value,
            only=only,
        )


def activation(family: Family, config: Mapping[str, Any]) -> str:
    """Our name for the activation in config.json."""
    name, default = family.config.fields["activation"]
    value, known = config.get(name, default), family.config.activations
    require(
        value in known,
        "config.json says {name}={value!r}, the backbone here can only do {known}: choose another checkpoint",
        name=name,
        value=value,
        known=", ".join(known),
    )
    return known[value]


def their_activation(family: Family, ours: str) -> str | None:
    """The family's name for one of our activations; None if the family does not have it."""
    return next((theirs for theirs, known in family.config.activations.items() if known == ours), None)


def pad(family: Family, config: Mapping[str, Any]) -> int:
    """The id of the padding token."""
    found = config.get("pad_token_id")
    return family.config.pad if found is None else int(found)


def write_values(family: Family, backbone: Any, pad: int) -> dict[str, Any]:
    """The values of config.json for one of our networks."""
    ours = {name: getattr(backbone, name) for name in backbone.__dataclass_fields__} | {
        "activation": their_activation(family, backbone.activation),
        "length": backbone.length + family.position_offset(pad),
        "segments": max(backbone.segments, 1),
        "embedding": backbone.embedding or backbone.width,
        "dropout": backbone.drops,
    }
    known = family.config
    dropouts = {known.attention_dropout: backbone.attention_dropout, known.embedding_dropout: backbone.drops}
    return (
        {theirs: ours[name] for name, (theirs, _) in known.fields.items()}
        | {name: value for name, value in dropouts.items() if name is not None}
        | dict(known.always)
        | family.more_config(backbone)
    )
