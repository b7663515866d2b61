"""A trained model in memory (its network, recipe and tokenizer): opened from a run folder, saved to a run folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unmask import run
from unmask.axes import gives_of
from unmask.errors import UserError, require
from unmask.init_weights import Undrawn
from unmask.knowledge.linking import known_linker
from unmask.recipe import Recipe
from unmask.recipe_file import RecipeFile
from unmask.system.tuned import kept_alone, own, put_in, share
from unmask.text import Linker, Tokenizer
from unmask.text import layout as layouts
from unmask.train import checkpoint, has_bfloat16

RANDOM = (
    "tensors of the head {head!r} have random weights: the imported checkpoint has no such head; train it first with "
    "'unmask pretrain ... --from'"
)


@dataclass(frozen=True)
class Model:
    """The contents of a run folder, ready for use. `unmask.Model` is this record with a method for each use."""

    system: Any  # the networks with their weights
    recipe: Recipe  # the recipe of the run
    tokenizer: Tokenizer  # the tokenizer of the run
    folder: Path  # the run folder
    device: str = "cpu"  # where the weights are
    fresh: tuple[str, ...] = ()  # tensors that an imported checkpoint did not have, so their weights are random
    notices: tuple[str, ...] = ()  # what the user should know about the run
    graph: Path | None = None  # the folder of the graph whose entities it reads in texts; None: it reads none
    # CUDA graphs of generation steps; only `infer.cuda_graph.recording` changes them
    recordings: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def length(self) -> int:
        """The longest text that the model reads, in tokens. If its positions are learned, the longest row of its training."""
        return self.recipe.longest

    @property
    def places(self) -> int:
        """The longest text that the network has positions for, even if they were never trained."""
        return self.recipe.system.backbone.length

    @property
    def opening(self) -> list[int]:
        """The special tokens that a document begins with: the layout's tokens before the text."""
        names = [item.name for item in layouts.items(self.recipe.layout, 1)]
        return [self.tokenizer.role(name) for name in names[: names.index("a")]]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes, if the model was adapted to classification."""
        return () if self.recipe.task is None else self.recipe.task.labels

    @property
    def linker(self) -> Linker | None:
        """Finds the entities of a text that it reads; None: it reads none."""
        backbone: Any = self.recipe.system.backbone
        if self.graph is None or "entity vectors" not in gives_of(backbone):
            return None
        return known_linker(self.graph, backbone.knowledge.link_by)

    def head(self, fact: str, job: str) -> nn.Module:
        """The objective that gives this fact, such as "token scores". `job`: a verb for the error message."""
        name = self._named(fact)
        if name is None:
            raise UserError(
                "{folder} cannot {job}: it predicts {predict}",
                folder=self.folder,
                job=job,
                predict=", ".join((*self.recipe.predict, *self.recipe.tasks)) or "nothing",
            )
        found: nn.Module = self.system.predict[name]
        return found

    def random_weights(self, fact: str) -> Counter[str]:
        """A note if the objective that gives this fact has random weights, as in an imported model."""
        name = self._named(fact)
        # a bias starts at zero, not at random; a name such as "weight[9:]" means only the rows of added special tokens
        of_head = [tensor for tensor in self.fresh if tensor.startswith(f"predict.{name}.")]
        random = [tensor for tensor in of_head if not tensor.endswith(("bias", "]"))]
        return Counter({RANDOM.format(head=name): len(random)} if random else {})

    def _named(self, fact: str) -> str | None:
        parts: dict[str, Any] = self.recipe.predict
        return next((name for name, part in parts.items() if fact in part.gives), None)


def open_run(
    folder: str | Path, *, device: str | None = None, half: bool = False, recipe: str | Path | RecipeFile | None = None
) -> Model:
    """The model in a run folder. `half`: load it in bfloat16, for speed on a GPU.

    `recipe`: the user's recipe file, if the run uses parts from such a file."""
    found = run.open(folder, recipe=recipe)
    if found.base is not None:
        below = found.base.found(found.folder)
        base = open_run(below, device=device, half=half, recipe=run.file_for(below, recipe))
        return _on_base(base, found, half=half)
    with Undrawn():
        system = found.recipe.system.build(found.recipe, found.tokenizer.vocabulary, 0)
    if found.recipe.tune is not None:
        put_in(system, found.recipe.tune)
    checkpoint.load_weights(system, found.weights)
    place = chosen_device(device)
    require(
        not half or place != "cpu" or has_bfloat16(),
        "--half would be very slow here, because this CPU has no instructions for bfloat16: leave it out",
    )
    system = system.to(place, torch.bfloat16) if half else system.to(place)
    return Model(
        system.eval(),
        found.recipe,
        found.tokenizer,
        found.folder,
        place,
        fresh=found.random,
        notices=found.notices,
        graph=_graph(found),
    )


