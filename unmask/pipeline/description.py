"""What a pipeline is: its stages in order, what each reads, and what is left of it without some of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from unmask.pipeline.budgets import divided

UNTRAINED = "untrained"  # the run of a network that is adapted with random weights
S = TypeVar("S", bound="PipelineStage")


@dataclass(frozen=True)
class Triples:
    """Triples of a knowledge graph that are read as text."""

    files: tuple[str, ...]
    names: str | None = None  # the file with the names of the entities, if triples hold ids
    ask: str = "tail"  # what is predicted: tail, relation or both


@dataclass(frozen=True)
class EntityGraph:
    """A knowledge graph whose entities are found in a text."""

    files: tuple[str, ...]  # of triples, from which the vectors of the entities are learned
    names: str | None = None  # the file with the names of the entities, if triples hold ids
    folder: str | None = None  # the vectors, a folder of 'unmask graph'; then there are no files


@dataclass(frozen=True)
class LabelledFile:
    """Examples of a task that are read during pretraining."""

    name: str  # of the track, and of its head
    train: str
    dev: str | None = None


@dataclass(frozen=True)
class PretrainingStage:
    """A stage that trains the network on text, on triples, on labelled examples, or on several of them in turn."""

    name: str
    start: str | None  # the stage that it starts from; None: `run`, or random weights
    run: str | None  # the run folder that it starts from
    share: float  # of the budget, relative to the shares of the other stages
    text: tuple[str, ...] = ()  # files, folders and globs
    lines: bool = False  # every line of a .txt file is a document
    triples: Triples | None = None
    labelled: tuple[LabelledFile, ...] = ()
    mix: float = 1.0  # the share of the steps that read triples and examples
    recipe: str | None = None  # None: that of the pipeline
    settings: tuple[str, ...] = ()
    graph: EntityGraph | None = None  # its entities are found in the text
    scored: str | None = None  # no file: a stage of this kind has a loss and no score

    @property
    def does(self) -> str:
        read = {"text": self.text, "triples": self.triples, "labelled examples": self.labelled}
        what = " and ".join(name for name, given in read.items() if given) + (" with entities" if self.graph else "")
        return f"{'continues' if self.start or self.run else 'pretrains'} on {what}"


@dataclass(frozen=True)
class AdaptingStage:
    """A stage that adapts the model to a task, or to all tasks of a folder, and scores it."""

    name: str
    start: str | None
    run: str | None
    train: str  # a file, or a folder of tasks
    dev: str | None = None
    test: str | None = None
    task: str | None = None  # the kind of task; None: what the columns of `train` say
    tune: str | None = None
    seeds: int = 1  # trainings; the scores of all of them count
    settings: tuple[str, ...] = ()
    text_column: tuple[str, ...] = ()
    label_column: str | None = None
    unlabelled: tuple[str, ...] = ()  # texts without labels, for tune = "cvt"
    share: float = 0.0  # its length is given in epochs, so it has no part of the budget

    @property
    def many(self) -> bool:
        """Whether one model learns all tasks of a folder."""
        return Path(self.train).is_dir()

    @property
    def scored(self) -> str | None:
        """The file that the model is scored on; of several tasks, their folder."""
        return self.train if self.many else self.test or self.dev

    @property
    def does(self) -> str:
        return f"adapts to {'all tasks of ' if self.many else ''}{Path(self.train).name}"


PipelineStage = PretrainingStage | AdaptingStage


@dataclass(frozen=True)
class Pipeline:
    """A pipeline as a file describes it. Paths are absolute."""

    out: Path
    recipe: str
    size: str
    variant: str
    settings: tuple[str, ...]
    tokenizer: str | None  # a file or a run; None: that of the run that is continued, or one is trained
    lexicon: tuple[str, ...]
    budget: str | None  # of all stages that pretrain, together
    stages: tuple[PipelineStage, ...]  # each after the stage that it starts from
    left_out: tuple[PipelineStage, ...] = ()

    @property
    def names(self) -> list[str]:
        return [stage.name for stage in self.stages]

    @property
    def budgets(self) -> dict[str, str]:
        """The budget of each stage that pretrains. Together they are the budget of the pipeline."""
        budgeted = [stage for stage in self.stages if stage.share]
        parts = divided(self.budget, [stage.share for stage in budgeted]) if self.budget and budgeted else []
        return {stage.name: part for stage, part in zip(budgeted, parts, strict=True)}

    @property
    def pretraining(self) -> list[PretrainingStage]:
        """The stages that pretrain."""
        return [stage for stage in self.stages if isinstance(stage, PretrainingStage)]

    def root(self, stage: PipelineStage) -> str | None:
        """The run that the network of a stage comes from; None: from random weights."""
        found = {one.name: one for one in self.stages}
        while stage.start is not None:
            stage = found[stage.start]
        return stage.run

    def without(self, names: Collection[str]) -> Pipeline:
        """The pipeline without some stages. A stage that starts from one of them starts from what that one starts from; the
        budget is divided among the stages that are left."""
        found = {stage.name: stage for stage in self.stages}

        def linked(stage: S) -> S:
            while stage.start in names:
                before = found[str(stage.start)]
                stage = replace(stage, start=before.start, run=before.run)
            return stage

        left = tuple(linked(stage) for stage in self.stages if stage.name not in names)
        gone = tuple(stage for stage in self.stages if stage.name in names)
        return replace(self, stages=left, left_out=(*self.left_out, *gone))

    def ablated(self) -> Iterator[str]:
        """The stages that some score depends on: those that are worth leaving out."""
        found, needed = {stage.name: stage for stage in self.stages}, set()
        for stage in self.stages:
            start = stage.start if stage.scored else None
            while start is not None:
                needed.add(start)
                start = found[start].start
        yield from (name for name in self.names if name in needed)
