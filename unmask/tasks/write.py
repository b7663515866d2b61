"""Write: a text from a source text, such as a headline from an article. JSON lines with `source` and `target`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unmask.data.examples import Text
from unmask.errors import require
from unmask.tasks._rows import read_rows
from unmask.tasks._training import Training


@dataclass(frozen=True)
class Write(Training):
    """How a model is adapted to writing: a part of the target is hidden, and predicted from the source and what is left.

    UniLM (Dong et al. 2019): 70% hidden, the end of the target among it."""

    hidden: float = 0.7  # share of the target

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.hidden <= 1, f"hidden must be in (0, 1], got {self.hidden}: write 0.7 for 70%")


def read(path: str | Path) -> list[Text]:
    """The pairs of a file: `a` is the source, `b` the target."""
    path = Path(path)
    pairs = []
    for number, row in read_rows(path):
        found = [row.get(name) for name in ("source", "target")]
        require(
            all(isinstance(text, str) and text.strip() for text in found),
            f'{path}, line {number:,}: needs "source" and "target", both texts; got {sorted(row)}',
        )
        pairs.append(Text(*map(str, found)))
    require(bool(pairs), f"{path} holds no examples")
    return pairs
