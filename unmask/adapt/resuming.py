"""Resume: an adaptation that was cut off goes on from its last checkpoint, and ends with the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unmask import run
from unmask.data.pack import Rows
from unmask.errors import require
from unmask.pretraining.same_request import first_difference
from unmask.recipe import Recipe
from unmask.recipe_file import file_used_by
from unmask.recipe_json import plain
from unmask.train import checkpoint, log

READS = "reads"  # in the first record of a log: what the training reads


def claim(out: Path, *, resume: bool, overwrite: bool, base: Path, reads: Sequence[Path] = ()) -> None:
    """As `run.claim`, but with `resume` an adaptation that is not finished may be there. If it has no checkpoint yet, it begins
    again."""
    begun = (out / run.RECIPE).is_file() and not (out / run.REQUEST).exists()
    saved = checkpoint.newest(out) is not None
    if not (resume and begun and (saved or not (out / checkpoint.WEIGHTS).is_file())):
        run.claim(out, overwrite=overwrite, base=base, reads=reads, resume=resume)


def saved_record(out: Path, recipe: Recipe, reads: str, *, students: bool) -> dict[str, Any] | None:
    """The last record that was saved with a checkpoint; None if there is no checkpoint. A training of another model, on other
    examples or with other settings is refused."""
    last = checkpoint.last_record(out)
    if last is None:
        return None
    before = run.read_recipe(out, file_used_by(recipe))
    difference = first_difference(plain(before), plain(recipe))
    begun = next((record for record in log.read(out) if record.get("event") == "start"), {})
    for what, same in (("settings" + difference, not difference), ("examples", begun.get(READS) == reads)):
        require(
            same,
            "{out} was started with other {what}: give the same command again with --resume, or choose another --out",
            out=out,
            what=what,
        )
    require(
        not students,
        "{out} learns from texts without labels, and its students are not saved, so it cannot go on: begin again with --overwrite",
        out=out,
    )
    return {name: value for name, value in last.items() if name != "stopped"}


def fingerprint(several: Iterable[Rows]) -> str:
    """A hash of the tokens and the answers of rows."""
    found = hashlib.sha256()
    for rows in several:
        columns = {name: column.values for name, column in rows.columns.items()}
        arrays = {"ids": rows.ids, "segment": rows.segment, "label": rows.label, **columns, **rows.per_example}
        for name, array in sorted(arrays.items()):
            found.update(f"{name} {array.dtype} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
