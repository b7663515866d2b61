"""The demo: compare a small pretrained model with its untrained copy, on text that every machine has.

It collects the docstrings of installed Python packages and pretrains a small model on them. With a few labels, it then
adapts the model to classify which library a text comes from. Two copies are adapted too: one with random weights, and one after
a single step, which has only the word vectors that its embeddings start with. This is one call of `unmask.compare`, and the
report is its report.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import unmask
from unmask import screen
from unmask.errors import require
from unmask.text.docstrings import docstrings

LIBRARIES = ("stdlib", "torch", "numpy", "sympy", "networkx")
TESTED = 100  # test texts of each library; they are not used for pretraining
SEEDS = 3  # adapting seeds
COPIES = 3  # of the network are adapted: pretrained, after one step, with random weights
SHORTEST, SHOWN = 200, 500  # in characters: the shortest text of the classifier, and how much of each text it reads
VOCABULARY = 4_000
RECIPE, SIZE = "gpt2", "tiny"
# GPT-2 and its rate were chosen by measurement (see docs/results.md): in these few minutes, predicting the next token at
# every position taught more than predicting the hidden 15%.
SETTINGS = ["schedule.0.length=64", "schedule.0.rows=16", "optimise.rate=0.002", "optimise.warmup=0.05",
            "system.backbone.dropout=0.0"]  # fmt: skip
EPOCHS = {8: 15, 32: 8}  # epochs of adapting, by the number of training labels per library
TASK = ["examples=8", "rate=1e-3", "pool=mean"]
# Library names and code make the task too easy: an untrained network that learns only them is as good. They are removed.
NAMES = re.compile(r"\b(?:py)?(?:torch|numpy|np|sympy|networkx|nx|python)\b\.?", re.IGNORECASE)
CODE = (">>>", "...", ".. ")
PROMPTS = ("Return the", "Raises ValueError if", "A graph with")
SHORTEST_PRETRAINING = 45.0  # seconds: a shorter pretraining shows no gain
LITTLE = 800  # steps: with fewer, the pretrained model may be worse than the untrained copy
BUSY, LONGER = 0.25, 4 / 3  # if adapting would take this share of the time, the machine is busy: multiply the time


def demo(
    out: Path, *, minutes: float = 6.0, seed: int = 0, device: str | None = None, overwrite: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run the demo in the folder `out`. Returns the results of the comparison, with texts that the model `wrote`."""
    began = time.monotonic()
    require(
        minutes >= 1,
        "--minutes must be 1 or more, got {minutes:g}: the demo needs at least one minute",
        minutes=minutes,
    )
    require(overwrite or not out.exists(), "{out} exists already: choose another --out, or pass --overwrite", out=out)
    shutil.rmtree(out, ignore_errors=True)
    _say("collecting the docstrings of " + ", ".join(LIBRARIES), quiet)
    _write_files(out, seed)
    unmask.train_tokenizer(out / "corpus", out / "tokenizer.json", kind="wordpiece", vocab=VOCABULARY)
    unmask.prepare(out / "corpus", out / "data", tokenizer=out / "tokenizer.json", words="spaces", progress=not quiet)
    _say("measuring how long adapting takes here", quiet)
    reserve = _adapting_seconds(out, device)
    total = minutes * 60 * (LONGER if reserve > BUSY * minutes * 60 else 1)
    left = max(SHORTEST_PRETRAINING, total - (time.monotonic() - began) - reserve)
    ends = time.monotonic() - began + left + reserve
    if ends > minutes * 60 + 1:
        _say(f"this machine is busy or slow: the demo takes {screen.duration(ends)}, not {minutes:g} minutes", quiet)
    found = unmask.compare(
        [RECIPE], out / "compare", data=out / "data", tasks=out / "tasks", budget=f"{left:.0f}s", task_seeds=SEEDS, size=SIZE,
        settings=SETTINGS, device=device, progress=not quiet,
    )  # fmt: skip
    run = out / "compare" / "runs" / found["runs"][0]["name"]
    require(found["runs"][0]["state"] == "done", "the demo failed: {why}", why=found["runs"][0]["error"])
    written = unmask.load(run, device=device).generate(PROMPTS, tokens=12, greedy=True)
    results = found | {"written": written, "seconds": time.monotonic() - began}
    if not quiet:
        _show(results, out, run)
    return results


def _write_files(out: Path, seed: int) -> None:
    """The corpus, and a task for each number of labels."""
    training, testing = _collect(seed)
    _write(out / "corpus" / "docstrings.jsonl", ({"text": text} for _, text in training))
    for labels, epochs in EPOCHS.items():
        folder = out / "tasks" / f"{labels} labels"
        for split, pairs in (("train", training), ("test", testing)):
            rows = ({"text": words[:SHOWN], "label": label} for label, words in pairs if len(words) >= SHORTEST)
            _write(folder / f"{split}.jsonl", rows)
        options = {"settings": [f"epochs={epochs}", *TASK], "per_label": labels}
        (folder / "task.json").write_text(json.dumps(options), encoding="utf-8")


