"""Fast: an encoder with weights in 8 bits, for a CPU. It is an ONNX file that is made once and kept in the run folder."""

from __future__ import annotations

import copy
import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from unmask.axes import gives_of
from unmask.batch import TASK, Batch, Hidden
from unmask.errors import UserError, require
from unmask.infer.generation_loop import writes_text
from unmask.infer.model import Model
from unmask.run import WEIGHTS
from unmask.run_base import read_base
from unmask.train import checkpoint

FILE, ABOUT = "fast.onnx", "fast.json"
FORMAT = 1  # of the two files
FIELDS: Final = ("ids", "example", "segment", "position", "rank")  # what the network reads of a batch
OPSET = 17
SAME = 1e-3  # largest difference between the network and its ONNX file before the weights are rounded


class FastVectors:
    """Computes the vectors of a batch with the ONNX file: what `SystemModule.features` asks for."""

    def __init__(self, file: Path, threads: int) -> None:
        self.session = _session(str(file), threads)
        self.names = {one.name for one in self.session.get_inputs()}

    def __call__(self, batch: Batch) -> Hidden:
        fields = {name: getattr(batch, name).numpy() for name in FIELDS if name in self.names}
        return Hidden((torch.from_numpy(self.session.run(None, fields)[0]),))


@dataclass(frozen=True)
class Fast:
    """A fast model, and whether its file was made now."""

    model: Model
    made: bool


def quicken(model: Model) -> Fast:
    """The same model with weights in 8 bits. The network of `model` itself is changed: open the run for this alone."""
    why = why_not(model)
    if why is not None:
        raise UserError("{folder} cannot be used with --fast: {why}", folder=model.folder, why=why)
    file, key = model.folder / FILE, _key(model.folder)
    made = not file.is_file() or read_about(model.folder).get("key") != key
    if made:
        _write(model, file, key)
    model.system.eval().features = FastVectors(file, torch.get_num_threads())
    return Fast(model, made)


def why_not(model: Model) -> str | None:
    """Why a model cannot be made fast; None if it can."""
    if torch.device(model.device).type != "cpu":
        return f"it is for a CPU, and the model is on {model.device}; on a GPU use --half"
    if writes_text(model):
        return "it generates text, and --fast is for models that read whole texts"
    backbone = model.recipe.system.backbone
    if getattr(backbone, "decoder", None) is not None or not isinstance(model.system.mix, nn.Identity):
        return "its heads read more than the last layer"
    if "decoder rows" in gives_of(model.recipe.hide):
        return "its head reads a decoder"
    if backbone.memory:
        return "its network remembers earlier texts"
    return None


def read_about(folder: Path) -> dict[str, Any]:
    """What fast.json says; {} if there is none, or if it is of another format."""
    try:
        found = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("format") == FORMAT else {}


def keep_agreement(folder: Path, agreement: dict[str, Any]) -> None:
    """Add how well the fast model agrees with the model in float32 to fast.json."""
    checkpoint.write_text(json.dumps(read_about(folder) | {"agreement": agreement}, indent=1), folder / ABOUT)


def _key(folder: Path) -> str:
    """A hash of the weights that the file was made from."""
    base = read_base(folder)
    return checkpoint.digest(folder / WEIGHTS) + ("" if base is None else base.sha256)


