"""The entities of a recipe that reads a knowledge graph: their number, their width and their vectors come from the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from unmask.axes import gives_of, parts_in
from unmask.data.shards import GRAPH
from unmask.errors import require
from unmask.knowledge import open_folder
from unmask.pretraining.mixture import Mixture
from unmask.recipe import Recipe
from unmask.settings import override

ENTITY_VECTORS = "entity vectors"
_FIELDS = {
    "entities": "entities",
    "width": "dims",
    "graph": "graph",
    "link_by": "by",
}  # of a part, and of the data's record of its links


def with_entities(recipe: Recipe, mixture: Mixture) -> Recipe:
    """The recipe with the numbers of the graph that the data is linked to. Data of another graph is refused."""
    if ENTITY_VECTORS not in gives_of(recipe.system):
        return recipe
    links = _links(recipe, mixture)
    known = recipe.system.backbone.knowledge.graph  # type: ignore[attr-defined]
    require(
        known in ("", links["graph"]),
        "{folder} is linked to another graph (fingerprint {graph}) than the network was trained with ({known}), so the numbers "
        "of its entities mean something else: prepare the text again with --graph and the graph of the network",
        folder=mixture.shards[0].folder,
        graph=links["graph"],
        known=known,
    )
    return override(recipe, [
        f"{path}.{field}={links[_FIELDS[field]]}"
        for axis in ("system", "hide", "predict", "tracks", "schedule")
        for path, part in parts_in(getattr(recipe, axis), axis)
        if hasattr(part, "needs")  # a stage and a track are no parts
        if ENTITY_VECTORS in {*part.gives, *(need.fact for need in part.needs)}
        for field in part.__dataclass_fields__
        if field in _FIELDS
    ])  # fmt: skip


def put_entities(system: Any, mixture: Mixture) -> None:
    """Copy the vectors of the data's graph into a network that reads them."""
    table = getattr(system.backbone, "knowledge", None)
    if table is not None:
        vectors = open_folder(mixture.shards[0].folder / GRAPH).vectors
        with torch.no_grad():
            table.vectors.copy_(vectors.entities)


def graph_of(recipe: Recipe, mixture: Mixture) -> Path | None:
    """The folder of the graph that the data is linked to; None: the recipe reads no entities."""
    return mixture.shards[0].folder / GRAPH if ENTITY_VECTORS in gives_of(recipe.system) else None


def _links(recipe: Recipe, mixture: Mixture) -> dict[str, Any]:
    """What the data says about its links. All data must be linked to one graph."""
    first: dict[str, Any] = {}
    for shards in mixture.shards:
        links: Any = shards.manifest.get("links")
        require(
            isinstance(links, dict),
            "{name} reads the entities of a text, but {folder} was prepared without them: learn vectors with 'unmask graph', then "
            "'unmask prepare CORPUS --tokenizer FILE --graph VECTORS --out FOLDER'",
            name=recipe.name,
            folder=shards.folder,
        )
        first = first or links
        require(
            links["graph"] == first["graph"],
            "{folder} is linked to another graph than {first}: prepare both with the same --graph",
            folder=shards.folder,
            first=mixture.shards[0].folder,
        )
    return first
