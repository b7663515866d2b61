"""The log of a run: one JSON line per record, and TensorBoard on request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unmask.errors import UserError


class Log:
    """Appends records to `log.jsonl`, after those of an earlier training that it goes on with."""

    def __init__(self, folder: Path, *, kept: Sequence[dict[str, Any]] = (), tensorboard: bool = False) -> None:
        self.path = folder / "log.jsonl"
        self.path.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        self.file = self.path.open("a", encoding="utf-8")
        self.board = _board(folder) if tensorboard else None

    def write(self, record: dict[str, Any]) -> None:
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()
        if self.board is not None:
            for key, value in record.items():
                if isinstance(value, int | float) and key != "step":
                    self.board.add_scalar(key, value, record.get("step", 0))

    def close(self) -> None:
        self.file.close()
        if self.board is not None:
            self.board.close()


def until(folder: Path, last: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The records until the last one that was saved in a checkpoint. The log may lack it because of a kill, or have later ones.
    Records without a step are at the beginning. None: no record."""
    return [] if last is None else [line for line in read(folder) if line.get("step", 0) < last["step"]] + [last]


def read(folder: Path) -> list[dict[str, Any]]:
    """The records of a run; an incomplete line, left by a kill, is skipped."""
    path = Path(folder) / "log.jsonl"
    records = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records


def check_tensorboard() -> None:
    """Check that the tensorboard package is installed, before any work is done."""
    _writer()


def _board(folder: Path) -> Any:
    return _writer()(str(folder / "tensorboard"))


def _writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError("--tensorboard needs the tensorboard package: pip install tensorboard") from None
    return SummaryWriter
