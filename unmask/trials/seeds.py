"""The same adaptation with several seeds: the scores of all, and the best model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unmask import run
from unmask.errors import require
from unmask.trials.trial import Adapt, Trial, judged_by, place_beside, spread


def check_dev(dev: Sequence[Any]) -> None:
    require(
        bool(dev),
        "several seeds are compared by their scores on a dev set, and none is given: give --dev FILE",
    )


def try_seeds(
    adapt: Adapt, examples: Sequence[Any], dev: Sequence[Any], out: Path, seeds: Sequence[int]
) -> dict[str, Any]:
    """Adapt with each seed. `out` holds the model with the highest dev score. Returns the scores, their mean and deviation.

    A training that is stopped is the last one; it does not count unless it is the only one."""
    check_dev(dev)
    found: list[dict[str, Any]] = []
    stopped = False
    for number, seed in enumerate(seeds):
        with place_beside(out) as place:
            last = adapt(Trial(f"seed {seed} ({number + 1} of {len(seeds)})", examples, place, dev, seed))
            stopped = bool(last.get("stopped"))
            if stopped and found:
                break
            one = {"seed": seed, "score": last["kept_score"], **(last["kept_epoch"] or {})}
            if not found or one["score"] > max(other["score"] for other in found):
                run.replace_folder(place, out)
                kept = seed
            found.append(one)
        if stopped:
            break
    judged = [judged_by(one) for one in found if one["score"] is not None]
    result = {"trials": found, "kept_seed": kept, "stopped": stopped}
    return result | ({"metric": judged[0][0]} | spread([value for _, value in judged]) if judged else {})
