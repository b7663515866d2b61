"""The verbs that use a model: predict, fill, generate, embed."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmask import screen
from unmask.cli import say
from unmask.cli.program import verb
from unmask.errors import Mistake
from unmask.options import Device, Json, Overwrite, Run, Seed

if TYPE_CHECKING:
    from unmask.data.given import Text


@verb('unmask predict runs/bert-sst2 "a great film"')
def predict(
    run: Run,
    input_: Annotated[
        str,
        typer.Argument(metavar="FILE_OR_TEXT", help="A text, or a file of texts (.jsonl, .csv, .txt), or of choices."),
    ],
    second: Annotated[str | None, typer.Argument(metavar="SECOND_TEXT", help="The second text of a pair.")] = None,
    device: Device = None,
    json_: Json = False,
) -> None:
    """The label of a text, or of every text of a file; of a model that chooses, the choice for every question of one."""
    from unmask.infer import choose, classify, open_run
    from unmask.tasks.choose import read

    model = open_run(run, device=device)
    if model.chooses:
        questions = read(_file_of_choices(input_, second), labelled=False)
        texts, found_all = [question.context for question in questions], choose(model, questions)
    else:
        given = _texts(input_, second)
        texts, found_all = [text.a for text in given], classify(model, given)
    say.notes(model.notes, json_)
    for text, found in zip(texts, found_all, strict=True):
        if json_:
            say.as_json({"text": text} | dataclasses.asdict(found), lines=True)
        else:
            screen.out.print(f"{found.label}\t{found.probabilities[found.label]:.3f}\t{text[:80]}", markup=False)


@verb('unmask fill runs/bert "Paris is the [MASK] of France."')
def fill(
    run: Run,
    text: Annotated[str, typer.Argument(help="A text with [MASK] where a word is missing.")],
    top: Annotated[int, typer.Option(help="How many guesses.")] = 5,
    device: Device = None,
    json_: Json = False,
) -> None:
    """What a masked model puts at each [MASK]."""
    from unmask import api

    model = api.load(run, device=device)
    guesses = model.fill(text, top=top)
    say.notes(model.inner.notes, json_)
    if json_:
        say.as_json([[dataclasses.asdict(guess) for guess in place] for place in guesses])
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
    prompt: Annotated[str, typer.Argument(help="How the text begins.")],
    tokens: Annotated[int, typer.Option(help="How many new tokens at most.")] = 50,
    temperature: Annotated[
        float, typer.Option(help="0 takes the likeliest token; below 1 is safer, above 1 wilder.")
    ] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Draw among so many tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Draw among the likeliest with this probability together.")
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    json_: Json = False,
) -> None:
    """Go on with a text; a model that was adapted to write writes a text from it."""
    from unmask.infer import Sampling, open_run, write
    from unmask.infer import generate as run_on

    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    model = open_run(run, device=device)
    second = model.recipe.see.writes == "second"  # type: ignore[attr-defined]
    pieces = (write if second else run_on)(model, prompt, tokens=tokens, sampling=sampling, seed=seed)
    if json_:
        say.as_json({"text": "".join(pieces)})
        return
    for piece in pieces:
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")
    say.notes(model.notes, json_)


@verb("unmask embed runs/bert texts.txt --out vectors.npy")
def embed(
    run: Run,
    file: Annotated[Path, typer.Argument(help="Texts: a line each (.txt), or .jsonl or .csv with text.")],
    out: Annotated[Path, typer.Option(help="The .npy file to write.")],
    pool: Annotated[str, typer.Option(help="mean, or summary for the summary token.")] = "mean",
    layer: Annotated[int, typer.Option(help="Which layer; 0 is the embeddings, -1 the last.")] = -1,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """One vector per text."""
    import numpy as np

    from unmask import infer
    from unmask.errors import require
    from unmask.tasks.classify import read_texts

    require(overwrite or not out.exists(), f"{out} exists already: choose another --out, or pass --overwrite")
    texts = [text.a for text in read_texts(file)]
    model = infer.open_run(run, device=device)
    vectors = infer.embed(model, texts, pool=pool, layer=layer)  # type: ignore[arg-type]
    say.notes(model.notes, json_)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as target:
        np.save(target, vectors)
    say.done(
        {"file": str(out), "shape": list(vectors.shape)},
        f"{len(texts):,} vectors of {vectors.shape[1]}, written to {out}",
        json_,
    )


def _file_of_choices(input_: str, second: str | None) -> Path:
    if second is not None or not Path(input_).suffix:
        raise Mistake(f'this model chooses: give a .jsonl file with "context" and "choices", got {input_!r:.60}')
    return Path(input_)


def _texts(file_or_text: str, second: str | None) -> list[Text]:
    """What to predict: the texts of a file, or the one text or pair that was typed."""
    from unmask.data.given import Text
    from unmask.tasks.classify import read_texts

    file = Path(file_or_text)
    if second is None and (file.is_file() or file.suffix in (".jsonl", ".csv", ".tsv", ".txt")):
        return read_texts(file)
    if file.is_file():
        raise Mistake(f"{file} is a file: a second text goes with a text, pairs in a file have text_a and text_b")
    return [Text(file_or_text, second)]
