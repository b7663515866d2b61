"""A trained model in memory: its network, recipe and tokenizer; opened from a run folder, saved to one."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unmask.errors import UserError, require
from unmask.recipe import Recipe, read_recipe, to_json
from unmask.see import See, Writes
from unmask.text import Tokenizer
from unmask.text import layout as layouts
from unmask.train import checkpoint

IMPORTED = "import.json"  # what became of an imported checkpoint: the report of 'unmask import'
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
    fresh: tuple[str, ...] = ()  # tensors that an imported checkpoint did not have: their weights are random
    # of generation's steps, on a GPU; only `infer.cuda_graph.recording` changes it
    recordings: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def length(self) -> int:
        """The longest text that it reads, in tokens: as long as the rows it was trained with, if its positions are learned."""
        return self.recipe.longest

    @property
    def places(self) -> int:
        """The longest text that its network has positions for, trained or not."""
        return int(self.recipe.system.backbone.length)  # type: ignore[attr-defined]

    @property
    def opening(self) -> list[int]:
        """The special tokens that a document begins with: those of the layout before its text."""
        names = [item.name for item in layouts.items(self.recipe.layout, 1)]
        return [self.tokenizer.role(name) for name in names[: names.index("a")]]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes it tells apart, if it was adapted to any."""
        return () if self.recipe.task is None else self.recipe.task.labels

    @property
    def writes(self) -> Writes:
        """What it can write: more of a text, a second text, or nothing."""
        found: Writes = self.recipe.see.writes  # type: ignore[attr-defined]
        return found

    @property
    def reading(self) -> See:
        """The view that it reads with."""
        found: See = self.recipe.see.serving  # type: ignore[attr-defined]
        return found

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


def open_run(folder: str | Path, *, device: str | None = None, half: bool = False) -> Model:
    """The model in a run folder; `half`: in bfloat16, for speed on a GPU."""
    folder = Path(folder)
    require(folder.is_dir(), f"no run at {folder}: make one with 'unmask pretrain' or 'unmask import'")
    for name in ("recipe.json", "tokenizer.json", checkpoint.WEIGHTS):
        require((folder / name).is_file(), f"{folder} is not a finished run: it has no {name}")
    recipe = read_recipe(folder / "recipe.json")
    tokenizer = Tokenizer.load(folder)
    system = recipe.system.build(recipe, tokenizer.vocabulary, 0)  # type: ignore[attr-defined]
    checkpoint.load_weights(system, folder / checkpoint.WEIGHTS)
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    require(place.split(":")[0] in ("cpu", "cuda"), f"a device is cpu, cuda or cuda:0, got {place!r}")
    require(
        not place.startswith("cuda") or torch.cuda.is_available(), f"no GPU here for --device {place}: use --device cpu"
    )
    system = system.to(place, torch.bfloat16) if half else system.to(place)
    return Model(system.eval(), recipe, tokenizer, folder, place, fresh=_fresh(folder / IMPORTED))


def _fresh(report: Path) -> tuple[str, ...]:
    """The tensors that an import did not find; none where the run was not imported."""
    if not report.is_file():
        return ()
    try:
        return tuple(map(str, json.loads(report.read_text(encoding="utf-8"))["missing"]))
    except (ValueError, TypeError, KeyError):
        raise UserError(f"{report} is damaged: import the model again, or delete that file") from None


def save_run(model: Model, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write what inference needs: weights, recipe, tokenizer."""
    folder = Path(folder)
    require(overwrite or not folder.exists(), f"{folder} exists already: choose another --out, or pass --overwrite")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "recipe.json").write_text(to_json(model.recipe), encoding="utf-8")
    model.tokenizer.save(folder / "tokenizer.json")
    checkpoint.save_weights(model.system, folder / checkpoint.WEIGHTS)