class _Network(nn.Module):
    """A backbone as a function of tensors."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, ids: Tensor, example: Tensor, segment: Tensor, position: Tensor, rank: Tensor) -> Tensor:
        none = torch.zeros_like(ids[:, 0])
        batch = Batch(
            ids=ids, example=example, segment=segment, position=position, rank=rank, row=none, visit=none, summary=none,
            label=none, counted=none.float(), per_row={TASK: none},  # a finished model reads with the first track
        )  # fmt: skip
        last: Tensor = self.backbone(batch, None)[0].last
        return last


def _backbone(model: Model) -> nn.Module:
    """The network. Matrices of low rank become a part of the weights of a copy: ONNX cannot add them to some rows only."""
    tune = model.recipe.tune
    if tune is None or not tune.factors(model.system):
        backbone: nn.Module = model.system.backbone
        return backbone
    system = copy.deepcopy(model.system)
    tune.merge(system)
    merged: nn.Module = system.backbone
    return merged


def _write(model: Model, file: Path, key: str) -> None:
    """Write the network as ONNX, check it, round its weights to 8 bits, and put the file into the run folder."""
    _, quantization = _libraries()
    network = _Network(_backbone(model)).eval()
    require(
        os.access(model.folder, os.W_OK), "--fast writes a file into {folder}: make it writable", folder=model.folder
    )
    with tempfile.TemporaryDirectory(dir=model.folder, prefix=".fast-") as place:
        plain, small = Path(place) / "float32.onnx", Path(place) / FILE
        with _quiet(), torch.no_grad():
            torch.onnx.export(
                network, tuple(_example(model, 2, 9).values()), str(plain), input_names=list(FIELDS),
                output_names=["vectors"], opset_version=OPSET, dynamo=False,
                dynamic_axes={name: {0: "rows", 1: "tokens"} for name in (*FIELDS, "vectors")},
            )  # fmt: skip
            _check(model, network, plain)
            quantization.quantize_dynamic(str(plain), str(small), weight_type=quantization.QuantType.QInt8)
        checkpoint.write_text(json.dumps({"format": FORMAT, "key": key}, indent=1), model.folder / ABOUT)
        small.replace(file)


def _check(model: Model, network: nn.Module, file: Path) -> None:
    """Refuse an ONNX file that does not compute what the network computes, also in other shapes than that of the example."""
    session = _session(str(file), 1)
    names = {one.name for one in session.get_inputs()}
    for rows, length in ((1, 5), (3, 12)):
        fields = _example(model, rows, length)
        try:
            found = session.run(None, {name: value.numpy() for name, value in fields.items() if name in names})[0]
            difference = float(np.abs(found - network(**fields).numpy())[fields["example"].numpy() >= 0].max())
        except Exception as error:  # the library's own errors have no common class
            difference, why = float("inf"), f" ({str(error)[:80]})"
        else:
            why = ""
        if not difference < SAME:
            raise UserError(
                "{folder} cannot be used with --fast: its attention cannot be written as ONNX for all lengths{why}",
                folder=model.folder,
                why=why,
            )


def _example(model: Model, rows: int, length: int) -> dict[str, Tensor]:
    """Rows of tokens as the network reads them, the first with padding."""
    size = model.tokenizer.vocabulary.size
    ids = (torch.arange(rows * length) * 7 % size).view(rows, length)
    real = torch.zeros_like(ids)
    real[0, -2:] = -1
    none = torch.zeros_like(ids[:, 0])
    position = torch.where(real < 0, 0, torch.arange(length).expand(rows, -1))
    batch = Batch(
        ids=ids, example=real, segment=torch.zeros_like(ids), position=position, row=none, visit=none, summary=none,
        label=none, counted=none.float(),
    )  # fmt: skip
    rank = model.recipe.see.apply(batch).rank
    return {"ids": ids, "example": real, "segment": batch.segment, "position": position, "rank": rank}  # type: ignore[dict-item]


def _session(file: str, threads: int) -> Any:
    onnxruntime, _ = _libraries()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    # as everywhere (`unmask.threads`): on a busy machine, waiting threads that spin make it three times slower
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def _libraries() -> tuple[Any, Any]:
    try:
        import onnx  # noqa: F401  # torch.onnx needs it
        import onnxruntime
        from onnxruntime import quantization
    except ImportError:
        raise UserError("--fast needs onnx and onnxruntime: pip install 'unmask[fast]'") from None
    return onnxruntime, quantization


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of the libraries, which a user cannot act on."""
    import logging

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
