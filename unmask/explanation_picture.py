"""An explanation as one picture: the tokens, who sees whom, what is predicted. The only file that needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from unmask.errors import Mistake, require
from unmask.explanation import Explanation, Token, continues, drawn_as, shown

WIDTH, HEIGHT, DOTS = 1400, 800, 100  # pixels, and pixels per inch
MARGIN, RIGHT, CHOICES = 36, 776, 656  # left edges of the page and of its right half; upper edge of the choices
MOST_TOKENS, SMALLEST_CELL = 40, 9  # tokens and pixels: what can be read
INK, FAINT = "#1f2933", "#7b8794"
NAMES = {"plain": "text", "mask": "masked", "random": "replaced at random", "keep": "kept", "special": "special"}
FILLS = {"plain": "#e3edf7", "mask": "#d64545", "random": "#f0b429", "keep": "#3ebd93", "special": "#e4e7eb"}
LETTERS = {"plain": INK, "mask": "white", "random": INK, "keep": INK, "special": "#616e7c"}
DARK = {"mask": "#ba2525", "random": "#a06800", "keep": "#147d64"}  # on white
SEEN, UNSEEN = "#3b7dc4", "#eef1f5"
# Families that draw Chinese, the freely available first; letters they lack come from matplotlib's own font.
CHINESE = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "Droid Sans Fallback", "PingFang SC", "Hiragino Sans GB", "Heiti SC", "Microsoft YaHei",
    "SimHei", "Arial Unicode MS", "Noto Sans CJK JP", "IPAexGothic",
)  # fmt: skip
NO_GLYPH = "□"


def draw(explanation: Explanation, path: str | Path) -> None:
    """Write the picture as a PNG file."""
    path = Path(path)
    require(path.suffix.lower() == ".png", f"the picture is a PNG file, got {path}: give a name that ends in .png")
    require(path.parent.is_dir(), f"the folder {path.parent} does not exist: make it, or name another")
    page = _Page()
    page.text(MARGIN, 42, explanation.recipe, size=22, weight="bold")
    x = MARGIN + page.width(explanation.recipe, 22, "bold") + 16
    page.text(x, 42, page.fit(explanation.idea, 13, WIDTH - MARGIN - x), size=13, color=FAINT)
    _legend(page, explanation)
    top = _tokens(page, explanation, top=104) + 40
    _matrix(page, explanation, top)
    _targets(page, explanation, top)
    _choices(page, explanation)
    _footer(page, explanation)
    page.save(path)


class _Page:
    """A sheet with pixels for coordinates, from the top left."""

    def __init__(self) -> None:
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError:
            raise Mistake("a picture needs matplotlib: pip install 'unmask[pictures]'") from None
        self.figure = Figure(figsize=(WIDTH / DOTS, HEIGHT / DOTS), dpi=DOTS, facecolor="white")
        self.renderer = FigureCanvasAgg(self.figure).get_renderer()
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
        self.axes.axis("off")

    def text(self, x: float, y: float, text: str, **style: Any) -> Any:
        usual: dict[str, Any] = {"color": INK, "size": 11, "va": "center_baseline", "family": _families(text)}
        return self.axes.text(x, y, _drawable(text), parse_math=False, **usual | style)

    def width(self, text: str, size: float, weight: str = "normal") -> float:
        artist = self.text(0, 0, text, size=size, weight=weight)
        width: float = artist.get_window_extent(self.renderer).width
        artist.remove()
        return width

    def title(self, x: float, y: float, title: str, remark: str) -> None:
        self.text(x, y, title, size=14, weight="bold")
        self.text(x + self.width(title, 14, "bold") + 14, y, remark, size=10, color=FAINT)

    def fit(self, text: str, size: float, width: float) -> str:
        """The text, cut at its end to the width."""
        whole = text
        while text and self.width(text if text == whole else text + "…", size) > width:
            text = text[:-1]
        return text if text == whole else text + "…"

    def box(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        """One box with round corners."""
        from matplotlib.patches import FancyBboxPatch

        style = "round,pad=0,rounding_size=4"
        self.axes.add_artist(FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=fill, edgecolor="none"))

    def squares(self, corners: Sequence[tuple[float, float]], size: float, fills: Sequence[str]) -> None:
        """Many squares at once: drawn one by one they take a second."""
        from matplotlib.collections import PolyCollection

        shapes = [[(x, y), (x + size, y), (x + size, y + size), (x, y + size)] for x, y in corners]
        self.axes.add_collection(PolyCollection(shapes, facecolors=fills, edgecolors="none", antialiaseds=False))

    def save(self, path: Path) -> None:
        self.figure.savefig(path, format="png", dpi=DOTS)


@cache
def _chinese() -> list[str]:
    """The first installed family that draws Chinese, if there is one."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in CHINESE if name in installed][:1]


