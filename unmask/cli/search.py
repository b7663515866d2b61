"""The verbs that search: index, search."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

import unmask
from unmask import screen
from unmask.cli import output
from unmask.cli.options import Device, Json, Overwrite, OwnRecipe, Run, TextColumns, refuse
from unmask.cli.program import verb
from unmask.counted import counted
from unmask.errors import require

SHOWN = 160  # characters of a text


@verb("unmask index runs/bert-embed texts.jsonl --out idx/")
def index(
    run: Run,
    collection: Annotated[
        Path,
        typer.Argument(
            help="Texts: .txt with one on each line, or .jsonl or .csv with a field text and, if there are any, id."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the index.")],
    text: TextColumns = [],  # noqa: B006
    dims: Annotated[
        int | None, typer.Option(help="Keep only the first dimensions (of a run adapted with --set 'dims=(...)').")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="flat (exact), ivf or hnsw; by default flat for up to 200,000 texts, otherwise ivf."),
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Add the texts to the index at --out.")] = False,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Embed a collection of texts once, for 'unmask search'. RUN was adapted with --task embed."""
    way: Any = kind  # any word: the API refuses what it does not know
    if add:
        refuse({"--dims": dims, "--kind": kind, "--overwrite": overwrite}, "--add")
        opened = unmask.open_index(out, run=run, device=device, recipe=recipe_file)
        made = opened.add(collection, text=text, progress=output.progress(json_))
    else:
        made = unmask.index(run, collection, out, text=text, dims=dims, kind=way, device=device, recipe=recipe_file,
                            overwrite=overwrite, progress=output.progress(json_))  # fmt: skip
    about = dataclasses.asdict(made.index.about)
    said = f"{counted(about['texts'], 'texts')}, vectors of {about['dims']}, {about['kind']}, written to {out}"
    output.done(about, f'{said}; try: unmask search {out} "..."', json_)


@verb('unmask search idx/ "how are wounds treated" -k 5')
def search(
    folder: Annotated[Path, typer.Argument(metavar="INDEX", help="A folder that 'unmask index' wrote.")],
    query: Annotated[str | None, typer.Argument(help="What to search for.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="Instead of QUERY, a file of queries: .txt, .jsonl or .csv, as for 'embed'.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="How many texts.")] = 10,
    rerank: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", help="A run adapted on pairs (a query, a text, a label): it orders the nearest texts again."
        ),
    ] = None,
    first: Annotated[
        int | None, typer.Option(help="With --rerank: how many of the nearest texts it reads; 100 by default.")
    ] = None,
    run: Annotated[Path | None, typer.Option(help="The run that made the index, if it was moved.")] = None,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    json_: Json = False,
) -> None:
    """The texts of an index that are nearest to a query, with their scores: cosines, or probabilities with --rerank."""
    from unmask.api.inputs import read_texts

    require((query is None) != (file is None), "give a QUERY, or queries with --file: one of the two")
    said = output.Said(json_)
    queries = [query or ""] if file is None else read_texts(file, tell=said)
    opened = unmask.open_index(folder, run=run, device=device, recipe=recipe_file)
    found = opened.search(queries, k=k, rerank=rerank, first=first, tell=said)
    said.show_notes()
    for asked, texts in zip(queries, found, strict=True):
        if json_:
            output.as_json({"query": asked, "found": [dataclasses.asdict(one) for one in texts]}, lines=True)
        else:
            _show(asked, texts)


def _show(query: str, texts: list[Any]) -> None:
    rows = [[f"{one.score:.3f}", one.id, _shortened(one.text)] for one in texts]
    screen.table(_shortened(query).replace("[", r"\["), ["score", "id", "text"], rows)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