def chosen_device(device: str | None) -> str:
    """The device that a user means: by default the GPU if there is one."""
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    require(
        place.split(":")[0] in ("cpu", "cuda"), "device must be cpu, cuda or cuda:NUMBER, got {place!r}", place=place
    )
    require(
        not place.startswith("cuda") or torch.cuda.is_available(),
        "--device {place} needs a GPU, but this machine has none: use --device cpu",
        place=place,
    )
    return place


def open_on(base: Model, folder: str | Path, *, recipe: str | Path | RecipeFile | None = None) -> Model:
    """The model in a run folder that holds only what was trained, on the weights of a base that is open already. Both
    models share these weights. `recipe`: as for `open_run`."""
    found = run.open(folder, recipe=recipe)
    if found.base is None:
        raise UserError(
            "{folder} holds all its weights, so it needs no base: open it with unmask.load({folder!r})",
            folder=str(folder),
        )
    found.base.check(base.folder, found.folder)
    return _on_base(base, found, half=next(base.system.parameters()).dtype == torch.bfloat16)


def _on_base(base: Model, found: run.Run, *, half: bool) -> Model:
    """A run that holds only what was trained, on the weights of its base."""
    recipe = found.recipe
    if recipe.tune is None or recipe.task is None:
        raise UserError("{folder} is damaged: it has a base, but its recipe has no `tune`", folder=found.folder)
    with Undrawn():
        system = recipe.system.build(recipe, found.tokenizer.vocabulary, 0)
    share(system, base.system, recipe.task.head)
    put_in(system, recipe.tune)
    system.saved = kept_alone(system, recipe.tune, recipe.task.head)
    own(system, system.saved)
    system = system.to(base.device, torch.bfloat16) if half else system.to(base.device)
    checkpoint.load_weights(system, found.weights)
    notices = (*base.notices, *found.notices)
    return Model(
        system.eval(),
        recipe,
        found.tokenizer,
        found.folder,
        base.device,
        fresh=found.random,
        notices=notices,
        graph=_graph(found),
    )


def _graph(found: run.Run) -> Path | None:
    """The folder of the graph whose entities a run reads; None: it reads none, or was never trained with any."""
    backbone: Any = found.recipe.system.backbone
    if "entity vectors" not in gives_of(backbone) or not backbone.knowledge.graph:
        return None
    graph = found.folder / run.GRAPH
    require(
        graph.is_dir(),
        "{folder} reads the entities of a graph, but it has no folder {name}: copy it from the run that it was made from",
        folder=found.folder,
        name=run.GRAPH,
    )
    return graph


def save_run(
    model: Model, folder: str | Path, *, overwrite: bool = False, report: Mapping[str, Any] | None = None
) -> None:
    """Write the files that inference needs: weights, recipe and tokenizer. `report`: the report of an import, if any."""
    run.claim(Path(folder), overwrite=overwrite)
    more = {run.IMPORTED: report} if report is not None else {}
    run.create(Path(folder), model.recipe, model.tokenizer, system=model.system, more=more, graph=model.graph)
