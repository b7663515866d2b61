"""Pretraining: a recipe, data and a budget become a run folder."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from unmask.data.loader import Loader
from unmask.data.stream_loader import StreamLoader
from unmask.errors import Mistake, require
from unmask.infer.model import open_run
from unmask.pretraining.folder import claim, resumed
from unmask.pretraining.mixture import Mixture
from unmask.pretraining.onward import continued, inherit
from unmask.pretraining.plan import legs_of, machine_for, planned
from unmask.pretraining.validate import COLLAPSED, validator
from unmask.recipe import Recipe, plain, to_json
from unmask.system import check_training
from unmask.train import Budget, Pace, Trainer, checkpoint, train
from unmask.train.log import Log

__all__ = ["Mixture", "pretrain"]

MANY_VISITS = 10


def pretrain(
    recipe: Recipe,
    data: Sequence[str | Path],
    out: str | Path,
    *,
    budget: str = "20m",
    start: str | Path | None = None,
    seed: int = 0,
    device: str | None = None,
    compiled: bool | None = None,
    resume: bool = False,
    overwrite: bool = False,
    tensorboard: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[dict[str, Any]]:
    """Train a recipe on prepared data, yielding records; the run folder `out` holds all that comes of it.

    `start` names a run to continue from, on new text; `resume` goes on with a run that was cut off.
    """
    began = time.monotonic()
    out, limit = Path(out), Budget.parse(budget)
    machine, mixture = machine_for(device, compiled, limit), Mixture.open(data)
    mixture.check(recipe)
    base = open_run(start, device="cpu") if start is not None else None
    if base is not None:
        require(base.folder.resolve() != out.resolve(), f"{out} is the run to continue from: choose another --out")
        recipe = continued(recipe, base, mixture)
    check_training(recipe)
    asked = {"recipe": plain(recipe), "data": [str(d) for d in data], "start": str(start) if start else None,
             "seed": seed, "budget": budget}  # fmt: skip
    system = recipe.system.build(recipe, mixture.tokenizer.vocabulary, seed)  # type: ignore[attr-defined]
    notices = inherit(system, base, recipe) if base is not None else []
    for stage in recipe.schedule:
        mixture.loader(recipe, stage.length, seed, None)  # whatever is wrong is said before `out` is touched
    plan = resumed(out, asked) if resume else None
    if plan is None:
        claim(out, overwrite, resume)
        checkpoint.write_text(to_json(recipe), out / "recipe.json")
        mixture.tokenizer.save(out / "tokenizer.json")
    trainer = Trainer(system, recipe.optimise, machine, seed)  # type: ignore[arg-type]
    if plan is None:
        yield {"event": "measuring"}
        plan = asked | planned(recipe, mixture, trainer, limit, began)
        checkpoint.write_text(json.dumps(plan, indent=1), out / "run.json")
    loaders: list[Loader | StreamLoader] = []
    legs = legs_of(recipe, mixture, plan, seed, loaders)
    visits = mixture.visits(plan["steps"] * recipe.batch_tokens)
    yield {"event": "start", "steps": plan["steps"], "tokens": plan["steps"] * recipe.batch_tokens, "visits": visits,
           "machine": asdict(machine), "parameters": sum(p.numel() for p in system.parameters())}  # fmt: skip
    for notice in (*notices, *_about_data(mixture, recipe, visits)):
        yield {"event": "notice", "text": notice}
    held = mixture.validation(recipe, recipe.schedule[0].length, seed, machine.device.split(":")[0])
    if not held:
        yield {"event": "notice", "text": "too little was held out when the data was prepared: no validation"}
    if (checkpoint.newest(out) or 0) >= plan["steps"]:
        yield {"event": "notice", "text": f"{out} is finished: all {plan['steps']:,} steps are done"}
        return
    log = Log(out, last=checkpoint.last_record(out), tensorboard=tensorboard)
    pace = Pace(log=max(1, min(50, plan["steps"] // 100)), save=max(10, plan["steps"] // 20))
    record: dict[str, Any] = {}
    try:
        for record in train(trainer, legs, folder=out, pace=pace, resume=True,
                            validate=validator(trainer, held, recipe) if held else None, stop=stop):  # fmt: skip
            log.write(record)
            yield record
        if record.get("validation_spread", 1.0) < COLLAPSED:
            yield {"event": "notice", "text": _about_spread(record["validation_spread"])}
        yield {"event": "read", "notes": dict(sum((loader.notes for loader in loaders), Counter()))}
    except torch.OutOfMemoryError:
        raise Mistake(
            f"out of memory with {plan['micro'][0]} rows in one pass: lower schedule.*.length, or take a smaller --size"
        ) from None
    finally:
        log.close()


def _about_data(mixture: Mixture, recipe: Recipe, visits: float) -> Iterator[str]:
    if visits > MANY_VISITS:
        yield f"this run reads the same text {visits:.0f} times: more text would serve it better"
    for level in mixture.empty_levels(recipe):
        yield (
            f"no lexicon of this data holds an entry of the level {level}: words stand for them; add entries with "
            "'unmask lexicon' and prepare it again"
        )


def _about_spread(spread: float) -> str:
    return (
        f"the network gives all tokens nearly the same vector (spread {spread:.2f}): it has hardly begun to learn, or has "
        "collapsed; give it more time, lower optimise.rate, or raise optimise.warmup"
    )
