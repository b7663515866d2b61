"""A report: one HTML page without external files, with curves and bar charts drawn as SVG."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

COLOURS = ("#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#0891b2", "#be185d", "#65a30d", "#7c2d12", "#475569")
DASHES = ("", "6 3", "2 3")  # after all colours are used once
WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 640, 300, 56, 24, 44, 16

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1f2937; max-width: 980px; margin: 2.5rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; margin-bottom: .2rem; }} h2 {{ font-size: 1.1rem; margin-top: 2rem; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .3rem .9rem .3rem 0; text-align: right; border-bottom: 1px solid #e5e7eb; }}
td:first-child, th:first-child {{ text-align: left; }} svg {{ max-width: 100%; height: auto; }}
text {{ font: 12px system-ui, sans-serif; fill: #4b5563; }} code, pre {{ background: #f3f4f6; padding: .1rem .3rem; border-radius: 4px; }}
pre {{ padding: .7rem; overflow-x: auto; }} .texts td, .texts th {{ text-align: left; vertical-align: top; }} .wide {{ overflow-x: auto; }} .wide td, .wide th {{ white-space: nowrap; }}
.row {{ display: flex; flex-wrap: wrap; gap: .5rem; }} .row svg {{ flex: 1 1 300px; }} .row text {{ font-size: 19px; }} .key {{ font-size: 13px; color: #4b5563; margin: .2rem 0 0; }}
.key span {{ margin-right: 1rem; white-space: nowrap; }} .key svg {{ vertical-align: middle; margin-right: .3rem; }} .note {{ color: #92400e; }}
details {{ margin: .4rem 0; }} summary {{ cursor: pointer; }}
</style></head><body><h1>{title}</h1>
{body}
</body></html>
"""


@dataclass(frozen=True)
class ReportCurve:
    """One curve of a diagram."""

    name: str
    points: tuple[tuple[float, float], ...]  # (x, y)


@dataclass(frozen=True)
class Group:
    """A group of bars. Each bar shows the mean of several runs, with one dot per run."""

    name: str
    scores: dict[str, tuple[float, ...]]  # the scores of the runs, by the name of the bar


def page(path: str | Path, title: str, parts: Sequence[str]) -> None:
    Path(path).write_text(_PAGE.format(title=html.escape(title), body="\n".join(parts)), encoding="utf-8")


def heading(text: str) -> str:
    return f"<h2>{html.escape(text)}</h2>"


def paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def commands(lines: Sequence[str]) -> str:
    return f"<pre>{html.escape(chr(10).join(lines))}</pre>"


def note(text: str) -> str:
    return f'<p class="note">{html.escape(text)}</p>'


def folded(title: str, inside: str) -> str:
    """A part of the page that is closed until the reader opens it."""
    return f"<details><summary>{html.escape(title)}</summary>{inside}</details>"


def row(parts: Sequence[str]) -> str:
    """Diagrams next to each other."""
    return f'<div class="row">{"".join(parts)}</div>'


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, texts: bool = False) -> str:
    """`texts`: cells are texts, which are broken into lines, instead of numbers."""
    head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="{"texts" if texts else "wide"}"><table><tr>{head}</tr>{body}</table></div>'


def curves(
    lines: Sequence[ReportCurve], x_name: str, y_name: str, *, log_x: bool = False, dots: bool = False, key: bool = True
) -> str:
    """`log_x`: the x axis in powers of ten. `dots`: mark every point. `key`: say below which line is which."""
    points = [point for line in lines for point in line.points]
    if not points:
        return paragraph("There are no points to draw.")
    x: _Axis = (_LogAxis if log_x else _Axis)([p[0] for p in points], LEFT, WIDTH - RIGHT)
    y = _Axis([p[1] for p in points], HEIGHT - BOTTOM, TOP)
    drawn = [_frame(x, y, x_name, y_name)]
    for number, line in enumerate(lines):
        colour, dash = style(number)
        path = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in line.points)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" {dash}/>')
        if dots:
            drawn += [
                f'<circle cx="{x.at(a):.1f}" cy="{y.at(b):.1f}" r="3.5" fill="{colour}"/>' for a, b in line.points
            ]
    return _svg(drawn) + (keys([line.name for line in lines]) if key else "")


def dots(points: Sequence[tuple[float, float]], line: ReportCurve, x_name: str, y_name: str) -> str:
    """A dot for each point, and one line."""
    every = [*points, *line.points]
    x, y = _Axis([p[0] for p in every], LEFT, WIDTH - RIGHT), _Axis([p[1] for p in every], HEIGHT - BOTTOM, TOP)
    path = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in line.points)
    drawn = [
        _frame(x, y, x_name, y_name),
        *(
            f'<circle cx="{x.at(a):.1f}" cy="{y.at(b):.1f}" r="2.5" fill="{COLOURS[0]}" fill-opacity="0.4"/>'
            for a, b in points
        ),
        f'<polyline points="{path}" fill="none" stroke="{COLOURS[1]}" stroke-width="2"/>',
    ]
    return _svg(drawn) + keys(["examples", line.name])


