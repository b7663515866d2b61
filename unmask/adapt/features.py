"""Features: the vectors of a network that does not train, computed once and read from disk in every epoch.

They are kept in the cache, in a folder that is named by the weights, the rows and the layers: the next head on the same
examples finds them there. A row is known by its tokens, so the rows of training and dev are looked up alike.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from unmask.batch import Batch, Hidden
from unmask.data import cache
from unmask.data.pack import Rows
from unmask.errors import require
from unmask.infer.model import Model
from unmask.infer.passes import batches
from unmask.train import Machine, training_machine

VECTORS, KEYS, BEGINS = "vectors.npy", "keys.npy", "begins.npy"
ROOM = 0.9  # the largest share of the free disk space that the vectors may take


class Features:
    """The vectors of rows that were computed before. Called with a batch, it gives what the network would compute."""

    def __init__(self, folder: Path) -> None:
        self.vectors = np.load(folder / VECTORS, mmap_mode="r")  # tokens K D, memory-mapped
        keys, begins = np.load(folder / KEYS), np.load(folder / BEGINS)
        self.begins = {bytes(key): int(begin) for key, begin in zip(keys, begins, strict=True)}

    def __call__(self, batch: Batch) -> Hidden | None:
        """The vectors of a batch; None if one of its rows is not known."""
        keys = _batch_keys(batch)
        if any(key and key not in self.begins for key in keys):
            return None
        rows, length = batch.shape
        found = np.zeros((rows, length, *self.vectors.shape[1:]), self.vectors.dtype)
        for number, (row, key) in enumerate(zip(batch.real.cpu().numpy(), keys, strict=True)):
            if key:
                begin = self.begins[key]
                found[number, row] = self.vectors[begin : begin + int(row.sum())]
        vectors = _as_tensor(found).to(batch.ids.device)
        # on a CPU a model trains in bfloat16 and answers in float32
        half = torch.is_autocast_enabled(vectors.device.type)
        return Hidden(tuple((vectors if half else vectors.float()).unbind(2)))


def cached_features(model: Model, rows: Sequence[Rows], layers: Literal["last", "all"], fingerprint: str) -> Features:
    """The vectors of these rows, from the cache or computed now. `fingerprint`: of the weights of the network."""
    lengths = {key: length for some in rows for key, length in _lengths(some)}
    machine = training_machine(model.device)
    folder = cache.entry(
        "features", weights=fingerprint, rows=hashlib.sha256(b"".join(sorted(lengths))).hexdigest(), layers=layers,
        half=machine.half, read=repr((model.recipe.see, model.recipe.hide, model.recipe.system.backbone)),
    )  # fmt: skip
    if not folder.is_dir():
        with cache.filled(folder) as draft:
            _compute(model, rows, layers, draft, tokens=sum(lengths.values()), machine=machine)
    return Features(folder)


def _compute(
    model: Model, rows: Sequence[Rows], layers: Literal["last", "all"], draft: Path, *, tokens: int, machine: Machine
) -> None:
    """Write the vectors of the real tokens of all rows, one row after the other; equal rows once."""
    spec: Any = model.recipe.system.backbone
    shape = (tokens, spec.layers + 1 if layers == "all" else 1, spec.width)
    kind = np.int16 if machine.half else np.float32  # numpy has no bfloat16: its bits are kept
    _check_room(draft, shape, np.dtype(kind).itemsize)
    vectors = np.lib.format.open_memmap(draft / VECTORS, mode="w+", dtype=kind, shape=shape)
    begins: dict[bytes, int] = {}
    model.system.to(model.device).eval()  # a new network is still on the CPU
    end = 0
    for some in rows:
        for _, batch in batches(model, some):
            with torch.no_grad(), machine.autocast():
                read = model.system.hidden(batch, None)
                hidden = model.system.backbone(read)[0]
            last = hidden.last if read.decoder is None else hidden.for_prediction
            found = torch.stack((last,) if layers == "last" else hidden.layers, 2)  # B T K D
            for number, key in enumerate(_batch_keys(batch)):
                if key and key not in begins:
                    mine = _as_array(found[number][batch.real[number]])
                    vectors[end : end + len(mine)], begins[key], end = mine, end, end + len(mine)
    vectors.flush()
    np.save(draft / KEYS, np.array([np.frombuffer(key, np.uint8) for key in begins]))
    np.save(draft / BEGINS, np.array(list(begins.values())))


def _check_room(draft: Path, shape: tuple[int, ...], size: int) -> None:
    needed, free = int(np.prod(shape)) * size, shutil.disk_usage(draft).free
    require(
        needed <= ROOM * free,
        "the vectors of {tokens:,} tokens need {needed:.1f} GB, and {folder} has {free:.1f} GB free: set tune.cache=false, a "
        "shorter length, or UNMASK_CACHE to a folder with more space",
        tokens=shape[0],
        needed=needed / 1e9,
        folder=cache.cache_folder(),
        free=free / 1e9,
    )


def _lengths(rows: Rows) -> Iterator[tuple[bytes, int]]:
    """The key and the number of tokens of every row that has tokens."""
    real = rows.example >= 0
    found = zip(_keys(real, rows.ids, rows.segment), real.sum(1).tolist(), strict=True)
    yield from ((key, length) for key, length in found if key)


def _batch_keys(batch: Batch) -> list[bytes]:
    real, ids, segment = (tensor.cpu().numpy() for tensor in (batch.real, batch.ids, batch.segment))
    return _keys(real, ids, segment)


def _keys(real: np.ndarray, ids: np.ndarray, segment: np.ndarray) -> list[bytes]:
    """The key of each row: a hash of its tokens and segments; b"" if it has no token. All arguments are B T."""
    told = np.stack((ids, segment), 1).astype(np.int64)
    rows = zip(told, real, strict=True)
    return [
        hashlib.blake2b(row[:, here].tobytes(), digest_size=16).digest() if here.any() else b"" for row, here in rows
    ]


def _as_array(tensor: Tensor) -> np.ndarray:
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor.float()).cpu().numpy()


def _as_tensor(array: np.ndarray) -> Tensor:
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if tensor.dtype == torch.int16 else tensor
