"""What every adaptation shares: a run folder, the steps over given examples, the best weights kept."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from unmask.data.given import Examples
from unmask.data.pack import Rows
from unmask.errors import require
from unmask.infer.model import Model
from unmask.recipe import to_json
from unmask.system import weights
from unmask.tasks._training import Plan
from unmask.train import Leg, Machine, Pace, Trainer, checkpoint, train
from unmask.train.log import Log


def claim(base: Model, out: Path, overwrite: bool) -> None:
    """Refuse a folder that may not be written, before any work is done."""
    require(overwrite or not out.exists(), f"{out} exists already: choose another --out, or pass --overwrite")
    require(base.folder.resolve() != out.resolve(), f"{out} is the run to adapt: choose another --out")


def of_dev(notes: Counter[str]) -> dict[str, int]:
    """What is told of the examples that the best epoch is chosen by."""
    return {f"{name} (dev)": count for name, count in notes.items()}


def rounds(
    model: Model,
    rows: Rows,
    plan: Plan,
    *,
    notes: Counter[str],
    seed: int,
    start: dict[str, Any],
    validate: Callable[[Trainer], dict[str, float]] | None,
    stop: Callable[[], bool],
) -> Iterator[dict[str, Any]]:
    """Train a model on the rows of its task, yielding records; its folder is made anew, and holds the best weights."""
    out, system = model.folder, model.system
    shutil.rmtree(out, ignore_errors=True)  # nothing was wrong: what is there may go
    out.mkdir(parents=True)
    checkpoint.write_text(to_json(model.recipe), out / "recipe.json")
    model.tokenizer.save(out / "tokenizer.json")
    machine = Machine(device=model.device, half=model.device != "cpu")
    trainer = Trainer(system, model.recipe.optimise, machine, seed)  # type: ignore[arg-type]
    steps = max(1, round(plan.epochs * len(rows) / plan.examples))
    per_epoch = max(1, -(-len(rows) // plan.examples))
    yield {"event": "start", "steps": steps, "examples": len(rows), "notes": dict(notes)} | start
    losses = weights(model.recipe, model.recipe.schedule[0])
    legs = [Leg(steps, plan.examples, plan.examples, lambda state: Examples(rows, seed, state), losses)]
    log = Log(out)
    try:
        for record in train(trainer, legs, folder=out, pace=Pace(log=max(1, min(50, steps // 20)), save=per_epoch),
                            validate=(lambda: validate(trainer)) if validate else None, stop=stop):  # fmt: skip
            log.write(record)
            yield record
    finally:
        log.close()
    if not (out / checkpoint.WEIGHTS).is_file():  # stopped before the first validation
        checkpoint.save_weights(system, out / checkpoint.WEIGHTS)
    checkpoint.drop_state(out)  # an adaptation is short: its weights are all that is kept
