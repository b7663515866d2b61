"""Draw what the command line shows: progress during a job, tables at its end.

Results go to stdout, everything else to stderr. With `--json`, only notices, notes and errors go to stderr, one JSON line
each: {"event": "notice", "text": ...}, {"notes": {text: count}} and {"error": ...}.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NoReturn

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from unmask.counted import counted
from unmask.score_names import score_name

_NUMBER = re.compile(r"[-+±.,%e\d\s]*")
_WIDE = 10_000  # columns; wider than any line or table


def _console(stderr: bool) -> Console:
    """A console. In a file or a pipe, lines are not wrapped and a table is as wide as it needs, unless COLUMNS is set."""
    made = Console(stderr=stderr, highlight=False, soft_wrap=not stderr)  # a bar must not be wider than the screen
    if made.is_terminal or made.is_jupyter or "COLUMNS" in os.environ:
        return made
    return Console(stderr=stderr, highlight=False, soft_wrap=True, width=_WIDE)


out, err = _console(stderr=False), _console(stderr=True)


def training(records: Iterable[dict[str, Any]], title: str, quiet: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the records and draw them as a progress bar. Without a terminal, print a plain line every ten seconds."""
    with drawn(title, quiet=quiet) as show:
        for record in records:
            show(record)
            yield record


@contextmanager
def drawn(title: str, *, quiet: bool = False) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that draws the records of a training."""
    drawer = _Live(title) if err.is_terminal and not quiet else _Lines(title, quiet)
    with drawer:
        yield drawer.show


class _Live:
    def __init__(self, title: str) -> None:
        self.bar = Progress(
            TextColumn("[bold]{task.description}"), BarColumn(bar_width=24), TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[text]}"), TextColumn("{task.fields[left]}"), console=err,
        )  # fmt: skip
        self.task = self.bar.add_task(title, total=None, text="", left="")
        self.speed = _Speed()

    def __enter__(self) -> None:
        self.bar.start()

    def __exit__(self, *_: Any) -> None:
        self.bar.stop()

    def show(self, record: dict[str, Any]) -> None:
        if record.get("event") == "preparing":
            self.bar.update(self.task, text=_preparing(record))
        elif "event" in record:
            _announce(record)
            if "steps" in record:
                self.bar.update(self.task, total=record["steps"], text="")
        else:
            _tell_epoch(record)
            self.bar.update(self.task, completed=record["step"], total=record["steps"], text=_line(record, self.speed),
                            left=f"left {duration(_left(record))}")  # fmt: skip


class _Lines:
    def __init__(self, title: str, quiet: bool) -> None:
        self.title, self.quiet, self.shown, self.speed = title, quiet, 0.0, _Speed()
        self.preparing = ""  # the last step of preparing text that was shown

    def __enter__(self) -> None: ...

    def __exit__(self, *_: Any) -> None: ...

    def show(self, record: dict[str, Any]) -> None:
        if self.quiet:
            pass_on(record)
            return
        if record.get("event") == "preparing":
            if record["text"] != self.preparing:
                self.preparing = record["text"]
                err.print(f"[dim]{escape(record['text'])}[/]")
            return
        if "event" in record:
            _announce(record)
            return
        _tell_epoch(record)
        if "epoch" in record:
            return
        text = _line(record, self.speed)
        if record.get("done") or record.get("stopped") or time.monotonic() - self.shown > 10:
            self.shown = time.monotonic()
            err.print(f"{self.title} step {record['step']:,}/{record['steps']:,} {text} left {duration(_left(record))}")


def _preparing(record: dict[str, Any]) -> str:
    """The step of preparing text, and how far it is."""
    if "bytes_total" not in record:
        return str(record["text"])
    return f"{record['text']}: {record['bytes'] / max(1, record['bytes_total']):.0%}, {record['tokens']:,} tokens"


def _prepared(record: dict[str, Any]) -> str:
    took = "taken from the cache" if record["cached"] else f"prepared in {duration(record['seconds'])}"
    return f"{record['tokens']:,} tokens, {took}"


def _left(record: dict[str, Any]) -> float:
    """Seconds until training ends: given by its time budget, or estimated from the steps so far."""
    if "left" in record:
        return 0.0 if record.get("done") else float(record["left"])
    return float(record["seconds"] / record["step"] * (record["steps"] - record["step"]))


class _Speed:
    """Remembers earlier records: for tokens per second since the last one, and for the last scores on held-out text."""

    def __init__(self) -> None:
        self.before: tuple[float, float] | None = None  # tokens and seconds at the last record
        self.held: dict[str, Any] = {}  # the last scores on held-out text

    def with_held(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record with the scores of the last validation. They are shown until the next validation."""
        self.held |= {name: value for name, value in record.items() if name.startswith("validation_")}
        return record | self.held

    def of(self, record: dict[str, Any]) -> float:
        tokens, seconds = self.before or (0.0, 0.0)
        self.before = (record["tokens"], record["seconds"])
        gained, took = record["tokens"] - tokens, record["seconds"] - seconds
        return gained / took if took > 0 and gained > 0 else record["tokens"] / max(record["seconds"], 1e-9)


