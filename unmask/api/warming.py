"""Continue pretraining on the texts of a task before the model is adapted to it (Gururangan et al. 2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from unmask import tasks
from unmask.adapt.ways import task_with, tuning_settings
from unmask.api.adapting import kind_of_file
from unmask.api.model import Model
from unmask.api.paths import Paths, listed
from unmask.api.runs import load, pretrain
from unmask.axes import Task
from unmask.errors import require
from unmask.progress import Progress
from unmask.tasks.classify import Columns
from unmask.train import log

SLOWER = 0.2  # of the rate of the pretraining: a higher one forgets what the network knows


def warm(
    base: Model, train: str | Path, out: str | Path, *, budget: str, more: Paths = (), task: str | Task | None = None,
    settings: Sequence[str] = (), text: str | Sequence[str] | None = None, label: str | None = None, seed: int = 0,
    overwrite: bool = False, resume: bool = False, stop: Callable[[], bool] = lambda: False, progress: Progress = True,
) -> Model:  # fmt: skip
    """Continue pretraining on the texts of a file of examples, without their labels; returns the model in `out`.

    `budget`: such as 2m or 500steps. `more`: other text of the same kind. `task`, `settings`, `text`, `label`: how the file is
    read, as for `Model.adapt`. `resume`: take the model in `out` if its training is finished, otherwise begin again."""
    if resume and any(record.get("done") for record in log.read(Path(out))):
        return load(out, device=base.device)
    require(
        not Path(train).is_dir(),
        "{train} is a folder of tasks, and --warm-text reads the texts of one file: leave --warm-text out, or continue pretraining on all "
        "texts first with 'unmask pretrain --from'",
        train=train,
    )
    columns = Columns.of(text, label)
    found = task or kind_of_file(train, columns)
    reader: Task = task_with(tasks.get(found) if isinstance(found, str) else found, tuning_settings(settings)[0], None)
    examples, _ = reader.read(Path(train), columns, labelled=False)
    optimise = base.recipe.optimise
    recipe = base.recipe.replace(optimise=replace(optimise, rate=SLOWER * optimise.rate))  # type: ignore[type-var]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "texts.txt"
        file.write_text(documents(one for example in examples for one in example.shown), encoding="utf-8")
        return pretrain(
            recipe, [file, *listed(more)], out, budget=budget, start=base.folder, seed=seed, device=base.device,
            overwrite=overwrite or resume, stop=stop, progress=progress,
        )  # fmt: skip


def documents(texts: Iterable[str]) -> str:
    """The texts as the lines of a file, with a blank line between two, each once."""
    unique = dict.fromkeys("\n".join(line for line in text.splitlines() if line.strip()) for text in texts)
    return "\n\n".join(unique) + "\n"