def style(number: int) -> tuple[str, str]:
    """The colour and the dashes of a line."""
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    return COLOURS[number % len(COLOURS)], f'stroke-dasharray="{dash}"' if dash else ""


def keys(names: Sequence[str]) -> str:
    """Which line is which, below a diagram."""
    found = []
    for number, name in enumerate(names):
        colour, dash = style(number)
        line = f'<line x1="0" x2="22" y1="5" y2="5" stroke="{colour}" stroke-width="3" {dash}/>'
        found.append(f'<span><svg width="22" height="10">{line}</svg>{html.escape(name)}</span>')
    return f'<p class="key">{"".join(found)}</p>'


def bars(groups: Sequence[Group], y_name: str) -> str:
    """Groups of bars from 0 to 1, with one dot per run."""
    names = list(dict.fromkeys(name for group in groups for name in group.scores))
    y = _Axis([0.0, 1.0], HEIGHT - BOTTOM, TOP)
    slot = (WIDTH - LEFT - RIGHT) / len(groups)
    drawn = [_frame(None, y, "", y_name)]
    for place, group in enumerate(groups):
        width = slot * 0.7 / len(names)
        for number, name in enumerate(names):
            scores = group.scores.get(name, ())
            if not scores:
                continue
            left = LEFT + place * slot + slot * 0.15 + number * width
            mean, colour = sum(scores) / len(scores), COLOURS[number % len(COLOURS)]
            drawn.append(
                f'<rect x="{left:.1f}" y="{y.at(mean):.1f}" width="{width * 0.9:.1f}" height="{y.at(0) - y.at(mean):.1f}" fill="{colour}" opacity="0.75"/>'
            )  # noqa: E501
            drawn.append(
                f'<text x="{left + width * 0.45:.1f}" y="{y.at(max(scores)) - 7:.1f}" text-anchor="middle">{mean:.1%}</text>'
            )  # noqa: E501
            drawn += [
                f'<circle cx="{left + width * 0.45:.1f}" cy="{y.at(s):.1f}" r="3" fill="#111827"/>' for s in scores
            ]
        drawn.append(
            f'<text x="{LEFT + (place + 0.5) * slot:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{html.escape(group.name)}</text>'
        )  # noqa: E501
    return _svg(drawn) + keys(names)


class _Axis:
    """An axis: it maps values to coordinates on the page, and has marks at round values."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        low, high = min(values), max(values)
        room = 0.0 if high > low else abs(low) / 20 or 1.0  # a flat line is drawn in the middle
        self.low, self.high = low - room, high + room
        self.begin, self.end = begin, end

    def at(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)

    def marks(self) -> list[float]:
        raw = (self.high - self.low) / 5
        unit = 10 ** math.floor(math.log10(raw))
        step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= raw)
        first = math.ceil(self.low / step)
        return [i * step for i in range(first, int(self.high / step) + 1)]


class _LogAxis(_Axis):
    """An axis in powers of ten, with marks at 1, 2 and 5 times each power."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        super().__init__([math.log10(value) for value in values], begin, end)

    def at(self, value: float) -> float:
        return super().at(math.log10(value))

    def marks(self) -> list[float]:
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        for steps in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7), [m / 10 for m in range(10, 100)]):
            marks = [m * 10.0**p for p in powers for m in steps]
            inside = [mark for mark in marks if self.low - 1e-9 <= math.log10(mark) <= self.high + 1e-9]
            if len(inside) > 1:
                break
        return inside[:: 1 + len(inside) // 7]


def _frame(x: _Axis | None, y: _Axis, x_name: str, y_name: str) -> str:
    parts = [f'<text x="{LEFT}" y="{TOP - 4}">{html.escape(y_name)}</text>']
    for mark in y.marks():
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y.at(mark):.1f}" y2="{y.at(mark):.1f}" stroke="#e5e7eb"/>'
        )
        parts.append(f'<text x="{LEFT - 6}" y="{y.at(mark) + 4:.1f}" text-anchor="end">{mark:g}</text>')
    marks = [] if x is None else [(x.at(mark), mark) for mark in x.marks()]
    for place, mark in marks:
        parts.append(f'<text x="{place:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{_short(mark)}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{html.escape(x_name)}</text>')
    return "".join(parts)


def _short(value: float) -> str:
    """A number in few letters: 20k, 2M, 5e15."""
    if value >= 1e9:
        return f"{value:.2g}".replace("e+", "e")
    if value >= 1e4:
        return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k"
    return f"{value:,.10g}"


def _svg(parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">{"".join(parts)}</svg>'