def _line(record: dict[str, Any], speed: _Speed) -> str:
    record = speed.with_held(record)
    text = f"loss {record['loss']:.3f}  {speed.of(record):,.0f} tokens/s"
    if "validation_accuracy" in record:
        text += f"  dev accuracy {record['validation_accuracy']:.3f}"
    elif "validation_loss" in record:
        text += f"  held-out {record['validation_loss']:.3f}"
    return text


def _tell_epoch(record: dict[str, Any]) -> None:
    """Print the scores when an epoch of `adapt` ends, and a summary when `adapt` ends."""
    if "epoch" in record:
        err.print(_epoch(record), soft_wrap=True)
    if "epochs" in record:
        err.print(_kept(record), soft_wrap=True)
    for text in record.get("notices", ()):
        note(text)


def _epoch(record: dict[str, Any]) -> str:
    found = _scores(record, "validation_")
    one = "; one label for all" if record.get("validation_labels") == 1 else ""
    return f"epoch {record['epoch']:g}: " + ", ".join([f"loss {record['epoch_loss']:.3f}", *found]) + one


def _scores(record: dict[str, Any], before: str) -> list[str]:
    """The scores on the dev set. In the record their names have the prefix `before`."""
    names = [key.removeprefix(before) for key in record if key.startswith(before)]
    shown = [name for name in names if name not in ("score", "labels")]
    return [f"dev {_called(name)} {record[before + name]:.3f}" for name in shown]


def _called(name: str) -> str:
    """The name of a score as it is shown; of one of several tasks, with the task before it."""
    task, space, score = name.rpartition(" ")
    return task + space + score_name(score)


def _rows(record: dict[str, Any]) -> str:
    """The number of rows, if examples have several: windows of long texts, or lists of passages."""
    return f" in {record['rows']:,} rows" if record["rows"] != record["examples"] else ""


def adapting(record: dict[str, Any]) -> str:
    """The text that `adapt` shows at its start: the training plan and the baseline."""
    plan = record["plan"]
    said = (
        f"{counted(record['examples'], 'examples')}{_rows(record)}, {counted(plan['epochs'], 'epochs')} of "
        f"{counted(record['steps_per_epoch'], 'steps')}, rate "
        f"{plan['rate']:.2g}, weight decay {plan['decay']:g}, texts of up to {plan['length']:,} tokens; trains "
        f"{_millions(record['trained_parameters'])} of {_millions(record['all_parameters'])} parameters"
    )
    if "tasks" in record:
        said += "\ntasks: " + ", ".join(f"{name} {one['examples']:,}" for name, one in record["tasks"].items())
    if "baseline" not in record:
        return said
    label = record["baseline"]["label"]
    score, value = next(item for item in record["baseline"].items() if item[0] != "label")
    guess = "choosing at random" if label is None else f"always saying {label!r}"
    return f"{said}\nbaseline: {guess} has {record['baseline_of']} {score_name(score)} {value:.3f}"


