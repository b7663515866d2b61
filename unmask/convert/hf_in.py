"""Import a Hugging Face folder: make a run folder, and report which tensors were loaded, missing and left over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unmask.convert.adjust_tensors import Adjusted
from unmask.convert.hf_folder import HFFolder, read
from unmask.convert.names import Heads
from unmask.convert.recipe_in import backbone_of, heads_of, paired, recipe_of
from unmask.convert.single_network import single_module
from unmask.convert.tensor_links import Link, links
from unmask.errors import require
from unmask.infer.model import Model, save_run
from unmask.recipe import Recipe
from unmask.train import checkpoint


@dataclass(frozen=True)
class Report:
    """The result of an import."""

    architecture: str  # the Hugging Face class
    recipe: str  # the recipe that the run gets
    loaded: int  # number of tensors of the run that came from the file
    parameters: int  # number of parameters in them
    missing: tuple[str, ...]  # tensors of the run, or rows of them, that the file does not have: they are random
    left_over: tuple[str, ...]  # tensors of the file, or rows of them, that the run has no place for
    notes: tuple[str, ...] = ()  # heads with random weights; settings of config.json that the run ignores


@dataclass(frozen=True)
class _Network:
    """One network, read from a folder."""

    adjusted: Adjusted  # the checkpoint, changed so that its tensors fit our network
    heads: Heads  # the heads of the run
    recipe: Recipe  # the recipe of this network alone

    @property
    def source(self) -> HFFolder:
        return self.adjusted.source


def import_hf(
    folder: str | Path, out: str | Path, *, generator: str | Path | None = None, overwrite: bool = False
) -> Report:
    """Read a local Hugging Face folder and write a run folder, which can be used, adapted or trained further.

    `generator`: the folder of a discriminator's generator. Without it, the run gets a generator with random weights."""
    first = _read(Path(folder))
    second = _read_generator(Path(generator), first) if generator is not None else None
    recipe = _recipe_of(first, second)
    spec: Any = recipe.system
    system = spec.build(recipe, first.source.tokenizer.vocabulary, 0)
    filled, left_over = _fill(single_module(system), first)
    if second:
        more, left = _fill(single_module(system, generator=True), second)
        filled, left_over = filled | more, left_over + [f"{name} (generator)" for name in left]
    report = _report(first, recipe, checkpoint.unique(system), filled, left_over)
    model = Model(system.eval(), recipe, first.source.tokenizer, Path(out))
    save_run(model, out, overwrite=overwrite, report=asdict(report))
    return report


def _recipe_of(first: _Network, second: _Network | None) -> Recipe:
    """The recipe of the run: of one network, or of a discriminator and its generator."""
    if not first.heads.replaced:
        return first.recipe
    usual = first.source.family.recipe.recipe(size=first.recipe.size).system
    shared = second is None or _same_embeddings(first, second)
    return paired(usual, first.recipe, second.recipe if second else None, shared=shared)


def _report(
    network: _Network, recipe: Recipe, wanted: Mapping[str, Tensor], filled: set[int], left_over: list[str]
) -> Report:
    absent = [name for name, tensor in wanted.items() if tensor.data_ptr() not in filled]
    loaded = [tensor.numel() for tensor in wanted.values() if tensor.data_ptr() in filled]
    source = network.source
    return Report(
        architecture=_title(network),
        recipe=recipe.name,
        loaded=len(loaded),
        parameters=sum(loaded),
        missing=tuple(sorted(absent + network.adjusted.fresh)),
        left_over=tuple(sorted(left_over)),
        notes=(
            *_random(absent),
            *_shared_bias(network),
            *source.family.notes(source.config, backbone_of(network.recipe)),
        ),
    )


def _random(absent: list[str]) -> list[str]:
    """Notes about the heads and networks with random weights, which must be trained before use."""
    heads = sorted({name.split(".")[1] for name in absent if name.startswith("predict.") and not name.endswith("bias")})
    generator = any(name.startswith(("generator.", "fill.")) for name in absent)
    return [
        f"{what} has random weights, the checkpoint has none: train it with 'unmask pretrain ... --from' before you use it"
        for what in [f"the head {head!r}" for head in heads] + ["the generator"] * generator
    ]


def _shared_bias(network: _Network) -> list[str]:
    """A note about the bias of the scores of choices, which our head does not have."""
    found = [name for name in network.source.family.names.choice.get("out.bias", ()) if network.heads.choice]
    return [f"{name} is left over: it adds the same number to the score of every choice" for name in found]


def _read(folder: Path) -> _Network:
    source = read(folder)
    heads = heads_of(source)
    recipe = recipe_of(source, heads)
    return _Network(source.family.adjust(source, backbone_of(recipe), heads), heads, recipe)


def _read_generator(folder: Path, first: _Network) -> _Network:
    """Read the generator that belongs to the discriminator `first`."""
    family = first.source.family
    require(
        bool(first.heads.replaced),
        "a generator comes with a discriminator, and the first folder is {title}: leave --generator out",
        title=_title(first),
    )
    second = _read(folder)
    require(
        second.source.family == family and bool(second.heads.tokens),
        "{folder} is no generator but {title}: give a folder of {architecture}",
        folder=folder,
        title=_title(second),
        architecture=family.architecture(Heads("tokens")),
    )
    require(
        second.source.tokenizer.backend.get_vocab() == first.source.tokenizer.backend.get_vocab(),
        "{folder} has another vocabulary than the discriminator: give the generator that it was trained with",
        folder=folder,
    )
    return second


def _title(network: _Network) -> str:
    return network.source.architecture or network.source.family.architecture(network.heads)


def _same_embeddings(one: _Network, other: _Network) -> bool:
    called = one.source.family.names
    embeds = [called.prefix + theirs[0] for ours, theirs in called.network.items() if ours.startswith("embed.")]
    pairs = [(one.source.tensors.get(name), other.source.tensors.get(name)) for name in embeds]
    same = all(a is b or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs)
    return same and backbone_of(one.recipe).epsilon == backbone_of(other.recipe).epsilon


def _fill(system: nn.Module, network: _Network) -> tuple[set[int], list[str]]:
    """Copy the tensors into the network. Returns the addresses of the filled tensors, and the names of unused tensors."""
    tensors, written = network.source.tensors, network.source.written
    wanted = checkpoint.unique(system)
    known = links(network.source.family, network.heads, wanted, backbone_of(network.recipe))
    found = [link for link in known if tensors.keys() >= set(link.theirs)]
    absent = [link for link in known if link not in found and link.ours.startswith("backbone.")]
    require(
        not absent,
        (
            "the checkpoint lacks {count_of_absent} tensors of the network that its config.json describes, such as "
            "{theirs}: download it again"
        ),
        count_of_absent=len(absent),
        theirs=absent[0].theirs[0] if absent else "",
    )
    for link in found:
        _put(link, tensors, wanted[link.ours])
    used = {name for link in found for name in link.theirs}
    return {wanted[link.ours].data_ptr() for link in found}, network.adjusted.cut + [
        written[n] for n in tensors.keys() - used
    ]


def _put(link: Link, tensors: Mapping[str, Tensor], place: Tensor) -> None:
    found = link.read(tensors)
    require(
        found.shape == place.shape,
        (
            "{theirs} makes a tensor of shape {shape} and config.json one of {shape_2}: the two files do not "
            "belong together, download both again"
        ),
        theirs=link.theirs[0],
        shape=tuple(found.shape),
        shape_2=tuple(place.shape),
    )
    with torch.no_grad():
        place.copy_(found)
