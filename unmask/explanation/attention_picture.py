"""Draw attention weights as a picture: one row for each token that reads, one column for each token that is read."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from unmask.errors import UserError, require
from unmask.fonts import Fonts

CELL = 0.32  # inches
FORMATS = (".png", ".svg", ".pdf")


def draw_attention(
    weights: Tensor, rows: tuple[str, ...], columns: tuple[str, ...], title: str, file: Path, letters: Fonts
) -> str:
    """`weights`: rows x columns, each row sums to 1. Dark cells are large weights. Returns the characters that no font draws."""
    _check(file)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("a picture needs matplotlib: pip install 'unmask[pictures]'") from None
    size = (2 + CELL * len(columns), 2 + CELL * len(rows))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(weights.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    figure.colorbar(image, ax=axes, label="weight")
    axes.set_title(title)
    axes.set_xticks(range(len(columns)), [letters.drawable(name) for name in columns], rotation=90)
    axes.set_yticks(range(len(rows)), [letters.drawable(name) for name in rows])
    axes.xaxis.tick_top()
    for label, name in zip([*axes.get_xticklabels(), *axes.get_yticklabels()], [*columns, *rows], strict=True):
        label.set_fontfamily(letters.of(name))
    figure.savefig(file, dpi=150)
    return letters.lacking("".join((*rows, *columns)))


def _check(file: Path) -> None:
    """Refuse a file that no picture can be drawn into."""
    require(
        file.suffix.lower() in FORMATS,
        "the picture must be a file that ends in {formats}, got {file}: give another name",
        formats=" or ".join(FORMATS),
        file=file,
    )
    require(file.parent.is_dir(), "the folder {parent} does not exist: create it, or name another", parent=file.parent)
