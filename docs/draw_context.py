"""Draw how far back language models look: python docs/draw_context.py OUT.png TITLE=NAME:CURVE.json,NAME:CURVE.json ...

Each TITLE is a panel; a curve is what `unmask evaluate RUN TEXT --curve CURVE.json` wrote.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib
from matplotlib.ticker import LogLocator, NullLocator

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

INK = "#1f2933"


def main(out: str, panels: list[str]) -> None:
    figure, axes = plt.subplots(1, len(panels), figsize=(7 * len(panels), 5), squeeze=False)
    for axis, panel in zip(axes[0], panels, strict=True):
        title, _, curves = panel.partition("=")
        for number, curve in enumerate(curves.split(",")):
            name, _, file = curve.partition(":")
            points = json.loads(Path(file).read_text(encoding="utf-8"))["points"]
            back, loss = zip(*((point["back"], point["loss"]) for point in points), strict=True)
            axis.plot(back, loss, marker="o", markersize=4, linewidth=1.6, color=f"C{number}", label=name)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 1.2, 1.5, 2, 2.5, 3, 4, 4.5, 5, 5.5, 6)))
        axis.yaxis.set_major_formatter("{x:.1f}")
        axis.yaxis.set_minor_locator(NullLocator())
        axis.set_title(title, color=INK, loc="left", fontweight="bold")
        axis.set_xlabel("tokens it may look back")
        axis.set_ylabel("mean loss of the same tokens, in nats")
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(out, dpi=80)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
