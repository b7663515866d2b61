"""The verbs that make a model and score it: pretrain, adapt, evaluate."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from unmask import screen
from unmask.cli import labels, options, output
from unmask.cli.opening import opened
from unmask.cli.options import (
    Device,
    Encoding,
    Font,
    Json,
    LabelColumn,
    Lines,
    Overwrite,
    OwnRecipe,
    Run,
    Seed,
    Settings,
    TextColumns,
    Variant,
    Whole,
)
from unmask.cli.program import began, verb
from unmask.errors import UserError


@verb("unmask pretrain bert data/wiki --size small --budget 20m --out runs/bert")
def pretrain(
    recipe: Annotated[
        str | None, typer.Argument(help="A recipe's name (see 'unmask recipes'), or a .py file with a recipe.")
    ] = None,
    data: Annotated[
        list[str] | None, typer.Argument(help="Folders made by 'unmask prepare'; FOLDER:0.3 for its weight.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The run folder to write.")] = ...,  # type: ignore[assignment]
    size: Annotated[str | None, typer.Option(help="tiny ... large; base by default, or that of --from.")] = None,
    variant: Variant = "paper",
    budget: Annotated[
        str | None,
        typer.Option(
            help="20m (the default), 2h, 1e9tok, 5000steps or 1e17flop. Time counts from the command to its last file."
        ),
    ] = None,
    start: Annotated[Path | None, typer.Option("--from", help="A run to continue from, on new text.")] = None,
    settings: Settings = [],  # noqa: B006
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was cut off; --out is all that it needs.")
    ] = False,
    compiled: Annotated[
        bool | None,
        typer.Option("--compile/--no-compile", help="By default on a GPU, if the budget is ten minutes or more."),
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard files.")] = False,
    seed: Annotated[int | None, typer.Option(help="The seed of everything random, 0 by default.")] = None,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a recipe on prepared data within a budget; the rate's curve spans the whole budget."""
    from unmask import pretraining
    from unmask import recipes as family
    from unmask.recipe_file import file_used_by

    if resume and overwrite:
        raise UserError("--resume goes on with a run and --overwrite replaces it: give one of them")
    if recipe is None and (not resume or size or start or settings or variant != "paper"):
        raise UserError("name a recipe and data: unmask pretrain RECIPE DATA --out RUN; only --resume needs neither")
    if recipe is not None and not data:
        raise UserError("no data given: name folders made by 'unmask prepare'")
    if start is not None and size:
        raise UserError(f"the network comes from {start}: leave --size out, or leave --from out")
    chosen = None
    if recipe is not None and start is not None:
        chosen = family.continued(recipe, start, variant=variant, settings=settings, file=recipe_file)
    elif recipe is not None:
        chosen = family.get(recipe, size=size or "base", variant=variant, settings=settings)
    records = pretraining.pretrain(chosen, data or [], out, budget=budget, start=start, seed=seed, device=device,
                                   compiled=compiled, resume=resume, overwrite=overwrite, tensorboard=tensorboard,
                                   recipe_file=recipe_file, stop=options.interrupt(), began=began())  # fmt: skip
    last = _last_step(screen.training(records, f"{recipe or out.name} {size or ''}".strip(), json_))
    if last.get("stopped"):
        command = shlex.join(["--out", str(out), "--resume"])
        output.done(last, f"saved at step {last['step']:,}; go on with: unmask pretrain {command}", json_)
        raise typer.Exit(130)
    output.done(
        last, f"written to {out}; try: unmask {_next_verb(out, recipe_file or file_used_by(chosen))} {out} ...", json_
    )


