"""The search indexes of the service, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unmask import search
from unmask.api.searching import SearchIndex, open_index
from unmask.errors import require
from unmask.search.index_folder import check_model
from unmask.serving.models import Models, Served


@dataclass(frozen=True, eq=False)
class Indexed:
    """An index, and the model that embeds its queries."""

    index: SearchIndex
    served: Served


def open_indexes(folders: Sequence[Path], models: Models) -> dict[str, Indexed]:
    """Open indexes. If the run of an index is served, its model is used."""
    found: dict[str, Indexed] = {}
    for folder in folders:
        name = folder.resolve().name
        require(name not in found, "two indexes have the name {name!r}: rename one of the folders", name=name)
        index = search.open_index(folder)
        run = Path(index.about.run)
        served = next((one for one in models.all() if one.model.folder.resolve() == run.resolve()), None)
        if served is None:
            opened = open_index(folder, device=models.device)
            found[name] = Indexed(opened, Served(f"index {name}", opened.model))  # type: ignore[arg-type]
        else:
            check_model(index.about, folder, served.model)
            found[name] = Indexed(SearchIndex(index, served.model), served)
    return found
