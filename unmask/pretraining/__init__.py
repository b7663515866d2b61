"""Pretraining: train a recipe on data within a budget, and write a run folder."""

from __future__ import annotations

import gc
import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from unmask import run
from unmask.axes import Start
from unmask.backbone.auto_dropout import dropout_for
from unmask.errors import UserError, require
from unmask.infer.model import Model, open_run
from unmask.pretraining.choose_dropout import about_dropout, automatic, with_dropout
from unmask.pretraining.collapse import collapses
from unmask.pretraining.components import kept, kept_in, put_components, read_components, with_components
from unmask.pretraining.entity_vectors import graph_of, put_entities, with_entities
from unmask.pretraining.labelled import with_tasks
from unmask.pretraining.measure import (
    Source,
    ends,
    legs_of,
    machine_for,
    micro_rows,
    step_costs,
    step_seconds,
    steps_paid,
)
from unmask.pretraining.mixture import Mixture
from unmask.pretraining.same_request import check_same
from unmask.pretraining.short_budget import TOO_FEW_STEPS, about_shrinking, about_too_few, check_one_step, shrunk
from unmask.pretraining.start_from import about_rate, continued, inherit
from unmask.pretraining.time_budget import TimeBudget, read_plans
from unmask.pretraining.validate import about_validation, validator
from unmask.recipe import Recipe
from unmask.recipe_file import RecipeFile, file_used_by
from unmask.recipe_json import plain
from unmask.system import check_training, step_flops, token_biases
from unmask.train import Budget, Fixed, Machine, Planner, Trainer, checkpoint, train
from unmask.train.log import Log, check_tensorboard, until

__all__ = ["Mixture", "pretrain"]

MANY_VISITS = 10
VALIDATING = 0.01  # largest share of a budget in time for one validation
MEASURING = 0.03  # largest share of a budget in time for measuring; a little more if one pass takes longer


