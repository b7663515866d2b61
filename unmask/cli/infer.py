"""The verbs that use a model: predict, fill, generate, embed."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import unmask
from unmask import screen
from unmask.cli import output, predictions
from unmask.cli.options import (
    AnswerSettings,
    Device,
    Fast,
    Json,
    LabelColumn,
    Overwrite,
    OwnRecipe,
    Run,
    Seed,
    TaskOfRun,
    TextColumns,
)
from unmask.cli.program import verb
from unmask.counted import counted
from unmask.errors import require

if TYPE_CHECKING:
    from unmask.infer import Generated

PROMPTS = 256  # of a file, before their texts are shown


@verb('unmask predict runs/bert-sst2 "a great film"')
def predict(
    run: Run,
    input_: Annotated[
        str,
        typer.Argument(
            metavar="FILE_OR_TEXT",
            help="A text; a file of texts (.jsonl, .csv, .tsv; .txt, a line each, blank ones left out), or of choices; - for "
            "the lines of the standard input. What exists as a file is read as a file.",
        ),
    ],
    second: Annotated[str | None, typer.Argument(metavar="SECOND_TEXT", help="The second text of a pair.")] = None,
    text: TextColumns = [],  # noqa: B006
    top: Annotated[int, typer.Option(help="How many labels to give of each text, the most likely first.")] = 1,
    threshold: Annotated[
        float | None, typer.Option(help="Give an empty label if its probability is lower, such as 0.9.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write a .csv, .tsv or .jsonl file: all columns of the input, and label and probability."),
    ] = None,
    settings: AnswerSettings = [],  # noqa: B006
    task: TaskOfRun = None,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    fast: Fast = False,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """The label of a text, or of every text of a file; of a model that chooses, the choice for every question of one.

    Without --out, a line for each text on the output, separated by tabs: label, probability, text."""
    if out is not None:
        predictions.check_output(out, overwrite)
    said = output.Said(json_)
    model = unmask.load(run, device=device, fast=fast, task=task, recipe=recipe_file, tell=said)
    model = model.answering(settings) if settings else model
    predictions.check_top(top, model.labels)
    examples = predictions.given(model, input_, second, text, said)
    found = model.predict(examples, threshold=threshold, tell=said)
    said.show_notes()
    if out is not None:
        predictions.write(out, [example.row for example in examples], found, top)
        output.done({"file": str(out), "texts": len(found)}, f"{counted(len(found), 'texts')}, written to {out}", json_)
    else:
        predictions.show([example.shown for example in examples], found, top, json_)


@verb("unmask calibrate runs/bert-sst2 dev.jsonl")
def calibrate(
    run: Run,
    file: Annotated[Path, typer.Argument(help="Examples that it was not trained on, with their labels.")],
    text: TextColumns = [],  # noqa: B006
    label: LabelColumn = None,
    task: TaskOfRun = None,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    json_: Json = False,
) -> None:
    """Make the probabilities of an adapted model fit how often it is right, by a temperature that the run keeps.

    Answers stay the same; the run's report.html shows how well its probabilities fit."""
    model = unmask.load(run, device=device, task=task, recipe=recipe_file, tell=output.Said(json_))
    found = model.calibrate(file, text=text, label=label)
    said = f"temperature {found['temperature']:g}: calibration error {found['error_before']:.3f} before, {found['error']:.3f} after"
    output.done(found, said, json_)


@verb('unmask fill runs/bert "Paris is the [MASK] of France."')
def fill(
    run: Run,
    text: Annotated[str, typer.Argument(help="A text with [MASK] (or <mask>, 【MASK】) where a word is missing.")],
    top: Annotated[int, typer.Option(help="How many guesses for each [MASK].")] = 5,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    json_: Json = False,
) -> None:
    """Show the most likely tokens at each [MASK]. For models that see both sides (bert, roberta, albert, xlnet ...)."""
    said = output.Said(json_)
    guesses = unmask.load(run, device=device, recipe=recipe_file, tell=said).fill(text, top=top, tell=said)
    said.show_notes()
    if json_:
        output.as_json([[dataclasses.asdict(guess) for guess in place] for place in guesses])
        return
    for number, place in enumerate(guesses, 1):
        screen.table(
            f"[MASK] {number}".replace("[", r"\["),
            ["token", "probability"],
            [[g.token, f"{g.probability:.3f}"] for g in place],
        )