def _millions(count: int) -> str:
    """A number of parameters, in millions if there are that many."""
    return f"{count:,}" if count < 100_000 else f"{count / 1e6:.2f}M" if count < 1e7 else f"{count / 1e6:.0f}M"


def _kept(record: dict[str, Any]) -> str:
    """The text that `adapt` shows at its end: which weights it saved."""
    kept = record["kept_epoch"]
    if kept is None or not record["validated"]:
        advice = "give --dev and leave --folds out" if record.get("folds") else "give --dev"
        return "the last weights are kept: " + (
            "no epoch was finished" if kept is None else f"{advice} to keep the best epoch"
        )
    scores = ", ".join(_scores(kept, "dev_"))
    return f"epoch {kept['epoch']:g} is kept, the best of {len(record['epochs'])}: {scores}"


def _announce(record: dict[str, Any]) -> None:
    if record["event"] == "start" and "plan" in record:
        err.print(f"[dim]{escape(adapting(record))}[/]", soft_wrap=True)
    if record["event"] == "notice":
        note(record["text"])
    elif record["event"] == "commands" and record["commands"]:
        err.print("[dim]" + escape("\n  ".join(["this stands for:", *record["commands"]])) + "[/]", soft_wrap=True)
    elif record["event"] == "prepared":
        err.print(f"[dim]{_prepared(record)}; training begins[/]")
    elif record["event"] == "filling":
        err.print("[dim]making the first values of the embeddings[/]")
    elif record["event"] == "measuring":
        err.print("[dim]measuring speed and memory[/]")
    elif record["event"] == "start" and "parameters" in record:
        machine = record["machine"]
        how = " bfloat16" * machine["half"] + " compiled" * machine["compiled"]
        about = "about " if record["estimated"] else ""  # with a time budget, the number of steps is an estimate
        again = ", measured again while it runs" if record["estimated"] else ""
        err.print(
            f"[dim]{record['parameters'] / 1e6:.1f}M parameters on {machine['device']}{how}; {about}{record['steps']:,} steps of "
            f"{record['tokens'] / record['steps']:,.0f} tokens{again}; the text is read {about}{record['visits']:.2g} times[/]"
        )
    for name, count in record.get("notes", {}).items():
        note(counted(count, name))


def pass_on(record: dict[str, Any]) -> None:
    """Write the notices and notes of a record as JSON lines, for a program."""
    if record.get("event") in ("notice", "commands"):
        json_line(record)
    for text in record.get("notices", ()):
        json_line({"event": "notice", "text": text})
    if record.get("notes"):
        json_line({"notes": record["notes"]})


def reading(
    records: Iterable[dict[str, Any]], title: str, quiet: bool = False, *, unit: str = "tokens", over: str = "bytes"
) -> Iterator[dict[str, Any]]:
    """Yield the records of reading a corpus, with a progress bar. `over`: what the bar counts. `unit`: the count in words."""
    if quiet or not err.is_terminal:
        yield from records
        return
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err) as bar:
        task = bar.add_task(title, total=None, text="")
        for record in records:
            if f"{over}_total" in record:
                text = f"{record[unit]:,} {unit}"
                bar.update(task, completed=record[over], total=record[f"{over}_total"], text=text)
            yield record


