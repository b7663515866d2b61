"""Read a Hugging Face folder: its JSON, its tensors in one or several files, its tokenizer. Nothing is unpickled."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from unmask.convert import tokenizer as tokenizers
from unmask.convert.config_json import TYPES, check_config
from unmask.convert.family import Family
from unmask.convert.names import Table
from unmask.errors import UserError, require, unknown
from unmask.text import Tokenizer
from unmask.train import checkpoint
from unmask.type_check import check_types

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
# With weights_only, torch runs no code of the file. No model is built: it would add heads with random weights.
CONVERT = (
    'import glob, torch, safetensors.torch as s; old = [torch.load(f, weights_only=True, map_location="cpu") for f in glob.glob("pytorch_model*.bin")]; '
    's.save_file({name: tensor.clone().contiguous() for part in old for name, tensor in part.items()}, "model.safetensors")'
)


@dataclass(frozen=True)
class HFFolder:
    """A Hugging Face checkpoint in memory."""

    family: Family  # the model family
    config: dict[str, Any]  # config.json
    tensors: dict[str, Tensor]  # by canonical name, in float32
    written: dict[str, str]  # for each canonical name, the name in the file
    tokenizer: Tokenizer  # with the added special tokens
    added: int = 0  # number of special tokens that were added at the end of the checkpoint's tokenizer
    longest: float | None = None  # longest text in tokens, if tokenizer_config.json has it

    @property
    def architecture(self) -> str | None:
        """The class name in config.json, if there is one."""
        return next(iter(self.config.get("architectures") or ()), None)

    @property
    def classes(self) -> int:
        """The number of classes of texts; 0 if it does not classify texts."""
        called = self.family.names.label
        output = called.get("out.weight", ("",))[0]
        if output not in self.tensors:
            return 0
        # Heads for tokens and for texts may have the same names. The architecture, or else a pooler, shows which it is.
        whole = all(name in self.tensors for theirs in called.values() for name in theirs)
        ours = whole if self.architecture is None else self.architecture.endswith("ForSequenceClassification")
        return len(self.tensors[output]) if ours else 0

    @property
    def task_head(self) -> Literal["tags", "span", "choice"] | None:
        """The kind of head of a task other than classes of texts; None if it has no such head."""
        endings: dict[Literal["tags", "span", "choice"], tuple[str, ...]] = {
            "tags": ("ForTokenClassification",),
            "span": ("ForQuestionAnswering", "ForQuestionAnsweringSimple"),
            "choice": ("ForMultipleChoice",),
        }
        kind = next((kind for kind, names in endings.items() if (self.architecture or "").endswith(names)), None)
        known = (kind,) in self.family.architectures and self.has(getattr(self.family.names, str(kind)))
        return kind if known else None

    def has(self, head: Table) -> bool:
        """Whether the checkpoint has a tensor of this head. A pooler does not count, because it is a part of the network."""
        theirs = {name for several in head.values() for name in several}
        return any(name in self.tensors for name in theirs if not name.startswith(self.family.names.prefix))


def read(folder: Path) -> HFFolder:
    require(
        folder.is_dir(),
        ("no folder at {folder}: download the model first, with its config.json and {weights}"),
        folder=folder,
        weights=WEIGHTS,
    )
    require(
        (folder / "config.json").is_file(), "{folder} is not a Hugging Face model: it has no config.json", folder=folder
    )
    config = read_json(folder / "config.json")
    family = _family_of(config)
    check_config(family, config)
    tensors, written = _tensors(folder, family)
    require(
        family.names.token in tensors,
        (
            "{folder} holds no {model_type} network: it has no {token}, but for example {tensors}; check "
            "model_type in config.json"
        ),
        folder=folder,
        model_type=family.model_type,
        token=family.names.token,
        tensors=min(tensors, default="nothing"),
    )
    said = read_settings(folder / "tokenizer_config.json")
    number = said.get("model_max_length")
    longest = float(number) if isinstance(number, int | float) and number >= 8 else None
    tokenizer, added = tokenizers.completed(tokenizers.load(folder, said, family.pickled_words), family)
    return HFFolder(family, config, tensors, written, tokenizer, added, longest)


def _family_of(config: dict[str, Any]) -> Family:
    from unmask.convert.families import families  # imported here because the files of the families import this file

    check_types(TYPES, config, "config.json: ")
    require(
        "model_type" in config,
        'config.json has no "model_type": add the one that fits, of {families}',
        families=", ".join(families()),
    )
    if config["model_type"] not in families():
        raise unknown("model_type in config.json", config["model_type"], families())
    return families()[config["model_type"]]


def read_json(path: Path) -> dict[str, Any]:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError("{path} is damaged or not JSON: {error}", path=path, error=error) from None
    require(
        isinstance(found, dict),
        "{path} must hold a JSON object, got {found_kind}",
        path=path,
        found_kind=type(found).__name__,
    )
    return dict(found)


def read_settings(path: Path) -> dict[str, Any]:
    """The contents of tokenizer_config.json; empty if there is no such file."""
    settings = read_json(path) if path.is_file() else {}
    check_types(tokenizers.TYPES, settings, f"{path}: ")
    return settings


def _tensors(folder: Path, family: Family) -> tuple[dict[str, Tensor], dict[str, str]]:
    stored = {name: tensor for file in _files(folder) for name, tensor in checkpoint.read(file).items()}
    # If a tensor has two names, the last one wins: if the two tensors differ, "decoder.bias" is the one that is used.
    names = family.names
    written = {names.canonical(name): name for name in sorted(stored) if not names.is_computed(name)}
    return {known: stored[name].float() for known, name in written.items()}, written


def _files(folder: Path) -> list[Path]:
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / INDEX).is_file():
        listed = sorted(set(read_json(folder / INDEX).get("weight_map", {}).values()))
        require(bool(listed), "{folder} names no files: download the folder again", folder=folder / INDEX)
        for name in listed:
            require(
                Path(name).name == name,
                "{folder} names a file outside its folder: {name!r}",
                folder=folder / INDEX,
                name=name,
            )
        return [folder / name for name in listed]
    pickle = next((name for name in PICKLES if (folder / name).is_file()), None)
    require(
        pickle is None,
        (
            "{folder} holds its weights as a pickle ({pickle}), which can run any code when it is read; if you trust it, "
            "convert it once: cd {folder} && python -c '{convert}'"
        ),
        folder=folder,
        pickle=pickle,
        convert=CONVERT,
    )
    raise UserError(
        "{folder} holds no weights: it needs {weights}, or {index} and the files that it names",
        folder=folder,
        weights=WEIGHTS,
        index=INDEX,
    )
