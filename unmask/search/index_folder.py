"""The folder of an index: vectors, texts, ids, and index.json, which says by which model and how it was made."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unmask import run
from unmask.errors import UserError, require
from unmask.infer.model import Model
from unmask.search.fingerprint import fingerprint
from unmask.search.nearest import KINDS, Kind, load_nearest, save_nearest
from unmask.search.stored_texts import StoredTexts, write_texts
from unmask.train import checkpoint
from unmask.type_check import check_types

ABOUT, VECTORS = "index.json", "vectors.faiss"
TEXTS, IDS = "texts", "ids"
FORMAT = 1


@dataclass(frozen=True)
class About:
    """What index.json says."""

    format: int  # of the folder
    run: str  # the run folder of the model that made the vectors
    fingerprint: str  # of that run
    dims: int  # of a vector
    kind: Kind  # of the index
    texts: int  # how many


@dataclass(frozen=True)
class Index:
    """An index in memory; its texts stay on the disk."""

    folder: Path
    about: About
    nearest: Any  # the index of faiss
    texts: StoredTexts
    ids: StoredTexts

    def __len__(self) -> int:
        return self.about.texts


def open_index(folder: str | Path) -> Index:
    folder = Path(folder)
    about = read_about(folder)
    found = Index(folder, about, load_nearest(folder / VECTORS), StoredTexts(folder, TEXTS), StoredTexts(folder, IDS))
    sizes = {about.texts, found.nearest.ntotal, len(found.texts), len(found.ids)}
    require(
        len(sizes) == 1 and found.nearest.d == about.dims,
        "{folder} is damaged, its files do not belong together: make the index again",
        folder=folder,
    )
    return found


def read_about(folder: Path) -> About:
    path = folder / ABOUT
    require(
        path.is_file(), "no index at {folder}: make one with 'unmask index RUN TEXTS --out {folder}'", folder=folder
    )
    try:
        values: Any = json.loads(path.read_text(encoding="utf-8"))
        require(
            isinstance(values, dict) and values.get("format") == FORMAT,
            "{path} has format {found}, and this version of unmask reads format {format}: make the index again",
            path=path,
            found=values.get("format") if isinstance(values, dict) else values,
            format=FORMAT,
        )
        check_types(
            {"run": str, "fingerprint": str, "dims": int, "kind": str, "texts": int}, values, f"{path} is damaged: "
        )
        about = About(**values)
    except (UnicodeDecodeError, json.JSONDecodeError, TypeError) as error:
        raise UserError("{path} is damaged: {error}; make the index again", path=path, error=error) from None
    require(
        about.kind in KINDS, "{path} is damaged: kind is {kind!r}; make the index again", path=path, kind=about.kind
    )
    return about


def check_model(about: About, folder: Path, model: Model) -> None:
    """Refuse a model that did not make the vectors of an index: its vectors mean something else."""
    require(
        fingerprint(model.folder) == about.fingerprint,
        "{folder} was made by another model than {given} (it was {run}): name the run that made it, or make the index again "
        "with {given}",
        folder=folder,
        given=model.folder,
        run=about.run,
    )


def claim(out: Path, *, overwrite: bool) -> None:
    """Refuse a folder that an index must not be written to, before any work is done."""
    require(
        out.is_dir() or not out.exists(), "{out} is a file, but an index is a folder: choose another --out", out=out
    )
    require(
        overwrite or not out.exists(),
        "{out} exists already: choose another --out, add to it with --add, or pass --overwrite",
        out=out,
    )
    require(
        not out.exists() or not any(out.iterdir()) or (out / ABOUT).is_file(),
        "{out} is a folder with files that are not an index, and --overwrite replaces only an index: choose another --out",
        out=out,
    )


def write_index(
    out: Path, about: About, nearest: Any, ids: Sequence[str], texts: Sequence[str], *, before: Index | None = None
) -> None:
    """Write an index as a whole; it replaces an existing one. `before`: the index whose texts come first."""
    draft = out.with_name(f".{out.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        write_texts(draft, TEXTS, texts, before=before.texts if before else None)
        write_texts(draft, IDS, ids, before=before.ids if before else None)
        save_nearest(nearest, draft / VECTORS)
        checkpoint.write_text(json.dumps(asdict(about), indent=1), draft / ABOUT)
        run.replace_folder(draft, out)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