def comparing(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the records of a comparison. On a terminal, its table is drawn while it runs; otherwise lines tell of each run
    when it ends, and of the running ones every half minute."""
    told, step = time.monotonic(), ""
    with Live(console=err, auto_refresh=False, transient=True) if err.is_terminal else nullcontext() as drawn:
        for record in records:
            if record["event"] == "notice":
                note(record["text"])
            elif record["event"] == "preparing" and drawn is not None:
                drawn.update(_preparing(record), refresh=True)
            elif record["event"] == "preparing" and record["text"] != step:
                step = record["text"]
                err.print(f"[dim]{escape(step)}[/]")
            elif record["event"] == "prepared":
                err.print(f"[dim]{escape(record['for'])}: {_prepared(record)}[/]")
                for name, count in record["notes"].items():
                    note(counted(count, name))
            elif record["event"] == "ended":
                said = f"failed: {record['error']}" if record["error"] else "stopped" if record["stopped"] else "done"
                err.print(f"{record['job']} {said}", markup=False)
            elif record["event"] == "state" and drawn is not None:
                drawn.update(_table("", record["columns"], record["rows"]), refresh=True)
            elif record["event"] == "state" and time.monotonic() - told > 30:
                told = time.monotonic()
                for row in record["rows"]:
                    if row[3] not in ("done", "waiting", "failed"):
                        words = [
                            f"{name} {cell}" for name, cell in zip(record["columns"][1:], row[1:], strict=True) if cell
                        ]
                        err.print(f"{row[0]}: {', '.join(words)}", markup=False)
            yield record


def staging(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the records of a pipeline, and show where each stage begins. Its training draws itself."""
    for record in records:
        if record.get("event") == "notice":
            note(record["text"])
        elif record.get("event") == "stage":
            _tell_stage(record)
        for name, count in record.get("notes", {}).items():
            note(counted(count, name))
        yield record


def _tell_stage(record: dict[str, Any]) -> None:
    what = [record["does"], *([record["budget"]] if record["budget"] else [])]
    what += [f"seed {record['seed']}"] if record["seed"] else []
    what += [f"training {record['trial'] + 1}"] if record["trial"] else []
    what += [record["variant"]] if record["variant"] != "whole" else []
    title = f"{record['number']} of {record['of']}: {record['stage']}"
    if record["state"] == "finished":
        err.print(f"[dim]{escape(title)} is finished ({escape(record['out'])})[/]", soft_wrap=True)
        return
    err.print(f"[bold]{escape(title)}[/] {escape(', '.join(what))}", soft_wrap=True)
    if record["why"]:
        err.print(f"[yellow]it is run again:[/] {escape('; '.join(record['why']))}", soft_wrap=True)
    elif record["state"] == "goes on":
        err.print("[yellow]it was cut off and goes on[/]")
    for command in record["commands"]:
        err.print(f"[dim]  {escape(command)}[/]", soft_wrap=True)


def table(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    out.print(_table(title, columns, rows))


def _table(title: str, columns: list[str], rows: list[list[Any]]) -> Table:
    shown = Table(title=title or None, title_justify="left", header_style="bold")
    cells = [list(map(str, row)) for row in rows]
    for i, name in enumerate(columns):
        numbers = all(_NUMBER.fullmatch(row[i]) for row in cells)
        shown.add_column(name, justify="right" if i and numbers else "left", overflow="fold")
    for row in cells:
        shown.add_row(*map(escape, row))
    return shown


def page(shown: RenderableType) -> None:
    """Print a page that fills the width of the screen; in a file or a pipe it has 80 columns."""
    out.print(shown, soft_wrap=False, width=None if out.width < _WIDE else 80)


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"


def done(message: str) -> None:
    err.print("[green]done:[/] " + escape(message), soft_wrap=True)


def note(message: str) -> None:
    err.print("[yellow]note:[/] " + escape(message), soft_wrap=True)


def json_line(value: Any) -> None:
    """Write a JSON line to stderr: information for a program, besides the result."""
    sys.stderr.write(json.dumps(value, ensure_ascii=False) + "\n")


def fail(message: str, *, json_: bool = False) -> NoReturn:
    if json_:
        json_line({"error": message})
    else:
        err.print("[bold red]error:[/] " + escape(message), soft_wrap=True)
    sys.exit(1)
