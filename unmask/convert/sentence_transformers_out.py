"""Export a model that makes vectors of texts to a folder that sentence-transformers opens, with the same vectors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask.convert.architecture import architecture_of
from unmask.convert.hf_out import Exported, export_hf
from unmask.errors import UserError, require
from unmask.infer.model import Model
from unmask.predict.text_vectors import VECTORS
from unmask.text import layout as layouts

POOLING, NORMALISE = "1_Pooling", "2_Normalize"
_PACKAGE = "sentence_transformers.models"  # where its modules are found, in all its versions
_MODES = {
    "cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens",
    "last": "pooling_mode_lasttoken",
}  # fmt: skip


def export_sentence_transformers(model: Model, out: str | Path, *, overwrite: bool = False) -> Exported:
    """Write a folder for `SentenceTransformer(folder)`: the network in Hugging Face's format, its pooling, and a norm."""
    mode, out = _mode(model), Path(out)
    files = {name: json.dumps(value, indent=2) + "\n" for name, value in _files(model, mode).items()}
    made = export_hf(model, out, overwrite=overwrite)
    for name, text in files.items():
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text(text, encoding="utf-8")
    head = model.recipe.task.head if model.recipe.task is not None else ""
    left_out = tuple(name for name in made.left_out if name != head)  # its pooling is written
    return replace(made, files=tuple(sorted([*made.files, *files])), left_out=left_out)


def _mode(model: Model) -> str:
    """The pooling of sentence-transformers that computes what the model computes."""
    part: Any = next((part for part in model.recipe.predict.values() if VECTORS in part.gives), None)
    if part is None:
        raise UserError(
            "{folder} was not adapted to make vectors of texts, which is what sentence-transformers opens: adapt it with "
            "'unmask adapt --task embed', or leave --sentence-transformers out",
            folder=model.folder,
        )
    architecture_of(model.recipe)  # refused now, if there is none
    require(
        part.pool != "weighted",
        "sentence-transformers has no pooling with learned weights, got pool={pool}: adapt with --set pool=mean, summary or max",
        pool=part.pool,
    )
    names = [item.name for item in layouts.items(model.recipe.layout, 1)]
    place = layouts.summary(model.recipe.layout, 1)
    require(
        part.pool != "summary" or place in (0, len(names) - 1),
        "sentence-transformers pools the first or the last token, and the summary token of {layout!r} is neither: adapt with "
        "--set pool=mean",
        layout=model.recipe.layout,
    )
    return {"summary": "last" if place else "cls"}.get(part.pool, part.pool)


def _files(model: Model, mode: str) -> dict[str, Any]:
    kinds = (("", "Transformer"), (POOLING, "Pooling"), (NORMALISE, "Normalize"))
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"{_PACKAGE}.{kind}"}
        for number, (path, kind) in enumerate(kinds)
    ]
    width = model.recipe.system.backbone.width
    return {
        "modules.json": modules,
        "sentence_bert_config.json": {"max_seq_length": model.length, "do_lower_case": False},
        "config_sentence_transformers.json": {
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
        f"{POOLING}/config.json": {"word_embedding_dimension": width}
        | {key: name == mode for name, key in _MODES.items()},
        f"{NORMALISE}/config.json": {},
    }
