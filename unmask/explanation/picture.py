"""Draw an explanation as one picture: the tokens, which token sees which, what is predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from unmask.errors import require
from unmask.explanation.page import FAINT, HEIGHT, INK, WIDTH, Page
from unmask.explanation.records import (
    NAMES,
    Explanation,
    Target,
    Token,
    answer_name,
    continues,
    drawn_as,
    judged,
    not_asked,
    run_name,
    share_name,
    shown,
    size_name,
)
from unmask.fonts import NO_GLYPH

MARGIN, RIGHT = 36, 776  # left edges of the page and of its right half
MOST_TOKENS, SMALLEST_CELL = 40, 9  # tokens and pixels; limits of what a person can read
TOKEN, STEP, LINE = 32, 28, 15  # heights of a token, of a prediction, of a line of small text
KINDS = {"plain": "text"} | NAMES | {"special": "special"}
FILLS = {"plain": "#e3edf7", "mask": "#d64545", "random": "#f0b429", "keep": "#3ebd93", "moved": "#9b6bdf",
         "special": "#e4e7eb"}  # fmt: skip
LETTERS = {"plain": INK, "mask": "white", "random": INK, "keep": INK, "moved": "white", "special": "#616e7c"}
DARK = {"mask": "#ba2525", "random": "#a06800", "keep": "#147d64", "moved": "#653cad", "mixed": "#616e7c"}  # on white
BANDS = {"mask": "#fbdfdf", "random": "#fcefc7", "keep": "#d3f3e6", "moved": "#e9defa",
         "mixed": "#eef1f5"}  # behind the tokens of a unit  # fmt: skip
LEXICON = {"phrase": "#0b7285", "entity": "#c2255c"}
SEEN, UNSEEN = "#3b7dc4", "#eef1f5"


def draw(explanation: Explanation, path: str | Path, *, font: str | Path | None = None) -> str:
    """Write the picture as a PNG file. Returns the characters that no font can draw. `font`: a font file to use."""
    path = Path(path)
    require(
        path.suffix.lower() == ".png",
        ("the picture is a PNG file, got {path}: give a name that ends in .png"),
        path=path,
    )
    require(path.parent.is_dir(), "the folder {parent} does not exist: create it, or name another", parent=path.parent)
    page = Page(Path(font) if font is not None else None)
    _heading(page, explanation)
    top = _tokens(page, explanation, _drawn(page, explanation, top=104)) + 34
    _matrix(page, explanation, top)
    bottom = _choices(page, explanation)
    below = _targets(page, explanation, top, bottom)
    _judgements(page, explanation, below, bottom)
    _footer(page, explanation)
    page.save(path)
    return _lacking(page, explanation)


def _heading(page: Page, explanation: Explanation) -> None:
    """Draw the title and the legend of the colours."""
    page.text(MARGIN, 42, explanation.recipe, size=22, weight="bold")
    x = MARGIN + page.width(explanation.recipe, 22, "bold") + 16
    room = WIDTH - MARGIN - x
    size = next((s for s in (13, 12, 11) if page.width(explanation.idea, s) <= room), 10)
    page.text(x, 42, page.fit(explanation.idea, size, room), size=size, color=FAINT)
    x = float(MARGIN)
    present = {drawn_as(token) for token in explanation.tokens}
    for name in (name for name in KINDS if name in present):
        page.box(x, 68, 14, 14, FILLS[name])
        page.text(x + 20, 75.5, KINDS[name], size=10, color=FAINT)
        x += 20 + page.width(KINDS[name], 10) + 22
    for level in sorted({found.level for found in explanation.found}, reverse=True):
        page.line([(x, 75), (x + 14, 75)], LEXICON[level], 3)
        page.text(x + 20, 75.5, f"{level} of the lexicon", size=10, color=FAINT)
        x += 20 + page.width(f"{level} of the lexicon", 10) + 22
    page.text(WIDTH - MARGIN, 75.5, run_name(explanation), size=10, color=FAINT, ha="right")


def _drawn(page: Page, explanation: Explanation, top: float) -> float:
    """Draw the track and the level of this row, one line each. Returns the lower edge of the lines."""
    segments = sorted({token.segment for token in explanation.tokens})
    for drawn in explanation.drawn:
        title, rows = f"{drawn.axis}: {drawn.name}", share_name(drawn)
        page.text(MARGIN, top, title, size=12, weight="bold", color=DARK["moved"])
        said = f"{drawn.meaning} {rows[:1].upper()}{rows[1:]}."
        if drawn.axis == "track":
            said += f" Segments: {' and '.join(map(str, segments))}."
        page.text(MARGIN + page.width(title, 12, "bold") + 14, top, said, size=11, color=INK)
        top += 26
    return top


def _tokens(page: Page, explanation: Explanation, top: float) -> float:
    """Draw the tokens as boxes. Tokens of one word touch; tokens of one unit share a band. Returns the lower edge."""
    tokens = explanation.tokens[:MOST_TOKENS]
    hidden, known = any(token.hidden for token in tokens), bool(explanation.found)
    line, top = TOKEN + (26 if hidden else 10) + 8 * known, top + 8 * known
    laid = {size: _laid(page, tokens, size, top, line) for size in (12.5, 12.0, 11.5, 11.0)}
    fewest = min(boxes[-1][1] for boxes in laid.values())
    size, boxes = next((size, boxes) for size, boxes in laid.items() if boxes[-1][1] == fewest)
    for unit in explanation.units:
        for left, right, upper in _stretches(boxes[unit.start : unit.end + 1] if unit.end > unit.start else []):
            page.box(left - 4, upper - 4, right - left + 8, TOKEN + 26, BANDS[unit.how])
    for found in explanation.found:
        for left, right, upper in _stretches(boxes[found.start : found.end + 1]):
            height = upper - (7 if found.level == "phrase" else 11)
            page.line([(left, height), (right, height)], LEXICON[found.level], 2.5)
    for token, (left, upper, width) in zip(tokens, boxes, strict=True):
        _token(page, token, left, upper, width, size)
    x, y, width = boxes[-1]
    if len(tokens) < len(explanation.tokens):
        rest = f"… {len(explanation.tokens) - len(tokens)} more"
        page.text(x + width + 9, y + TOKEN / 2, rest, size=11, color=FAINT)
    return y + line


def _laid(
    page: Page, tokens: tuple[Token, ...], size: float, y: float, line: float
) -> list[tuple[float, float, float]]:
    """The left edge, the upper edge and the width of each token's box."""
    x, boxes = float(MARGIN), []
    for places in _words(tokens):
        widths = [_box_width(page, tokens[place], size) for place in places]
        if x > MARGIN and x + sum(widths) + 2 * len(widths) > WIDTH - MARGIN:
            x, y = float(MARGIN), y + line
        for width in widths:
            boxes.append((x, y, width))
            x += width + 2
        x += 7
    return boxes


