"""The commands that `pretrain` on text stands for, so that a user can see, repeat and change each step."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unmask.api.from_text import Places, Reading


def commands(
    recipe: Any, data: Sequence[str | Path], reading: Reading, places: Places, *, trained: bool, variant: str,
    settings: Sequence[str], others: Mapping[str, Any],
) -> list[str]:  # fmt: skip
    """'unmask tokenizer' if one is trained, 'unmask prepare', 'unmask pretrain'. `others`: more options of pretrain.

    Empty for a recipe that is a value of Python: no command can name it."""
    if not isinstance(recipe, str):
        return []
    corpus = [*map(str, data), *options({"--lines": reading.lines, "--encoding": reading.encoding})]
    own = [setting for setting in settings if setting.startswith("tokenizer")]
    chosen = {"--for": recipe, "--variant": variant if variant != "paper" else None, "--set": own}
    made = {"--tokenizer": places.tokenizer, "--words": None if places.words == "auto" else places.words,
            "--whole": places.whole, "--holdout": reading.holdout, "--lexicon": reading.lexicon, "--graph": reading.graph}  # fmt: skip
    train = {"--variant": chosen["--variant"], "--set": settings, **others}
    lines = [
        ["tokenizer", *corpus, *options(chosen | {"--out": places.tokenizer})] if trained else [],
        ["prepare", *corpus, *options(made | {"--out": places.data})],
        ["pretrain", recipe, str(places.data), *options(train)],
    ]
    return [shlex.join(["unmask", *words]) for words in lines if words]


def options(given: Mapping[str, Any]) -> list[str]:
    """The words of options on the command line. A value of None or False is left out; a sequence repeats its option."""
    words: list[str] = []
    for name, value in given.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            words += [] if one is None or one is False else [name] if one is True else [name, str(one)]
    return words
