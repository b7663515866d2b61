"""Search from Python: index makes an index of a collection, open_index opens one; both give a SearchIndex."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from unmask import infer, screen, search
from unmask.api.runs import load
from unmask.errors import require
from unmask.progress import Progress, Tell, draw_notes, follow, tell_notes
from unmask.search.index_folder import check_model
from unmask.search.nearest import Kind
from unmask.tasks.classify import Columns


class SearchIndex:
    """An index of texts, and the model that made it. `len` gives the number of texts."""

    def __init__(self, index: search.Index, model: infer.Model) -> None:
        self.index, self.model = index, model

    def __repr__(self) -> str:
        about = self.index.about
        return f"<SearchIndex {self.index.folder}: {about.texts:,} texts, {about.dims} dimensions, {about.kind}>"

    def __len__(self) -> int:
        return len(self.index)

    def search(
        self, query: str | Sequence[str], *, k: int = 10, rerank: str | Path | infer.Model | None = None,
        first: int | None = None, tell: Tell = None,
    ) -> Any:  # fmt: skip
        """The `k` best texts, the best first: a list of `Found` for a query, for several queries a list of such lists.

        `rerank`: a run that was adapted on pairs of a query and a text; it orders the `first` nearest texts again (100 by
        default) by the probability of its last label."""
        require(
            first is None or rerank is not None,
            "--first {first} is how many texts are re-ranked: name a run with --rerank (in Python, rerank=...), or leave it out",
            first=first,
        )
        cross = load(rerank, device=self.model.device) if isinstance(rerank, str | Path) else rerank
        queries = [query] if isinstance(query, str) else query
        many = max(k, 100) if first is None else first
        found = search.find(self.index, self.model, queries, k=k, cross=cross, first=many)
        tell_notes(found.notes, tell)
        return found.value[0] if isinstance(query, str) else found.value

    def add(
        self, collection: str | Path, *, text: str | Sequence[str] | None = None, progress: Progress = True
    ) -> SearchIndex:
        """Add the texts of a file; returns the new index, which replaces the folder."""
        records = search.add_texts(self.model, collection, self.index.folder, columns=Columns.of(text))
        return SearchIndex(_followed(records, self.index.folder, progress), self.model)


def index(
    run: str | Path | infer.Model, collection: str | Path, out: str | Path, *, text: str | Sequence[str] | None = None,
    dims: int | None = None, kind: Kind | None = None, device: str | None = None, recipe: str | Path | None = None,
    overwrite: bool = False, progress: Progress = True,
) -> SearchIndex:  # fmt: skip
    """Embed a collection of texts with a run that was adapted to embed, and write its index to a folder.

    `collection`: lines of a .txt file, or .jsonl or .csv with `text` (or the column that `text` names) and, if there are
    any, `id`. `dims`: keep only the first dimensions. `kind`: flat (exact), ivf or hnsw (faster for many texts). `recipe`:
    the .py file of the run's recipe, if the run uses parts of it."""
    model = load(run, device=device, recipe=recipe) if isinstance(run, str | Path) else run
    records = search.make_index(
        model, collection, out, columns=Columns.of(text), dims=dims, kind=kind, overwrite=overwrite
    )
    return SearchIndex(_followed(records, Path(out), progress), model)


def open_index(
    folder: str | Path, *, run: str | Path | None = None, device: str | None = None, recipe: str | Path | None = None
) -> SearchIndex:
    """Open an index. `run`: the run that made it, if it was moved; another run is refused. `recipe`: as for `index`."""
    found = search.open_index(folder)
    place = Path(found.about.run if run is None else run)
    require(
        run is not None or place.is_dir(),
        "the run that made {folder} is no longer at {place}: name its new place with --run (in Python, run=...)",
        folder=folder,
        place=place,
    )
    model = load(place, device=device, recipe=recipe)
    check_model(found.about, Path(folder), model)
    return SearchIndex(found, model)


def _followed(records: Any, folder: Path, progress: Progress) -> search.Index:
    """Run the making of an index to its end, and open it."""
    last = follow(records, progress, partial(screen.reading, title="embedding", unit="texts", over="texts"))
    if progress is True:
        draw_notes(last["notes"], progress)
        for notice in last["notices"]:
            screen.note(notice)
    return search.open_index(folder)
