"""Knowledge graphs from Python: graph learns the vectors of a graph, open_graph opens them, triples writes triples as text."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from unmask import knowledge, screen
from unmask.api.paths import Paths, listed
from unmask.errors import UserError, require, unknown
from unmask.infer.model import chosen_device
from unmask.knowledge.as_text import ASKS
from unmask.knowledge.models import GraphModel
from unmask.progress import Progress, Tell, draw_notes, follow, tell_notes

MODELS = {"transe": knowledge.TransE, "distmult": knowledge.DistMult}


def graph(
    triples: Paths, out: str | Path, *, model: str = "transe", norm: int | None = None, dims: int = 100, epochs: int = 100,
    rows: int = 1024, negatives: int = 8, margin: float = 1.0, rate: float = 0.1, dev: Paths = (), test: Paths = (),
    holdout: float | None = None, names: str | Path | None = None, seed: int = 0, device: str | None = None,
    overwrite: bool = False, progress: Progress = True,
) -> knowledge.GraphVectors:  # fmt: skip
    """Learn a vector for each entity and relation of a knowledge graph, and write them to a folder.

    `triples`: files of triples, .tsv or .jsonl (head, relation, tail). `model`: transe or distmult. `norm`: of TransE's
    distance, 1 (the default) or 2. `dev`: files of triples that choose the best vectors of the training. `test`: files of
    triples that the vectors are scored on. `holdout`: without `test`, the share of the triples that is scored and not
    trained on; 2% by default. `names`: a file with the names of the entities, if triples hold only ids."""
    require(
        not (test and holdout is not None),
        "--holdout {holdout} has no effect with --test, whose triples are scored: leave one of them out",
        holdout=holdout,
    )
    training = knowledge.Training(_model(model, norm), dims, epochs, rows, negatives, margin, rate, seed)
    records = knowledge.make_vectors(
        listed(triples), out, training, dev=listed(dev), test=listed(test), holdout=0.02 if holdout is None else holdout,
        names=names, device=chosen_device(device), overwrite=overwrite,
    )  # fmt: skip
    last = follow(records, progress, partial(screen.reading, title="learning", unit="triples", over="epochs"))
    draw_notes(last["notes"], progress)
    return knowledge.open_folder(out)


def triples(
    triples: Paths, out: str | Path, *, ask: str = "tail", names: str | Path | None = None, overwrite: bool = False,
    tell: Tell = None,
) -> dict[str, Any]:  # fmt: skip
    """Write triples as pairs of texts, a .jsonl file for `prepare`; returns how many there are.

    `ask`: what the second text is: tail, relation, or both (a pair for each). `names`: as for `graph`."""
    if ask not in ASKS:
        raise unknown("part of a triple to ask for", ask, ASKS)
    made = knowledge.write_triples(listed(triples), out, ask=ASKS[ask], names=names, overwrite=overwrite)
    tell_notes(made["notes"], tell)
    return made


def open_graph(folder: str | Path) -> knowledge.GraphVectors:
    """Open a folder that `graph` wrote."""
    return knowledge.open_folder(folder)


def _model(name: str, norm: int | None) -> GraphModel:
    if name not in MODELS:
        raise unknown("model of a graph", name, MODELS)
    try:
        values: Any = {} if norm is None else {"norm": norm}
        return MODELS[name](**values)
    except TypeError:
        raise UserError("--norm {norm} has no effect with --model {name}: leave it out", norm=norm, name=name) from None
