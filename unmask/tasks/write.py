"""Write a text from a source text, such as a headline from an article. JSON lines with `source` and `target`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from unmask import metrics
from unmask.axes import Answered, Judged, Pretrained, Reader, gives_of
from unmask.data.examples import Laid, Text
from unmask.errors import UserError, require
from unmask.hide import Masked, Second
from unmask.recipe import MAIN, Recipe, Track
from unmask.see import Prefix
from unmask.tasks._answers import Written
from unmask.tasks._labelled import fixed
from unmask.tasks._recipe import token_objective, turned
from unmask.tasks._rows import read_rows
from unmask.tasks._training import Training

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
    """How a model learns to write: some tokens of the target are hidden, and predicted from the source and the other tokens.

    UniLM (Dong et al. 2019) hides 70%. The token that ends the target can be hidden too."""

    hidden: float = 0.7  # share of the target's tokens that are hidden

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.hidden <= 1, "hidden must be in (0, 1], got {hidden}: write 0.7 for 70%", hidden=self.hidden)

    @property
    def labels(self) -> tuple[str, ...]:
        return ()

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        return (("source", "target"),)

    @property
    def head(self) -> str:
        return ""  # there is no new head: the pretraining objective is used again

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Pair], Counter[str]]:
        fixed(columns, "write")
        return read(path, labelled=labelled), Counter()

    def described(self, path: Path, columns: Any, *, labelled: bool = True) -> str | None:
        return None

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
        """The recipe of the model that writes: part of the target is hidden, and the target is read from left to right."""
        found = token_objective(base)
        if found is None:
            raise UserError(
                ("{folder} cannot be adapted to writing, because it does not predict tokens: adapt a model that does"),
                folder=base.folder,
            )
        require(
            base.tokenizer.vocabulary.mask is not None,
            (
                "{folder} cannot be adapted to writing: this task hides parts of the target, and the tokenizer has "
                "no [MASK]; a model that reads from left to right can continue a text without adaptation: use "
                "'unmask generate'"
            ),
            folder=base.folder,
        )
        at: Literal["same", "before"] = "before" if "one earlier" in gives_of(base.recipe.hide) else "same"
        hide = Masked(units=Second(), budget=self.hidden, at=at)
        made = turned(base, self.decided(base.recipe), hide=hide, see=Prefix(), predict=dict([found]))
        return _with_tracks_of(base.recipe, made) if "prefix" in base.recipe.writes else made

    def lay_out(self, examples: Sequence[Pair], *, labelled: bool = True) -> Laid:
        return Laid([Text(pair.source, pair.target) for pair in examples])

    def baseline(self, examples: Sequence[Pair]) -> dict[str, Any]:
        return {}

    def answer(self, model: Reader, examples: Sequence[Pair]) -> Answered:
        """The most likely text for each source."""
        known = [len(model.encode(pair.target)) + MORE for pair in examples if pair.target is not None]
        tokens = min(max(known, default=LONGEST), model.length // 2)
        texts, notes = model.write([pair.source for pair in examples], tokens)
        return Answered([Written(text) for text in texts], notes)

    def score(self, model: Reader, examples: Sequence[Pair], answers: Sequence[Written]) -> dict[str, Any]:
        """Compare the answers with the targets: ROUGE-L over tokens, and the share of texts that are exactly equal."""
        targets = [model.encode(pair.target or "") for pair in examples]
        both = list(zip(targets, [model.encode(answer.text) for answer in answers], strict=True))
        return {
            "examples": len(examples),
            "rouge_l": sum(metrics.rouge_l(t, w) for t, w in both) / len(both),
            "exact": sum(t == w for t, w in both) / len(both),
            "written": [answer.text for answer in answers],
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


def read(path: str | Path, *, labelled: bool = True) -> list[Pair]:
    """The pairs of a file. Without `labelled`, targets are not read."""
    path = Path(path)
    pairs = [_read_pair(row, f"{path}, line {number:,}", labelled) for number, row in read_rows(path)]
    require(bool(pairs), "{path} holds no examples: give a file with at least one example", path=path)
    return pairs


def _read_pair(row: dict[str, Any], where: str, labelled: bool) -> Pair:
    source, target = (row.get(name) for name in ("source", "target"))
    found = (source, target) if labelled else (source,)
    needed = 'needs "source" and "target", both texts' if labelled else 'needs "source", a text'
    require(
        all(isinstance(text, str) and text.strip() for text in found),
        "{where}: an example {needed}, not empty; got the columns {row}",
        where=where,
        needed=needed,
        row=sorted(row),
    )
    return Pair(str(source), str(target) if labelled else None, where, row)


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
