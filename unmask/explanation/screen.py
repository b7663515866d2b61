"""Show an explanation on the screen: tokens in colour, a matrix of which token sees which, a table of predictions."""

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
    span_name,
)

MOST_SHOWN = 24  # most tokens in the matrix, and most targets in the table, so that they fit on a screen
STYLES = {"mask": "bold red", "random": "bold yellow", "keep": "bold green", "moved": "bold magenta", "special": "dim",
          "plain": ""}  # fmt: skip
_LABEL = 6  # characters of a column's label


def render(explanation: Explanation) -> RenderableType:
    """The explanation for a terminal with 80 columns or more. It can be read without colours."""
    return Stack(
        _heading(explanation),
        *_section("1  The text as tokens", _sentences(explanation), _legend(explanation)),
        *_section("2  Who sees whom", _matrix(explanation)),
        *_section("3  What is predicted", *_predictions(explanation), *_judgements(explanation)),
        *_section("Notes", _notes(explanation)),
    )


def _section(title: str, *parts: RenderableType) -> tuple[RenderableType, ...]:
    return (Text(""), Rule(Text(title, "bold"), align="left", style="dim"), *parts)


def _heading(explanation: Explanation) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for axis, part, meaning in explanation.choices:
        grid.add_row(Text(axis, "bold cyan", no_wrap=True), Text(meaning) + Text(f"\n{part}", "dim"))
    for one in explanation.drawn:
        drawn = Text(f"{one.name}: ", "bold") + Text(one.meaning, "not bold") + Text(f"\n{share_name(one)}", "dim")
        grid.add_row(Text(one.axis, "bold magenta", no_wrap=True), drawn)
    title = Text(f"{explanation.recipe} {explanation.size}", "bold") + Text(f"  {explanation.idea}", "not bold")
    return Stack(title, Text(run_name(explanation), "dim"), Text(""), grid)


def _notes(explanation: Explanation) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    if explanation.misfit:
        grid.add_row(Text("!", "bold red"), Text(f"these parts cannot be trained together: {explanation.misfit}"))
    for note in explanation.notes:
        grid.add_row(Text("-", "dim"), Text(note))
    return grid


def _sentences(explanation: Explanation) -> RenderableType:
    """One line per sentence. A special token is on the line of the sentence before it; the first one, of the next."""
    tokens = explanation.tokens
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")
    for _, places in groupby(range(len(tokens)), _line_numbers(tokens).__getitem__):
        line = list(places)
        first = next((tokens[place] for place in line if not tokens[place].special), tokens[line[0]])
        label = Text(_line_label(explanation, first), "cyan", no_wrap=True)
        grid.add_row(label, _line(explanation, line))
    return grid


def _line(explanation: Explanation, line: list[int]) -> Text:
    """The tokens of one line. The tokens of a hidden unit are shown together."""
    tokens, text = explanation.tokens, Text()
    for unit, group in groupby(line, lambda place: tokens[place].unit if tokens[place].hidden else -1 - place):
        places = list(group)
        text.append("" if places[0] == line[0] else _joint(tokens, places[0]), "dim")
        text.append_text(_run_of(tokens, places, "text") if unit < 0 else _hidden(explanation, unit, places))
    return text


def _hidden(explanation: Explanation, number: int, places: list[int]) -> Text:
    """A hidden unit with its original tokens. Dots mean that it continues on another line."""
    unit = explanation.units[number]
    ends = "{" if places[0] == unit.start else "⋯", "}" if places[-1] == unit.end else "⋯"
    was, reads = (_run_of(explanation.tokens, places, name) for name in ("original", "text"))
    was.stylize("dim strike")
    return Text(ends[0], "dim") + was + Text("→", "dim") + reads + Text(ends[1], "dim")


def _run_of(tokens: tuple[Token, ...], places: list[int], name: str) -> Text:
    text = Text()
    for place in places:
        style = STYLES[drawn_as(tokens[place])] if name == "text" else ""
        text.append("" if place == places[0] else _joint(tokens, place), "dim")
        text.append(shown(getattr(tokens[place], name)), style)
    return text


def _joint(tokens: tuple[Token, ...], place: int) -> str:
    return "·" if continues(tokens, place) else " "


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
    several = [f"example {token.example + 1}"] if tokens[-1].example > 0 else []
    pair = [f"text {'AB'[token.half]}"] if any(t.half for t in tokens) else []
    segment = [f"segment {token.segment}"] if any(t.half != t.segment for t in tokens) else []
    label = [*several, *pair, *segment, f"sentence {token.sentence + 1}"]
    return ",\n".join(filter(None, (", ".join(label[:-2]), ", ".join(label[-2:]))))


