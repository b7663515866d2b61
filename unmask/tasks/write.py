"""Write: a text from a source text, such as a headline from an article. JSON lines with `source` and `target`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unmask import metrics
from unmask.axes import Answered, Judged, Pretrained, Reader
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

LONGEST = 64  # tokens that are written where no target says how long it should be
MORE = 8  # tokens that may be written beyond the longest target


@dataclass(frozen=True)
class Pair:
    """A source, and the text that is to be written from it."""

    source: str
    target: str | None = None  # none where it is not known
    where: str = field(default="", compare=False)  # file and line
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)  # all of its columns

    @property
    def shown(self) -> tuple[str, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Write(Training):
    """How a model is adapted to writing: a part of the target is hidden, and predicted from the source and what is left.

    UniLM (Dong et al. 2019): 70% hidden, the end of the target among it."""

    hidden: float = 0.7  # share of the target

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.hidden <= 1, f"hidden must be in (0, 1], got {self.hidden}: write 0.7 for 70%")

    @property
    def labels(self) -> tuple[str, ...]:
        return ()

    @property
    def head(self) -> str:
        return ""  # the objective of pretraining goes on

    def read(self, path: Path, columns: Any, *, labelled: bool = True) -> tuple[list[Pair], Counter[str]]:
        fixed(columns, "write")
        return read(path, labelled=labelled), Counter()

    def described(self, path: Path, columns: Any, *, labelled: bool = True) -> str | None:
        return None

    def given(self, values: Sequence[Any], where: Sequence[str] = ()) -> list[Pair]:
        """Pairs from sources, or pairs as they are."""
        names = where or [f"text number {number:,} of {len(values):,}" for number in range(1, len(values) + 1)]
        return [_pair(value, name) for value, name in zip(values, names, strict=True)]

    def learn(self, examples: Sequence[Pair]) -> Write:
        return self

    def check(self, examples: Sequence[Pair], reader: str, *, labelled: bool = True) -> None:
        wrong = next((i for i, pair in enumerate(examples) if labelled and pair.target is None), None)
        if wrong is not None:
            where = examples[wrong].where or f"example {wrong + 1:,} of {len(examples):,}"
            raise UserError(f"{where}: has no target, the text that should be written: give one")

    def recipe(self, base: Pretrained) -> Recipe:
        """The recipe of a pretrained model in which the target is hidden in part and seen from left to right."""
        found = token_objective(base)
        if found is None:
            raise UserError(f"{base.folder} cannot be adapted to writing: it does not predict tokens")
        require(
            base.tokenizer.vocabulary.mask is not None,
            f"{base.folder} cannot be adapted to writing, which hides parts of the target: its tokenizer has no [MASK]; one "
            "that reads from left to right goes on with any text as it is: 'unmask generate'",
        )
        hide = Masked(units=Second(), budget=self.hidden)
        made = turned(base, self.decided(base.recipe), hide=hide, see=Prefix(), predict=dict([found]))
        return _with_tracks_of(base.recipe, made) if "prefix" in base.recipe.writes else made

    def lay_out(self, examples: Sequence[Pair], *, labelled: bool = True) -> Laid:
        return Laid([Text(pair.source, pair.target) for pair in examples])

    def baseline(self, examples: Sequence[Pair]) -> dict[str, Any]:
        return {}

    def answer(self, model: Reader, examples: Sequence[Pair]) -> Answered:
        """The likeliest text for each source."""
        known = [len(model.encode(pair.target)) + MORE for pair in examples if pair.target is not None]
        tokens = min(max(known, default=LONGEST), model.length // 2)
        texts, notes = model.write([pair.source for pair in examples], tokens)
        return Answered([Written(text) for text in texts], notes)

    def score(self, model: Reader, examples: Sequence[Pair], answers: Sequence[Written]) -> dict[str, Any]:
        """Against the targets: ROUGE-L over tokens, and the share that is exactly right."""
        targets = [model.encode(pair.target or "") for pair in examples]
        both = list(zip(targets, [model.encode(answer.text) for answer in answers], strict=True))
        return {
            "examples": len(examples),
            "rouge_l": sum(metrics.rouge_l(t, w) for t, w in both) / len(both),
            "exact": sum(t == w for t, w in both) / len(both),
            "written": [answer.text for answer in answers],
        }

    def judge(self, model: Reader, examples: Sequence[Pair]) -> Judged:
        """By the loss: to write every target after each epoch takes too long."""
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
    """The pairs of a file; without `labelled`, targets are not read."""
    path = Path(path)
    pairs = [_read_pair(row, f"{path}, line {number:,}", labelled) for number, row in read_rows(path)]
    require(bool(pairs), f"{path} holds no examples")
    return pairs


def _read_pair(row: dict[str, Any], where: str, labelled: bool) -> Pair:
    source, target = (row.get(name) for name in ("source", "target"))
    found = (source, target) if labelled else (source,)
    needed = 'needs "source" and "target", both texts' if labelled else 'needs "source", a text'
    require(all(isinstance(text, str) and text.strip() for text in found), f"{where}: {needed}; got {sorted(row)}")
    return Pair(str(source), str(target) if labelled else None, where, row)


def _pair(value: Any, where: str) -> Pair:
    if isinstance(value, Pair):
        return value
    require(isinstance(value, str), f"{where}: this model writes from one source text, got {value!r:.60}")
    return Pair(value, None, where, {"source": value})
