"""A learning curve: how the score grows with the number of labels, from the pretrained network and from random weights."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unmask import chance, html_page
from unmask.counted import counted
from unmask.errors import require
from unmask.score_names import score_name
from unmask.trials.trial import Adapt, Trial, judged_by, place_beside, spread, written

KINDS = {"pretrained": False, "untrained": True}


def parse_sizes(text: str, examples: int) -> list[int]:
    """The numbers of labels of a list such as 100,1000,all, or of shares such as 0.1%,1%,10%."""
    found: list[int] = []
    for word in text.split(","):
        number = _size(word.strip(), examples)
        require(
            1 <= number <= examples,
            "--curve takes numbers of examples from 1 to {examples:,}, shares such as 10%, or all, such as 100,10%,all; got {word!r}",
            examples=examples,
            word=word,
        )
        found.append(number)
    require(
        found == sorted(set(found)),
        "--curve takes numbers that grow, such as 100,1000,all; got {text}, which is {numbers} of {examples:,} examples",
        text=text,
        numbers=", ".join(f"{number:,}" for number in found),
        examples=examples,
    )
    return found


def _size(word: str, examples: int) -> int:
    """The number of examples that a word means: at least one for a share; 0 if it means none."""
    if word == "all":
        return examples
    share = re.fullmatch(r"(\d+(?:\.\d+)?)%", word)
    if share and 0 < float(share[1]) <= 100:
        return max(1, round(float(share[1]) / 100 * examples))
    return int(word) if word.isdigit() else 0


def label_curve(
    adapt: Adapt, examples: Sequence[Any], dev: Sequence[Any], out: Path, sizes: Sequence[int], seeds: Sequence[int]
) -> dict[str, Any]:
    """The dev scores for each number of labels. Each seed draws its own examples; more labels include the fewer ones."""
    require(bool(dev), "a learning curve is measured on a dev set, and none is given: give --dev FILE")
    points: list[dict[str, Any]] = []
    metric = ""
    orders = {seed: chance.generator(seed, chance.purpose("label curve")).permutation(len(examples)) for seed in seeds}
    for size in sizes:
        for kind, fresh in KINDS.items():
            scores: list[float] = []
            for seed in seeds:
                chosen = [examples[i] for i in sorted(orders[seed][:size].tolist())]
                with place_beside(out) as place:
                    last = adapt(
                        Trial(f"{counted(size, 'labels')}, {kind}, seed {seed}", chosen, place, dev, seed, fresh)
                    )
                if last.get("stopped"):
                    return {"metric": metric, "points": points, "stopped": True}
                metric, score = judged_by(last["kept_epoch"])
                scores.append(score)
            points.append({"labels": size, "start": kind, "scores": scores} | spread(scores))
    return {"metric": metric, "points": points, "stopped": False}


def draw_curve(found: dict[str, Any], out: Path, title: str) -> None:
    """Write curve.json and report.html."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "curve.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    points, metric = found["points"], score_name(found["metric"])
    lines = [
        html_page.ReportCurve(kind, tuple((p["labels"], p["mean"]) for p in points if p["start"] == kind))
        for kind in KINDS
    ]
    rows = [[f"{p['labels']:,}", p["start"], written(p), ", ".join(f"{s:.4f}" for s in p["scores"])] for p in points]
    html_page.page(
        out / "report.html",
        title,
        [
            html_page.paragraph(f"{metric} on the dev set for each number of labels, as the mean over seeds."),
            html_page.curves(
                [line for line in lines if line.points], "labels", f"{metric} on dev", log_x=True, dots=True
            ),
            html_page.table(["labels", "start", "mean ± deviation", "by seed"], rows),
        ],
    )
