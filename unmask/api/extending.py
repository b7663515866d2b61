"""Add tokens of a new corpus to a model: its tokenizer and every table with a row for each token grow."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from unmask import infer, run, text
from unmask.errors import require
from unmask.progress import Tell, tell_notes, tell_notice
from unmask.recipe_file import file_used_by
from unmask.system import with_tokens
from unmask.text.extend import Extended, extend

_SHOWN = 5  # new tokens in a notice


def extend_run(
    model: infer.Model, corpus: text.Corpus, out: Path, *, tokens: int, overwrite: bool, tell: Tell
) -> infer.Model:
    """Write a run with up to `tokens` more tokens, and open it."""
    run.claim(out, overwrite=overwrite, base=model.folder, reads=[f for source in corpus.sources for f in source.files])
    require(
        next(model.system.parameters()).dtype.itemsize == 4,
        "{folder} was opened in half precision: open it without half=True to extend it",
        folder=model.folder,
    )
    require(
        model.recipe.tune is None or model.recipe.tune.plain,
        "{folder} was tuned with {tune}, which added modules to its network: extend the run that it was tuned from",
        folder=model.folder,
        tune=type(model.recipe.tune).__name__,
    )
    found = extend(model.tokenizer, corpus, tokens)
    pieces = [new.pieces for new in found.added]
    system = with_tokens(model.recipe, model.system, found.tokenizer.vocabulary, pieces)
    grown = dataclasses.replace(model, system=system, tokenizer=found.tokenizer, folder=out, recordings={})
    report = model.folder / run.IMPORTED  # it names the tensors whose weights are random
    infer.save_run(
        grown, out, overwrite=overwrite, report=json.loads(report.read_text("utf-8")) if report.is_file() else None
    )
    tell_notes(corpus.notes, tell, depth=2)
    tell_notice(_about(found, tokens), tell, depth=2)
    return infer.open_run(out, device=model.device, recipe=run.file_for(out, file_used_by(model.recipe)))


def _about(found: Extended, tokens: int) -> str:
    count = len(found.added)
    few = "" if count == tokens else f", all that this text is worth ({tokens:,} were asked for)"
    names = ", ".join(repr(found.tokenizer.readable(i)) for i in _first(found))
    return (
        f"{count:,} tokens were added{few}, such as {names}: continue training on text with 'unmask pretrain RECIPE TEXT "
        "--from RUN', so that the model learns them"
    )


def _first(found: Extended) -> range:
    """The ids of the first new tokens."""
    begin = found.tokenizer.vocabulary.size - len(found.added)
    return range(begin, min(begin + _SHOWN, found.tokenizer.vocabulary.size))
