"""Random bodies for every route: right and wrong types, odd texts, cut and damaged JSON. The same seed gives the same bodies."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from unmask.serving.routes import openapi

TEXTS = ["", " ", "a", "The cat sat.", "[MASK]", "a [MASK] b [MASK]", "今天天气很好。", "\x00", "\ud83d\ude00", "x" * 3_000, "\n\n", "‮",
         "../../etc/passwd", "%s%n", "{}", "the " * 200, "[CLS] [SEP] [PAD]"]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 5, 100, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e-9, 1e308, 3.0]
NAMES = ["bert", "gpt2", "tags", "span", "pairs", "vectors", "first", "none", ""]
SETTINGS = ["hide.budget=0.5", "hide.budget=-1", "hide.units=Words", "hide.units=Spans(lengths=Poisson(mean=1e300))", "see=Permuted", "see=Prefix",
            "hide.units=Levels", "schedule.*.length=4", "schedule.0.length=4096", "system.backbone.length=4096", "arrange=Discourse(file='x')", "layout=[CLS] a",
            "tokenizer=Characters", "hide.replace=Mask(mask=2)", "hide=()", "hide=None", "predict={}", "tracks={}", "schedule=()", "=", "hide.budget"]  # fmt: skip
ODD: list[Any] = [None, True, False, [], {}, [[]], [None], {"a": 1}, [1, "a"], [[1], ["a"]]]


def bodies(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Paths and bodies."""
    dice = random.Random(seed)
    found = openapi()
    routes = [(path, one["post"]["requestBody"]) for path, one in found["paths"].items() if "post" in one]
    for _ in range(count):
        path, body = dice.choice(routes)
        name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        value = _value(found["components"]["schemas"][name], dice, 0)
        content = json.dumps(value).encode()
        if dice.random() < 0.1:
            content = _damaged(content, dice)
        yield path.replace("{model}", dice.choice(NAMES) or "none"), content


def _value(schema: dict[str, Any], dice: random.Random, depth: int) -> Any:
    """A value that mostly fits a schema."""
    if dice.random() < 0.05:
        return dice.choice([*ODD, *TEXTS, *NUMBERS])
    if "anyOf" in schema:
        return _value(dice.choice(schema["anyOf"]), dice, depth)
    if "enum" in schema:
        return dice.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        known = schema.get("properties", {})
        needed = schema.get("required", [])
        kept = [name for name in known if name in needed or dice.random() < 0.3]
        made = {name: _field(name, known[name], dice, depth) for name in kept if dice.random() > 0.03}
        return made | ({"strange": 1} if dice.random() < 0.02 else {})
    if kind == "array":
        return [_value(schema["items"], dice, depth + 1) for _ in range(dice.choice([0, 1, 1, 2, 2, 3, 9]))]
    if kind in ("integer", "number"):
        return dice.choice(NUMBERS)
    return {"string": dice.choice(TEXTS), "boolean": dice.random() < 0.5, "null": None}.get(str(kind), dice.choice(ODD))


def _field(name: str, schema: dict[str, Any], dice: random.Random, depth: int) -> Any:
    if name in ("model", "rerank", "index") and dice.random() < 0.9:
        return dice.choice(NAMES)
    if name == "models" and dice.random() < 0.9:
        return dice.choices(NAMES, k=2)
    if name == "recipe" and dice.random() < 0.9:
        return dice.choice(["bert", "gpt2", "xlnet"])
    if name == "settings":
        return dice.choices(SETTINGS, k=dice.choice([0, 1, 1, 2]))
    if name == "size":
        return "tiny"
    if name in ("max_tokens", "k", "top_k", "top", "n", "first") and dice.random() < 0.8:
        return dice.choice([1, 2, 3])
    return _value(schema, dice, depth)


def _damaged(content: bytes, dice: random.Random) -> bytes:
    """A body that was cut, or in which some bytes are others."""
    if dice.random() < 0.5:
        return content[: dice.randrange(len(content) + 1)]
    changed = bytearray(content)
    for _ in range(3):
        changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)
