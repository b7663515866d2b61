"""Answer examples with an adapted model. The task decides what the model reads and what its scores mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unmask.axes import Answered, Task, Window
from unmask.data.examples import OWNER, Laid
from unmask.errors import UserError, require
from unmask.infer.generate import generate
from unmask.infer.model import Model
from unmask.infer.passes import batches, laid_out, passes
from unmask.infer.sampling import Beams
from unmask.tasks import task_of


@dataclass(frozen=True)
class TaskReader:
    """The interface of a model that tasks use (`unmask.axes.Reader`)."""

    model: Model

    @property
    def name(self) -> str:
        return str(self.model.folder)

    @property
    def length(self) -> int:
        return self.model.length

    def encode(self, text: str) -> list[int]:
        return self.model.tokenizer.encode(text)

    def scores(self, fact: str, laid: Laid) -> tuple[list[np.ndarray], Counter[str]]:
        head: Any = self.model.head(fact, "answer")
        decode = getattr(head, getattr(head, "decodes", {}).get(fact, "decode"))
        rows, notes = laid_out(self.model, laid)
        found: dict[int, np.ndarray] = {}
        for chosen, batch, hidden in passes(self.model, rows):
            with torch.no_grad():
                scores = decode(hidden, batch).float().cpu().numpy()
            found |= dict(zip(chosen.tolist(), scores, strict=True))
        return [found[number] for number in range(len(rows))], notes + self.model.random_weights(fact)

    def windows(self, fact: str, laid: Laid) -> tuple[list[list[Window]], Counter[str]]:
        head: Any = self.model.head(fact, "answer")
        rows, notes = laid_out(self.model, laid)
        found: list[list[Window]] = [[] for _ in laid.readings]
        read: dict[int, Window] = {}
        for chosen, batch, hidden in passes(self.model, rows):
            with torch.no_grad():
                scores = head.decode(hidden, batch).float().cpu().numpy()
            summary = (batch.summary % batch.shape[1]).tolist()
            columns = {name: column.cpu().numpy() for name, column in batch.columns.items()}
            lengths = batch.real.sum(1).tolist()
            for i, number in enumerate(chosen.tolist()):
                own = {name: column[i, : lengths[i]] for name, column in columns.items()}
                read[number] = Window(scores[i, : lengths[i]], own, summary[i])
        for number, owner in enumerate(rows.per_example.get(OWNER, np.arange(len(rows))).tolist()):
            found[owner].append(read[number])
        return found, notes + self.model.random_weights(fact)

    @torch.no_grad()
    def losses(self, laid: Laid) -> dict[str, float]:
        system = self.model.system.eval()
        sums: dict[str, tuple[float, float]] = {}
        for _, batch in batches(self.model, laid_out(self.model, laid)[0]):
            for name, loss in system.step(system.hide(batch)[0])[0].items():
                total, count = sums.get(name, (0.0, 0.0))
                sums[name] = total + float(loss.total), count + float(loss.count)
        return {name: total / max(1.0, count) for name, (total, count) in sums.items()}

    def write(
        self, sources: Sequence[str], *, tokens: int, beams: int, length_penalty: float, length_offset: int, least: int,
        no_repeat: int,
    ) -> tuple[list[str], Counter[str]]:  # fmt: skip
        how = Beams(beams, length_penalty, length_offset=length_offset, least=least, no_repeat=no_repeat)
        cached = self.model.system.backbone.can_cache
        found = generate(self.model, sources, tokens=tokens, sampling=how, cached=cached)
        cut = sum(not one.ended for one in found.value)
        notes = Counter({f"written texts are cut after {tokens} tokens: set most={2 * tokens} for longer ones": cut})
        return [one.text for one in found.value], found.notes + notes


def task_of_model(model: Model) -> Task:
    """The task that a model was adapted to. If there is none, the error says what to do."""
    task = task_of(model.recipe)
    if task is None and model.recipe.tasks:
        raise UserError(
            "{folder} has several tasks: name one of {names} with --task (in Python, model.task(NAME))",
            folder=model.folder,
            names=", ".join(model.recipe.tasks),
        )
    if task is None:
        parts = ", ".join(model.recipe.predict) or "nothing"
        raise UserError(
            "{folder} was not adapted to a task; it predicts {parts}: adapt it first with 'unmask adapt'",
            folder=model.folder,
            parts=parts,
        )
    return task


def answer(model: Model, examples: Sequence[Any]) -> Answered:
    """The answer to each example. An example may be a text, a pair of texts, or the task's own kind of example."""
    task = task_of_model(model)
    require(len(examples) > 0, "there are no examples to answer: give at least one")
    return task.answer(TaskReader(model), task.given(examples))