def pretrain(
    recipe: Recipe | None,
    data: Sequence[str | Path],
    out: str | Path,
    *,
    budget: str | None = None,
    start: str | Path | None = None,
    seed: int | None = None,
    device: str | None = None,
    compiled: bool | None = None,
    resume: bool = False,
    overwrite: bool = False,
    tensorboard: bool = False,
    recipe_file: str | Path | None = None,
    at_once: int = 1,
    stop: Callable[[], bool] = lambda: False,
    began: float | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[dict[str, Any]]:
    """Train a recipe on prepared data, write the run folder `out`, and yield records.

    `start`: a run to continue from, on new text. `resume`: continue an interrupted run; then only `out` is needed.
    `recipe_file`: the user's recipe file, if one of these runs uses parts of it. `at_once`: how many runs share the machine.
    The default budget is 20 minutes, the default seed is 0. A budget in time starts at `began`, measured by the clock `now`.
    """
    began, out = now() if began is None else began, Path(out)
    earlier = run.request_of(out) if resume else None
    _check_used(recipe_file, [start] if earlier is None else [out, earlier["start"]])
    file = recipe_file if recipe_file is not None else file_used_by(recipe)
    notices: tuple[str, ...] = ()
    if earlier is None:
        require(recipe is not None, "there is no run to resume in {out}: name a recipe and data to start one", out=out)
        assert recipe is not None
        budget, seed = budget or "20m", seed or 0
    else:
        request = {"recipe": plain(recipe) if recipe else None, "data": [str(d) for d in data] or None,
                   "start": str(Path(start)) if start else None, "seed": seed, "budget": budget}  # fmt: skip
        check_same(out, earlier, {name: value for name, value in request.items() if value is not None})
        budget, seed, data = earlier["budget"], earlier["seed"], earlier["data"]
        recipe, notices = _read_again(out, file)
    limit = Budget.parse(budget)
    mixture = Mixture.open(data)
    machine = machine_for(device, compiled, limit, recipe, mixture)
    if tensorboard:
        check_tensorboard()
    if earlier is None:
        started = Path(start) if start is not None else None
        run.claim(out, overwrite=overwrite, base=started, reads=[s.folder for s in mixture.shards], resume=resume)
        base = open_run(start, device="cpu", recipe=run.file_for(start, file)) if start is not None else None
        notices = base.notices if base is not None else ()
        ready = yield from _new_run(recipe, mixture, machine, data, out, budget, base, seed, at_once, began, now)
    else:
        ready = _resumed(recipe, mixture, machine, earlier, out, limit, seed, began, now, file)
    for notice in notices:
        yield {"event": "notice", "text": notice}
    yield from _trained(ready, mixture, out, seed, tensorboard, stop, now)


def _check_used(recipe_file: str | Path | None, runs: Sequence[str | Path | None]) -> None:
    """Refuse a recipe file that no opened run needs."""
    require(
        recipe_file is None or any(run.files_of(Path(folder)) for folder in runs if folder is not None),
        "no run that is opened uses parts of {recipe_file}: leave --recipe out (in Python, recipe_file=...)",
        recipe_file=recipe_file,
    )


def _read_again(out: Path, file: str | Path | RecipeFile | None) -> tuple[Recipe, tuple[str, ...]]:
    """The recipe of a run that is resumed, and the notices about its recipe file."""
    given = run.given_file(out, run.file_for(out, file))
    return run.read_recipe(out, given), run.notices_of(out, given)


@dataclass(frozen=True)
class Ready:
    """Everything that training needs to begin or to continue."""

    recipe: Recipe
    trainer: Trainer
    micro: list[int]  # rows in one pass, for each stage
    planner: Planner
    notices: list[str]
    held_out: int | None  # most tokens for validation; None: the default number
    filled: float  # the share of the tokens of a step that are no padding


def _new_run(
    recipe: Recipe, mixture: Mixture, machine: Machine, data: Sequence[str | Path], out: Path, budget: str,
    base: Model | None, seed: int, at_once: int, began: float, now: Callable[[], float],
) -> Generator[dict[str, Any], None, Ready]:  # fmt: skip
    """Check, measure, plan, and create the folder. Yields events, returns the run."""
    request = {"recipe": run.as_data(recipe), "data": [str(d) for d in data], "start": str(base.folder) if base else None,
               "seed": seed, "budget": budget}  # fmt: skip
    if base is not None:
        recipe = continued(recipe, base, mixture)
    recipe = with_tasks(with_entities(recipe, mixture), mixture.tokenizer)
    check_training(recipe)
    table, notices = read_components(recipe, mixture.tokenizer) if base is None else (None, [])
    recipe = with_components(recipe, mixture.tokenizer, table)
    system = _networks(recipe, mixture, seed)
    notices += inherit(system, base, recipe) + [about_rate(recipe, base)] if base is not None else []
    notices += put_components(system, recipe, mixture, table)
    _check_data(recipe, mixture, seed)
    if recipe.start is not None and base is None:
        yield {"event": "filling"}
        notices.append(_filled(system, recipe.start, mixture))
    trainer = Trainer(system, recipe.optimise, machine, seed)
    limit = Budget.parse(budget)
    if limit.kind == "seconds" or machine.device != "cpu":
        yield {"event": "measuring"}
    recipe, micro, measured, steps = _measured(recipe, mixture, trainer, limit, at_once, began, now, notices)
    _check_data(recipe, mixture, seed)  # its steps may be smaller now
    if automatic(recipe):  # the number of steps was not known before
        visits = mixture.visits(steps * recipe.step_tokens) * mixture.filled(recipe, seed)
        notices.append(about_dropout(recipe, visits, estimated=limit.kind == "seconds"))
        recipe = with_dropout(recipe, visits)
        if dropout_for("auto", visits) != dropout_for("auto"):  # the networks were built with the usual dropout
            weights = {name: value.cpu() for name, value in system.state_dict().items()}
            del system, trainer
            if machine.device != "cpu":
                gc.collect()  # the trainer refers to itself, and its networks would stay on the GPU
            system = _networks(recipe, mixture, seed)
            system.load_state_dict(weights)
            trainer = Trainer(system, recipe.optimise, machine, seed)
    if base is not None:
        rows = max(stage.length for stage in recipe.schedule)
        recipe = recipe.replace(reads=max(rows, base.recipe.longest))
    if base is None and steps < TOO_FEW_STEPS and limit.kind != "steps":
        notices.append(about_too_few(steps, limit.amount if limit.kind == "seconds" else None))
    held_out = _held_out(recipe, measured, limit) if measured else None
    filled = mixture.filled(recipe, seed)
    more = {run.REQUEST: request | {"micro": micro, "held_out": held_out, "filled": filled} | kept(table)}
    run.create(out, recipe, mixture.tokenizer, more=more, graph=graph_of(recipe, mixture))
    planner = _planner(recipe, mixture, limit, out, measured, began, now) if measured else Fixed(steps)
    return Ready(recipe, trainer, micro, planner, notices, held_out, filled)


def _networks(recipe: Recipe, mixture: Mixture, seed: int) -> Any:
    """The networks with random weights, and with the vectors of the entities of the data."""
    system = recipe.system.build(recipe, mixture.tokenizer.vocabulary, seed)
    put_entities(system, mixture)
    return system


def _filled(system: Any, start: Start, mixture: Mixture) -> str:
    """Write what the network knows about single tokens before training, and return a notice."""
    table, words = system.backbone.embed.token.weight, mixture.tokenizer.spelled()
    return start.fill(table, token_biases(system), words, mixture.sample)


def _check_data(recipe: Recipe, mixture: Mixture, seed: int) -> None:
    """Find errors in the data before anything is measured or written."""
    mixture.check(recipe)
    for stage in recipe.schedule:
        mixture.loader(recipe, stage.length, seed, None, stage.rows, stage=stage)
    # a track may begin late in the training, and its first rows say whether the data has what it needs
    late = {(name, stage.length): stage for stage in recipe.schedule for name, turns in stage.turns.items() if turns}
    for (name, length), stage in late.items():
        alone = replace(stage, turns={name: 1.0})
        try:
            mixture.loader(recipe, length, seed, None, 1, stage=alone).batch(1)
        except UserError as error:
            raise error.of_track(name) from error


def _measured(
    recipe: Recipe, mixture: Mixture, trainer: Trainer, limit: Budget, at_once: int, began: float, now: Callable[[], float],
    notices: list[str],
) -> tuple[Recipe, list[int], float, int]:  # fmt: skip
    """The recipe, with smaller steps if the budget allows too few; rows in one pass; seconds per step (0.0 if the budget is
    not in time); and the number of steps."""
    found = _steps(recipe, mixture, trainer, limit, began, now)
    # runs that share the machine may be measured while the others wait, and would then expect too many steps
    expected = found[2] // at_once if limit.kind == "seconds" else found[2]
    smaller = shrunk(recipe, expected, trainer.machine.device) if limit.kind != "steps" else recipe
    if smaller is not recipe:
        notices.append(about_shrinking(recipe, smaller, expected))
        recipe, found = smaller, _steps(smaller, mixture, trainer, limit, began, now)
    check_one_step(recipe, limit, step_costs(recipe, mixture)[1])
    require(
        found[2] > 0,
        (
            "one step of {name} {size} takes about {found:.2g} s here, and starting and measuring took {spent:.2g} s of the "
            "budget of {amount:g} s: give at least --budget {least:.0f}s"
        ),
        name=recipe.name,
        size=recipe.size,
        found=found[1],
        spent=now() - began,
        amount=limit.amount,
        least=2 * (now() - began) + 20 * found[1],
    )
    return recipe, *found


def _steps(
    recipe: Recipe, mixture: Mixture, trainer: Trainer, limit: Budget, began: float, now: Callable[[], float]
) -> tuple[list[int], float, int]:
    """Rows in one pass, seconds per step if the budget is in time, and the number of steps (0 if no step fits)."""
    micro, steps = micro_rows(recipe, mixture, trainer), steps_paid(recipe, mixture, limit)
    if steps is not None:
        return micro, 0.0, steps
    measured = step_seconds(recipe, mixture, trainer, micro[0], limit.amount * MEASURING)
    first, mean = step_costs(recipe, mixture)
    return micro, measured, max(0, int((limit.amount - (now() - began)) / (measured * mean / first)))


def _held_out(recipe: Recipe, measured: float, limit: Budget) -> int:
    """The number of tokens for validation, so that it takes a small share of a budget in time. A forward pass takes about a
    third of a step."""
    stage = recipe.schedule[0]
    found = VALIDATING * limit.amount * 3 * stage.rows * stage.length / measured
    return 2 ** int(math.log2(max(found, 1)))  # a power of 2, so that runs of about equal speed have equal losses


def _planner(
    recipe: Recipe, mixture: Mixture, limit: Budget, out: Path, measured: float, began: float, now: Callable[[], float],
    earlier: float = 0.0,
) -> TimeBudget:  # fmt: skip
    costs = step_flops(recipe, mixture.tokenizer.vocabulary.size)
    return TimeBudget(limit.amount, ends(recipe), costs, out, began=began, step_seconds=measured,
                 event_seconds=VALIDATING * limit.amount, earlier=earlier, now=now)  # fmt: skip


def _resumed(
    recipe: Recipe, mixture: Mixture, machine: Machine, earlier: dict[str, Any], out: Path, limit: Budget, seed: int,
    began: float, now: Callable[[], float], file: str | Path | RecipeFile | None,
) -> Ready:  # fmt: skip
    """Everything that training needs to continue an interrupted run, with its plan so far."""
    system = _networks(recipe, mixture, seed)
    fresh = checkpoint.newest(out) is None  # it was interrupted before it saved its weights
    if earlier["start"] and fresh:
        base = open_run(earlier["start"], device="cpu", recipe=run.file_for(earlier["start"], file))
        inherit(system, base, recipe)
    elif recipe.start is not None and fresh:
        _filled(system, recipe.start, mixture)
    if fresh:
        put_components(system, recipe, mixture, kept_in(earlier))
    trainer = Trainer(system, recipe.optimise, machine, seed)
    if limit.kind == "seconds":
        state = checkpoint.last_state(out) or {"spent": 0.0, "seconds": 0.0, "step": 0}
        plans = read_plans(out)
        measured = (
            state["seconds"] / state["step"] if state["step"] else limit.amount / (plans[0].steps if plans else 1_000)
        )
        planner: Planner = _planner(recipe, mixture, limit, out, measured, began, now, state["spent"])
    else:
        planner = Fixed(steps_paid(recipe, mixture, limit) or 1)
    filled = earlier.get("filled", 1.0)  # runs of older versions do not have it
    return Ready(recipe, trainer, earlier["micro"], planner, [], earlier.get("held_out"), filled)


def _trained(
    ready: Ready, mixture: Mixture, out: Path, seed: int, tensorboard: bool, stop: Callable[[], bool],
    now: Callable[[], float],
) -> Iterator[dict[str, Any]]:  # fmt: skip
    recipe, trainer, machine = ready.recipe, ready.trainer, ready.trainer.machine
    done = checkpoint.newest(out) or 0
    steps = ready.planner.plan(done).steps
    tokens = steps * recipe.step_tokens
    visits = mixture.visits(tokens) * ready.filled
    yield {"event": "start", "steps": steps, "tokens": tokens, "visits": visits, "machine": asdict(machine),
           "estimated": ready.planner.left() is not None,
           "parameters": sum(p.numel() for p in trainer.system.parameters())}  # fmt: skip
    for notice in (*ready.notices, *_about_data(mixture, recipe, visits)):
        yield {"event": "notice", "text": notice}
    held = mixture.validation(recipe, recipe.schedule[0].length, seed, machine.device.split(":")[0], ready.held_out)
    require(
        bool(held) or trainer.average is None or not trainer.average.waits,
        "optimise.average=Triggered begins when the held-out loss stops falling, but too little text was held out for a "
        "validation: prepare the data with a larger --holdout, or set optimise.average=none",
    )
    for notice in about_validation(held, recipe):
        yield {"event": "notice", "text": notice}
    if done >= steps:
        yield {"event": "notice", "text": f"{out} is finished: all {steps:,} steps are done"}
        return
    loaders: list[Source] = []
    legs = legs_of(recipe, mixture, ready.micro, seed, loaders)
    log = Log(out, kept=until(out, checkpoint.last_record(out)), tensorboard=tensorboard)
    said: set[str] = set()
    try:
        for record in train(trainer, legs, ready.planner, folder=out, resume=True, stop=stop, clock=now,
                            validate=validator(trainer, held, recipe) if held else None):  # fmt: skip
            new = {name: text for name, text in collapses(record, recipe).items() if name not in said}
            said |= set(new)
            log.write(record | ({"notices": list(new.values())} if new else {}))
            yield record
            for text in new.values():
                yield {"event": "notice", "text": text}
        parts = {part: notes for loader in loaders for part, notes in loader.notes.items()}
        yield {"event": "read", "notes": dict(sum(parts.values(), Counter()))}
    except torch.OutOfMemoryError:
        raise UserError(
            "out of memory with {micro} rows in one pass: lower schedule.*.length, or choose a smaller --size",
            micro=ready.micro[0],
        ) from None
    finally:
        log.close()


def _about_data(mixture: Mixture, recipe: Recipe, visits: float) -> Iterator[str]:
    if visits > MANY_VISITS:
        yield f"this run reads the same text {visits:.0f} times: give more text for a better model"
    for level in mixture.empty_levels(recipe):
        yield (
            f"no lexicon of this data has an entry of the level {level}, so words are used instead: add entries with "
            "'unmask lexicon' and prepare the data again"
        )
    if mixture.lacks_links(recipe):
        yield (
            "no text of this data names an entity of its graph, so the run learns nothing about entities: prepare the text with a "
            "graph whose names it contains (unmask prepare --graph)"
        )