def _stretches(boxes: Sequence[tuple[float, float, float]]) -> Iterator[tuple[float, float, float]]:
    """The left, right and upper edge of a group of boxes, for each line that the group is on."""
    for upper in sorted({y for _, y, _ in boxes}):
        here = [(x, x + width) for x, y, width in boxes if y == upper]
        yield here[0][0], here[-1][1], upper


def _words(tokens: tuple[Token, ...]) -> Iterator[list[int]]:
    """The places of the tokens of each word. A special token is a word by itself."""
    word: list[int] = []
    for place in range(len(tokens)):
        if word and not continues(tokens, place):
            yield word
            word = []
        word.append(place)
    yield word


def _box_width(page: Page, token: Token, size: float) -> float:
    width = page.width(shown(token.text), size)
    return max(width, page.width(shown(token.original), size - 3) if token.hidden else 0, 6) + 13


def _token(page: Page, token: Token, x: float, y: float, width: float, size: float) -> None:
    name, middle = drawn_as(token), x + width / 2
    page.box(x, y, width, TOKEN, FILLS[name])
    page.text(middle, y + TOKEN / 2, shown(token.text), size=size, color=LETTERS[name], ha="center")
    if token.hidden:
        page.text(middle, y + TOKEN + 10, shown(token.original), size=size - 3, color=DARK[token.hidden], ha="center")


