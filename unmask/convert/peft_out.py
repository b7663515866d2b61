"""Export the matrices of LoRA to a folder that peft's `PeftModel.from_pretrained(network, folder)` opens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unmask.axes import LowRankRows
from unmask.convert.architecture import Architecture, architecture_of, backbone_of
from unmask.convert.hf_out import Exported
from unmask.convert.merge import merged_model
from unmask.convert.names import Table
from unmask.convert.tensor_links import Link, links
from unmask.convert.written_tensors import written_tensors
from unmask.errors import UserError, require
from unmask.infer.model import Model
from unmask.train import checkpoint

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
BEFORE = "base_model.model."  # what peft writes before the name of a module
# For each head of an adapted model, the name that peft has for its kind of task. For choices it has none.
TASKS = {"label": "SEQ_CLS", "tags": "TOKEN_CLS", "span": "QUESTION_ANS", "choice": None}


@dataclass(frozen=True)
class _Target:
    """One linear layer of Hugging Face's network, and the matrix that is added to it."""

    module: str
    down: Tensor  # R x inputs
    up: Tensor  # outputs x R
    scale: float

    @property
    def rank(self) -> int:
        return len(self.down)


def export_peft(model: Model, out: str | Path, *, overwrite: bool = False) -> Exported:
    """Write the matrices and the head. The base is exported as any other run."""
    out = Path(out)
    require(overwrite or not out.exists(), "{out} exists already: choose another folder, or pass --overwrite", out=out)
    tune = model.recipe.tune
    factors = {} if tune is None else tune.factors(model.system)
    require(
        bool(factors),
        "--peft writes the matrices of --tune lora, got a run of {tune}: {leave}tune with --tune lora",
        leave="leave --peft out, or " if tune is None or tune.plain else "",
        tune="full tuning" if tune is None else f"--tune {type(tune).__name__.lower()}",
    )
    merged = merged_model(model)
    found = architecture_of(merged.recipe)
    kind = next((kind for kind in found.heads.kinds if kind in TASKS), None)
    if kind is None:
        raise UserError(
            "--peft writes the head of {heads}, and Hugging Face has no such head for the task {task}: use the run folder as it is",
            heads=", ".join(TASKS),
            task=type(model.recipe.task).__name__,
        )
    targets = _targets(model, found, factors)
    tensors = {
        f"{BEFORE}{t.module}.lora_{which}.weight": value
        for t in targets
        for which, value in (("A", t.down), ("B", t.up))
    }
    head = _head(merged, found, kind)
    tensors |= {BEFORE + name: tensor for name, tensor in head.items()}
    out.mkdir(parents=True, exist_ok=True)
    checkpoint.save_tensors(tensors, out / WEIGHTS)
    modules = sorted({_module(name, found.family.names.prefix) for name in head})
    text = json.dumps(_config(model, targets, modules, found, kind), indent=2) + "\n"
    (out / CONFIG).write_text(text, encoding="utf-8")
    note = f"open it on {found.name} with the weights of the base: unmask export BASE, then peft's PeftModel.from_pretrained"
    return Exported(found.name, (CONFIG, WEIGHTS), (), (note,))


def _targets(model: Model, found: Architecture, factors: dict[str, list[LowRankRows]]) -> list[_Target]:
    known = {link.ours: link for link in links(found.family, found.heads, factors, backbone_of(model.recipe))}
    strange = sorted(name for name in factors if name not in known or known[name].shape)
    require(
        not strange,
        "peft adds matrices to linear layers, and in Hugging Face's {kind} these are none: {strange}; export the run without "
        "--peft, which merges the matrices into the weights",
        kind=found.family.model_type,
        strange=", ".join(strange[:3]),
    )
    return [target for name, several in factors.items() for target in _of_layer(known[name], several)]


def _of_layer(link: Link, several: list[LowRankRows]) -> list[_Target]:
    """The matrices of one of our linear layers. Theirs may hold all its rows, or several layers may share them: each gets
    the matrices of its rows. If a layer gets several, their ranks are joined."""
    height, made = several[0].height // len(link.theirs), []
    for number, name in enumerate(link.theirs):
        mine = [one for one in several if any(number * height <= row < (number + 1) * height for row in one.rows)]
        if not mine:
            continue
        ups = []
        for one in mine:
            up = torch.zeros(one.height, one.up.shape[1])
            up[list(one.rows)] = one.up.detach().float().cpu()
            ups.append(up[number * height : (number + 1) * height])
        downs = [one.down.detach().float().cpu() for one in mine]
        made.append(_Target(name.removesuffix(".weight"), torch.cat(downs), torch.cat(ups, 1), mine[0].scale))
    return made


def _head(merged: Model, found: Architecture, kind: str) -> dict[str, Tensor]:
    """The tensors of a kind of head, by Hugging Face's names."""
    written = written_tensors(merged, found, merged.tokenizer)
    table: Table = getattr(found.family.names, kind)
    mine = {name for theirs in table.values() for name in theirs}
    return {name: tensor for name, tensor in written.items() if name in mine}


def _module(name: str, prefix: str) -> str:
    """The module that peft saves for a tensor of the head: the whole head, or a layer inside of the network (a pooler)."""
    return name.rpartition(".")[0] if prefix and name.startswith(prefix) else name.partition(".")[0]


def _config(model: Model, targets: list[_Target], modules: list[str], found: Architecture, kind: str) -> dict[str, Any]:
    tune: Any = model.recipe.tune
    first = targets[0]
    return {
        "peft_type": "LORA",
        "task_type": TASKS[kind],
        "base_model_name_or_path": None,
        "inference_mode": True,
        "bias": "none",
        "r": first.rank,
        "lora_alpha": first.rank * first.scale,
        "lora_dropout": tune.dropout,
        "fan_in_fan_out": bool(found.family.names.transposed),
        "target_modules": [target.module for target in targets],
        "modules_to_save": modules,
        "rank_pattern": {t.module: t.rank for t in targets if t.rank != first.rank},
        "alpha_pattern": {t.module: t.rank * t.scale for t in targets if t.rank != first.rank},
    }
