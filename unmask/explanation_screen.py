"""An explanation on the screen: tokens in colour, who sees whom as a matrix, what is predicted as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Group as Stack
from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from unmask.explanation import Explanation, Token, continues, drawn_as, shown

MOST_SHOWN = 24  # tokens of the matrix, targets of the table: what a screen holds
STYLES = {"mask": "bold red", "random": "bold yellow", "keep": "bold green", "special": "dim", "plain": ""}
_LABEL = 6  # characters of a column's label


def render(explanation: Explanation) -> RenderableType:
    """The explanation for a terminal, 80 columns wide or more; it reads as well without colours."""
    return Stack(
        _heading(explanation),
        *_section("1  The text as tokens", _sentences(explanation), _legend(explanation)),
        *_section("2  Who sees whom", _matrix(explanation)),
        *_section("3  What is predicted", *_predictions(explanation)),
        *_section("Notes", _notes(explanation)),
    )


def _section(title: str, *parts: RenderableType) -> tuple[RenderableType, ...]:
    return (Text(""), Rule(Text(title, "bold"), align="left", style="dim"), *parts)


def _heading(explanation: Explanation) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for axis, part, meaning in explanation.choices:
        grid.add_row(Text(axis, "bold cyan", no_wrap=True), Text(meaning) + Text(f"\n{part}", "dim"))
    title = Text(f"{explanation.recipe} {explanation.size}", "bold") + Text(f"  {explanation.idea}", "not bold")
    return Stack(title, Text(f"seed {explanation.seed}, visit {explanation.visit}", "dim"), Text(""), grid)


def _notes(explanation: Explanation) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    for note in explanation.notes:
        grid.add_row(Text("-", "dim"), Text(note))
    return grid


def _sentences(explanation: Explanation) -> RenderableType:
    """A line per sentence; special tokens stand with the sentence before them, the first ones with the one after."""
    tokens = explanation.tokens
    grid = Table.grid(padding=(0, 2))
    for _, places in groupby(range(len(tokens)), _line_numbers(tokens).__getitem__):
        line = list(places)
        first = next((tokens[place] for place in line if not tokens[place].special), tokens[line[0]])
        text = Text()
        for place in line:
            joint = "" if place == line[0] else "·" if continues(tokens, place) else " "
            text.append(joint, "dim").append_text(_mark(tokens[place]))
        grid.add_row(Text(_line_label(explanation, first), "cyan", no_wrap=True), text)
    return grid


def _line_numbers(tokens: tuple[Token, ...]) -> list[int]:
    numbers, line, example, sentence = [], -1, -1, -1
    for token in tokens:
        begins = token.sentence >= 0 and sentence >= 0 and token.sentence != sentence
        line += begins or token.example != example
        sentence = token.sentence if token.sentence >= 0 or token.example != example else sentence
        example = token.example
        numbers.append(line)
    return numbers


def _line_label(explanation: Explanation, token: Token) -> str:
    tokens = explanation.tokens
    several = f"example {token.example + 1}, " if tokens[-1].example > 0 else ""
    pair = f"text {chr(ord('A') + token.segment)}, " if any(t.segment for t in tokens) else ""
    return several + pair + f"sentence {token.sentence + 1}"


def _mark(token: Token) -> Text:
    """A token on the screen: a hidden one with what it was."""
    text = Text(shown(token.text), STYLES[drawn_as(token)])
    if token.hidden is None:
        return text
    return Text("{", "dim") + Text(shown(token.original), "dim strike") + Text("→", "dim") + text + Text("}", "dim")


def _legend(explanation: Explanation) -> RenderableType:
    how = Counter(drawn_as(token) for token in explanation.tokens)
    hidden = how["mask"] + how["random"] + how["keep"]
    words = Text("\n")
    if hidden:
        share = hidden / max(1, len(explanation.tokens) - how["special"])
        words += Text("{", "dim") + Text("was", "dim strike") + Text("→", "dim") + Text("reads") + Text("}", "dim")
        words += Text(f" hidden: {hidden} of the text's tokens ({share:.0%}), ")
        names = {"mask": "masked", "random": "replaced at random", "keep": "kept"}
        words += Text(", ").join(Text(f"{how[key]} {name}", STYLES[key]) for key, name in names.items())
    else:
        words += Text("no token is hidden where it stands")
    joined = any(continues(explanation.tokens, place) for place in range(len(explanation.tokens)))
    return words + Text("; · joins the pieces of a word" if joined else "", "dim")


def _matrix(explanation: Explanation) -> RenderableType:
    """A row per query, a column per key; cells are two columns wide, as Chinese labels are."""
    tokens = explanation.tokens[:MOST_SHOWN]
    labels = [shown(token.text) for token in tokens]
    width = min(12, max(map(cell_len, labels)))
    text = Text(no_wrap=True)
    for level in range(_LABEL):  # column labels read downwards and end above their column
        text.append(" " * (width + 5))
        for token, label in zip(tokens, labels, strict=True):
            letter = label[:_LABEL].rjust(_LABEL)[level]
            text.append(set_cell_size(letter, 2), STYLES[drawn_as(token)])
        text.append("\n")
    for place, (token, label) in enumerate(zip(tokens, labels, strict=True)):
        text.append(f"{place:3} ", "dim").append(_left_pad(label, width), STYLES[drawn_as(token)]).append(" ")
        for key, seen in zip(tokens, explanation.visible[place], strict=False):
            text.append(*("■ ", STYLES[drawn_as(key)] or "cyan") if seen else ("· ", "dim"))
        text.append("\n")
    text.append("■ the token at the left sees the token above", "dim")
    if len(tokens) < len(explanation.tokens):
        text.append(f"; the first {len(tokens)} of {len(explanation.tokens)} tokens", "dim")
    return text


def _left_pad(label: str, width: int) -> str:
    label = set_cell_size(label, width) if cell_len(label) > width else label
    return " " * (width - cell_len(label)) + label


def _predictions(explanation: Explanation) -> Iterator[RenderableType]:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("at place", "which reads", "and sees tokens", "predict", "which stands at"):
        table.add_column(name, justify="right" if name == "at place" else "left", no_wrap=True)
    for place, text, (start, end) in explanation.targets[:MOST_SHOWN]:
        token = explanation.tokens[place]
        sees = f"{sum(explanation.visible[place])} of {len(explanation.tokens)}"
        run = f"{start}" if start == end else f"{start} to {end}"
        reads = Text(shown(token.text), STYLES[drawn_as(token)])
        table.add_row(str(place), reads, sees, Text(shown(text), "bold"), run)
    if explanation.targets:
        yield table
    if len(explanation.targets) > MOST_SHOWN:
        yield Text(f"and {len(explanation.targets) - MOST_SHOWN} more", "dim")
    for place, label in explanation.answers:
        token = explanation.tokens[place]
        counted = f"of {explanation.classes}, counted from 0"
        yield Text(f"sentence task: predict class {label} ({counted}) from {token.text} at place {place}")
    if not explanation.targets and not explanation.answers:
        yield Text("nothing is predicted")
