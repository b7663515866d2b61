"""The demo: pretrain, adapt and evaluate a small model on text that every machine has, and show what pretraining gains.

It collects the docstrings of installed Python packages and pretrains a small model on them. With a few labels, it then
adapts the model to classify which library a text comes from. It adapts an untrained copy too, and compares both.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from unmask import recipes, screen, text
from unmask.adapt import adapt
from unmask.comparison import html_page as report
from unmask.data.examples import Text
from unmask.data.prepare import prepare
from unmask.errors import require
from unmask.evaluate import evaluate_examples
from unmask.infer import Greedy, Model, generate, open_run
from unmask.pretraining import pretrain
from unmask.recipe import Recipe
from unmask.tasks import few
from unmask.tasks.classify import Classify, Example
from unmask.text.docstrings import docstrings
from unmask.train import log

LIBRARIES = ("stdlib", "torch", "numpy", "sympy", "networkx")
TESTED = 100  # test texts of each library; they are not used for pretraining
LABELS = (8, 32)  # numbers of training labels per library
SEEDS = (0, 1, 2)
SHORTEST, SHOWN = 200, 500  # in characters: the shortest text of the classifier, and how much of each text it reads
VOCABULARY = 4_000
RECIPE, SIZE = "gpt2", "tiny"
# GPT-2 and its rate were chosen by measurement (see docs/results.md): in these few minutes, predicting the next token at
# every position taught more than predicting the hidden 15%.
SETTINGS = ["schedule.0.length=64", "schedule.0.rows=16", "optimise.rate=0.002", "optimise.warmup=0.05",
            "system.backbone.dropout=0.0"]  # fmt: skip
TASKS = {
    8: Classify(epochs=15, examples=8, rate=1e-3, pool="mean"),
    32: Classify(epochs=8, examples=8, rate=1e-3, pool="mean"),
}
# Library names and code make the task too easy: an untrained network that learns only them is as good. They are removed.
NAMES = re.compile(r"\b(?:py)?(?:torch|numpy|np|sympy|networkx|nx|python)\b\.?", re.IGNORECASE)
CODE = (">>>", "...", ".. ")
PROMPTS = ("Return the", "Raises ValueError if", "A graph with")
SHORTEST_PRETRAINING = 45.0  # seconds: a shorter pretraining shows no gain
LITTLE = 800  # steps: with fewer, the pretrained model may be worse than the untrained copy
BUSY, LONGER = 0.17, 4 / 3  # if adapting would take this share of the time, the machine is busy: multiply the time


def demo(
    out: Path,
    *,
    minutes: float = 6.0,
    seed: int = 0,
    device: str | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Run the demo in the folder `out`. Returns the content of `results.json`."""
    began = time.monotonic()
    require(
        minutes >= 1,
        "--minutes must be 1 or more, got {minutes:g}: the demo needs at least one minute",
        minutes=minutes,
    )
    require(overwrite or not out.exists(), "{out} exists already: choose another --out, or pass --overwrite", out=out)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    _say("collecting the docstrings of " + ", ".join(LIBRARIES), quiet)
    training, testing = _collect(seed)
    (out / "corpus").mkdir()
    _write(out / "corpus" / "docstrings.jsonl", ({"text": text, "label": label} for label, text in training))
    size = sum(len(text) for _, text in training) / 1e6
    _say(f"{len(training):,} texts, {size:.1f} MB; training a tokenizer", quiet)
    corpus = text.Corpus([out / "corpus"])
    tokenizer = text.train_to_file(corpus, out / "tokenizer.json", text.WordPiece(vocab=VOCABULARY))
    for _ in screen.reading(prepare(corpus, tokenizer, out / "data", words="spaces"), "preparing", quiet):
        pass

    recipe = recipes.get(RECIPE, size=SIZE, settings=SETTINGS)
    labelled, tested = _examples(training), _examples(testing)
    # the untrained copies come first: they show how long adapting takes here; the rest of the time is for pretraining
    started = time.monotonic()
    untrained = _scores(_untrained(recipe, tokenizer, out, device), labelled, tested, out, "untrained", quiet)
    reserve = 1.2 * (time.monotonic() - started) + 5
    total = minutes * 60 * (LONGER if reserve > BUSY * minutes * 60 else 1)
    left = max(SHORTEST_PRETRAINING, total - (time.monotonic() - began) - reserve)
    ends = time.monotonic() - began + left + reserve
    if ends > minutes * 60 + 1:
        _say(f"this machine is busy or slow: the demo takes {screen.duration(ends)}, not {minutes:g} minutes", quiet)
    records = pretrain(recipe, [out / "data"], out / "run", budget=f"{left:.0f}s", seed=seed, device=device)
    for _ in screen.training(records, "pretraining", quiet):
        pass
    model = open_run(out / "run", device=device)
    pretrained = _scores(model, labelled, tested, out, "pretrained", quiet)

    scores = {str(n): {"pretrained": pretrained[n], "untrained": untrained[n]} for n in LABELS}
    results = {"accuracy": scores, "libraries": list(LIBRARIES), "tested": len(tested), "seeds": list(SEEDS),
               "recipe": RECIPE, "size": SIZE, "settings": SETTINGS, "texts": len(training), "megabytes": size,
               "steps": log.read(out / "run")[-1]["step"], "written": _written(model),
               "seconds": time.monotonic() - began}  # fmt: skip
    (out / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    _report(out, results)
    if not quiet:
        _show(results, out)
    return results


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


def _examples(pairs: list[tuple[str, str]]) -> list[Example]:
    return [Example(Text(words[:SHOWN]), library) for library, words in pairs if len(words) >= SHORTEST]


def _untrained(recipe: Recipe, tokenizer: text.Tokenizer, out: Path, device: str | None) -> Model:
    """The network with random weights."""
    system = recipe.system.build(recipe, tokenizer.vocabulary, 0)
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return Model(system.to(place), recipe, tokenizer, out / "untrained", place)


def _scores(
    model: Model, training: list[Example], testing: list[Example], out: Path, name: str, quiet: bool
) -> dict[int, list[float]]:
    """Accuracy on the test texts for each number of labels and each seed."""
    scores: dict[int, list[float]] = {}
    for labels in LABELS:
        scores[labels] = []
        for seed in SEEDS:
            done = sum(map(len, scores.values())) + 1
            _say(
                f"adapting, {name}: {done} of {len(LABELS) * len(SEEDS)}, {labels} labels per library, seed {seed}",
                quiet,
            )
            folder = out / "adapted" / f"{name}-{labels}-{seed}"
            fresh = name == "untrained"
            for _ in adapt(model, few(training, labels, seed), folder, task=TASKS[labels], seed=seed, fresh=fresh):
                pass
            found = evaluate_examples(open_run(folder, device=model.device), testing)
            scores[labels].append(found["accuracy"])
            if (labels, seed, fresh) != (LABELS[-1], 0, False):
                shutil.rmtree(folder)
    return scores


def _written(model: Model) -> list[str]:
    """How the pretrained model continues a few prompts, always with the most likely token."""
    return [written.text for written in generate(model, PROMPTS, tokens=12, sampling=Greedy()).value]


def _rows(results: dict[str, Any]) -> Iterator[list[str]]:
    for labels, ways in results["accuracy"].items():
        gain = statistics.mean(ways["pretrained"]) - statistics.mean(ways["untrained"])
        yield [
            f"{labels} per library",
            *(_spread(ways[name]) for name in ("pretrained", "untrained")),
            f"{100 * gain:+.1f}",
        ]


def _spread(scores: list[float]) -> str:
    return f"{100 * statistics.mean(scores):.1f} ± {100 * statistics.stdev(scores):.1f}"


def _about_losing(results: dict[str, Any]) -> str:
    """The message if pretraining did not win; empty if it did."""
    ways = results["accuracy"].values()
    if all(statistics.mean(way["pretrained"]) > statistics.mean(way["untrained"]) for way in ways):
        return ""
    few_steps = results["steps"] < LITTLE
    why = (
        f"it made only {results['steps']:,} steps, because this machine is slow or busy"
        if few_steps
        else f"it made {results['steps']:,} steps, which is usually enough"
    )
    return f"pretraining did not win here: {why}. Try again on a machine that is not busy, or with more --minutes"


COLUMNS = ["labels", "pretrained", "untrained", "gain"]


def _show(results: dict[str, Any], out: Path) -> None:
    screen.table(
        f"accuracy in %, {results['tested']} texts, mean and standard deviation of {len(SEEDS)} seeds",
        COLUMNS,
        list(_rows(results)),
    )
    lost = _about_losing(results)
    if lost:
        screen.note(lost)
    for words in results["written"]:
        screen.out.print(f"generated: {words}", markup=False)
    screen.out.print(
        f"report: {out / 'report.html'}   numbers: {out / 'results.json'}   took {screen.duration(results['seconds'])}"
    )
    screen.out.print(f'next: unmask generate {out / "run"} "Return the" --top-p 0.9', markup=False)


def _report(out: Path, results: dict[str, Any]) -> None:
    records = [record for record in log.read(out / "run") if "step" in record]
    lines = [
        report.ReportCurve("training", tuple((r["tokens"] / 1e6, r["loss"]) for r in records)),
        report.ReportCurve(
            "held-out text", tuple((r["tokens"] / 1e6, r["validation_loss"]) for r in records if "validation_loss" in r)
        ),
    ]
    groups = [
        report.Group(f"{labels} labels per library", {name: tuple(scores) for name, scores in ways.items()})
        for labels, ways in results["accuracy"].items()
    ]
    report.page(out / "report.html", "What does pretraining gain?", [
        report.paragraph(
            f"A GPT-2 with two layers was pretrained on {results['texts']:,} docstrings ({results['megabytes']:.1f} MB) of the "
            f"Python packages on this machine: it predicted every next token. Then it was adapted, with a few labelled texts, to "
            f"classify which of {len(LIBRARIES)} libraries a text comes from. Library names and code were removed. An untrained "
            f"copy of the same network was adapted with the same labels."
        ),
        report.heading("Accuracy: which library is this text from?"),
        report.bars(groups, "accuracy; one dot per seed"),
        report.table(["labels", "pretrained, %", "untrained, %", "gain"], list(_rows(results))),
        *([report.paragraph(_about_losing(results))] if _about_losing(results) else []),
        report.heading("Loss during pretraining"),
        report.curves(lines, "million tokens read", "loss"),
        report.heading("Text that the model generates"),
        *(report.paragraph(words) for words in results["written"]),
        report.heading("Next steps"),
        report.commands([f'unmask generate {out / "run"} "Return the" --top-p 0.9',
                         f'unmask predict {out / "adapted" / f"pretrained-{LABELS[-1]}-0"} "Draw the graph with its edges."',
                         f"unmask export {out / 'run'} exported/"]),
    ])  # fmt: skip


def _write(path: Path, rows: Iterator[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _say(words: str, quiet: bool) -> None:
    if not quiet:
        screen.err.print(f"[dim]{words}[/]")
