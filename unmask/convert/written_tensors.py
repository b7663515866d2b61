"""The tensors that an export writes: under Hugging Face's names, with the rows and biases that only Hugging Face has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from unmask.convert import linear_label
from unmask.convert.architecture import Architecture, backbone_of
from unmask.convert.family import Family
from unmask.convert.names import Heads
from unmask.convert.tensor_links import links
from unmask.errors import require
from unmask.infer.model import Model
from unmask.text import Tokenizer
from unmask.train import checkpoint

_TASKS, _POSITIONS = "backbone.embed.task.weight", "backbone.embed.position.weight"


def written_tensors(model: Model, found: Architecture, tokenizer: Tokenizer) -> dict[str, Tensor]:
    """All tensors that are exported, by Hugging Face's names."""
    family, heads, backbone = found.family, found.heads, backbone_of(model.recipe)
    ours = _kept(model, found, backbone)
    ours = _zero_biases(heads, tokenizer.vocabulary.size, ours) | family.more_tensors(backbone) | ours
    tensors = {
        name: tensor
        for link in links(family, heads, ours, backbone)
        for name, tensor in link.write(ours[link.ours]).items()
    }
    if heads.tokens and not heads.tied and "bias" in family.names.tokens:  # an output that is not tied has its own bias
        bias = tensors[family.names.tokens["bias"][0]]
        tensors[family.names.output.replace("weight", "bias")] = bias.clone()
    return family.finish(_padded(tensors, family, backbone, tokenizer), backbone)


def _kept(model: Model, found: Architecture, backbone: Any) -> dict[str, Tensor]:
    """The tensors that are exported, by our names. A tensor that the family has no place for is an error."""
    family, heads = found.family, found.heads
    gone = tuple(_place(name) for name in found.left_out)
    whole = {name: tensor.cpu() for name, tensor in checkpoint.unique(model.system).items()}
    ours = _with_first_task({name: tensor for name, tensor in whole.items() if not name.startswith(gone)})
    name = heads.label or heads.choice
    head: Any = model.recipe.predict[name] if name else None
    task = model.recipe.task
    if task is not None and f"predict.{task.head}.out.weight" in ours:  # otherwise its head is left out, or it has none
        ours = _scaled(f"predict.{task.head}.out", ours, *task.final_scale)
    if head and not family.pooler_norm and linear_label.fits(head, family.pooler, backbone.width):
        ours = linear_label.doubled(str(name), ours)
    strange = sorted(ours.keys() - {link.ours for link in links(family, heads, ours, backbone)})
    require(
        not strange,
        "Hugging Face's {model_type} has no place for {strange}: merge or remove such parts first",
        model_type=family.model_type,
        strange=", ".join(strange[:3]),
    )
    return ours


def _with_first_task(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with the vector of the first task in every position: a finished model reads with the first track."""
    tasks = tensors.pop(_TASKS, None)
    return tensors if tasks is None else tensors | {_POSITIONS: tensors[_POSITIONS] + tasks[0]}


def _scaled(name: str, tensors: Mapping[str, Tensor], factor: float, shift: float) -> dict[str, Tensor]:
    """The tensors with an output that gives the final scores: of a task with numbers, the number itself."""
    if (factor, shift) == (1.0, 0.0):
        return dict(tensors)
    found = {f"{name}.weight": tensors[f"{name}.weight"] * factor}
    bias = f"{name}.bias"
    if bias in tensors or shift:
        found[bias] = tensors.get(bias, torch.zeros(len(found[f"{name}.weight"]))) * factor + shift
    return dict(tensors) | found


def _place(left_out: str) -> str:
    """What the tensors of a head, or of a part of the network, are called before their own names."""
    part, equals, _ = left_out.removeprefix("system.").partition("=")
    return f"{part}." if equals else f"predict.{part}."


def _zero_biases(heads: Heads, vocabulary: int, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Zero biases for the heads, because Hugging Face's heads have a bias and ours may have none."""
    found = {f"predict.{heads.tokens}.bias": torch.zeros(vocabulary)} if heads.tokens else {}
    for name in filter(None, (heads.sentence, heads.label, heads.choice)):
        found[f"predict.{name}.out.bias"] = torch.zeros(len(ours[f"predict.{name}.out.weight"]))
    return found


def _padded(tensors: dict[str, Tensor], family: Family, backbone: Any, tokenizer: Tokenizer) -> dict[str, Tensor]:
    """Add rows without information: positions before the first one, a single segment, an added padding token."""
    found, names = dict(tensors), family.names
    token = found[names.token]
    for position in names.position_tables:
        before = token.new_zeros(family.position_offset(tokenizer.vocabulary.pad), token.shape[1])
        found[position] = torch.cat((before, found[position]))
    found[names.token] = torch.cat((token, token.new_zeros(tokenizer.vocabulary.size - len(token), token.shape[1])))
    if names.segment and not backbone.segments:
        found[names.segment] = token.new_zeros(1, token.shape[1])
    if family.always_projects and backbone.embedding in (None, backbone.width):
        weight, bias = (names.prefix + names.network[f"project.{which}"][0] for which in ("weight", "bias"))
        found |= {weight: torch.eye(backbone.width), bias: torch.zeros(backbone.width)}
    return found
