"""Small labelled files, one for each kind of task."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

NOUNS = "doctor patient engine server judge company river teacher report wound bridge window".split()


def _words(dice: random.Random, count: int) -> str:
    return " ".join(["the", *dice.sample(NOUNS, count)])


def _span(dice: random.Random, text: str) -> dict[str, Any]:
    return {"question": "who?", "context": text, "answers": [{"text": text.split()[1], "start": 4}]}


def _relation(dice: random.Random, text: str) -> dict[str, Any]:
    first, last = text.split()[1], text.split()[-1]
    return {"text": text, "head": [4, 4 + len(first)], "tail": [len(text) - len(last), len(text)], "label": dice.choice("ab")}  # fmt: skip


KINDS: dict[str, Callable[[random.Random, str], dict[str, Any]]] = {
    "classify": lambda dice, text: {"text": text, "label": "good" if "river" in text else "bad"},
    "multi": lambda dice, text: {"text": text, "labels": dice.sample("abc", 2)},
    "number": lambda dice, text: {"text_a": text, "text_b": _words(dice, 2), "label": dice.random() * 5},
    "rank": lambda dice, text: {"query": text, "passage": _words(dice, 3), "label": dice.randint(0, 1)},
    "tag": lambda dice, text: {"tokens": text.split(), "tags": [dice.choice(["O", "B-X"]) for _ in text.split()]},
    "span": _span,
    "choose": lambda dice, text: {"context": text, "question": "and?", "choices": NOUNS[: dice.randint(2, 3)], "label": 1},
    "relation": _relation,
    "embed": lambda dice, text: {"anchor": text, "positive": _words(dice, 2)},
    "write": lambda dice, text: {"source": text, "target": _words(dice, 2)},
}  # fmt: skip


def rows(kind: str, count: int, seed: int = 0) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    return [KINDS[kind](dice, _words(dice, dice.randint(3, 5))) for _ in range(count)]


def write(path: Path, some: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in some), encoding="utf-8")
    return path
