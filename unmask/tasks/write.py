"""Write: a text from a source text, such as a headline from an article. JSON lines with `source` and `target`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unmask.data.given import Text
from unmask.errors import require
from unmask.tasks.classify import read_rows


@dataclass(frozen=True)
class Write:
    """How a model is adapted to writing: a part of the target is hidden, and predicted from the source and what is left.

    UniLM (Dong et al. 2019): 70% hidden, the end of the target among it."""

    epochs: float = 3.0  # times the examples are read
    examples: int = 32  # per step
    rate: float | None = None  # highest learning rate; none: 5e-5 at width 768, in inverse proportion to the width
    warmup: float = 0.1  # share of the steps
    decay: float = 0.01  # of the weights
    hidden: float = 0.7  # share of the target
    length: int | None = None  # longest input in tokens; none: as long as the model can read

    def __post_init__(self) -> None:
        require(self.epochs > 0, f"epochs must be over 0, got {self.epochs}")
        require(self.examples >= 1, f"examples must be 1 or more, got {self.examples}")
        require(self.rate is None or self.rate > 0, f"rate must be over 0, got {self.rate}")
        require(0 <= self.warmup < 1, f"warmup must be in [0, 1), got {self.warmup}: a share of all steps")
        require(self.decay >= 0, f"decay must be 0 or more, got {self.decay}")
        require(0 < self.hidden <= 1, f"hidden must be in (0, 1], got {self.hidden}: write 0.7 for 70%")
        require(self.length is None or self.length >= 8, f"length must be 8 tokens or more, got {self.length}")


def read(path: str | Path) -> list[Text]:
    """The pairs of a file: `a` is the source, `b` the target."""
    path = Path(path)
    require(path.is_file(), f"no such file: {path}")
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
