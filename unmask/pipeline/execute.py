"""Do the work of a pipeline: what is finished is kept, what was cut off goes on, and what has changed is done again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from unmask import run
from unmask.errors import UserError
from unmask.pipeline.call import near
from unmask.pipeline.fingerprint import changes
from unmask.pipeline.runner import Runner, Stopped
from unmask.pipeline.work import Work
from unmask.text.atomic_write import drafted

STAGE = "stage.json"  # in a run folder: the stage is finished; what it was made from, and what was measured
Tell = Callable[[dict[str, Any]], None]


def finished(work: Work) -> dict[str, Any] | None:
    """What was measured of a work; None if it is not finished."""
    if not work.trains:
        return {} if work.out.exists() else None
    found = _read(work.out / STAGE)
    there = found and found.get("key") == work.key and (work.out / run.WEIGHTS).is_file()
    return found["result"] if found and there else None


def state_of(work: Work, variant: str) -> dict[str, Any]:
    """Whether a work is finished, goes on, or begins; and why it is done again, if an earlier result is not valid."""
    if finished(work) is not None:
        return {"state": "finished", "why": []}
    if work.out.exists():
        return {"state": "goes on", "why": []}
    return {"state": "begins", "why": list(why_again(work, variant))}


def why_again(work: Work, variant: str) -> Iterator[str]:
    """What has changed since the last time that this stage was finished."""
    earlier = [_read(file) for file in work.out.parent.glob(f"{work.stage}-*/{STAGE}")] if work.trains else []
    same = {"stage": work.stage, "variant": variant, "seed": work.seed, "trial": work.trial}
    known = [one for one in earlier if one and same.items() <= one.items()]
    if known:
        before = max(known, key=lambda one: float(one["finished"]))
        yield from changes(before["made_from"], json.loads(json.dumps(work.made_from)))


def do_all(works: Sequence[tuple[str, Work]], runner: Runner, tell: Tell) -> bool:
    """Do every work once, in order. `works`: each with the name of its variant. Returns False if the user stopped it."""
    seen: set[Path] = set()
    unique = [(variant, work) for variant, work in works if not (work.out in seen or seen.add(work.out))]  # type: ignore[func-returns-value]
    for number, (variant, work) in enumerate(unique, 1):
        state = state_of(work, variant)
        tell(
            {"event": "stage", "number": number, "of": len(unique), "variant": variant, "stage": work.stage, "does": work.does,
             "budget": work.budget, "seed": work.seed, "trial": work.trial, "out": near(work.out), "commands": [call.command for call in work.calls]} | state
        )  # fmt: skip
        if state["state"] == "finished":
            continue
        try:
            _do(work, runner, variant)
        except Stopped:
            return False
        except UserError as error:
            raise UserError("[{stage}]: {error}", stage=work.stage, error=error) from error
    return True


def _do(work: Work, runner: Runner, variant: str) -> None:
    work.out.parent.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {}
    for call in work.calls:
        result |= runner(call)
    if not work.trains:
        return
    about = {"format": 1, "stage": work.stage, "variant": variant, "seed": work.seed, "trial": work.trial, "key": work.key,
             "made_from": work.made_from, "finished": time.time(), "result": result}  # fmt: skip
    with drafted(work.out / STAGE) as draft:
        draft.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) and "result" in found and "made_from" in found else None
    except (OSError, ValueError):  # not there, or damaged: the stage is done again
        return None
