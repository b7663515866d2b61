"""The functions that give a model: load opens a run, pretrain makes one, import_hf brings one in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from unmask import convert, infer, pretraining, run, screen
from unmask.api.choose_recipe import named, to_continue
from unmask.api.model import Model
from unmask.api.paths import Paths, listed
from unmask.errors import require
from unmask.progress import Progress, Tell, follow, tell_notice
from unmask.recipe import Recipe
from unmask.recipe_file import RecipeFile, file_used_by


def load(
    folder: str | Path, *, device: str | None = None, half: bool = False, recipe: str | Path | RecipeFile | None = None,
    tell: Tell = None,
) -> Model:  # fmt: skip
    """The model in a run folder; `half`: in bfloat16, for speed on a GPU.

    `recipe`: the .py file of the run's recipe, if the run uses parts of it. `tell`: a function for notices; without one
    they are warnings."""
    model = infer.open_run(folder, device=device, half=half, recipe=recipe)
    for notice in model.notices:
        tell_notice(notice, tell)
    return Model.of(model)


def pretrain(
    recipe: str | Recipe | None, data: Paths, out: str | Path, *, size: str | None = None, variant: str = "paper",
    settings: Sequence[str] = (), budget: str | None = None, start: str | Path | None = None, seed: int | None = None,
    device: str | None = None, compiled: bool | None = None, resume: bool = False, overwrite: bool = False,
    tensorboard: bool = False, recipe_file: str | Path | None = None, stop: Callable[[], bool] = lambda: False,
    began: float | None = None, progress: Progress = True,
) -> Model:  # fmt: skip
    """Pretrain a recipe on prepared data, of size base or, from `start`, of that run's size.

    `recipe`: a name, a .py file such as "./mine.py", or a Recipe. `recipe_file`: the .py file of the recipe of the run
    that `start` or `resume` opens, if that run uses parts of it.

    `budget`: 20m (the default), 2h, 1e9tok, 5000steps or 1e17flop. `start`: a run to continue from, on new text. `resume`:
    go on with a run that was cut off; `pretrain(None, (), out, resume=True)` is enough. `compiled`: None compiles on a GPU
    where it pays. `stop`: asked after each step; when it is true, the state is saved, training ends, and the last record of
    the model's `history` has `stopped`. `began`: when a budget in time began, by `time.monotonic`; by default now.
    `progress`: draw as the command line does (True), draw nothing and warn of notices (False), or a function that is called
    with every record."""
    _check_request(recipe, data, size, variant, settings, start, resume, overwrite)
    chosen = None
    if recipe is not None and start is not None:
        chosen = to_continue(recipe, start, size=size, variant=variant, settings=settings, recipe_file=recipe_file)
    elif recipe is not None:
        chosen = named(recipe, size=size, variant=variant, settings=settings)
    records = pretraining.pretrain(
        chosen, listed(data), out, budget=budget, start=start, seed=seed, device=device, compiled=compiled, resume=resume,
        overwrite=overwrite, tensorboard=tensorboard, recipe_file=recipe_file, stop=stop, began=began,
    )  # fmt: skip
    title = f"{chosen.name} {chosen.size}" if chosen else Path(out).name
    follow(records, progress, partial(screen.training, title=title))
    own = run.file_for(out, recipe_file or file_used_by(chosen))
    return Model.of(infer.open_run(out, device=device, recipe=own))


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
    require(recipe is None or bool(data), "no data given: name folders made by 'unmask prepare'")


def import_hf(
    folder: str | Path, out: str | Path, *, generator: str | Path | None = None, device: str | None = None,
    overwrite: bool = False,
) -> tuple[Model, convert.Report]:  # fmt: skip
    """Bring in a model in Hugging Face format; returns it and what was loaded, missing and left over.

    `generator`: of ELECTRA, the folder of the generator; `folder` is then that of the discriminator."""
    report = convert.import_hf(folder, out, generator=generator, overwrite=overwrite)
    return load(out, device=device), report
