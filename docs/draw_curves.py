"""Draw the held-out losses of several runs on one picture: python docs/draw_curves.py OUT.png TITLE=RUN,RUN,... ...

Each TITLE is a panel; a run is a folder that `unmask pretrain` made, and is called by its recipe and variant, or, written
RUN:NAME, by that name.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

from unmask.run import read_recipe
from unmask.train.log import read

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

INK = "#1f2933"


def main(out: str, panels: list[str]) -> None:
    figure, axes = plt.subplots(1, len(panels), figsize=(7 * len(panels), 5), squeeze=False)
    for axis, panel in zip(axes[0], panels, strict=True):
        title, _, runs = panel.partition("=")
        for number, run in enumerate(runs.split(",")):
            folder, _, name = run.partition(":")
            draw(axis, Path(folder), name, f"C{number}")
        name_lines(axis)
        axis.set_title(title, color=INK, loc="left", fontweight="bold")
        axis.set_xlabel("million tokens read")
        axis.set_ylabel("held-out loss per hidden token")
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(out, dpi=80)


def draw(axis: plt.Axes, run: Path, name: str, colour: str) -> None:
    """One run: the loss of the objective `tokens`."""
    recipe = read_recipe(run)
    name = name or (recipe.name if recipe.variant == "paper" else f"{recipe.name} {recipe.variant}")
    points = [(r["tokens"] / 1e6, r["validation_loss_tokens"]) for r in read(run) if "validation_loss_tokens" in r]
    axis.plot(*zip(*points, strict=True), color=colour, linewidth=1.6, label=name)


def name_lines(axis: plt.Axes) -> None:
    """Names in a column to the right, in the order in which the lines end, none over another."""
    right = axis.dataLim.xmax
    axis.set_xlim(0, 1.25 * right)  # room for them
    low, high = axis.get_ylim()
    height = low
    for line in sorted(axis.lines, key=lambda line: line.get_ydata()[-1]):
        end = line.get_xdata()[-1], line.get_ydata()[-1]
        height = max(end[1], height + 0.035 * (high - low))
        axis.annotate(
            line.get_label(), end, xytext=(1.04 * right, height), color=line.get_color(), va="center", fontsize=8,
            arrowprops={"arrowstyle": "-", "color": line.get_color(), "linewidth": 0.5, "shrinkA": 1, "shrinkB": 0},
        )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
