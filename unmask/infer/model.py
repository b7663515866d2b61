"""A trained model in memory: its network, recipe and tokenizer; opened from a run folder, saved to one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unmask import run
from unmask.errors import UserError, require
from unmask.recipe import Recipe
from unmask.recipe_file import RecipeFile
from unmask.text import Tokenizer
from unmask.text import layout as layouts
from unmask.train import checkpoint

RANDOM = (
    "tensors of the head {head!r} have random weights: the imported checkpoint has no such head; train it first with "
    "'unmask pretrain ... --from'"
)


@dataclass(frozen=True)
class Model:
    """What a run folder holds, ready for use. `unmask.Model` is this record with a method for each use."""

    system: Any
    recipe: Recipe
    tokenizer: Tokenizer
    folder: Path
    device: str = "cpu"
    fresh: tuple[str, ...] = ()  # tensors that an imported checkpoint did not have: their weights are random
    notices: tuple[str, ...] = ()  # what the user should know about the run that it was opened from
    # of generation's steps, on a GPU; only `infer.cuda_graph.recording` changes it
    recordings: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

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

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes it tells apart, if it was adapted to any."""
        return () if self.recipe.task is None else self.recipe.task.labels

    def head(self, fact: str, job: str) -> nn.Module:
        """The objective that gives this fact, such as "token scores". `job`: what the caller wants, for the error."""
        name = self._named(fact)
        if name is None:
            raise UserError(f"{self.folder} cannot {job}: it predicts {', '.join(self.recipe.predict) or 'nothing'}")
        found: nn.Module = self.system.predict[name]
        return found

    def random_weights(self, fact: str) -> Counter[str]:
        """A note if the objective that gives this fact has random weights, as in an imported model."""
        name = self._named(fact)
        # a bias starts from zero, and "weight[9:]" are the rows of special tokens that were added
        mine = [tensor for tensor in self.fresh if tensor.startswith(f"predict.{name}.")]
        random = [tensor for tensor in mine if not tensor.endswith(("bias", "]"))]
        return Counter({RANDOM.format(head=name): len(random)} if random else {})

    def _named(self, fact: str) -> str | None:
        parts: dict[str, Any] = self.recipe.predict
        return next((name for name, part in parts.items() if fact in part.gives), None)


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
