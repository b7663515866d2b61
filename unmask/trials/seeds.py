"""The same adaptation with several seeds: the scores of all, and the best model."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unmask.errors import require
from unmask.trials.trial import Adapt, Trial, beside, replace_folder, spread


def try_seeds(
    adapt: Adapt, examples: Sequence[Any], dev: Sequence[Any], out: Path, seeds: Sequence[int]
) -> dict[str, Any]:
    """Adapt with each seed. `out` holds the model with the highest dev score. Returns the scores, their mean and deviation.

    A training that is stopped is the last one; it does not count unless it is the only one."""
    require(
        bool(dev),
        "several seeds are compared by their scores on a dev set, and none is given: give --dev FILE",
    )
    found: list[dict[str, Any]] = []
    best, stopped = None, False
    for number, seed in enumerate(seeds):
        place = out if number == 0 else beside(out, f"seed-{seed}")
        last = adapt(Trial(f"seed {seed} ({number + 1} of {len(seeds)})", examples, place, dev, seed))
        stopped = bool(last.get("stopped"))
        if stopped and found:
            shutil.rmtree(place, ignore_errors=True)
            break
        found.append({"seed": seed, "score": last["kept_score"], **(last["kept_epoch"] or {})})
        if stopped:
            break
        if best is None or found[-1]["score"] > best["score"]:
            best = found[-1]
            if place != out:
                replace_folder(out, place)
        else:
            shutil.rmtree(place)
    kept = best or found[0]
    scores = [one["score"] for one in found if one["score"] is not None]
    return {"trials": found, "kept_seed": kept["seed"], "stopped": stopped} | (spread(scores) if scores else {})
