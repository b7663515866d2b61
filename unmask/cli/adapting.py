"""How the results of several trainings are shown: seeds, folds, and the number of labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unmask import screen
from unmask.cli import output
from unmask.counted import counted
from unmask.score_names import score_name

MOST = 5  # suspicious labels that are shown


def show_trials(found: dict[str, Any], out: Path, json_: bool) -> None:
    """The scores of all seeds or folds, their mean, and the most suspicious labels."""
    if json_ or "mean" not in found:
        return
    if "trials" in found:
        kept = found["kept_seed"]
        rows = [
            [f"seed {one['seed']}", f"{one['dev_' + found['metric']]:.4f}", "kept" if one["seed"] == kept else ""]
            for one in found["trials"]
        ]
    else:
        rows = [[f"fold {number}", f"{score:.4f}", ""] for number, score in enumerate(found["folds"], 1)]
    deviation = "" if found["deviation"] is None else f" ± {found['deviation']:.4f}"
    screen.table(
        f"{out}",
        ["training", score_name(found["metric"]), ""],
        [*rows, ["mean ± deviation", f"{found['mean']:.4f}{deviation}", ""]],
    )
    suspects = found.get("suspects") or []
    if suspects:
        from unmask.trials import suspect_columns  # imports torch, which --help must not wait for

        columns = [name for name in suspect_columns(suspects) if name != "where"]
        shown = [[str(one[name])[:80] for name in columns] for one in suspects[:MOST]]
        screen.table(
            f"{counted(len(suspects), 'labels to check')}: a model of the other examples disagrees (all in {out}/suspects.jsonl)",
            columns,
            shown,
        )


def show_curve(found: dict[str, Any], out: Path, json_: bool) -> None:
    """The score by the number of labels."""
    if not json_:
        rows = [[f"{p['labels']:,}", p["start"], f"{p['mean']:.4f}", len(p["scores"])] for p in found["points"]]
        screen.table(f"{score_name(found['metric'])} on dev", ["labels", "start", "mean", "seeds"], rows)
    output.done(found, f"drawn in {out}/report.html", json_)