def _families(text: str) -> list[str]:
    return ["DejaVu Sans"] if text.isascii() else ["DejaVu Sans", *_chinese()]


@cache
def _fonts() -> list[Any]:
    from matplotlib import font_manager

    return [font_manager.get_font(font_manager.findfont(family)) for family in ("DejaVu Sans", *_chinese())]


def _drawable(text: str) -> str:
    """The text with a box for every character that no font here can draw."""
    return "".join(c if any(font.get_char_index(ord(c)) for font in _fonts()) else NO_GLYPH for c in text)


def _legend(page: _Page, explanation: Explanation) -> None:
    x = float(MARGIN)
    present = {drawn_as(token) for token in explanation.tokens}
    for name in (name for name in NAMES if name in present):
        page.box(x, 68, 14, 14, FILLS[name])
        page.text(x + 20, 75.5, NAMES[name], size=10, color=FAINT)
        x += 20 + page.width(NAMES[name], 10) + 22
    run = f"seed {explanation.seed}, visit {explanation.visit}"
    page.text(WIDTH - MARGIN, 75.5, run, size=10, color=FAINT, ha="right")


def _tokens(page: _Page, explanation: Explanation, top: float) -> float:
    """The tokens as boxes, those of one word side by side; returns where they end."""
    size, height = 12.5, 32
    tokens = explanation.tokens[:MOST_TOKENS]
    line = height + (24 if any(token.hidden for token in tokens) else 10)
    x, y = float(MARGIN), top
    for places in _words(tokens):
        widths = [_box_width(page, tokens[place], size) for place in places]
        if x > MARGIN and x + sum(widths) > WIDTH - MARGIN:
            x, y = float(MARGIN), y + line
        for place, width in zip(places, widths, strict=True):
            _token(page, tokens[place], x, y, width, height, size)
            x += width + 2
        x += 7
    if len(tokens) < len(explanation.tokens):
        page.text(x, y + height / 2, f"… {len(explanation.tokens) - len(tokens)} more", size=11, color=FAINT)
    return y + line


def _words(tokens: tuple[Token, ...]) -> Iterator[list[int]]:
    """The places of each word; a special token stands alone."""
    word: list[int] = []
    for place in range(len(tokens)):
        if word and not continues(tokens, place):
            yield word
            word = []
        word.append(place)
    yield word


def _box_width(page: _Page, token: Token, size: float) -> float:
    width = page.width(shown(token.text), size)
    return max(width, page.width(shown(token.original), size - 3) if token.hidden else 0, 6) + 13


def _token(page: _Page, token: Token, x: float, y: float, width: float, height: float, size: float) -> None:
    name, middle = drawn_as(token), x + width / 2
    page.box(x, y, width, height, FILLS[name])
    page.text(middle, y + height / 2, shown(token.text), size=size, color=LETTERS[name], ha="center")
    if token.hidden:
        page.text(middle, y + height + 10, shown(token.original), size=size - 3, color=DARK[token.hidden], ha="center")


