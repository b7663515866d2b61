"""Write a text from a source text, such as a headline or a translation. Files with the columns `source` and `target`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from unmask.axes import Answered, Hide, Judged, Pretrained, Reader, gives_of
from unmask.data.examples import Laid, Text
from unmask.errors import UserError, require
from unmask.hide import Masked, Next, Second, WriteSecond
from unmask.recipe import MAIN, Recipe, Track
from unmask.see import Prefix
from unmask.tasks._answers import Written
from unmask.tasks._labelled import fixed
from unmask.tasks._recipe import reading, token_objective, turned
from unmask.tasks._rows import format_of, lines_of_file, read_rows
from unmask.tasks._text_scores import text_scores
from unmask.tasks._training import Training
from unmask.text import layout as layouts

HIDDEN = 0.7  # share of the target's tokens that UniLM hides
EMPTY, EMPTY_SOURCE = "pairs with an empty source or target, left out", "empty sources, left out"
LONGEST = 64  # most tokens that are written if no target is known
MORE = 8  # most tokens that a written text may have beyond the longest target


@dataclass(frozen=True)
class Pair:
    """A source, and the target: the text that the model should write from it."""

    source: str  # the text that the model reads
    target: str | None = None  # None if it is not known
    where: str = field(default="", compare=False)  # the file and the line
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # all columns of the row

    @property
    def shown(self) -> tuple[str, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Write(Training):
    """How a model learns to write, and how it writes.

    A model that fills gaps learns from hidden tokens of the target: UniLM (Dong et al. 2019) hides 70%. The token that ends
    the target can be hidden too. A model that reads from left to right learns every token of the target, and so does a model
    with a decoder: its encoder reads the source.

    Texts are found by beam search; the usual values are those of the Transformer (Vaswani et al. 2017)."""

    hidden: float | None = None  # share of the target's tokens that are hidden; none: 0.7, if the model fills gaps
    beams: int = 4  # partial texts in the search; 1: always the most likely token
    length_penalty: float = 0.6  # over 0 favours long texts
    length_offset: int = 5  # over 0: short texts differ less in their penalties (Wu et al. 2016)
    least: int = 0  # a written text has at least this number of tokens
    most: int | None = None  # it has at most this number of tokens; none: by the targets that are known, otherwise 64
    no_repeat: int = 0  # no sequence of this number of tokens is written twice; 0: it may be

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.hidden is None or 0 < self.hidden <= 1,
            "hidden must be in (0, 1], got {hidden}: write 0.7 for 70%",
            hidden=self.hidden,
        )
        require(self.beams >= 1, "beams must be 1 or more, got {beams}", beams=self.beams)
        for name in ("length_offset", "least", "no_repeat"):
            value = getattr(self, name)
            require(value >= 0, "{name} must be 0 or more, got {value}", name=name, value=value)
        require(
            self.most is None or self.most >= max(1, self.least),
            "most must be 1 or more, and not under least={least}, got {most}: it is the largest number of tokens",
            most=self.most,
            least=self.least,
        )

    @property
    def labels(self) -> tuple[str, ...]:
        return ()

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (("source", "target"),)

    @property
    def later(self) -> tuple[str, ...]:
        return ("beams", "length_penalty", "length_offset", "least", "most", "no_repeat")

    @property
    def main_scores(self) -> tuple[str, ...]:
        return ("rouge_l",)

    @property
    def head(self) -> str:
        return ""  # there is no new head: the pretraining objective is used again

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Pair], Counter[str]]:
        fixed(columns, "write")
        return read(path, labelled=labelled)

    def given(self, values: Sequence[Any], where: Sequence[str] = ()) -> list[Pair]:
        """Turn sources into pairs without a target. Values that are pairs stay as they are."""
        names = where or [f"text number {number:,} of {len(values):,}" for number in range(1, len(values) + 1)]
        return [_pair(value, name) for value, name in zip(values, names, strict=True)]

    def learn(self, examples: Sequence[Pair]) -> Write:
        return self

    def check(self, examples: Sequence[Pair], reader: str, *, labelled: bool = True) -> None:
        wrong = next((i for i, pair in enumerate(examples) if labelled and pair.target is None), None)
        if wrong is not None:
            where = examples[wrong].where or f"example {wrong + 1:,} of {len(examples):,}"
            raise UserError(
                "{where}: the example has no target: give the text that the model should write", where=where
            )

    def recipe(self, base: Pretrained) -> Recipe:
        """The recipe of the model that writes: the target is read from left to right."""
        found = token_objective(base)
        if found is None:
            raise UserError(
                ("{folder} cannot be adapted to writing, because it does not predict tokens: adapt a model that does"),
                folder=base.folder,
            )
        if "decoder" in gives_of(base.recipe.system):
            made = self._every_token(base, WriteSecond(), dict([found]))
            return made.replace(layout=layouts.apart(base.recipe.layout))
        if "future hidden" in base.recipe.see.gives:
            return self._every_token(base, Next(second=True), dict([found]))
        require(
            base.tokenizer.vocabulary.mask is not None,
            (
                "{folder} cannot be adapted to writing: it fills gaps, so this task hides parts of the target, and the "
                "tokenizer has no [MASK]: adapt a model with a [MASK], or one that reads from left to right"
            ),
            folder=base.folder,
        )
        at: Literal["same", "before"] = "before" if "one earlier" in gives_of(base.recipe.hide) else "same"
        share = HIDDEN if self.hidden is None else self.hidden
        hide = Masked(units=Second(), budget=share, at=at)
        task = self.decided(base.recipe, hidden=share)
        made = turned(base, task, hide=hide, see=Prefix(), predict=dict([found]))
        return _with_tracks_of(base.recipe, made) if "second" in base.recipe.writes else made

    def _every_token(self, base: Pretrained, hide: Hide, predict: dict[str, Any]) -> Recipe:
        """The recipe of a model that writes from left to right, and learns every token of the target."""
        require(
            self.hidden is None,
            "hidden={hidden} is for models that fill gaps, but {folder} writes from left to right and learns every token of the "
            "target: leave hidden out",
            hidden=self.hidden,
            folder=base.folder,
        )
        return turned(base, self.decided(base.recipe), hide=hide, see=reading(base), predict=predict)

    def lay_out(self, examples: Sequence[Pair], *, labelled: bool = True) -> Laid:
        return Laid([Text(pair.source, pair.target) for pair in examples])

    def baseline(self, examples: Sequence[Pair]) -> dict[str, Any]:
        return {}

    def answer(self, model: Reader, examples: Sequence[Pair]) -> Answered:
        """The best text for each source."""
        known = [len(model.encode(pair.target)) + MORE for pair in examples if pair.target is not None]
        tokens = self.most or max(self.least, min(max(known, default=LONGEST), model.length // 2))
        texts, notes = model.write(
            [pair.source for pair in examples], tokens=tokens, beams=self.beams, length_penalty=self.length_penalty,
            length_offset=self.length_offset, least=self.least, no_repeat=self.no_repeat,
        )  # fmt: skip
        return Answered([Written(text) for text in texts], notes)

    def score(self, model: Reader, examples: Sequence[Pair], answers: Sequence[Written]) -> dict[str, Any]:
        """Compare the answers with the targets. `exact`: the share of texts whose tokens are those of the target."""
        targets, written = [pair.target or "" for pair in examples], [answer.text for answer in answers]
        same = [model.encode(target) == model.encode(text) for target, text in zip(targets, written, strict=True)]
        return {
            "examples": len(examples),
            **text_scores(targets, written),
            "exact": sum(same) / len(same),
            "written": written,
        }

    def judge(self, model: Reader, examples: Sequence[Pair]) -> Judged:
        """Uses the loss, because writing a text for every source after each epoch takes too long."""
        (loss,) = model.losses(self.lay_out(examples)).values()
        return Judged(-loss, {"loss": loss})

    def notices(self, model: Reader, examples: Sequence[Pair], dev: Sequence[Pair], best: Judged | None) -> list[str]:
        return []


def _with_tracks_of(base: Recipe, made: Recipe) -> Recipe:
    """The recipe with the view and the segments that the base writes with; it reads as the base reads."""
    own, name = base.all_tracks()[base.writing], base.writing
    if name == MAIN:
        return made.replace(see=own.see, segments=own.segments)
    track = Track(share=1.0, see=own.see, segments=own.segments)
    return made.replace(see=base.see, segments=base.segments, tracks={name: track}, writes_with=name)


def read(path: str | Path, *, labelled: bool = True) -> tuple[list[Pair], Counter[str]]:
    """The pairs of a file, and the notes: pairs with an empty side are left out. Without `labelled`, targets are not read, and
    the lines of a .txt file are sources."""
    path, notes = Path(path), Counter[str]()
    plain = format_of(path) == ".txt" and not labelled
    rows = ((number, {"source": line}) for number, line in lines_of_file(path)) if plain else read_rows(path)
    found = [(number, _read_pair(row, f"{path}, line {number:,}", labelled)) for number, row in rows]
    pairs = [pair for _, pair in found if pair is not None]
    if len(pairs) < len(found):
        first = next(number for number, pair in found if pair is None)
        notes[f"{EMPTY if labelled else EMPTY_SOURCE}; the first is {path}, line {first:,}"] = len(found) - len(pairs)
    require(
        bool(pairs), "{path} holds no examples with text: give a file with at least one source and target", path=path
    )
    return pairs, notes


def _read_pair(row: dict[str, Any], where: str, labelled: bool) -> Pair | None:
    """A row as a pair; None if one of its sides is empty."""
    names = ("source", "target") if labelled else ("source",)
    found = [row.get(name) for name in names]
    needed = 'needs "source" and "target", both texts' if labelled else 'needs "source", a text'
    require(
        all(name in row for name in names),
        "{where}: an example {needed}; got the columns {row}",
        where=where,
        needed=needed,
        row=sorted(row),
    )
    wrong = {name: value for name, value in zip(names, found, strict=True) if not isinstance(value, str | None)}
    require(not wrong, "{where}: an example {needed}; got {wrong}", where=where, needed=needed, wrong=wrong)
    if not all(isinstance(text, str) and text.strip() for text in found):
        return None
    return Pair(str(found[0]), str(found[1]) if labelled else None, where, row)


def _pair(value: Any, where: str) -> Pair:
    if isinstance(value, Pair):
        return value
    require(
        isinstance(value, str),
        ("{where}: this model writes from a source, which must be a text, got {value!r:.60}"),
        where=where,
        value=value,
    )
    return Pair(value, None, where, {"source": value})
