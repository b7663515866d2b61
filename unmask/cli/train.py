"""The verbs that train a model: pretrain, adapt."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

import unmask
from unmask import task_names, tune_names
from unmask.cli import adapting, options, output
from unmask.cli.options import (
    Device,
    Json,
    LabelColumn,
    Overwrite,
    OwnRecipe,
    Run,
    Seed,
    Settings,
    TextColumns,
    Variant,
)
from unmask.cli.program import began, verb
from unmask.errors import require


@verb("unmask pretrain bert my_texts/ --size small --budget 20m --out runs/bert")
def pretrain(
    recipe: Annotated[
        str | None, typer.Argument(help="A recipe's name (see 'unmask recipes'), or a .py file with a recipe.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text (files, folders or globs, as for 'unmask prepare'), or folders made by 'unmask prepare'; FOLDER:0.3 "
            "for the weight of such a folder."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The run folder to write.")] = ...,  # type: ignore[assignment]
    size: Annotated[str | None, typer.Option(help="tiny ... large; base by default, or that of --from.")] = None,
    variant: Variant = "paper",
    budget: Annotated[
        str | None,
        typer.Option(
            help="20m (the default), 2h, 1e9tok, 5000steps or 1e17flop. Time counts from the command, or from when text is "
            "prepared, to the last file."
        ),
    ] = None,
    start: Annotated[Path | None, typer.Option("--from", help="A run to continue from, on new text.")] = None,
    settings: Settings = [],  # noqa: B006
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Settings that 'unmask compare --sweep' found, in place of RECIPE: pretrain DATA --like FILE.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was cut off; --out is all that it needs.")
    ] = False,
    compiled: Annotated[
        bool | None,
        typer.Option(
            "--compile/--no-compile", help="By default on a GPU, if training takes about ten minutes or more."
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="For text: a tokenizer.json or a run folder whose tokenizer is used; by default one is trained."
        ),
    ] = None,
    lexicon: options.Lexicons = [],  # noqa: B006
    graph: options.Graph = None,
    lines: options.TextLines = False,
    encoding: options.TextEncoding = None,
    holdout: options.TextHoldout = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard files.")] = False,
    seed: Annotated[int | None, typer.Option(help="The seed of everything random, 0 by default.")] = None,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    json_: Json = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a recipe on text or on prepared data within a budget; the rate's curve spans the whole budget.

    From text, a tokenizer of the recipe's kind is trained and the text is prepared. Both are kept in a cache
    (UNMASK_CACHE, by default ~/.cache/unmask) until the text changes."""
    words = data or []
    if like is not None and recipe is not None:  # the first word is data, because the file names the recipe
        words, recipe = [recipe, *words], None
    model = unmask.pretrain(
        recipe, words, out, size=size, variant=variant, settings=settings, budget=budget, start=start, seed=seed,
        device=device, compiled=compiled, resume=resume, overwrite=overwrite, tensorboard=tensorboard,
        recipe_file=recipe_file, stop=options.interrupt(), began=began(), tokenizer=tokenizer, lexicon=lexicon, graph=graph,
        lines=lines, encoding=encoding, holdout=None if holdout is None else options.share(holdout), like=like, progress=output.progress(json_),
    )  # fmt: skip
    last = model.history[-1]
    if last.get("stopped"):
        command = shlex.join(["--out", str(out), "--resume"])
        output.done(last, f"saved at step {last['step']:,}; go on with: unmask pretrain {command}", json_)
        raise typer.Exit(130)
    output.done(last, f"written to {out}; try: unmask {model.best_use} {out} ...", json_)