def _matrix(page: Page, explanation: Explanation, top: float) -> None:
    """Draw the matrix: queries are rows, keys are columns. The column of a hidden token has the token's colour."""
    left, lower = MARGIN + 110, HEIGHT - 46
    tokens = explanation.tokens[:MOST_TOKENS]
    upper, size, cell = top, 11.0, 0
    while cell < SMALLEST_CELL and tokens:  # show fewer tokens if the cells would be too small to read
        for size in (11.0, 10.0, 9.0, 8.0, 7.0, 6.5):
            labels = [page.fit(shown(token.text), size, 80) for token in tokens]
            tallest = max(_height(page, label, size) for label in labels)
            upper = top + 24 + tallest
            cell = int(min(26, (lower - upper) / len(tokens), (720 - left) / len(tokens)))  # whole pixels look sharp
            if size <= cell * 0.55 + 0.5:
                break
        tokens = tokens[:-1] if cell < SMALLEST_CELL else tokens
    cut = f" (the first {len(tokens)})" if len(tokens) < len(explanation.tokens) else ""
    page.title(MARGIN, top, "Who sees whom", f"the token of a row sees the tokens of its filled columns{cut}")
    for place, token in enumerate(tokens):
        middle, style = (place + 0.5) * cell - 0.5, {"size": size, "color": _label_color(token)}
        page.text(left - 8, upper + middle, page.fit(shown(token.text), size, 100), ha="right", **style)
        label = page.fit(shown(token.text), size, 80)
        turned = {"va": "bottom", "rotation": 0 if len(label) == 1 else 90}
        page.text(left + middle, upper - 6, label, ha="center", **style | turned)
    places = [(query, key) for query in range(len(tokens)) for key in range(len(tokens))]
    corners = [(left + key * cell, upper + query * cell) for query, key in places]
    fills = [_column_color(tokens[key]) if explanation.visible[query][key] else UNSEEN for query, key in places]
    page.squares(corners, cell - 1, fills)


def _height(page: Page, label: str, size: float) -> float:
    """The height of a column's label. A label of one character is upright; a longer one is rotated."""
    return size * 1.6 if len(label) == 1 else page.width(label, size)


def _column_color(token: Token) -> str:
    return FILLS[token.hidden] if token.hidden else SEEN


def _label_color(token: Token) -> str:
    return DARK[token.hidden] if token.hidden else FAINT if token.special else INK


