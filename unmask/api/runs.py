"""The functions that give a model: load opens a run, pretrain makes one, import_hf brings one in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from unmask import convert, infer, pretraining, recipes, run, screen
from unmask.api.choose_recipe import named, to_continue
from unmask.api.from_text import Reading, Records, check_cached, data_from_text, is_text
from unmask.api.model import Model
from unmask.api.paths import Paths, listed
from unmask.api.quickening import opened_fast
from unmask.api.stands_for import commands
from unmask.comparison.entry import read_settings
from unmask.errors import require
from unmask.progress import Progress, Tell, follow, tell_notice
from unmask.recipe import Recipe
from unmask.recipe_file import RecipeFile, file_used_by, is_path
from unmask.system import with_network_of
from unmask.train import Budget


def load(
    folder: str | Path, *, device: str | None = None, half: bool = False, fast: bool = False, task: str | None = None,
    recipe: str | Path | RecipeFile | None = None, tell: Tell = None,
) -> Model:  # fmt: skip
    """The model in a run folder; `half`: in bfloat16, for speed on a GPU. `fast`: an encoder with weights in 8 bits, for
    speed on a CPU; the file for it is made once and kept in the run.

    `task`: of a model with several tasks, the name of one. `recipe`: the .py file of the run's recipe, if the run uses parts
    of it. `tell`: a function for notices; without one they are warnings."""
    require(not (fast and half), "--fast is for 8 bits and --half for 16: give one of them")
    model = infer.open_run(folder, device="cpu" if fast and device is None else device, half=half, recipe=recipe)
    for notice in model.notices:
        tell_notice(notice, tell)
    found = Model.of(opened_fast(model, tell) if fast else model)
    return found if task is None else found.task(task)


def pretrain(
    recipe: str | Recipe | None, data: Paths, out: str | Path, *, size: str | None = None, variant: str = "paper",
    settings: Sequence[str] = (), budget: str | None = None, start: str | Path | None = None, seed: int | None = None,
    device: str | None = None, compiled: bool | None = None, resume: bool = False, overwrite: bool = False,
    tensorboard: bool = False, recipe_file: str | Path | None = None, stop: Callable[[], bool] = lambda: False,
    began: float | None = None, tokenizer: str | Path | None = None, lexicon: Paths = (),
    graph: str | Path | None = None, lines: bool = False, encoding: str | None = None, holdout: float | None = None, like: str | Path | None = None, progress: Progress = True,
) -> Model:  # fmt: skip
    """Pretrain a recipe on text or on prepared data, of size base or, from `start`, of that run's size.

    `recipe`: a name, a .py file such as "./mine.py", or a Recipe. `recipe_file`: the .py file of the recipe of the run
    that `start` or `resume` opens, if that run uses parts of it. `like`: a file of settings that `unmask.compare` found, in
    place of a recipe; `settings` are added to it.

    `data`: text (files, folders or globs) or folders made by `unmask.prepare`. From text, a tokenizer of the recipe's kind
    is trained, and the text is prepared; both are kept in a cache (UNMASK_CACHE, by default ~/.cache/unmask) until the text
    changes. `tokenizer`: a tokenizer.json or a run folder whose tokenizer is used instead; with `start` it is that of
    `start`. `lexicon`, `graph`, `lines`, `encoding`, `holdout`: how text is read, as for `unmask.prepare`.

    `budget`: 20m (the default), 2h, 1e9tok, 5000steps or 1e17flop. `start`: a run to continue from, on new text. `resume`:
    go on with a run that was cut off; `pretrain(None, (), out, resume=True)` is enough. `compiled`: None compiles on a GPU
    where it pays. `stop`: asked after each step; when it is true, the state is saved, training ends, and the last record of
    the model's `history` has `stopped`. `began`: when a budget in time began, by `time.monotonic`; by default now. If text
    is given, a budget in time begins when the text is prepared.
    `progress`: draw as the command line does (True), draw nothing and warn of notices (False), or a function that is called
    with every record."""
    if like is not None:
        words = [one for one in listed(data) if str(one) in recipes.names() and not Path(one).exists()]
        require(
            recipe is None and size is None and variant == "paper" and not words,
            "--like names the recipe, its size and its variant: leave them out",
        )
        entry = read_settings(Path(like))
        recipe, size, variant, settings = entry.recipe, entry.size, entry.variant, (*entry.settings, *settings)
    _check_request(recipe, data, size, variant, settings, start, resume, overwrite)
    Budget.parse(budget or "20m")
    chosen, given = None, listed(data)
    if recipe is not None and start is not None:
        chosen = to_continue(recipe, start, size=size, variant=variant, settings=settings, recipe_file=recipe_file)
    elif recipe is not None:
        chosen = named(recipe, size=size, variant=variant, settings=settings)
    reading = Reading(
        Path(tokenizer) if tokenizer else None,
        tuple(map(Path, listed(lexicon))),
        Path(graph) if graph else None,
        lines,
        encoding,
        holdout,
    )
    texts = is_text(given)
    if resume and not given:
        check_cached(Path(out))
    require(
        texts or not reading.given,
        "--{option} says how text is read, but no text is given: leave --{option} out",
        option=" and --".join(reading.given),
    )
    train = partial(
        pretraining.pretrain, chosen, out=out, budget=budget, start=start, seed=seed, device=device, compiled=compiled,
        resume=resume, overwrite=overwrite, tensorboard=tensorboard, recipe_file=recipe_file, stop=stop,
    )  # fmt: skip
    if texts and chosen is not None:
        read_by = chosen
        if start is not None:  # the network comes from that run, and may read more columns than that of the recipe
            named_file = recipe if isinstance(recipe, str) and is_path(recipe) else None
            read_by = with_network_of(chosen, run.recipe_to_continue(Path(start), recipe_file or named_file))
        others = {"--size": size, "--budget": budget, "--from": start, "--seed": seed, "--device": device,
                  "--compile": compiled is True, "--no-compile": compiled is False, "--tensorboard": tensorboard,
                  "--recipe": recipe_file, "--overwrite": overwrite, "--resume": resume, "--out": out}  # fmt: skip
        shown = partial(commands, recipe, variant=variant, settings=settings, others=others)
        made = data_from_text(
            read_by, given, Path(out), reading, start=Path(start) if start else None, resume=resume, overwrite=overwrite,
            stop=stop, shown=shown,
        )  # fmt: skip
        records = _after(made, train)
    else:
        records = train(given, began=began)
    title = f"{chosen.name} {chosen.size}" if chosen else Path(out).name
    follow(records, progress, partial(screen.training, title=title))
    own = run.file_for(out, recipe_file or file_used_by(chosen))
    return Model.of(infer.open_run(out, device=device, recipe=own))


def _after(made: Records, train: Callable[..., Iterator[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Prepare text, then train on it. A budget in time begins with the training."""
    folder = yield from made
    yield from train([folder], began=time.monotonic())


