"""ERNIE in Hugging Face's format: the same network as BERT; ERNIE 2.0 also adds a task vector to the embeddings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from unmask.convert import adjust_tensors, bert_layers
from unmask.convert.adjust_tensors import Adjusted
from unmask.convert.family import Config, Family
from unmask.convert.hf_folder import HFFolder
from unmask.convert.names import Heads
from unmask.errors import require
from unmask.recipes import ernie

_TASKS = "ernie.embeddings.task_type_embeddings.weight"


def _adjust(source: HFFolder, backbone: Any, heads: Heads) -> Adjusted:
    """Adjust the tensors, and add the vector of the first task to every position."""
    adjusted, position = adjust_tensors.adjust(source, backbone, heads), source.family.names.position
    tensors = dict(adjusted.source.tensors)
    if not source.config.get("use_task_id") or position not in tensors:
        return adjusted
    require(
        _TASKS in tensors,
        "config.json says use_task_id=true, and the checkpoint has no {tasks}: download it again",
        tasks=_TASKS,
    )
    tensors[position] = tensors[position] + tensors.pop(_TASKS)[0]
    cut = [*adjusted.cut, f"{source.written[_TASKS]}[1:]"]
    return replace(adjusted, source=replace(adjusted.source, tensors=tensors), cut=cut)


FAMILY = Family(
    model_type="ernie",
    recipe=ernie,
    config=Config(bert_layers.FIELDS, always={"use_task_id": False}, types={"use_task_id": bool | None}),
    names=bert_layers.names("ernie."),
    architectures=bert_layers.architectures("Ernie"),
    claims=bert_layers.only_by_name,
    tokenizer="BertTokenizer",
    adjust=_adjust,
)