def _legend(explanation: Explanation) -> RenderableType:
    how, tokens = Counter(drawn_as(token) for token in explanation.tokens), explanation.tokens
    hidden = sum(how[name] for name in NAMES)
    words = Text("\n")
    if hidden and explanation.moved:
        words += Text("{", "dim") + Text("was", "dim strike") + Text("→", "dim") + Text("reads") + Text("}", "dim")
        words += Text(f" hidden: {hidden} span{'s' * (hidden > 1)}, each behind one token: ")
        words += Text(", ").join(Text(f"{how[key]} {name}", STYLES[key]) for key, name in NAMES.items() if how[key])
    elif hidden:
        units, whole = len(explanation.units), len(tokens) - how["special"]
        words += Text("{", "dim") + Text("was", "dim strike") + Text("→", "dim") + Text("reads") + Text("}", "dim")
        words += Text(f" hidden: {hidden} of the text's {whole} tokens ({hidden / max(1, whole):.0%})")
        words += Text(f" in {units} unit{'s' * (units > 1)}, " if units < hidden else ", ")
        words += Text(", ").join(Text(f"{how[key]} {name}", STYLES[key]) for key, name in NAMES.items() if how[key])
    else:
        words += Text(
            "no token of the text is hidden or replaced"
            + ", but some are missing or changed places" * explanation.moved
        )
    joined = any(continues(tokens, place) for place in range(len(tokens)))
    words += Text("; · joins the pieces of a word" if joined else "", "dim")
    known = [
        f"{level} {_run_of(tokens, list(range(start, end + 1)), 'original').plain} ({span_name(start, end)})"
        for level, start, end in explanation.found
    ]
    return words + Text(f"\nthe lexicon knows: {', '.join(known)}" if known else "")


def _matrix(explanation: Explanation) -> RenderableType:
    """The matrix: one row per query, one column per key. A cell is two characters wide, like a Chinese character."""
    tokens = explanation.tokens[:MOST_SHOWN]
    labels = [shown(token.text) for token in tokens]
    width = min(12, max(map(cell_len, labels)))
    text = Text(no_wrap=True)
    for level in range(_LABEL):  # column labels are vertical and end above their column
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
    if judged(explanation) and explanation.targets:
        yield Text("The generator predicts what is hidden:")
    if explanation.decoder:
        yield Text("The decoder writes, from left to right:")
    around = any(target.around for target in explanation.targets)
    further = max((len(target.further) for target in explanation.targets), default=0)
    names = ("at place", "which reads", "and sees tokens", "predict", "whose place is", *["also from"] * around)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in (*names, *["then"] * further):
        table.add_column(name, justify="right" if name == "at place" else "left", no_wrap=True)
    ordered = sorted(explanation.targets, key=lambda target: (target.span, target.place))
    for target in ordered[:MOST_SHOWN]:
        token = explanation.predicting[target.at]
        sees = f"{target.sees} of {len(explanation.predicting)}"
        reads = Text("nothing", "dim") if target.blind else Text(shown(token.text), STYLES[drawn_as(token)])
        more = [f"{target.around[0]} and {target.around[1]}" if target.around else ""] if around else []
        more += [shown(text) for text in target.further]
        predicted = Text(shown(target.text), "bold")
        table.add_row(str(target.at), reads, sees, predicted, _place_of(explanation, target), *more)
    if explanation.targets:
        yield table
    if len(ordered) > MOST_SHOWN:
        yield Text(f"and {len(ordered) - MOST_SHOWN} more", "dim")
    for answer in explanation.answers:
        name = explanation.tokens[answer.place].text
        yield Text(f"sentence task: predict {answer_name(answer)} from {name} at place {answer.place}")
    for name, value in dict.fromkeys((tag.objective, tag.value) for tag in explanation.tags):
        mine = [tag.place for tag in explanation.tags if (tag.objective, tag.value) == (name, value)]
        words = ", ".join(shown(explanation.tokens[place].text) for place in mine[:MOST_SHOWN])
        rest = f" and {len(mine) - MOST_SHOWN} more" if len(mine) > MOST_SHOWN else ""
        yield Text(f"{name}: predict {value} at {words}{rest}")
    if not_asked(explanation):
        yield Text(not_asked(explanation))
    if not explanation.targets and not explanation.answers and not explanation.tags:
        yield Text("nothing is predicted")


def _place_of(explanation: Explanation, target: Target) -> str:
    """The place of the token. A unit with several tokens also has a bracket and its size."""
    start, end = target.span
    if start == end:
        return f"{start}"
    if target.place == start:
        return f"┌ {span_name(start, end)}"
    size = size_name(explanation.units[explanation.tokens[start].unit]) if target.place == start + 1 else ""
    return f"{'└' if target.place == end else '│'} {size}"


def _judgements(explanation: Explanation) -> Iterator[RenderableType]:
    """What the discriminator predicts, and the row that it reads."""
    for question in judged(explanation):
        count = "every token" if len(question.places) == len(explanation.tokens) else f"{len(question.places)} tokens"
        yield Text(f"The discriminator reads the row with the generator's guesses in it, and predicts at {count}:")
        yield Text(question.meaning, "bold")
        row = Text()
        for place, token in enumerate(explanation.tokens):
            row.append("" if place == 0 else _joint(explanation.tokens, place), "dim")
            row.append("‹?›" if token.hidden else shown(token.text), "bold red" if token.hidden else "")
        yield row
        yield Text("‹?› is a guess of the generator; where it is right, nothing was replaced", "dim")
