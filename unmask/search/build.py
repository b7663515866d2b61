"""Make an index of a collection, or add to one: each text is embedded once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unmask.errors import require
from unmask.infer.embed import embed, makes_vectors, width_of
from unmask.infer.model import Model
from unmask.search.fingerprint import fingerprint
from unmask.search.index_folder import FORMAT, About, check_model, claim, open_index, write_index
from unmask.search.nearest import MANY, Kind, faiss, new_nearest
from unmask.tasks._labelled import Columns, read_unlabelled

SOME = 8_192  # texts that are embedded between two records of progress


@dataclass(frozen=True)
class Collection:
    """Texts with their ids, as they were read."""

    ids: list[str]
    texts: list[str]
    notes: Counter[str]


def read_collection(path: Path, columns: Columns | None, *, first: int = 0) -> Collection:
    """The lines of a .txt file, or `text` and `id` of .jsonl or .csv. Without `id`, texts are numbered from `first`."""
    examples, notes = read_unlabelled(path, columns)
    pair = next((example for example in examples if example.text.b is not None), None)
    require(
        pair is None,
        "{where}: a text of a collection is one text, and this is a pair: name one column with --text",
        where=pair.where if pair else "",
    )
    given = ["id" in example.row for example in examples]
    require(
        all(given) or not any(given),
        '{where}: the text has no "id", but others of the file have one: give all texts an id, or none',
        where=examples[given.index(False)].where if not all(given) else "",
    )
    ids = [str(example.row.get("id", first + number)) for number, example in enumerate(examples)]
    return Collection(ids, [example.text.a for example in examples], notes)


def make_index(
    model: Model, collection: str | Path, out: str | Path, *, columns: Columns | None = None, dims: int | None = None,
    kind: Kind | None = None, overwrite: bool = False,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Embed a collection and write its index, yielding records. `dims`: only the first dimensions of the vectors."""
    out = Path(out)
    claim(out, overwrite=overwrite)
    check_makes_vectors(model)
    faiss()  # refused now, not after the work
    width = width_of(model, dims)
    read = read_collection(Path(collection), columns)
    _check_ids(read.ids, set(), collection)
    vectors, notes = yield from _embedded(model, read.texts, width)
    nearest, chosen = new_nearest(vectors, kind)
    about = About(FORMAT, str(model.folder.resolve()), fingerprint(model.folder), width, chosen, len(read.texts))
    write_index(out, about, nearest, read.ids, read.texts)
    yield _end(about, read, notes)


def add_texts(
    model: Model, collection: str | Path, out: str | Path, *, columns: Columns | None = None
) -> Iterator[dict[str, Any]]:
    """Embed a collection and add it to an index, yielding records. The model must be the one that made the index."""
    out = Path(out)
    before = open_index(out)
    check_model(before.about, out, model)
    read = read_collection(Path(collection), columns, first=len(before))
    _check_ids(read.ids, {before.ids[number] for number in range(len(before))}, collection)
    vectors, notes = yield from _embedded(model, read.texts, before.about.dims)
    before.nearest.add(vectors)
    about = replace(before.about, texts=len(before) + len(read.texts), run=str(model.folder.resolve()))
    write_index(out, about, before.nearest, read.ids, read.texts, before=before)
    yield _end(about, read, notes)


def check_makes_vectors(model: Model) -> None:
    require(
        makes_vectors(model),
        "{folder} was not adapted to make vectors of texts: adapt it first, with pairs, or with texts alone by 'unmask adapt "
        "{folder} texts.txt --task embed --set loss=neighbour --out ...'",
        folder=model.folder,
    )


def _check_ids(ids: Sequence[str], known: set[str], collection: str | Path) -> None:
    double = next((name for name, count in Counter(ids).items() if count > 1 or name in known), None)
    require(
        double is None,
        "{collection}: the id {double!r} is there twice, or in the index already: give each text its own id",
        collection=collection,
        double=double,
    )


def _embedded(
    model: Model, texts: Sequence[str], width: int
) -> Generator[dict[str, Any], None, tuple[np.ndarray, Counter[str]]]:
    """The vectors of texts, yielding records of progress."""
    vectors, notes = np.empty((len(texts), width), np.float32), Counter[str]()
    for begin in range(0, len(texts), SOME):
        found = embed(model, texts[begin : begin + SOME], dims=width)
        vectors[begin : begin + SOME] = found.value
        notes += found.notes
        done = min(begin + SOME, len(texts))
        yield {"texts": done, "texts_total": len(texts)}
    return vectors, notes


def _end(about: About, read: Collection, notes: Counter[str]) -> dict[str, Any]:
    said = f"{about.texts:,} vectors are slow to search in a flat index: make it again with --kind ivf"
    slow = [said] if about.kind == "flat" and about.texts > MANY else []
    return {
        "event": "indexed", "texts": about.texts, "added": len(read.texts), "dims": about.dims, "kind": about.kind,
        "notes": dict(read.notes + notes), "notices": slow,
    }  # fmt: skip