def _targets(page: Page, explanation: Explanation, top: float, bottom: float) -> float:
    """Draw the predictions in up to two columns, with a bracket around those of one unit. Returns the lower edge."""
    two = bool(judged(explanation))
    title = (
        "What the generator predicts"
        if two
        else "What the decoder writes"
        if explanation.decoder
        else "What is predicted"
    )
    around = any(target.around for target in explanation.targets)
    blind = any(target.blind for target in explanation.targets)
    from_what = "at a place, without the token there" if blind else "from the token at a place"
    page.title(RIGHT, top, title, from_what + " and both sides of its span" * around)
    top += 36
    for answer in explanation.answers:
        _target(page, explanation.tokens[answer.place], answer.place, answer_name(answer), RIGHT, top, 400)
        top += STEP
    if not_asked(explanation):
        page.text(RIGHT + 8, top, not_asked(explanation), size=11, color=FAINT)
        top += STEP
    targets = sorted(explanation.targets, key=lambda target: (target.span, target.place))
    rows = max(1, int((bottom - 34 - top) // STEP) - 4 * two)
    width = 400 if len(targets) <= rows else 124
    for number, target in enumerate(targets[: 2 * rows]):
        column, line = divmod(number, rows)
        x, y = RIGHT + column * 310, top + line * STEP
        text = _predicted(explanation, target)
        _target(page, explanation.predicting[target.at], target.at, text, x, y, width, blind=target.blind)
        if target.span[0] < target.span[1]:
            _bracket(page, explanation, target, x, y, width)
    end = top + min(len(targets), rows) * STEP
    if len(targets) > 2 * rows:
        page.text(RIGHT + 342, end, f"and {len(targets) - 2 * rows} more", size=10, color=FAINT)
    return end


def _predicted(explanation: Explanation, target: Target) -> str:
    """The token that is predicted, and its place if it is a hidden token at another place."""
    elsewhere = not explanation.decoder and explanation.tokens[target.place].hidden and target.at != target.place
    text = ", then ".join(map(shown, (target.text, *target.further)))
    return f"{text} (place {target.place})" if elsewhere else text


def _target(
    page: Page, token: Token, place: int, text: str, x: float, y: float, width: float, *, blind: bool = False
) -> None:
    """Draw a line: the place that predicts, the token there ("?" if the stream does not see it), the predicted token."""
    name = "special" if blind else drawn_as(token)
    page.text(x + 30, y, str(place), size=10, color=FAINT, ha="right")
    reads = "?" if blind else page.fit(shown(token.text), 11, 90)
    page.box(x + 38, y - 12, page.width(reads, 11) + 14, 24, FILLS[name])
    page.text(x + 45, y, reads, size=11, color=LETTERS[name])
    page.text(x + 156, y, "→", size=12, color=FAINT, ha="center")
    page.text(x + 174, y, page.fit(text, 12, width), size=12)


def _bracket(page: Page, explanation: Explanation, target: Target, x: float, y: float, width: float) -> None:
    """Draw the part of a unit's bracket on one line. The first line also has the size of the unit."""
    unit = explanation.units[explanation.tokens[target.place].unit]
    first, last = target.place == unit.start, target.place == unit.end
    upper, lower = y - (11 if first else STEP / 2), y + (11 if last else STEP / 2)
    page.line([(x + 8, upper)] * first + [(x + 4, upper), (x + 4, lower)] + [(x + 8, lower)] * last, DARK[unit.how])
    text = page.width(_predicted(explanation, target), 12) + 10
    if first and text + page.width(size_name(unit), 9) < width:
        page.text(x + 174 + text, y, size_name(unit), size=9, color=FAINT)


def _judgements(page: Page, explanation: Explanation, top: float, bottom: float) -> None:
    """Draw what the discriminator predicts, and the tokens that it reads, as many as fit."""
    for question in judged(explanation):
        everywhere = len(question.places) == len(explanation.tokens)
        where = "at every token" if everywhere else f"at {len(question.places)} tokens"
        page.title(RIGHT, top + 16, "What the discriminator predicts", where)
        lines = page.wrap(question.meaning, 10, WIDTH - MARGIN - RIGHT, 2)
        for number, line in enumerate(lines):
            page.text(RIGHT, top + 40 + number * LINE, line, size=10)
        x, y = float(RIGHT), top + 38 + len(lines) * LINE
        for place, token in enumerate(explanation.tokens[:MOST_TOKENS]):
            text = "?" if token.hidden else shown(token.text)
            width = page.width(text, 10) + 10
            if x + width > WIDTH - MARGIN:
                x, y = float(RIGHT), y + 26
            if y + 46 > bottom:
                break
            asked = place in question.places
            page.box(x, y, width, 22, BANDS["mask"] if token.hidden else FILLS["plain" if asked else "special"])
            page.text(x + width / 2, y + 11, text, size=10, color=DARK["mask"] if token.hidden else INK, ha="center")
            x += width + 4
        said = "? is the generator's guess: where it is right, nothing was replaced"
        page.text(RIGHT, y + 36, said, size=10, color=FAINT)


def _choices(page: Page, explanation: Explanation) -> float:
    """Draw the choices of the recipe at the bottom of the page. Returns their upper edge."""
    indent = max(128.0, *(page.width(axis, 10) + 12 for axis, _, _ in explanation.choices))
    left, width = RIGHT + indent, WIDTH - MARGIN - RIGHT - indent
    choices = [(axis, page.wrap(part, 9, width, 2)) for axis, part, _ in explanation.choices]
    top = HEIGHT - 44 - sum(LINE * len(lines) + 3 for _, lines in choices) - 16
    page.title(RIGHT, top, "The recipe", f"{explanation.recipe} {explanation.size}")
    y = top + 26
    for axis, lines in choices:
        page.text(RIGHT, y, axis, size=10, color=FAINT)
        for number, line in enumerate(lines):
            page.text(left, y + number * LINE, line, size=9)
        y += LINE * len(lines) + 3
    return top


def _footer(page: Page, explanation: Explanation) -> None:
    notes = list(explanation.notes)
    if len(explanation.tokens) > MOST_TOKENS:
        notes.insert(0, f"the first {MOST_TOKENS} of {len(explanation.tokens)} tokens are drawn")
    if _lacking(page, explanation):
        notes.insert(
            0, f"{NO_GLYPH} is a character that no installed font can draw: install a font such as Noto Sans CJK"
        )
    for number, line in enumerate(page.wrap("; ".join(notes), 8.5, WIDTH - 2 * MARGIN, 2)):
        page.text(MARGIN, HEIGHT - 26 + 14 * number, line, size=8.5, color=FAINT)


def _lacking(page: Page, explanation: Explanation) -> str:
    """The characters of the text that no font can draw."""
    texts = [text for token in explanation.tokens for text in (token.text, token.original)]
    return page.fonts.lacking("".join(map(shown, texts)))
