"""The verbs about knowledge graphs: graph, triples."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import unmask
from unmask import screen
from unmask.cli import options, output
from unmask.cli.options import Device, Json, Overwrite, Seed
from unmask.cli.program import verb

FILES = ".tsv (head, relation, tail) or .jsonl with these fields, also .gz, .xz, .zst; repeatable."


@verb("unmask graph triples.tsv --out vectors")
def graph(
    triples: Annotated[list[Path], typer.Argument(metavar="TRIPLES...", help="Files of triples, " + FILES)],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    model: Annotated[str, typer.Option(help="transe or distmult.")] = "transe",
    norm: Annotated[int | None, typer.Option(help="Of TransE's distance: 1 (the default) or 2.")] = None,
    dims: Annotated[int, typer.Option(help="Numbers in a vector.")] = 100,
    epochs: Annotated[int, typer.Option(help="How often the triples are read.")] = 100,
    rows: Annotated[int, typer.Option(help="Triples in a step.")] = 1024,
    negatives: Annotated[int, typer.Option(help="Wrong triples for each true one.")] = 8,
    margin: Annotated[float, typer.Option(help="How much higher a true triple must score than a wrong one.")] = 1.0,
    rate: Annotated[float, typer.Option(help="The learning rate of Adagrad.")] = 0.1,
    dev: Annotated[
        list[Path], typer.Option(help="Triples that choose the best vectors of the training; repeatable.")
    ] = [],  # noqa: B006
    test: Annotated[list[Path], typer.Option(help="Triples that the vectors are scored on; repeatable.")] = [],  # noqa: B006
    holdout: Annotated[
        str | None,
        typer.Option(help="Without --test: the share of the triples that is scored, not trained on; 2% by default."),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            help="Names of the entities, if triples hold ids: .jsonl (id, label, aliases) or .tsv (id, name)."
        ),
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Learn a vector for each entity and relation of a knowledge graph, and rank held-out triples with them."""
    made = unmask.graph(
        triples, out, model=model, norm=norm, dims=dims, epochs=epochs, rows=rows, negatives=negatives, margin=margin,
        rate=rate, dev=dev, test=test, holdout=None if holdout is None else options.share(holdout), names=names,
        seed=seed, device=device, overwrite=overwrite, progress=output.progress(json_),
    )  # fmt: skip
    about = made.about
    if about.scores and not json_:
        shown = [f"{about.scores[name]:.3f}" for name in ("mrr", "hits_1", "hits_3", "hits_10")]
        titles = ["test triples", "mean rank", "MRR", "hits@1", "hits@3", "hits@10"]
        screen.table("filtered ranks", titles, [[f"{about.tested:,}", f"{about.scores['mean_rank']:.1f}", *shown]])
    said = f"{about.entities:,} entities and {about.relations:,} relations, vectors of {about.dims}, written to {out}"
    output.done(asdict(about), said, json_)


@verb("unmask triples triples.tsv --names entities.jsonl --out triples.jsonl")
def triples(
    files: Annotated[list[Path], typer.Argument(metavar="TRIPLES...", help="Files of triples, " + FILES)],
    out: Annotated[Path, typer.Option(help="The file to write: .jsonl with source and target, for 'unmask prepare'.")],
    ask: Annotated[
        str,
        typer.Option(help="What is predicted: tail (from head and relation), relation (from head and tail) or both."),
    ] = "tail",
    names: Annotated[
        Path | None,
        typer.Option(
            help="Names of the entities, if triples hold ids: .jsonl (id, label, aliases) or .tsv (id, name)."
        ),
    ] = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Write triples as pairs of texts, for a track of pretraining that reads two parts of a triple and predicts the third."""
    said = output.Said(json_)
    made = unmask.triples(files, out, ask=ask, names=names, overwrite=overwrite, tell=said)
    said.show_notes()
    output.done(made, f"{made['pairs']:,} pairs from {made['triples']:,} triples, written to {out}", json_)
