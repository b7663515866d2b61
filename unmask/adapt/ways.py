"""Which way of tuning a caller means, with its settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unmask import tasks
from unmask.adapt._get import get
from unmask.axes import Tune
from unmask.errors import require
from unmask.settings import override
from unmask.tune_names import FULL

_BEFORE = "tune."


def tuning_settings(settings: Sequence[str]) -> tuple[list[str], list[str]]:
    """The settings of the task, and those of the way of tuning, without the "tune." before them."""
    of_task = [setting for setting in settings if not setting.strip().startswith(_BEFORE)]
    of_tune = [setting.strip().removeprefix(_BEFORE) for setting in settings if setting.strip().startswith(_BEFORE)]
    return of_task, of_tune


def task_with(task: Any, settings: Sequence[str], tune: str | Tune | None) -> Any:
    """A task with settings. A setting that only the way of tuning has is refused with its full name."""
    way: Any = get(tune) if isinstance(tune, str) else tune
    own, others = (set(getattr(part, "__dataclass_fields__", ())) for part in (task, way))
    for setting in settings:
        name = setting.partition("=")[0].strip().partition(".")[0]
        require(
            name in own or name not in others,
            "{name} is a setting of the way of tuning ({way}), not of the task: write tune.{name}=...",
            name=name,
            way=type(way).__name__.lower(),
        )
        elsewhere = [other for other in tasks.names() if name in tasks.get(other).__dataclass_fields__]
        require(
            name in own or not elsewhere,
            "--task {task} has no setting {name!r}: it is one of {others}; leave it out, or name the task with --task",
            task=type(task).__name__.lower(),
            name=name,
            others=", ".join(elsewhere),
        )
    return override(task, settings)


def tuned_by(tune: str | Tune | None, settings: Sequence[str]) -> Tune | None:
    """A way of tuning by its name, with settings; None: all weights are trained."""
    way: Tune | None = get(tune) if isinstance(tune, str) else tune
    if way is None:
        require(
            not settings,
            "tune.{setting} is a value of a way of tuning, and {full} has none: name a way with --tune, or leave it out",
            setting=settings[0] if settings else "",
            full=FULL,
        )
        return None
    return override(way, settings)
