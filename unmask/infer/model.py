"""A trained model in memory: its network, recipe and tokenizer; opened from a run folder, saved to one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from unmask import run
from unmask.batch import Batch, Hidden
from unmask.data.examples import Text, batch_of, rows_of
from unmask.errors import UserError, require
from unmask.predict.choice import Choice
from unmask.predict.label import Label
from unmask.recipe import Recipe
from unmask.recipe_file import RecipeFile
from unmask.text import Tokenizer
from unmask.text import layout as layouts
from unmask.train import checkpoint

ROWS = 32  # examples in one pass
RANDOM = (
    "tensors of the head {head!r} have random weights: the imported checkpoint has no such head; train it first with "
    "'unmask pretrain ... --from'"
)


@dataclass(frozen=True)
class Model:
    """What a run folder holds, ready for use."""

    system: Any
    recipe: Recipe
    tokenizer: Tokenizer
    folder: Path
    device: str = "cpu"
    notes: Counter[str] = field(default_factory=Counter, compare=False)  # what was cut from texts given to it
    fresh: tuple[str, ...] = ()  # tensors that an imported checkpoint did not have: their weights are random
    notices: tuple[str, ...] = ()  # what the user should know about the run that it was opened from
    recordings: dict[Any, Any] = field(
        default_factory=dict, compare=False, repr=False
    )  # of generation's steps, on a GPU

    @property
    def length(self) -> int:
        """The longest text that it reads, in tokens: as long as the rows it was trained with, if its positions are learned."""
        return self.recipe.longest

    @property
    def places(self) -> int:
        """The longest text that its network has positions for, trained or not."""
        return self.recipe.system.backbone.length

    @property
    def opening(self) -> list[int]:
        """The special tokens that a document begins with: those of the layout before its text."""
        names = [item.name for item in layouts.items(self.recipe.layout, 1)]
        return [self.tokenizer.role(name) for name in names[: names.index("a")]]

    def head(self, kind: Any, job: str) -> nn.Module:
        """The objective of this kind that the model was trained with."""
        for name, part in self.recipe.predict.items():
            if isinstance(part, kind):
                self._note_random(name)
                return self.system.predict[name]
        raise UserError(f"{self.folder} cannot {job}: it predicts {', '.join(self.recipe.predict) or 'nothing'}")

    def _note_random(self, head: str) -> None:
        # a bias starts from zero, and "weight[9:]" are the rows of special tokens that were added
        mine = [name for name in self.fresh if name.startswith(f"predict.{head}.")]
        random = [name for name in mine if not name.endswith(("bias", "]"))]
        if random:
            self.notes[RANDOM.format(head=head)] = len(random)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes it tells apart, if it was adapted to any."""
        return next((part.names for part in self.recipe.predict.values() if isinstance(part, Label)), ())

    @property
    def chooses(self) -> bool:
        """Whether it was adapted to choose one of several texts."""
        return any(isinstance(part, Choice) for part in self.recipe.predict.values())

    def passes(
        self, texts: Sequence[Text | tuple[Text, ...]], *, keep: Literal["front", "back"] = "front"
    ) -> Iterator[tuple[np.ndarray, Batch, Hidden]]:
        """Run the texts through the network, sorted by length; yields which texts, their batch, their vectors.

        `keep`: which end of a text stays where it is too long."""
        rows, notes = rows_of(texts, [0] * len(texts), self.tokenizer, self.recipe.layout, self.length, keep=keep)
        self.notes.update(notes)
        order = np.argsort((rows.example >= 0).sum(1).reshape(len(rows), -1).max(1), kind="stable")
        self.system.eval()
        with torch.no_grad():
            for begin in range(0, len(order), ROWS):
                chosen = order[begin : begin + ROWS]
                batch = batch_of(rows, chosen).to(self.device)
                yield chosen, batch, self.system.look(batch)


def open_run(
    folder: str | Path, *, device: str | None = None, half: bool = False, recipe: str | Path | RecipeFile | None = None
) -> Model:
    """The model in a run folder; `half`: in bfloat16, for speed on a GPU.

    `recipe`: the user's recipe file, for a run that uses parts of one."""
    found = run.open(folder, recipe=recipe)
    system = found.recipe.system.build(found.recipe, found.tokenizer.vocabulary, 0)
    checkpoint.load_weights(system, found.weights)
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    require(place.split(":")[0] in ("cpu", "cuda"), f"a device is cpu, cuda or cuda:0, got {place!r}")
    require(
        not place.startswith("cuda") or torch.cuda.is_available(), f"no GPU here for --device {place}: use --device cpu"
    )
    system = system.to(place, torch.bfloat16) if half else system.to(place)
    return Model(
        system.eval(), found.recipe, found.tokenizer, found.folder, place, fresh=found.random, notices=found.notices
    )


def save_run(
    model: Model, folder: str | Path, *, overwrite: bool = False, report: Mapping[str, Any] | None = None
) -> None:
    """Write what inference needs: weights, recipe, tokenizer; and the report of an import, where there is one."""
    run.claim(Path(folder), overwrite=overwrite)
    more = {run.IMPORTED: report} if report is not None else {}
    run.create(Path(folder), model.recipe, model.tokenizer, system=model.system, more=more)
