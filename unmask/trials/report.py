"""The report of an adapted model: one HTML page with its settings, its curves, its mistakes and its calibration."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unmask import html_page
from unmask.axes import Graded, Missed, ProbabilityTable, Task
from unmask.calibration import best_temperature, calibration_error, reliability, tempered
from unmask.counted import counted
from unmask.infer.answer import TaskReader
from unmask.infer.model import Model
from unmask.score_names import score_name
from unmask.trials.folds import suspect_columns
from unmask.trials.trial import judged_by, written

REPORT = "report.html"
MOST_LABELS = 20  # labels whose confusion matrix is drawn
MOST_ROWS = 30  # mistakes that are listed
MOST_DOTS = 2000  # examples that are drawn


def write_report(
    model: Model,
    last: dict[str, Any],
    history: Sequence[dict[str, Any]],
    dev: Sequence[Any],
    found: dict[str, Any] | None = None,
) -> Path:
    """Write report.html into the run folder of an adapted model. `last`: the last record of its log; `found`: the result of
    several seeds or folds."""
    path = model.folder / REPORT
    html_page.page(path, f"{model.folder.name}: {model.recipe.name} {model.recipe.size}", [
        *_trials(found), *_training(last, history), *_mistakes(model, dev), *_settings(model),
    ])  # fmt: skip
    return path


def _trials(found: dict[str, Any] | None) -> Iterator[str]:
    if not found or "mean" not in found:
        return
    single = found.get("folds") or [judged_by(one)[1] for one in found["trials"]]
    yield html_page.heading("Folds" if "folds" in found else "Seeds")
    shown = ", ".join(f"{one:.4f}" for one in single)
    yield html_page.paragraph(f"Mean and deviation of {score_name(found['metric'])}: {written(found)} ({shown}).")
    if "trials" in found:
        yield html_page.paragraph(f"The model with the best seed on dev was kept: {found['kept_seed']}.")
    if found.get("suspects"):
        yield html_page.heading(f"Labels to check ({len(found['suspects']):,}, the worst first)")
        columns = suspect_columns(found["suspects"])
        rows = [[str(one[name])[:300] for name in columns] for one in found["suspects"][:MOST_ROWS]]
        yield html_page.table(columns, rows, texts=True)


def _column(name: str) -> str:
    """The heading of a column of the epochs: the score of a dev set has `dev_` before its name."""
    if name == "dev_labels":
        return "different labels given"
    return f"dev {score_name(name.removeprefix('dev_'))}" if name.startswith("dev_") else name


def _training(last: dict[str, Any], history: Sequence[dict[str, Any]]) -> Iterator[str]:
    epochs = last.get("epochs") or []
    if not epochs:
        return
    yield html_page.heading("Training")
    columns = list(dict.fromkeys(name for epoch in epochs for name in epoch))
    kept = (last.get("kept_epoch") or {}).get("epoch")
    rows = [
        [f"{epoch.get(name):.4g}" if isinstance(epoch.get(name), float) else epoch.get(name, "") for name in columns]
        + ["kept" if epoch["epoch"] == kept and last.get("validated") else ""]
        for epoch in epochs
    ]
    yield html_page.table([*map(_column, columns), ""], rows)
    losses = tuple((r["step"], r["loss"]) for r in history if "loss" in r and "step" in r)
    if len(losses) > 1:
        yield html_page.curves([html_page.ReportCurve("training loss", losses)], "steps", "loss")


def _mistakes(model: Model, dev: Sequence[Any]) -> Iterator[str]:
    """What is known about the answers on the dev set."""
    task: Task | None = model.recipe.task
    if task is None or not dev:
        return
    reader = TaskReader(model)
    answers = task.answer(reader, dev).answers
    scores = task.score(reader, dev, answers)
    yield html_page.heading(f"Scores on dev ({counted(len(dev), 'examples')})")
    yield html_page.table(
        ["score", ""], [[score_name(name), f"{v:.4f}"] for name, v in scores.items() if isinstance(v, float)]
    )
    if "confusion" in scores and len(scores["labels"]) <= MOST_LABELS:
        yield html_page.heading("Confusions")
        yield html_page.paragraph("The truth is in rows, the prediction in columns.")
        yield confusion_table(scores["labels"], scores["confusion"])
    graded = task.graded(dev, answers)
    yield from _calibration(task.probability_table(dev, answers))
    yield from _wrong(dev, graded)
    yield from _far(dev, task.missed(dev, answers))


def _calibration(table: ProbabilityTable | None) -> Iterator[str]:
    if table is None or not (table.truth >= 0).any():
        return
    shares, truth = table.shares, table.truth
    temperature = best_temperature(shares, truth)
    after = calibration_error(tempered(shares, temperature), truth)
    yield html_page.heading("Calibration")
    yield html_page.paragraph(
        f"How often the model is right, by how sure it is. Mean distance between the two: {calibration_error(shares, truth):.3f}; "
        f"with a temperature of {temperature:.2f}: {after:.3f} (unmask calibrate RUN DEV sets it)."
    )
    found = tuple((one.confidence, one.accuracy) for one in reliability(shares, truth))
    lines = [html_page.ReportCurve("this model", found), html_page.ReportCurve("perfect", ((0.0, 0.0), (1.0, 1.0)))]
    yield html_page.curves(lines, "probability of the answer", "share that is right", dots=True)


def _wrong(dev: Sequence[Any], graded: Sequence[Graded]) -> Iterator[str]:
    """The mistakes that the model is surest about."""
    wrong = [(one, example) for one, example in zip(graded, dev if graded else (), strict=True) if not one.right]
    if not wrong:
        return
    wrong.sort(key=lambda pair: -pair[0].probability)
    yield html_page.heading(f"Surest mistakes ({min(MOST_ROWS, len(wrong))} of {len(wrong):,})")
    rows = [
        [one.answer, f"{one.probability:.3f}", one.truth, " | ".join(example.shown)[:300]]
        for one, example in wrong[:MOST_ROWS]
    ]
    yield html_page.table(["predicted", "probability", "truth", "text"], rows, texts=True)


def _far(dev: Sequence[Any], missed: Sequence[Missed]) -> Iterator[str]:
    """The predicted numbers that are farthest from the right ones, and all of them as dots."""
    if not missed:
        return
    pairs = sorted(zip(missed, dev, strict=True), key=lambda pair: -pair[0].distance)
    yield html_page.heading("Predicted numbers")
    ends = [min(one.truth for one in missed), max(one.truth for one in missed)]
    drawn = [(one.truth, one.answer) for one in missed[:: -(-len(missed) // MOST_DOTS)]]
    yield html_page.dots(
        drawn, html_page.ReportCurve("perfect", tuple((end, end) for end in ends)), "truth", "predicted"
    )
    yield html_page.heading(f"Largest errors ({min(MOST_ROWS, len(pairs))} of {len(pairs):,})")
    rows = [
        [f"{one.answer:.4g}", f"{one.truth:.4g}", f"{one.distance:.4g}", " | ".join(example.shown)[:300]]
        for one, example in pairs[:MOST_ROWS]
    ]
    yield html_page.table(["predicted", "truth", "distance", "text"], rows, texts=True)


def _settings(model: Model) -> Iterator[str]:
    yield html_page.heading("Settings")
    tasks: dict[str, Any] = {"": model.recipe.task} if model.recipe.task is not None else dict(model.recipe.tasks)
    for name, task in tasks.items():
        rows = [[field.name, getattr(task, field.name)] for field in dataclasses.fields(task)]
        kind = type(task).__name__
        yield html_page.folded(f"{name}: {kind}" if name else kind, html_page.table(["setting", "value"], rows))


def confusion_table(labels: Sequence[str], matrix: Sequence[Sequence[int]]) -> str:
    """A table whose cells are darker the more examples they hold, relative to their row."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in labels)
    rows = []
    for name, row in zip(labels, matrix, strict=True):
        total = max(1, sum(row))
        cells = "".join(
            f'<td style="background: rgba(37, 99, 235, {value / total:.2f})'
            f'{"; color: white" if value / total > 0.55 else ""}; padding: .3rem .9rem">{value:,}</td>'
            for value in row
        )
        rows.append(f"<tr><th>{html.escape(name)}</th>{cells}</tr>")
    return f'<div class="wide"><table><tr><th></th>{head}</tr>{"".join(rows)}</table></div>'
