"""The verbs that make a model and score it: pretrain, adapt, evaluate."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask import options, screen
from unmask.cli import say
from unmask.cli.program import verb
from unmask.errors import Mistake
from unmask.options import Device, Font, Json, Overwrite, Run, Seed, Settings, Variant, Whole


@verb("unmask pretrain bert data/wiki --size small --budget 20m --out runs/bert")
def pretrain(
    recipe: Annotated[str, typer.Argument(help="A recipe's name: see 'unmask recipes'.")],
    data: Annotated[list[str], typer.Argument(help="Folders made by 'unmask prepare'; FOLDER:0.3 for its weight.")],
    out: Annotated[Path, typer.Option(help="The run folder to write.")],
    size: Annotated[str | None, typer.Option(help="tiny ... large; base by default, or that of --from.")] = None,
    variant: Variant = "paper",
    budget: Annotated[str, typer.Option(help="20m, 2h, 1e9tok, 5000steps or 1e17flop.")] = "20m",
    start: Annotated[Path | None, typer.Option("--from", help="A run to continue from, on new text.")] = None,
    settings: Settings = [],  # noqa: B006
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was cut off.")] = False,
    compiled: Annotated[
        bool | None,
        typer.Option("--compile/--no-compile", help="By default on a GPU, if the budget is ten minutes or more."),
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard files.")] = False,
    seed: Seed = 0,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a recipe on prepared data within a budget; the rate's curve spans the whole budget."""
    from unmask import pretraining
    from unmask import recipes as family

    if resume and overwrite:
        raise Mistake("--resume goes on with a run and --overwrite begins it anew: give one of them")
    if start is not None and size:
        raise Mistake(f"the network comes from {start}: leave --size out, or leave --from out")
    chosen = (
        family.get(recipe, size=size or "base", variant=variant, settings=settings)
        if start is None
        else family.onward(recipe, start, variant=variant, settings=settings)
    )
    records = pretraining.pretrain(chosen, data, out, budget=budget, start=start, seed=seed, device=device, compiled=compiled,
                                   resume=resume, overwrite=overwrite, tensorboard=tensorboard, stop=options.interrupt())  # fmt: skip
    last = _last_step(screen.training(records, f"{recipe} {size or ''}".strip(), json_))
    if last.get("stopped"):
        command = shlex.join(word for word in sys.argv[1:] if word not in ("--resume", "--overwrite"))
        say.done(last, f"saved at step {last['step']:,}; go on with: unmask {command} --resume", json_)
        raise typer.Exit(130)
    say.done(last, f"written to {out}; try: unmask {_next_verb(chosen)} {out} ...", json_)


@verb("unmask adapt runs/bert train.jsonl --dev dev.jsonl --out runs/bert-sst2")
def adapt(
    run: Run,
    train: Annotated[
        Path,
        typer.Argument(
            help='Examples: JSON lines or CSV with "text" (or "text_a", "text_b") and "label"; to choose: "context", '
            '"question" or both, "choices", "label"; to write: "source", "target".'
        ),
    ],
    out: Annotated[Path, typer.Option(help="The run folder to write.")],
    task: Annotated[
        str, typer.Option(help="classify; choose one of several texts; write a text from a source text.")
    ] = "classify",
    dev: Annotated[Path | None, typer.Option(help="Examples to choose the best epoch by.")] = None,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="epochs, examples, rate, warmup, decay, length, dropout, pool, activation, orders, language, hidden.",
        ),
    ] = [],  # noqa: B006, E501
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start from random weights: the control of a comparison.")
    ] = False,
    seed: Seed = 0,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Fine-tune a pretrained model to tell labels apart, to choose one of several texts, or to write one from another."""
    from unmask import adapt as adapting
    from unmask import tasks
    from unmask.infer import open_run
    from unmask.recipe import override

    chosen = override(tasks.get(task), settings)
    records = adapting.adapt_to_files(open_run(run, device=device), train, out, dev=dev, task=chosen, seed=seed,
                                      fresh=fresh, overwrite=overwrite, stop=options.interrupt())  # fmt: skip
    last = _last_step(screen.training(records, f"adapting {run.name}", json_))
    if last.get("stopped"):
        say.done(last, f"stopped at step {last['step']:,}; the weights so far are in {out}", json_)
        raise typer.Exit(130)
    say.done(last, f"written to {out}; try: unmask evaluate {out} TEST", json_)


@verb("unmask evaluate runs/bert-sst2 test.jsonl")
def evaluate(
    run: Run,
    test: Annotated[Path, typer.Argument(help="Examples of its task; for a language model without labels, a text.")],
    context: Annotated[
        int | None, typer.Option(help="Of a text: tokens in a window; as in training if not given.")
    ] = None,
    stride: Annotated[int | None, typer.Option(help="Tokens by which windows advance; 1 is exact and slow.")] = None,
    memory: Annotated[int | None, typer.Option(help="Tokens to remember, for a model with a memory.")] = None,
    curve: Annotated[
        Path | None, typer.Option(help="Also the loss by how far back it may look: drawn (.png) or written (.json).")
    ] = None,
    font: Font = None,
    whole: Whole = False,
    device: Device = None,
    json_: Json = False,
) -> None:
    """Accuracy, F1, Matthews' correlation and the confusion matrix of an adapted model; of one that chooses, accuracy; of
    one that writes, ROUGE-L over the tokens of the model's own tokenizer: compare it between models of one tokenizer only.

    Of a model that reads from left to right and was not adapted: loss, perplexity and bits per byte on a text."""
    from unmask import api
    from unmask.cli import score
    from unmask.evaluate import is_language_model

    model = api.load(run, device=device)
    if is_language_model(model.inner):
        score.text(model.inner, test, context, stride, memory, curve, whole, json_, font)
        return
    if curve is not None or font is not None:
        raise Mistake(f"--curve measures a language model on a text, and {run} is scored on examples: leave it out")
    scores = model.evaluate(test, context=context, stride=stride, memory=memory, whole=whole)
    say.notes(model.inner.notes, json_)
    if json_:
        say.as_json(scores)
        return
    numbers = [
        [name, f"{scores[name]:.4f}"] for name in ("accuracy", "f1", "mcc", "rouge_l", "exact") if name in scores
    ]
    screen.table(f"{run} on {test}", ["score", ""], [["examples", f"{scores['examples']:,}"], *numbers])
    if "confusion" in scores:
        rows = [[name, *row] for name, row in zip(scores["labels"], scores["confusion"], strict=True)]
        screen.table("truth in rows, prediction in columns", ["", *scores["labels"]], rows)


def _next_verb(recipe: Any) -> str:
    """What to try with a new run."""
    from unmask.predict import Adaptive, Tokens

    if not any(isinstance(part, Tokens | Adaptive) for part in recipe.predict.values()):
        return "adapt"
    return "generate" if recipe.see.writes == "onward" else "fill"


def _last_step(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The record of the step at which training ended; events are passed over."""
    last: dict[str, Any] = {}
    for record in records:
        last = record if "step" in record else last
    return last
