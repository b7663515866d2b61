"""The record: from raw text to scores in a number of minutes on one machine, everything counted but installing.

    python bench/record.py --text wiki.txt.xz --text imdb.txt.xz --tasks tasks/ --minutes 10 --size medium --out record/

A tokenizer of the recipe's kind is trained, the text is prepared, the recipe is pretrained for the time that is left, and
the model is scored and adapted (see docs/compare.md for the folder of tasks). `docs/record.md` has the table of attempts.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import unmask
from unmask.comparison.report_page import spread


def main() -> None:
    began = time.monotonic()
    given = _arguments()
    out = Path(given.out)
    tokenizer, data = out / "tokenizer.json", out / "data"
    sample = [f"{path}:{given.sample:g}" if given.sample < 1 else path for path in given.text]
    unmask.train_tokenizer(sample, tokenizer, recipe=given.recipe, vocab=given.vocab)
    unmask.prepare(given.text, data, tokenizer=tokenizer, words=given.words)
    prepared = time.monotonic() - began
    left = given.minutes * 60 - prepared - given.scoring
    entry = "+".join([given.recipe, *given.set])
    found = unmask.compare(
        [entry], out / "compare", data=data, tasks=given.tasks, budget=f"{left:.0f}s", size=given.size,
        task_seeds=given.task_seeds, untrained=False, progress=_ended if given.quiet else True,
    )  # fmt: skip
    total = time.monotonic() - began
    run = found["runs"][0]
    scores = {row["task"]: spread(row, percent=True) for row in found["summary"] if row["task"] in found["tasks"]}
    record = {
        "entry": entry, "size": given.size, "minutes": total / 60, "prepared": prepared, "trained": run.get("seconds"),
        "started": (run.get("wall") or 0) - (run.get("seconds") or 0), "scored": total - prepared - (run.get("wall") or 0),
        "tokens": run.get("tokens"), "loss": run.get("held_out_loss"), "scores": scores, "error": run["error"],
        "machine": found["machine"],
    }  # fmt: skip
    (out / "record.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1))
    cells = [entry, given.size, f"{total / 60:.1f}", f"{(run.get('tokens') or 0) / 1e6:.0f}M", *scores.values()]
    print(f"| {' | '.join(map(str, cells))} |   # {', '.join(scores)}")


def _ended(record: dict[str, Any]) -> None:
    if record["event"] == "ended":
        print(record, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", action="append", required=True, help="raw text; give it several times")
    parser.add_argument("--tasks", required=True, help="a folder of tasks")
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--scoring", type=float, default=90.0, help="seconds kept for scoring and adapting")
    parser.add_argument("--recipe", default="unmask")
    parser.add_argument("--size", default="medium")
    parser.add_argument("--vocab", type=int, default=16_000)
    parser.add_argument("--sample", type=float, default=0.3, help="the share of the text that trains the tokenizer")
    parser.add_argument(
        "--words", default="none", help="as for 'unmask prepare': word boundaries, if the recipe needs them"
    )
    parser.add_argument("--task-seeds", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="a setting of the recipe")
    parser.add_argument("--quiet", action="store_true", help="print no table while it runs")
    return parser.parse_args()


if __name__ == "__main__":
    main()