def _check_request(
    recipe: str | Recipe | None, data: Paths, size: str | None, variant: str, settings: Sequence[str],
    start: str | Path | None, resume: bool, overwrite: bool,
) -> None:  # fmt: skip
    """Refuse options that contradict each other."""
    require(not (resume and overwrite), "--resume goes on with a run and --overwrite replaces it: give one of them")
    require(
        recipe is not None or (resume and not size and not start and not settings and variant == "paper"),
        "name a recipe and data: unmask pretrain RECIPE DATA --out RUN; only --resume needs neither",
    )
    require(
        recipe is None or bool(data),
        "no data given: name text (files, folders or globs), or folders made by 'unmask prepare'",
    )


def import_vectors(
    file: str | Path,
    out: str | Path,
    *,
    settings: Sequence[str] = (),
    device: str | None = None,
    overwrite: bool = False,
) -> tuple[Model, convert.VectorReport]:
    """Make a run of a file of word vectors, to be adapted as every run is: a baseline without context.

    `settings`: changes of its recipe, such as "system.backbone=SpelledBiLSTM(embedding=100)" for a network above the vectors,
    with random weights."""
    report = convert.import_vectors(file, out, settings=settings, overwrite=overwrite)
    return load(out, device=device), report


def import_hf(
    folder: str | Path, out: str | Path, *, generator: str | Path | None = None, device: str | None = None,
    overwrite: bool = False,
) -> tuple[Model, convert.Report]:  # fmt: skip
    """Bring in a model in Hugging Face format; returns it and what was loaded, missing and left over.

    `generator`: of ELECTRA, the folder of the generator; `folder` is then that of the discriminator."""
    report = convert.import_hf(folder, out, generator=generator, overwrite=overwrite)
    return load(out, device=device), report
