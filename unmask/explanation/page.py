"""A page to draw on, in pixels from the top left, with the installed fonts. The only file of the folder with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unmask.errors import UserError
from unmask.fonts import fonts

WIDTH, HEIGHT, DOTS, COLOURS = 1400, 800, 100, 256  # pixels, pixels, pixels per inch, colours in the file
INK, FAINT = "#1f2933", "#7b8794"


class Page:
    """A page whose coordinates are pixels from the top left."""

    def __init__(self, font: Path | None = None) -> None:
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError:
            raise UserError(
                "a picture needs matplotlib, which is not installed: run pip install 'unmask[pictures]'"
            ) from None
        self.fonts = fonts(font)
        self.figure = Figure(figsize=(WIDTH / DOTS, HEIGHT / DOTS), dpi=DOTS, facecolor="white")
        self.canvas = FigureCanvasAgg(self.figure)
        self.renderer = self.canvas.get_renderer()
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
        self.axes.axis("off")
        self.widths: dict[tuple[str, float, str], float] = {}

    def text(self, x: float, y: float, text: str, **style: Any) -> Any:
        usual: dict[str, Any] = {"color": INK, "size": 11, "va": "center_baseline", "family": self.fonts.of(text)}
        return self.axes.text(x, y, self.fonts.drawable(text), parse_math=False, **usual | style)

    def width(self, text: str, size: float, weight: str = "normal") -> float:
        if (text, size, weight) not in self.widths:  # most texts are measured more than once
            artist = self.text(0, 0, text, size=size, weight=weight)
            self.widths[text, size, weight] = artist.get_window_extent(self.renderer).width
            artist.remove()
        return self.widths[text, size, weight]

    def title(self, x: float, y: float, title: str, remark: str) -> None:
        self.text(x, y, title, size=14, weight="bold")
        left = x + self.width(title, 14, "bold") + 14
        self.text(left, y, self.fit(remark, 10, WIDTH - left - 20), size=10, color=FAINT)

    def fit(self, text: str, size: float, width: float) -> str:
        """The text. If it is wider than `width`, its end is cut."""
        whole = text
        while text and self.width(text if text == whole else text + "…", size) > width:
            text = text[:-1]
        return text if text == whole else text + "…"

    def box(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        """Draw one box with round corners."""
        from matplotlib.patches import FancyBboxPatch

        style = "round,pad=0,rounding_size=4"
        self.axes.add_artist(FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=fill, edgecolor="none"))

    def squares(self, corners: Sequence[tuple[float, float]], size: float, fills: Sequence[str]) -> None:
        """Draw many squares at once, because drawing them one by one takes a second."""
        from matplotlib.collections import PolyCollection

        shapes = [[(x, y), (x + size, y), (x + size, y + size), (x, y + size)] for x, y in corners]
        self.axes.add_collection(PolyCollection(shapes, facecolors=fills, edgecolors="none", antialiaseds=False))

    def line(self, corners: Sequence[tuple[float, float]], color: str, width: float = 1.5) -> None:
        from matplotlib.lines import Line2D

        xs, ys = zip(*corners, strict=True)
        self.axes.add_artist(Line2D(xs, ys, color=color, linewidth=width, solid_capstyle="butt"))

    def wrap(self, text: str, size: float, width: float, most: int) -> list[str]:
        """The text in at most `most` lines of this width. If it is longer, the last line is cut."""
        words, lines = text.split(" "), [""]
        for number, word in enumerate(words):
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.width(longer, size) > width:
                if len(lines) == most:
                    return [*lines[:-1], self.fit(" ".join([lines[-1], *words[number:]]), size, width)]
                longer = word
                lines.append("")
            lines[-1] = longer
        return [*lines[:-1], self.fit(lines[-1], size, width)]

    def save(self, path: Path) -> None:
        """Save the page as a PNG file. It has few colours, so the file is small."""
        from PIL import Image  # matplotlib needs it too

        self.canvas.draw()
        whole = Image.fromarray(np.asarray(self.canvas.buffer_rgba())).convert("RGB")
        whole.quantize(COLOURS, dither=Image.Dither.NONE).save(path, format="PNG", optimize=True)
