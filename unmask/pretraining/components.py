"""Components of characters: pretraining reads their table, and writes it into the networks and the run.

A resumed run takes the table from its own folder, and a run that continues from another one from its weights: only a new run
reads the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from unmask.axes import gives_of, parts_in
from unmask.counted import counted
from unmask.errors import require
from unmask.pretraining.mixture import Mixture
from unmask.recipe import Recipe
from unmask.settings import override
from unmask.text import Tokenizer
from unmask.vectors.components import ComponentTable

COMPONENTS = "components"  # the fact, and the name of the table in the file of a run


def check_components(recipe: Recipe) -> None:
    """Refuse a file of components that cannot be read, before any work is done."""
    for _, part in _parts(recipe):
        part.read()


def read_components(recipe: Recipe, tokenizer: Tokenizer) -> tuple[ComponentTable | None, list[str]]:
    """The components of the characters of a tokenizer, and notices. None: the recipe has no components."""
    part = next((part for _, part in _parts(recipe)), None)
    if part is None:
        return None, []
    whole: ComponentTable = part.read()
    texts = tokenizer.texts()
    table = whole.only({character for text in texts for character in text})
    require(
        bool(table.of),
        "{file} has none of the characters of the tokenizer, such as {example!r}: give a table of the characters of the text",
        file=part.file,
        example=next((text for text in texts if text), ""),
    )
    return table, about_table(whole, table, texts, part.file)


def about_table(whole: ComponentTable, table: ComponentTable, texts: Sequence[str], file: str) -> list[str]:
    """Notices: which tokens have components, and which characters are missing in the table or in the vocabulary."""
    having = sum(bool(table.parts_of(text)) for text in texts)
    found = [
        f"{having:,} of {len(texts):,} tokens of the vocabulary have components in {file}, {len(table.names):,} different ones"
    ]
    found += [counted(count, note) for note, count in table.notes(texts, "vocabulary").items()]
    missing = whole.unseen(texts)
    if missing:
        what = (
            f"characters of {file} are not in the vocabulary, such as {missing[0]}: a character without a token is read as unknown. To give it one, "
            f"train the tokenizer on the table's characters too: cut -f1 {file} > more.txt; unmask tokenizer TEXT more.txt --out FILE"
        )
        found.append(counted(len(missing), what))
    return found


def with_components(recipe: Recipe, tokenizer: Tokenizer, table: ComponentTable | None) -> Recipe:
    """The recipe with the sizes of the table; None: as it is."""
    if table is None:
        return recipe
    most = table.numbers(tokenizer.texts()).shape[1]
    sizes = {"count": len(table.names), "most": most}
    return override(recipe, [f"{path}.{name}={size}" for path, _ in _parts(recipe) for name, size in sizes.items()])


def put_components(system: Any, recipe: Recipe, mixture: Mixture, table: ComponentTable | None) -> list[str]:
    """Write the table into the networks that have components, and which tokens are in the training text; returns notices.

    `table`: None if the networks have the components from an earlier run."""
    having = [name for name, network in recipe.system.networks.items() if COMPONENTS in gives_of(network)]
    tokens = torch.from_numpy(mixture.occurring(recipe)) if having else torch.empty(0)
    count = 0
    for name in having:
        embedding = getattr(system, name).embed.token
        if table is not None:
            embedding.put(torch.from_numpy(table.numbers(mixture.tokenizer.texts())))
        embedding.met(tokens)
        count = int((~embedding.own).sum())
    what = "tokens with components are not in the training text, and are embedded as the sums of their components"
    return [counted(count, what)] if count else []


def kept(table: ComponentTable | None) -> dict[str, Any]:
    """The table as JSON, for the file of a run."""
    return {} if table is None else {COMPONENTS: table.of}


def kept_in(request: Mapping[str, Any]) -> ComponentTable | None:
    """The table in the file of a run; None: it has none."""
    found = request.get(COMPONENTS)
    return None if found is None else ComponentTable({one: tuple(parts) for one, parts in found.items()})


def _parts(recipe: Recipe) -> list[tuple[str, Any]]:
    """The parts of the networks that give components, with their paths."""
    return [(path, part) for path, part in parts_in(recipe.system, "system") if COMPONENTS in part.gives]