def _adapting_seconds(out: Path, device: str | None) -> float:
    """About how long it takes to adapt and test all copies, from one epoch of one of them."""
    settings = [*SETTINGS, "optimise.rate=1e-9"]
    model = unmask.pretrain(RECIPE, out / "data", out / "probe", size=SIZE, settings=settings, budget="1steps", device=device,
                            progress=_hush)  # fmt: skip
    most = max(EPOCHS)
    rows = (out / "tasks" / f"{most} labels" / "test.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (out / "probe.jsonl").write_text("".join(rows[: most * len(LIBRARIES)]), encoding="utf-8")
    began = time.monotonic()
    model.adapt(out / "probe.jsonl", out / "probed", settings=["epochs=1", *TASK], fresh=True, progress=_hush)
    took = time.monotonic() - began
    for left in (out / "probe", out / "probed"):
        shutil.rmtree(left)
    (out / "probe.jsonl").unlink()
    epochs = sum(epochs * labels / most for labels, epochs in EPOCHS.items())  # of as many examples as were measured
    tests = len(EPOCHS) * TESTED / most / 3  # a text is read once to test, and three times that work to learn
    return 1.2 * took * (epochs + tests) * COPIES * SEEDS + 20


def _collect(seed: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Training texts and test texts, as pairs (library, text)."""
    found = [(library, _prose(words)) for library, words in docstrings(LIBRARIES)]
    random.Random(seed).shuffle(found)
    testing: list[tuple[str, str]] = []
    training: list[tuple[str, str]] = []
    counts = dict.fromkeys(LIBRARIES, 0)
    for library, words in found:
        tested = len(words) >= SHORTEST and counts[library] < TESTED
        counts[library] += tested
        if words:
            (testing if tested else training).append((library, words))
    return training, testing


def _prose(words: str) -> str:
    """The paragraphs that are prose, not code, without the names of libraries."""
    kept = []
    for paragraph in re.split(r"\n\s*\n", words):
        lines = [line.strip() for line in paragraph.splitlines()]
        joined = " ".join(lines)
        letters = sum(character.isalpha() or character == " " for character in joined)
        if not any(line.startswith(CODE) for line in lines) and letters > 0.85 * len(joined):
            kept.append(joined)
    return NAMES.sub("", "\n".join(kept)).strip()


COLUMNS = ["labels per library", "pretrained", "start", "untrained", "gain"]


def _rows(results: dict[str, Any]) -> list[list[str]]:
    """Accuracy in percent, with half of the 95% interval over the adapting seeds."""
    rows = [row for row in results["summary"] if row["gain"] is not None]
    return [
        [row["task"], f"{100 * row['mean']:.1f} ± {100 * (row['high'] - row['mean']):.1f}", f"{100 * row['start']:.1f}",
         f"{100 * row['untrained']:.1f}", f"{100 * row['gain']['mean']:+.1f}"]
        for row in rows
    ]  # fmt: skip


def _about_losing(results: dict[str, Any]) -> str:
    """The message if pretraining did not win; empty if it did."""
    if all(row["gain"]["mean"] > 0 for row in results["summary"] if row["gain"] is not None):
        return ""
    steps = results["runs"][0]["steps"]
    why = (
        f"it made only {steps:,} steps, because this machine is slow or busy"
        if steps < LITTLE
        else f"it made {steps:,} steps, which is usually enough"
    )
    return f"pretraining did not win here: {why}. Try again on a machine that is not busy, or with more --minutes"


def _show(results: dict[str, Any], out: Path, run: Path) -> None:
    screen.table(
        f"accuracy in %, {TESTED * len(LIBRARIES)} texts, mean and 95% interval of {SEEDS} adapting seeds",
        COLUMNS,
        _rows(results),
    )
    lost = _about_losing(results)
    if lost:
        screen.note(lost)
    for words in results["written"]:
        screen.out.print(f"generated: {words}", markup=False)
    compared = out / "compare"
    screen.out.print(
        f"report: {compared / 'report.html'}   numbers: {compared / 'results.json'}   took "
        f"{screen.duration(results['seconds'])}"
    )
    screen.out.print(f'next: unmask generate {run} "Return the" --top-p 0.9', markup=False)
    page = "http://127.0.0.1:8000/?view=write&text=Return+the"
    screen.out.print(f"or in a browser: unmask serve {run}, then open {page}", markup=False, soft_wrap=True)


def _write(path: Path, rows: Iterable[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _hush(record: dict[str, Any]) -> None:
    """Nothing is shown of the probe."""


def _say(words: str, quiet: bool) -> None:
    if not quiet:
        screen.err.print(f"[dim]{words}[/]")
