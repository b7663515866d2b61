"""What a comparison is asked to do, and the jobs that follow from it. Kept in `compare.json`; it may grow over days."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from unmask.comparison.entry import Entry, check_entries, own_seeds, parse
from unmask.data.shards import MANIFEST
from unmask.errors import UserError, require
from unmask.pretraining.mixture import weighed
from unmask.text.atomic_write import drafted
from unmask.train import Budget

REQUEST = "compare.json"
FORMAT = 2  # 2: data may be text, which is prepared for each entry
_FIXED = {
    "data": "--data",
    "tasks": "--tasks",
    "task_seeds": "--task-seeds",
    "sweep": "--sweep",
    "sweep_by": "--sweep-by",
}


@dataclass(frozen=True)
class Prepared:
    """The data of one entry that was made from text, with the entry's own tokenizer."""

    folder: str
    options: tuple[str, ...] = ()  # of 'unmask pretrain': how the text is read

    @classmethod
    def of(cls, values: dict[str, Any] | None) -> Prepared | None:
        """The data of these values, as JSON holds them."""
        return cls(values["folder"], tuple(values["options"])) if values else None


@dataclass(frozen=True)
class Job:
    """One run: a pretraining, and everything that is measured of it."""

    entry: Entry  # with the settings of this run
    budget: str
    seed: int
    tuning: bool = False  # a run of the sweep, which only chooses settings
    prepared: Prepared | None = None  # its data, if it was made from text

    @classmethod
    def of(cls, values: dict[str, Any]) -> Job:
        """The job of these values, as JSON holds them."""
        return cls(**values | {"entry": Entry.of(values["entry"]), "prepared": Prepared.of(values["prepared"])})

    @property
    def name(self) -> str:
        """Its folder under `runs`."""
        tuned = f"sweep/{self.entry.folder}" if self.tuning else self.entry.folder
        return f"{tuned}/{self.budget}/seed{self.seed}"


@dataclass(frozen=True)
class Asked:
    """An entry, with the budgets and the number of pretraining seeds that were asked for."""

    entry: Entry
    budgets: tuple[str, ...]
    seeds: int
    prepared: Prepared | None = None

    def job(self, entry: Entry, budget: str, seed: int, *, tuning: bool = False) -> Job:
        """A run of this entry; `entry`: with its settings."""
        return Job(entry, budget, seed, tuning, self.prepared)


def parse_asked(
    text: str, *, size: str, settings: Sequence[str] = (), budgets: tuple[str, ...], seeds: int
) -> Asked:  # fmt: skip
    """The entry `roberta+seeds=2`. `seeds` holds for every entry; its own number wins, and is no part of its name."""
    plain, own = own_seeds(text)
    return Asked(parse(plain, size=size, settings=settings), budgets, seeds if own is None else own)


@dataclass(frozen=True)
class Request:
    """Everything that decides the numbers of a comparison."""

    data: tuple[str, ...]  # prepared data, or text
    asked: tuple[Asked, ...]
    tasks: str | None = None  # the folder of tasks
    task_seeds: int = 3  # adapting seeds
    sweep: tuple[str, ...] = ()  # settings with several values: optimise.rate=3e-4,7e-4
    sweep_by: str = "loss"  # how the sweep chooses: the held-out loss, or the score of a task
    device: str | None = None
    untrained: bool = True  # whether copies with random weights are adapted too
    format: int = field(default=FORMAT, kw_only=True)

    def data_of(self, prepared: Prepared | None) -> tuple[str, ...]:
        """The prepared data of a run. `prepared`: what was made for it from text."""
        return (prepared.folder,) if prepared else self.data

    def has_data(self, job: Job) -> bool:
        """Whether its prepared data is still there."""
        return all(file.is_file() for file in self._manifests(job))

    def data_key(self, job: Job) -> str:
        """A hash of its prepared data: results of another key are measured again."""
        return hashlib.sha256(b"".join(file.read_bytes() for file in self._manifests(job))).hexdigest()[:16]

    def _manifests(self, job: Job) -> list[Path]:
        return [Path(weighed(one)[0]) / MANIFEST for one in self.data_of(job.prepared)]

    def joined(self, more: Request) -> Request:
        """This request with what another asks for in addition. What decides the numbers must be the same."""
        kinds = {Budget.parse(budget).kind for one in (*self.asked, *more.asked) for budget in one.budgets}
        require(
            len(kinds) == 1,
            "the budgets of a comparison have one unit, and this one has budgets in {kinds}: give the same unit, or another "
            "--out",
            kinds=" and ".join(sorted(kinds)),
        )
        known = {Budget.parse(budget).amount: budget for one in self.asked for budget in one.budgets}
        for name, option in _FIXED.items():
            before, now = getattr(self, name), getattr(more, name)
            require(
                before == now,
                "this comparison was begun with {option} {before}, and now has {now}: give the same, or another --out",
                option=option,
                before=_spelled(before),
                now=_spelled(now),
            )
        asked = {one.entry.name: one for one in self.asked}
        for one in more.asked:  # a budget keeps its first spelling: 60s is 1m
            spelled = tuple(known.get(Budget.parse(budget).amount, budget) for budget in one.budgets)
            one = replace(one, budgets=spelled)
            old = asked.get(one.entry.name)
            require(
                old is None or old.entry == one.entry,
                "the entry {name} of this comparison had other settings: give it another name, or another --out",
                name=one.entry.name,
            )
            if old is not None:
                one = Asked(one.entry, _merged(old.budgets, one.budgets), max(old.seeds, one.seeds), one.prepared)
            asked[one.entry.name] = one
        check_entries([one.entry for one in asked.values()])
        return replace(self, asked=tuple(asked.values()), device=more.device, untrained=more.untrained)

    def write(self, folder: Path) -> None:
        with drafted(folder / REQUEST) as draft:
            draft.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(folder: Path) -> Request:
    """The request of a comparison."""
    file = folder / REQUEST
    require(
        file.is_file(),
        "{folder} holds no comparison: name recipes and --data to begin one there",
        folder=folder,
    )
    try:
        values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        require(
            values["format"] <= FORMAT,
            "{file} has format {format}, which a newer version of unmask wrote: update unmask",
            file=file,
            format=values["format"],
        )
        asked = tuple(
            Asked(Entry.of(one["entry"]), tuple(one["budgets"]), one["seeds"], Prepared.of(one.get("prepared")))
            for one in values.pop("asked")
        )  # format 1 has no prepared
        data, sweep = tuple(values.pop("data")), tuple(values.pop("sweep"))
        return Request(data, asked, sweep=sweep, **(values | {"format": FORMAT}))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError("{file} is damaged ({error}): begin again with another --out", file=file, error=error) from None


def budgets(text: str) -> tuple[str, ...]:
    """The budgets of `5m,20m`, all of one unit, the smallest first."""
    found = [one.strip() for one in text.split(",") if one.strip()]
    parsed = [Budget.parse(one) for one in found]
    require(
        bool(found) and len({one.kind for one in parsed}) == 1,
        "the budgets of a comparison have one unit, such as 5m,20m or 1e8tok,4e8tok, got {text!r}",
        text=text,
    )
    require(len({one.amount for one in parsed}) == len(parsed), "two budgets are the same: {text}", text=text)
    return _merged((), found)


def _merged(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    amounts = {Budget.parse(one).amount: one for one in (*others, *some)}
    return tuple(amounts[amount] for amount in sorted(amounts))


def _spelled(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value or "none")
