"""Adapt a pretrained model to a task."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from unmask.adapt.choose import teach_choosing
from unmask.adapt.finetune import few, finetune
from unmask.adapt.write import teach_writing
from unmask.errors import require
from unmask.infer.model import Model
from unmask.tasks import Choose, Classify, Write, choose, classify, write

__all__ = ["adapt_to_files", "few", "finetune", "teach_choosing", "teach_writing"]


def adapt_to_files(
    base: Model,
    train: str | Path,
    out: str | Path,
    *,
    dev: str | Path | None = None,
    task: Choose | Classify | Write,
    columns: classify.Columns | None = None,
    **options: Any,
) -> Iterator[dict[str, Any]]:
    """Adapt a model to the examples of a file, as the task reads them, yielding records."""
    require(
        columns in (None, classify.Columns()) or isinstance(task, Classify),
        "columns are named for labels (--task classify); to choose or to write, name the fields as docs/adapt.md says",
    )
    if isinstance(task, Write):
        pairs, held = write.read(train), write.read(dev) if dev else ()
        return teach_writing(base, pairs, out, dev=held, task=task, **options)
    if isinstance(task, Choose):
        questions, known = choose.read(train), choose.read(dev) if dev else ()
        return teach_choosing(base, questions, out, dev=known, task=task, **options)
    examples, kept = classify.read(train, columns), classify.read(dev, columns) if dev else ()
    said = filter(None, [classify.described(file, columns) for file in (train, dev) if file])
    notices = [{"event": "notice", "text": text} for text in said]
    return chain(notices, finetune(base, examples, out, dev=kept, task=task, **options))