@verb('unmask generate runs/gpt2 "Once upon a time" --tokens 60 --top-p 0.9')
def generate(
    run: Run,
    prompt: Annotated[str | None, typer.Argument(help="How the text begins.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="Instead of PROMPT, a file of prompts: .txt with one on each line (blank lines are left out), or .jsonl or "
            ".csv with a field text."
        ),
    ] = None,
    tokens: Annotated[int, typer.Option(help="How many new tokens at most.")] = 50,
    greedy: Annotated[bool, typer.Option("--greedy", help="Always take the likeliest token.")] = False,
    temperature: Annotated[
        float | None,
        typer.Option(help="1 (the default) draws as the model says; below 1 likely tokens are drawn more often."),
    ] = None,
    top_k: Annotated[int | None, typer.Option(help="Draw among this number of the most likely tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Draw among the most likely tokens that together have this probability.")
    ] = None,
    repetition_penalty: Annotated[
        float, typer.Option(help="Over 1: tokens that are already in the text become less likely.")
    ] = 1.0,
    beams: Annotated[
        int | None, typer.Option(help="Beam search with this number of beams, instead of drawing.")
    ] = None,
    length_penalty: Annotated[
        float | None, typer.Option(help="With --beams: over 0 favours long texts, below 0 short ones; 1 by default.")
    ] = None,
    length_offset: Annotated[
        int | None,
        typer.Option(
            help="With --beams: 5 for the length penalty of Wu et al. 2016, as in the Transformer; 0 by default."
        ),
    ] = None,
    early_stop: Annotated[
        bool, typer.Option("--early-stop", help="With --beams: end when as many texts as beams have ended; faster.")
    ] = False,
    min_tokens: Annotated[int, typer.Option(help="How many new tokens at least.")] = 0,
    no_repeat: Annotated[
        int,
        typer.Option(
            help="Never write a sequence of this number of tokens twice, such as 3; 0 (the default): allowed."
        ),
    ] = 0,
    samples: Annotated[int, typer.Option(help="How many texts for each prompt.")] = 1,
    cut_left: Annotated[
        bool,
        typer.Option("--cut-left", help="Cut a prompt that is too long at its beginning; otherwise it is an error."),
    ] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Read the whole text again for every token: slow, to check the cache.")
    ] = False,
    half: Annotated[bool, typer.Option("--half", help="Compute in bfloat16: faster on a GPU.")] = False,
    seed: Seed = 0,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    json_: Json = False,
) -> None:
    """Continue a text, shown while it is written. For models that read from left to right (gpt, gpt2, transformer-xl ...).

    A model that was adapted with --task write writes a new text from the prompt."""
    how: Any = unmask.decoding(
        greedy=greedy, temperature=temperature, top_k=top_k, top_p=top_p, repetition_penalty=repetition_penalty,
        beams=beams, length_penalty=length_penalty, length_offset=length_offset, early=early_stop, least=min_tokens,
        no_repeat=no_repeat,
    )  # fmt: skip
    said = output.Said(json_)
    prompts = _prompts(prompt, file, said)
    model = unmask.load(run, device=device, half=half, recipe=recipe_file, tell=said)
    if json_ or file is not None or samples != 1 or beams is not None:  # nothing to be shown while it is written
        for begin in range(0, len(prompts), PROMPTS):
            found = model.generate_records(
                prompts[begin : begin + PROMPTS], sampling=how, tokens=tokens, samples=samples, cut_left=cut_left,
                cached=not no_cache, seed=seed, tell=said,
            )  # fmt: skip
            _show_texts(found, json_)
    else:
        pieces = model.stream(prompts[0], sampling=how, tokens=tokens, cut_left=cut_left, cached=not no_cache, seed=seed,
                              tell=said)  # fmt: skip
        for piece in pieces:
            sys.stdout.write(piece)
            sys.stdout.flush()
        sys.stdout.write("\n")
    said.notes = Counter({**said.notes, **model.random_weights("token scores")})  # once, for all prompts
    said.show_notes()


@verb("unmask embed runs/bert texts.txt --out vectors.npy")
def embed(
    run: Run,
    file: Annotated[
        Path,
        typer.Argument(
            help="Texts: .txt with one on each line (blank lines are left out), or .jsonl or .csv with a field text."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="The file to write: .npy (an array), .csv or .jsonl (each text and its numbers).")
    ],
    pool: Annotated[
        str | None,
        typer.Option(
            help="mean of all tokens (the default), or summary: the vector of the token that stands for the text ([CLS]). A "
            "run adapted with --task embed has its own."
        ),
    ] = None,
    layer: Annotated[
        int | None, typer.Option(help="Which layer to read: 0 is the embeddings, -1 (the default) the last layer.")
    ] = None,
    dims: Annotated[
        int | None, typer.Option(help="Of a run adapted with --task embed: keep only the first dimensions.")
    ] = None,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    fast: Fast = False,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Write one vector for each text of a file."""
    from unmask.api.model import check_vectors

    check_vectors(out, overwrite=overwrite)
    said = output.Said(json_)
    model = unmask.load(run, device=device, fast=fast, recipe=recipe_file, tell=said)
    way: Any = pool  # any word: the API refuses what it does not know
    vectors = model.embed_file(file, out, pool=way, layer=layer, dims=dims, overwrite=overwrite, tell=said)
    said.show_notes()
    output.done(
        {"file": str(out), "shape": list(vectors.shape)},
        f"{counted(len(vectors), 'vectors')} of {vectors.shape[1]}, written to {out}",
        json_,
    )


def _prompts(prompt: str | None, file: Path | None, said: output.Said) -> list[str]:
    """What to go on with: the prompt that was typed, or those of a file."""
    from unmask.api.inputs import read_texts

    require((prompt is None) != (file is None), "give a PROMPT, or prompts with --file: one of the two")
    return [prompt or ""] if file is None else read_texts(file, tell=said)


def _show_texts(found: Iterable[Generated], json_: bool) -> None:
    for one in found:
        if json_:
            output.as_json({name: getattr(one, name) for name in ("prompt", "sample", "text", "ended")}, lines=True)
        else:
            sys.stdout.write(one.text + "\n")