@verb("unmask adapt runs/bert train.jsonl --dev dev.jsonl --out runs/bert-sst2")
def adapt(
    run: Run,
    train: Annotated[
        Path,
        typer.Argument(
            help='Examples: JSON lines, CSV or parquet with "text" (or "text_a", "text_b") and "label", or the columns that '
            "--text and --label name; CoNLL columns to tag; SQuAD or CMRC JSON to find answers; plain texts to embed; "
            "docs/adapt.md lists the columns of every task. Or a folder of tasks, with train.jsonl, dev.jsonl and test.jsonl in a "
            "subfolder for each: one model learns all of them (docs/many_tasks.md)."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The run folder to write.")],
    task: Annotated[
        str | None,
        typer.Option(
            help=f"What to learn: {', '.join(task_names.names())}. By default, what the columns of TRAIN say."
        ),
    ] = None,
    tune: Annotated[
        str, typer.Option(help=f"Which weights are trained: {', '.join(tune_names.names())}.")
    ] = tune_names.FULL,
    dev: Annotated[
        Path | None, typer.Option(help="Examples that are scored after each epoch; the best epoch is kept.")
    ] = None,
    text: TextColumns = [],  # noqa: B006
    label: LabelColumn = None,
    unlabelled: Annotated[
        list[Path],
        typer.Option(
            metavar="PATH",
            help="For --tune cvt: texts without labels, a file or a folder; a line of a .txt file is a text; repeatable.",
        ),
    ] = [],  # noqa: B006
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="epochs, examples, rate, warmup, decay, layer_decay, length, patience, dropout, pool, pooler, activation, orders, "
            "language, hidden, loss, scale, dims, san, lists, balance, weights, and tune.NAME for values of --tune; of a folder of tasks: epochs, examples, "
            "rate, warmup, decay, length, patience, optimiser, power, pairs, lists; what is not set is as the paper has it "
            "('adapt' in 'unmask show RECIPE').",
        ),
    ] = [],  # noqa: B006, E501
    strict: Annotated[
        bool, typer.Option("--strict", help="To find answers: refuse answers that are not where the file says.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start from random weights: the control of a comparison.")
    ] = False,
    seeds: Annotated[
        int, typer.Option(help="Train with this many seeds; the mean score is shown, and the best on --dev is kept.")
    ] = 1,
    folds: Annotated[
        int | None, typer.Option(help="Score each of N folds by a model trained on the others; list suspicious labels.")
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option(
            help="Only measure the score on --dev by the number of labels, such as 100,1000,all or 0.1%,1%,10%; draws it in OUT."
        ),
    ] = None,
    find_rate: Annotated[
        bool,
        typer.Option("--find-rate", help="Only try learning rates that grow, and suggest one; draws the loss in OUT."),
    ] = False,
    warm_text: Annotated[
        str | None,
        typer.Option(help="First continue pretraining on the texts of TRAIN for this budget, such as 2m or 500steps."),
    ] = None,
    seed: Seed = 0,
    recipe_file: OwnRecipe = None,
    device: Device = None,
    json_: Json = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with the training in --out that was cut off: give the same command again."
        ),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Fine-tune a pretrained model: to tell labels apart, tag words, find answers, predict numbers, rank, choose or write.

    Texts longer than the model was pretrained with are cut, or read in windows. After each epoch the scores on --dev are shown."""
    ways = {"--folds": folds is not None, "--curve": curve is not None, "--find-rate": find_rate}
    require(
        sum(ways.values()) <= 1,
        "{ways} do different things: give one of them",
        ways=" and ".join(w for w, on in ways.items() if on),
    )
    only = {
        "--fresh": fresh, "--seeds": find_rate and seeds > 1, "--dev": find_rate and dev is not None,
        "--unlabelled": find_rate and bool(unlabelled), "--resume": resume,
    }  # fmt: skip
    wrong = [name for name, given in only.items() if given]
    require(
        not wrong or not (curve is not None or find_rate),
        "{wrong} has no effect with --curve or --find-rate: leave it out",
        wrong=" and ".join(wrong),
    )
    require(
        not fresh or warm_text is None,
        "--warm-text continues pretraining, and --fresh starts from random weights: leave one of them out",
    )
    base = unmask.load(run, device=device, recipe=recipe_file, tell=output.Said(json_))
    stop, progress = options.interrupt(), output.progress(json_)
    of_task = [*settings, *["strict=true"] * strict]

    def warmed() -> unmask.Model:
        found = unmask.warm(
            base, train, out.with_name(f"{out.name}-text"), budget=str(warm_text), task=task, settings=of_task, text=text, label=label,
            seed=seed, overwrite=overwrite, resume=resume, stop=stop, progress=progress,
        )  # fmt: skip
        if found.history[-1].get("stopped"):
            raise typer.Exit(130)
        return found

    asked: dict[str, Any] = {
        "task": task, "tune": tune, "settings": of_task, "text": text, "label": label, "overwrite": overwrite,
        "progress": progress, "warm": None if warm_text is None else warmed,
    }  # fmt: skip
    if find_rate:
        found = base.find_rate(train, out, seed=seed, **asked)
        said = f"try --set rate={found['suggested']:g}; the loss by the rate is drawn in {out}/report.html"
        output.done(found, said, json_)
        return
    asked |= {"dev": dev, "seeds": seeds, "stop": stop, "unlabelled": unlabelled}
    if curve is not None:
        found = base.label_curve(train, out, sizes=curve, seed=seed, **asked)
        adapting.show_curve(found, out, json_)
        if found["stopped"]:
            raise typer.Exit(130)
        return
    model = base.adapt(train, out, seed=seed, fresh=fresh, folds=folds, resume=resume, **asked)
    last = model.history[-1]
    if last.get("stopped"):
        said = f"stopped at step {last['step']:,}; the weights so far are in {out}; go on with the same command and --resume"
        output.done(last, said, json_)
        raise typer.Exit(130)
    if model.trials is not None:
        adapting.show_trials(model.trials, out, json_)
    tests = train if train.is_dir() else "TEST"
    output.done(last, f"written to {out}, with report.html; try: unmask evaluate {out} {tests}", json_)
