"""The verbs that take models out to Hugging Face's format and bring them in: export, import."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

import unmask
from unmask import screen
from unmask.cli import output
from unmask.cli.options import Json, Overwrite, OwnRecipe, Run, TaskOfRun, refuse
from unmask.cli.program import verb
from unmask.errors import require


@verb("unmask export runs/bert exported/")
def export(
    run: Run,
    out: Annotated[Path, typer.Argument(metavar="HF_FOLDER", help="The folder to write.")],
    generator: Annotated[
        bool, typer.Option("--generator", help="Of an ELECTRA run: write the generator, not the discriminator.")
    ] = False,
    peft: Annotated[
        bool,
        typer.Option("--peft", help="Of a run of --tune lora: write only what was added and the head, for peft."),
    ] = False,
    sentence_transformers: Annotated[
        bool,
        typer.Option(
            "--sentence-transformers", help="Of a run adapted with --task embed: for SentenceTransformer too."
        ),
    ] = False,
    task: TaskOfRun = None,
    recipe_file: OwnRecipe = None,
    json_: Json = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Write into a folder that exists already.")] = False,
) -> None:
    """Write a model in Hugging Face format, for AutoModel and AutoTokenizer.

    If Hugging Face has no architecture that computes the same, the value that differs is named and nothing is written."""
    model = unmask.load(run, device="cpu", task=task, recipe=recipe_file, tell=output.Said(json_))
    made = model.export(
        out, generator=generator, peft=peft, sentence_transformers=sentence_transformers, overwrite=overwrite
    )
    if made.left_out and not json_:
        screen.note(f"{made.architecture} has no place for, and leaves out: {', '.join(made.left_out)}")
    for note in made.notes if not json_ else ():
        screen.note(note)
    output.done(dataclasses.asdict(made), f"{made.architecture}, {', '.join(made.files)}, written to {out}", json_)


@verb("unmask import bert-base-uncased/ --out runs/bert")
def import_(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="HF_FOLDER",
            help="A local folder with config.json, model.safetensors and a tokenizer; or a file of word vectors.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The run folder to write.")],
    generator: Annotated[
        Path | None,
        typer.Option(
            metavar="HF_FOLDER", help="Of ELECTRA: the folder of the generator; HF_FOLDER is the discriminator."
        ),
    ] = None,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Of word vectors: change the recipe, such as system.backbone=SpelledBiLSTM for a network above them.",
        ),
    ] = [],  # noqa: B006
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Make a run of a model in Hugging Face format, or of a file of word vectors: to use it, adapt it or train it further (pretrain --from).

    Says what was loaded, what is missing (its weights are random) and what is left over."""
    require(
        folder.exists(),
        "nothing is at {folder}: name a file of word vectors, or the folder of a model that was downloaded, with its config.json and "
        "model.safetensors",
        folder=folder,
    )
    if folder.is_file():
        refuse({"--generator": generator}, "a file of word vectors")
        report: Any = unmask.import_vectors(folder, out, settings=settings, device="cpu", overwrite=overwrite)[1]
    else:
        refuse({"--set": settings or None}, "a model in Hugging Face format")
        report = unmask.import_hf(folder, out, generator=generator, device="cpu", overwrite=overwrite)[1]
    if json_:
        output.as_json(dataclasses.asdict(report))
        return
    for name, value in dataclasses.asdict(report).items():
        shown = ", ".join(map(str, value)) or "nothing" if isinstance(value, list | tuple) else value
        screen.out.print(f"{name.replace('_', ' '):12s} {shown}", markup=False)
    screen.err.print(f"[dim]written to {out}[/]")
