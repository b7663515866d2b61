"""The demo: the whole way, from text that is on every machine to a comparison that shows what pretraining is worth.

It collects the documentation strings of installed Python packages, pretrains a small model on them, and adapts it,
with a handful of labels, to tell which library a text comes from; then the same with an untrained copy.
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
from unmask.comparison import report
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
TESTED = 100  # texts of each library to test on, kept out of pretraining
LABELS = (8, 32)  # labels of each library to learn from
SEEDS = (0, 1, 2)
SHORTEST, SHOWN = 200, 500  # characters of a text that the classifier gets
VOCABULARY = 4_000
RECIPE, SIZE = "gpt2", "tiny"
# GPT-2 and its rate were chosen by measuring (docs/results.md has what was tried and how): in these few minutes the
# next token, predicted at every position, taught more than the hidden 15%.
SETTINGS = ["schedule.0.length=64", "schedule.0.rows=16", "optimise.rate=0.002", "optimise.warmup=0.05",
            "system.backbone.dropout=0.0"]  # fmt: skip
TASKS = {
    8: Classify(epochs=15, examples=8, rate=1e-3, pool="mean"),
    32: Classify(epochs=8, examples=8, rate=1e-3, pool="mean"),
}
# The names and the code give the library away: with them an untrained network, which learns just that, does as well.
NAMES = re.compile(r"\b(?:py)?(?:torch|numpy|np|sympy|networkx|nx|python)\b\.?", re.IGNORECASE)
CODE = (">>>", "...", ".. ")
PROMPTS = ("Return the", "Raises ValueError if", "A graph with")
SHORTEST_PRETRAINING = 45.0  # seconds: with less there is nothing to show
LITTLE = 800  # steps; with fewer, pretraining may lose to the untrained copy
BUSY, LONGER = 0.17, 4 / 3  # where adapting alone would take this share of the time, the machine is busy: take longer


def demo(
    out: Path,
    *,
    minutes: float = 6.0,
    seed: int = 0,
    device: str | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Run it all into the folder `out`; returns what `results.json` holds."""
    began = time.monotonic()
    require(minutes >= 1, f"the demo needs a minute or more, got {minutes:g}")
    require(overwrite or not out.exists(), f"{out} exists already: choose another --out, or pass --overwrite")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    _say("collecting the documentation strings of " + ", ".join(LIBRARIES), quiet)
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
    # the untrained copies come first: they show how long adapting takes on this machine, and the rest is for pretraining
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
    """Texts to train on and texts to test on, (library, text) each."""
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
    """The paragraphs that are language, without the names of libraries."""
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
    """The network with random weights, to be adapted as it is."""
    system = recipe.system.build(recipe, tokenizer.vocabulary, 0)  # type: ignore[attr-defined]
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
    """How the pretrained model goes on with a few beginnings, always taking the likeliest token."""
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
    """What to say where pretraining did not win; nothing where it did."""
    ways = results["accuracy"].values()
    if all(statistics.mean(way["pretrained"]) > statistics.mean(way["untrained"]) for way in ways):
        return ""
    few_steps = results["steps"] < LITTLE
    why = (
        f"it made {results['steps']:,} steps in the time that was left, too few: this machine is slow or busy"
        if few_steps
        else f"it made {results['steps']:,} steps, which are usually enough"
    )
    return f"pretraining did not win here: {why}. Try again on a quiet machine, or give it more --minutes"


COLUMNS = ["labels", "pretrained", "untrained", "gain"]


def _show(results: dict[str, Any], out: Path) -> None:
    screen.table(
        f"accuracy in %, {results['tested']} texts, mean and deviation of {len(SEEDS)} seeds",
        COLUMNS,
        list(_rows(results)),
    )
    lost = _about_losing(results)
    if lost:
        screen.note(lost)
    for words in results["written"]:
        screen.out.print(f"it writes: {words}", markup=False)
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
    report.page(out / "report.html", "What is pretraining worth?", [
        report.paragraph(
            f"A GPT-2 of two layers read {results['texts']:,} documentation strings ({results['megabytes']:.1f} MB) of the Python "
            f"packages on this machine, predicting every next token. Then it learned, from a few labelled texts, to tell which "
            f"of {len(LIBRARIES)} libraries a text comes from (their names and all code were taken out). An untrained copy of "
            f"the same network learned from the same labels."
        ),
        report.heading("Accuracy: which library is this text from?"),
        report.bars(groups, "accuracy; a dot is a seed"),
        report.table(["labels", "pretrained, %", "untrained, %", "gain"], list(_rows(results))),
        *([report.paragraph(_about_losing(results))] if _about_losing(results) else []),
        report.heading("Loss while pretraining"),
        report.curves(lines, "million tokens read", "loss"),
        report.heading("What it writes"),
        *(report.paragraph(words) for words in results["written"]),
        report.heading("Go on"),
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