@verb("unmask adapt runs/bert train.jsonl --dev dev.jsonl --out runs/bert-sst2")
def adapt(
    run: Run,
    train: Annotated[
        Path,
        typer.Argument(
            help='Examples: JSON lines or CSV with "text" (or "text_a", "text_b") and "label", or the columns that --text '
            'and --label name; to choose: "context", "question" or both, "choices", "label"; to write: "source", "target".'
        ),
    ],
    out: Annotated[Path, typer.Option(help="The run folder to write.")],
    task: Annotated[
        str, typer.Option(help="classify; choose one of several texts; write a text from a source text.")
    ] = "classify",
    dev: Annotated[
        Path | None, typer.Option(help="Examples that are scored after each epoch; the best epoch is kept.")
    ] = None,
    text: TextColumns = [],  # noqa: B006
    label: LabelColumn = None,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="epochs, examples, rate, warmup, decay, layer_decay, length, dropout, pool, pooler, activation, orders, "
            "language, hidden; what is not set is as the paper has it ('adapt' in 'unmask show RECIPE').",
        ),
    ] = [],  # noqa: B006, E501
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start from random weights: the control of a comparison.")
    ] = False,
    seed: Seed = 0,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Fine-tune a pretrained model to tell labels apart, to choose one of several texts, or to write one from another.

    Texts longer than the model was pretrained with are cut. After each epoch the scores on --dev are shown."""
    from unmask import adapt as adapting
    from unmask import tasks
    from unmask.settings import override
    from unmask.tasks.classify import Columns

    chosen, columns = override(tasks.get(task), settings), Columns.of(text, label)
    model = opened(run, recipe_file, device=device, json_=json_)
    records = adapting.adapt_to_files(model, train, out, dev=dev, task=chosen, columns=columns,
                                      seed=seed, fresh=fresh, overwrite=overwrite, stop=options.interrupt())  # fmt: skip
    last = _last_step(screen.training(records, f"adapting {run.name}", json_))
    if last.get("stopped"):
        output.done(last, f"stopped at step {last['step']:,}; the weights so far are in {out}", json_)
        raise typer.Exit(130)
    output.done(last, f"written to {out}; try: unmask evaluate {out} TEST", json_)


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
    lines: Lines = False,
    encoding: Encoding = "utf-8",
    text: TextColumns = [],  # noqa: B006
    label: LabelColumn = None,
    confusion: Annotated[
        Path | None, typer.Option(help="Also write the whole confusion matrix to this .csv file, truth in rows.")
    ] = None,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    json_: Json = False,
) -> None:
    """Accuracy, macro F1, Matthews' correlation and the confusion matrix of an adapted model (of more than ten labels: a
    table by label, and the worst confusions); of one that chooses, accuracy; of one that writes, ROUGE-L over the tokens
    of the model's own tokenizer: compare it between models of one tokenizer only.

    Of a model that reads from left to right and was not adapted: loss, perplexity and bits per byte on a text."""
    from unmask.cli import language_model
    from unmask.evaluate import evaluate_file, is_language_model
    from unmask.infer import task_of_model
    from unmask.tasks.classify import Columns

    model = opened(run, recipe_file, device=device, json_=json_)
    if not model.labels and (text or label or confusion):
        raise UserError(
            f"--text, --label and --confusion are for labels, and {run} was not adapted to any: leave them out"
        )
    if confusion is not None:
        labels.check_matrix(confusion)
    if is_language_model(model):
        language_model.text(model, test, context, stride, memory, curve, whole, lines, encoding, json_, font)
        return
    if curve is not None or font is not None:
        raise UserError(f"--curve measures a language model on a text, and {run} is scored on examples: leave it out")
    columns = Columns.of(text, label)
    scores = evaluate_file(model, test, context=context, stride=stride, memory=memory, whole=whole, lines=lines,
                           encoding=encoding, columns=columns)  # fmt: skip
    output.notice(task_of_model(model).described(test, columns), json_)
    output.notes(scores.pop("notes"), json_)
    output.notice(labels.one_label(scores) if "confusion" in scores else None, json_)
    if confusion is not None:
        labels.write_matrix(scores, confusion)
    if json_:
        output.as_json(scores)
        return
    screen.table(f"{run} on {test}", ["score", ""], list(_numbers(scores)))
    if "confusion" in scores:
        labels.show(scores)
    if confusion is not None:
        screen.err.print(f"[dim]the confusion matrix is written to {confusion}[/]", soft_wrap=True)
    elif len(scores.get("labels", ())) > labels.MOST:
        screen.err.print("[dim]the whole confusion matrix: --confusion FILE.csv[/]", soft_wrap=True)


def _numbers(scores: dict[str, Any]) -> Iterator[list[str]]:
    """The scores of a task that are one number each, as they are shown."""
    yield ["examples", f"{scores['examples']:,}"]
    called = {"macro_f1": "macro F1", "mcc": "MCC", "rouge_l": "ROUGE-L"}
    for name, value in scores.items():
        if isinstance(value, float):
            yield [called.get(name, name), f"{value:.4f}"]
        if name == "accuracy" and "majority" in scores:
            yield [
                f"accuracy of always saying {scores['majority']['label']!r}",
                f"{scores['majority']['accuracy']:.4f}",
            ]


def _next_verb(out: Path, recipe_file: Any) -> str:
    """What to try with a new run. `recipe_file`: the recipe file, if the run uses parts of one."""
    from unmask import run
    from unmask.predict import Adaptive, Tokens

    recipe: Any = run.read_recipe(out, run.given_file(out, run.file_for(out, recipe_file)))
    if not any(isinstance(part, Tokens | Adaptive) for part in recipe.predict.values()):
        return "adapt"
    return "generate" if "left" in recipe.writes else "fill"


def _last_step(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The record of the step at which training ended; events are passed over."""
    last: dict[str, Any] = {}
    for record in records:
        last = record if "step" in record else last
    return last
