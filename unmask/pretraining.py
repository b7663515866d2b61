"""Pretraining: a recipe, data and a budget become a run folder."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from unmask.data import Collection, Shards
from unmask.data.loader import Loader, Reader, collate, held_out
from unmask.data.stream_loader import StreamLoader, StreamReader, held_out_streams, shared_out
from unmask.errors import Mistake, require
from unmask.infer.model import Model, open_run
from unmask.recipe import Recipe, from_json, plain, to_json
from unmask.system import check_training, hides, schedule_flops, taken_over, weights
from unmask.text import Tokenizer
from unmask.train import Budget, Leg, Machine, Pace, Trainer, checkpoint, curves, train
from unmask.train.log import Log

MICRO_TOKENS = {"cpu": 8_192, "cuda": 65_536}  # more in one pass is no faster
VALIDATION_TOKENS = {"cpu": 8_192, "cuda": 262_144}
COMPILING_PAYS = 600.0  # seconds of a budget: compiling takes one or two minutes
MANY_VISITS = 10
COLLAPSED = 0.1  # spread of the vectors below which a network tells tokens no longer apart
_SEGMENTS = "backbone.embed.segment.weight"
_FIRST_FILES = {"recipe.json", "tokenizer.json", "run.json", ".recipe.json.draft", ".run.json.draft"}


@dataclass(frozen=True)
class Mixture:
    """Prepared data sets and the weight of each."""

    shards: tuple[Shards, ...]
    weights: tuple[float, ...]
    tokenizer: Tokenizer

    @classmethod
    def open(cls, arguments: Sequence[str | Path]) -> Mixture:
        """From arguments such as data/wiki or data/more:0.3."""
        require(bool(arguments), "no data given: name folders made by 'unmask prepare'")
        shards, weights = [], []
        for argument in map(str, arguments):
            path, _, weight = argument.rpartition(":")
            weighed = bool(path) and not Path(argument).exists() and weight.replace(".", "", 1).isdigit()
            shards.append(Shards(path if weighed else argument))
            weights.append(float(weight) if weighed else 1.0)
        tokenizer = Tokenizer.load(shards[0].folder)
        for other in shards:
            require(
                other.manifest["tokenizer"] == tokenizer.checksum,
                f"{other.folder} was made with another tokenizer than {shards[0].folder}: prepare both with the same one",
            )
        return cls(tuple(shards), tuple(weights), tokenizer)

    def check(self, recipe: Recipe) -> None:
        """Refuse a recipe that hides units whose boundaries were not prepared, or that would leave out a data set."""
        needed = {column for hide in hides(recipe) if hasattr(hide, "units") for column in hide.units.columns}
        for shards in self.shards:
            if "word" in needed and shards.manifest["words"] == "none":
                raise Mistake(
                    f"{recipe.name} hides whole words, and {shards.folder} was prepared without them: prepare it again "
                    "with 'unmask prepare CORPUS --words auto'"
                )
            missing = sorted(needed - {"word"} - set(shards.columns))
            require(
                not missing,
                f"{recipe.name} hides {' and '.join(missing)} units, and {shards.folder} was prepared without them: make a "
                "lexicon with 'unmask lexicon', then 'unmask prepare CORPUS --lexicon FILE'; or set hide.units=Words",
            )
        for stage in recipe.schedule if recipe.arrange.continuous else ():  # type: ignore[attr-defined]
            streams = rows_per_step(recipe, stage.length)
            for shards, count in zip(self.shards, shared_out(list(self.weights), streams), strict=True):
                require(
                    count > 0,
                    f"{shards.folder} would not be read: its weight gives it none of {streams} streams; raise its weight or "
                    "batch_tokens, or leave it out",
                )

    def empty_levels(self, recipe: Recipe) -> list[str]:
        """Levels that the recipe hides and of which the lexicons had no entry."""
        needed = {column for hide in hides(recipe) if hasattr(hide, "units") for column in hide.units.columns}
        files = [file for shards in self.shards for file in shards.manifest.get("lexicon", [])]
        return sorted(level for level in needed - {"word"} if not any(file[level] for file in files))

    def loader(
        self, recipe: Recipe, length: int, seed: int, state: dict[str, Any] | None, rows: int | None = None
    ) -> Loader | StreamLoader:
        """Batches for training. `rows` are those of a step, as many as the recipe says if none are given; the batches
        of streams that go on depend on it."""
        if recipe.arrange.continuous:  # type: ignore[attr-defined]
            streams = rows or rows_per_step(recipe, length)
            found = [self._stream_reader(shards, "train", recipe, length, seed) for shards in self.shards]
            return StreamLoader(found, list(self.weights), streams, state)
        readers = [self._reader(shards, "train", recipe, length, seed) for shards in self.shards]
        return Loader(readers, list(self.weights), state)

    def validation(self, recipe: Recipe, length: int, seed: int, device: str) -> list[Any]:
        """Batches of held-out rows; none if nothing was held out. Those of streams follow each other."""
        if recipe.arrange.continuous:  # type: ignore[attr-defined]
            return self._held_out_streams(recipe, length, seed, device)
        needed = 2 if recipe.arrange.classes else 1  # type: ignore[attr-defined]  # documents; a pair takes two
        sets = [shards for shards in self.shards if shards.documents("holdout") >= needed]
        rows = max(1, VALIDATION_TOKENS[device] // length // max(1, len(sets)))
        try:
            parts = [p for s in sets for p in held_out(self._reader(s, "holdout", recipe, length, seed), rows)]
        except Mistake:  # what was held out is too little for the sentence task, such as one document of one sentence
            return []
        micro = max(1, MICRO_TOKENS[device] // length)
        return [collate([(g, c[i : i + micro])]) for g, c in parts for i in range(0, len(c), micro)]

    def _held_out_streams(self, recipe: Recipe, length: int, seed: int, device: str) -> list[Any]:
        readers = []
        for shards in self.shards:
            try:
                readers.append(self._stream_reader(shards, "holdout", recipe, length, seed))
            except Mistake:  # too little of this data set was held out
                continue
        return held_out_streams(readers, VALIDATION_TOKENS[device] // length, max(1, MICRO_TOKENS[device] // length))

    def visits(self, tokens: float) -> float:
        """How often the most repeated data set will be read by a run of so many tokens."""
        total = sum(self.weights)
        return max(tokens * w / total / max(1, s.tokens) for s, w in zip(self.shards, self.weights, strict=True))

    def _reader(self, shards: Shards, split: str, recipe: Recipe, length: int, seed: int) -> Reader:
        collection = Collection(shards.split(split))
        return Reader(collection, self.tokenizer, recipe.arrange, recipe.layout, length, seed)  # type: ignore[arg-type]

    def _stream_reader(self, shards: Shards, split: str, recipe: Recipe, length: int, seed: int) -> StreamReader:
        collection, arrange, shuffled = Collection(shards.split(split)), recipe.arrange, split == "train"
        return StreamReader(collection, self.tokenizer, arrange, recipe.layout, length, seed, shuffled=shuffled)  # type: ignore[arg-type]


def rows_per_step(recipe: Recipe, length: int) -> int:
    return max(1, recipe.batch_tokens // length)


def machine_for(device: str | None, compiled: bool | None, budget: Budget) -> Machine:
    """The machine to train on: the GPU if there is one, in bfloat16; otherwise the CPU, in float32.

    Compiling is left to the budget if nothing is said: on a GPU, unless that is a few minutes."""
    name = device or ("cuda" if torch.cuda.is_available() else "cpu")
    require(
        not name.startswith("cuda") or torch.cuda.is_available(), f"no GPU here for --device {name}: use --device cpu"
    )
    gpu = name.startswith("cuda")
    if gpu:
        torch.set_float32_matmul_precision("high")
    if compiled is None:
        compiled = gpu and not (budget.kind == "seconds" and budget.amount < COMPILING_PAYS)
    return Machine(device=name, half=gpu, compiled=compiled, recorded=gpu)


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
    notices = _inherit(system, base, recipe) if base is not None else []
    for stage in recipe.schedule:
        mixture.loader(recipe, stage.length, seed, None)  # whatever is wrong is said before `out` is touched
    plan = _resumed(out, asked) if resume else None
    if plan is None:
        _claim(out, overwrite, resume)
        checkpoint.write_text(to_json(recipe), out / "recipe.json")
        mixture.tokenizer.save(out / "tokenizer.json")
    trainer = Trainer(system, recipe.optimise, machine, seed)  # type: ignore[arg-type]
    if plan is None:
        yield {"event": "measuring"}
        plan = asked | _plan(recipe, mixture, trainer, limit, began)
        checkpoint.write_text(json.dumps(plan, indent=1), out / "run.json")
    loaders: list[Loader | StreamLoader] = []
    legs = _legs(recipe, mixture, plan, seed, loaders)
    visits = mixture.visits(plan["steps"] * recipe.batch_tokens)
    yield {"event": "start", "steps": plan["steps"], "tokens": plan["steps"] * recipe.batch_tokens, "visits": visits,
           "machine": asdict(machine), "parameters": sum(p.numel() for p in system.parameters())}  # fmt: skip
    for notice in notices:
        yield {"event": "notice", "text": notice}
    if visits > MANY_VISITS:
        yield {
            "event": "notice",
            "text": f"this run reads the same text {visits:.0f} times: more text would serve it better",
        }
    for level in mixture.empty_levels(recipe):
        yield {
            "event": "notice",
            "text": f"no lexicon of this data holds an entry of the level {level}: words stand for them; add entries with 'unmask lexicon' and "
            "prepare it again",
        }
    held = mixture.validation(recipe, recipe.schedule[0].length, seed, machine.device.split(":")[0])
    if not held:
        yield {"event": "notice", "text": "too little was held out when the data was prepared: no validation"}
    resumed = checkpoint.newest(out) or 0
    if resumed >= plan["steps"]:
        yield {"event": "notice", "text": f"{out} is finished: all {plan['steps']:,} steps are done"}
        return
    log = Log(out, last=checkpoint.last_record(out), tensorboard=tensorboard)
    pace = Pace(log=max(1, min(50, plan["steps"] // 100)), save=max(10, plan["steps"] // 20))
    record: dict[str, Any] = {}
    try:
        for record in train(trainer, legs, folder=out, pace=pace, resume=True,
                            validate=_validator(trainer, held, recipe) if held else None, stop=stop):  # fmt: skip
            log.write(record)
            yield record
        if record.get("validation_spread", 1.0) < COLLAPSED:
            yield {
                "event": "notice",
                "text": f"the network gives all tokens nearly the same vector (spread {record['validation_spread']:.2f}): it "
                "has hardly begun to learn, or has collapsed; give it more time, lower optimise.rate, or raise "
                "optimise.warmup",
            }
        yield {"event": "read", "notes": dict(sum((loader.notes for loader in loaders), Counter()))}
    except torch.OutOfMemoryError:
        raise Mistake(
            f"out of memory with {plan['micro'][0]} rows in one pass: lower schedule.*.length, or take a smaller --size"
        ) from None
    finally:
        log.close()


def continued(recipe: Recipe, base: Model, mixture: Mixture) -> Recipe:
    """The recipe with the network of an earlier run, whose tokenizer must be that of the data."""
    require(
        base.tokenizer.checksum == mixture.tokenizer.checksum,
        f"{mixture.shards[0].folder} was made with another tokenizer than {base.folder}: "
        f"prepare the text again with --tokenizer {base.folder}/tokenizer.json",
    )
    return taken_over(recipe, base.recipe)


def _inherit(system: Any, base: Model, recipe: Recipe) -> list[str]:
    """Take over all weights that both have; segments that are new begin as the one of the layout they stand for.

    Returns what is to be said of the others."""
    missing, left = checkpoint.load_weights(system, base.folder / checkpoint.WEIGHTS, partly=True)
    before, now = base.system.backbone.embed.segment, system.backbone.embed.segment
    if before is not None and len(now.weight) > len(before.weight):
        with torch.no_grad():
            now.weight.copy_(before.weight[list(recipe.see.kinds)])  # type: ignore[attr-defined]
        missing, left = ([name for name in names if name != _SEGMENTS] for names in (missing, left))
    new = [f"fresh weights begin what {base.folder} has not: {_owners(missing)}"] if missing else []
    return [*new, *([f"this run leaves behind what {base.folder} has besides: {_owners(left)}"] if left else [])]


def _owners(names: list[str]) -> str:
    """The modules that tensors belong to, each once."""
    return ", ".join(dict.fromkeys(name.rpartition(".")[0] or name for name in names))


def _claim(out: Path, overwrite: bool, resume: bool) -> None:
    """Make the run folder. Only what a run of ours left behind before its first step goes without --overwrite."""
    begun = resume and out.is_dir() and {path.name for path in out.iterdir()} <= _FIRST_FILES
    require(
        overwrite or begun or not out.exists(),
        f"{out} exists already and is no run to resume: choose another --out, or pass --overwrite"
        if resume
        else f"{out} exists already: choose another --out, go on with --resume, or pass --overwrite",
    )
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)


def _resumed(out: Path, asked: dict[str, Any]) -> dict[str, Any] | None:
    """The plan of the run in `out`, if it got that far; it must be the same run that is asked for."""
    if not (out / "run.json").is_file():
        return None
    try:
        plan: dict[str, Any] = json.loads((out / "run.json").read_text(encoding="utf-8"))
    except ValueError:
        require(checkpoint.newest(out) is None, f"{out / 'run.json'} is damaged: the run cannot be resumed")
        return None
    for name, value in asked.items():
        same = (
            from_json(json.dumps(plan[name])) == from_json(json.dumps(value))
            if name == "recipe"
            else plan[name] == value
        )
        require(same, f"{out} was started with another {name}: give the same to resume it, or choose another --out")
    return plan


def _plan(recipe: Recipe, mixture: Mixture, trainer: Trainer, budget: Budget, began: float) -> dict[str, Any]:
    """What is decided once and stored: rows in one pass, and the number of steps, measured if the budget is time."""
    vocabulary = mixture.tokenizer.vocabulary.size
    steps = budget.steps(batch_tokens=recipe.batch_tokens, flops_per_token=schedule_flops(recipe, vocabulary))
    micro, seconds = [], 0.0
    update = _update_seconds(trainer) if steps is None else 0.0
    for stage in recipe.schedule:

        def batches(rows: int, length: int = stage.length) -> Loader | StreamLoader:
            trainer.memory.clear()  # it is of other rows
            return mixture.loader(recipe, length, trainer.seed, None, rows)

        rows = rows_per_step(recipe, stage.length)
        most = max(1, MICRO_TOKENS[trainer.machine.device.split(":")[0]] // stage.length)
        micro.append(_fit(trainer, batches, min(rows, most)) if trainer.machine.device != "cpu" else min(rows, most))
        if steps is None:
            seconds += stage.share * (_seconds(trainer, batches(micro[-1]), micro[-1]) * rows / micro[-1] + update)
    trainer.memory.clear()
    if steps is None:
        left = budget.amount - (time.monotonic() - began)
        require(left > 0, f"the budget of {budget.amount:.0f} s was spent before the first step: give more time")
        steps = max(1, int(0.94 * left / seconds))  # the rest is for validation and checkpoints
    return {"steps": steps, "micro": micro}


def _fit(trainer: Trainer, batches: Callable[[int], Loader | StreamLoader], rows: int) -> int:
    """The most rows, halving from these, that one pass has memory for; the second pass remembers the first."""
    with trainer.plainly():
        while True:
            try:
                loader = batches(rows)
                for _ in range(2):
                    trainer.gradients([loader.batch(rows)], {}, 0)
                return rows
            except torch.OutOfMemoryError:
                require(rows > 1, "not even one row fits the memory: lower schedule.*.length, or take a smaller --size")
                rows //= 2
                torch.cuda.empty_cache()


def _seconds(trainer: Trainer, loader: Loader | StreamLoader, rows: int) -> float:
    """Time of one pass, after the first ones have compiled and warmed up."""
    for timed in (False, True):
        begin, passes = time.monotonic(), 4
        for _ in range(passes):
            trainer.gradients([loader.batch(rows)], {}, 0)
        if trainer.machine.device != "cpu":
            torch.cuda.synchronize()
        if timed:
            return (time.monotonic() - begin) / passes
    raise AssertionError


def _update_seconds(trainer: Trainer) -> float:
    """Time of one move of the weights, made on copies of them: measuring must not train."""
    copies = torch.nn.ParameterList(p.detach().clone() for p in trainer.system.parameters())
    for parameter in copies:
        parameter.grad = torch.ones_like(parameter)
    optimiser = trainer.optimise.build(copies)
    for timed in (False, True):
        begin = time.monotonic()
        torch.nn.utils.clip_grad_norm_(copies, 1.0)
        optimiser.step()
        if trainer.machine.device != "cpu":
            torch.cuda.synchronize()
        if timed:
            return time.monotonic() - begin
    raise AssertionError


def _legs(
    recipe: Recipe, mixture: Mixture, plan: dict[str, Any], seed: int, opened: list[Loader | StreamLoader]
) -> list[Leg]:
    """The stages as the loop runs them; every loader that it opens is noted in `opened`."""
    legs, share = [], 0.0
    for stage, micro in zip(recipe.schedule, plan["micro"], strict=True):
        share += stage.share

        def open_loader(state: dict[str, Any] | None, length: int = stage.length) -> Loader | StreamLoader:
            opened.append(mixture.loader(recipe, length, seed, state))
            return opened[-1]

        rows = rows_per_step(recipe, stage.length)
        until = max(1, round(share * plan["steps"]))
        legs.append(Leg(until, rows, micro, open_loader, weights(recipe, stage), stage.hide))
    return legs


def _last_weights(recipe: Recipe) -> dict[str, float]:
    """What each loss counts in the end: scores must not change their meaning on the way."""
    return {name: curves.at(weight, 1.0) for name, weight in weights(recipe, recipe.schedule[-1]).items()}


def _validator(trainer: Trainer, held: list[Any], recipe: Recipe) -> Callable[[], dict[str, float]]:
    """Held-out losses with fixed masks; the score is their negative sum, each with its weight.

    A loss of weight 0 is told by its name, and is no part of the sum either."""
    weights, continuous = _last_weights(recipe), recipe.arrange.continuous  # type: ignore[attr-defined]

    @trainer.plainly()
    def validate() -> dict[str, float]:
        totals: dict[str, Any] = {}
        scales: dict[str, float] = {}
        state = None
        for batch in held:
            prepared, _ = trainer.system.prepare(batch.to(trainer.machine.device))
            with trainer.machine.autocast():
                losses, after = trainer.system.step(prepared, state)
            state = after if continuous else None
            for name, loss in losses.items():
                total, count = totals.get(name, (0.0, 0.0))
                totals[name] = (total + loss.total, count + loss.count)
                scales[name] = 1.0 if loss.scale is None else float(loss.scale)
        means = {name: float(total) / max(1.0, float(count)) for name, (total, count) in totals.items()}
        spread = _spread(trainer, held[0])
        score = -sum(mean * weights.get(name, 1.0) * scales[name] for name, mean in means.items())
        losses = {f"loss_{name}": mean for name, mean in means.items()}
        return {
            "score": score,
            "loss": sum(m for n, m in means.items() if weights.get(n, 1.0)),
            "spread": spread,
        } | losses

    return validate


def _spread(trainer: Trainer, batch: Any) -> float:
    """How much the vectors of different tokens differ: 0 if all are one and the same, near 1 if nothing is common."""
    prepared, _ = trainer.system.prepare(batch.to(trainer.machine.device))
    with trainer.machine.autocast():
        vectors = trainer.system.look(prepared).last[prepared.real].float()
    return float((vectors - vectors.mean(0)).norm() / vectors.norm().clamp(min=1e-9))