def _matrix(page: _Page, explanation: Explanation, top: float) -> None:
    """Queries as rows, keys as columns; the column of a hidden token has its colour."""
    left, upper = MARGIN + 110, top + 104
    room = HEIGHT - 36 - upper
    tokens = explanation.tokens[: min(MOST_TOKENS, int(room / SMALLEST_CELL))]
    cut = f" (the first {len(tokens)})" if len(tokens) < len(explanation.tokens) else ""
    page.title(MARGIN, top, "Who sees whom", f"the token of a row sees the tokens of its filled columns{cut}")
    cell = int(min(26, room / len(tokens), (720 - left) / len(tokens)))  # whole pixels are crisp
    size = max(6.5, min(11.0, cell * 0.55))
    for place, token in enumerate(tokens):
        middle = (place + 0.5) * cell - 0.5
        style = {"size": size, "color": _label_color(token)}
        page.text(left - 8, upper + middle, page.fit(shown(token.text), size, 100), ha="right", **style)
        label = page.fit(shown(token.text), size, 80)
        page.text(left + middle, upper - 6, label, ha="center", rotation=90, **style | {"va": "bottom"})
    places = [(query, key) for query in range(len(tokens)) for key in range(len(tokens))]
    corners = [(left + key * cell, upper + query * cell) for query, key in places]
    fills = [_column_color(tokens[key]) if explanation.visible[query][key] else UNSEEN for query, key in places]
    page.squares(corners, cell - 1, fills)


def _column_color(token: Token) -> str:
    return FILLS[token.hidden] if token.hidden else SEEN


def _label_color(token: Token) -> str:
    return DARK[token.hidden] if token.hidden else FAINT if token.special else INK


def _targets(page: _Page, explanation: Explanation, top: float) -> None:
    """Two columns of predictions, and under them how many more there are."""
    page.title(RIGHT, top, "What is predicted", "at a place, from the token it reads")
    answers = [(place, f"class {label} of {explanation.classes}") for place, label in explanation.answers]
    predictions = [*answers, *((target.place, shown(target.text)) for target in explanation.targets)]
    step = 28
    rows = int((CHOICES - 50 - top) // step)
    for number, (place, text) in enumerate(predictions[: 2 * rows]):
        column, row = divmod(number, rows)
        _target(page, explanation.tokens[place], place, text, RIGHT + column * 300, top + 36 + row * step)
    if len(predictions) > 2 * rows:
        rest = f"and {len(predictions) - 2 * rows} more"
        page.text(RIGHT + 332, top + 34 + rows * step, rest, size=10, color=FAINT)


def _target(page: _Page, token: Token, place: int, text: str, x: float, y: float) -> None:
    name = drawn_as(token)
    page.text(x + 22, y, str(place), size=10, color=FAINT, ha="right")
    reads = page.fit(shown(token.text), 11, 90)
    page.box(x + 32, y - 12, page.width(reads, 11) + 14, 24, FILLS[name])
    page.text(x + 39, y, reads, size=11, color=LETTERS[name])
    page.text(x + 150, y, "→", size=12, color=FAINT, ha="center")
    page.text(x + 170, y, page.fit(text, 12, 124), size=12)


def _choices(page: _Page, explanation: Explanation) -> None:
    """What the recipe chose, a line per axis."""
    page.title(RIGHT, CHOICES, "The recipe", f"{explanation.recipe} {explanation.size}")
    for number, (axis, part, _) in enumerate(explanation.choices):
        y = CHOICES + 26 + number * 20
        page.text(RIGHT, y, axis, size=10, color=FAINT)
        page.text(RIGHT + 128, y, page.fit(part, 9, WIDTH - MARGIN - RIGHT - 128), size=9)


def _footer(page: _Page, explanation: Explanation) -> None:
    notes = list(explanation.notes)
    if len(explanation.tokens) > MOST_TOKENS:
        notes.insert(0, f"the first {MOST_TOKENS} of {len(explanation.tokens)} tokens are drawn")
    if any(
        _drawable(text) != text for token in explanation.tokens for text in (shown(token.text), shown(token.original))
    ):
        notes.insert(0, f"{NO_GLYPH} stands for what no installed font can draw: install one, such as Noto Sans CJK")
    page.text(MARGIN, HEIGHT - 14, page.fit("; ".join(notes), 8.5, WIDTH - 2 * MARGIN), size=8.5, color=FAINT)
