"""What can be known to be wrong before anything is trained: recipes, text, the files of tasks, and the output folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from unmask import adapt, recipes, tasks
from unmask.adapt.many_settings import Many
from unmask.adapt.unlabelled import check_unlabelled, read_unlabelled
from unmask.api.from_text import Reading, check_pairs, check_reading, is_text
from unmask.api.ways import tuned_by, tuning_settings
from unmask.comparison.task_files import find
from unmask.errors import UserError
from unmask.knowledge.graph import read_graph
from unmask.pipeline.chosen_recipe import chosen_recipe
from unmask.pipeline.description import AdaptingStage, LabelledFile, Pipeline, PretrainingStage
from unmask.pipeline.toml_file import TomlFile
from unmask.recipe import Recipe
from unmask.settings import override
from unmask.system import check_training
from unmask.tasks.classify import Columns
from unmask.text.documents import source_of

PIPELINE = "pipeline.toml"  # a copy of the file, in the output folder


def check_pipeline(file: TomlFile, pipeline: Pipeline) -> None:
    """Refuse what would fail later, with the line of the field."""
    _check_out(file, pipeline)
    for stage in pipeline.stages:
        if isinstance(stage, PretrainingStage):
            _check_pretraining(file, pipeline, stage)
        else:
            _check_adapting(file, stage)
    with _at(file, "budget"):
        _ = pipeline.budgets  # an error if a part is too small


def _check_out(file: TomlFile, pipeline: Pipeline) -> None:
    out = pipeline.out
    file.require(
        not out.exists() or (out.is_dir() and (not any(out.iterdir()) or (out / PIPELINE).is_file())),
        ("out",),
        "{out} exists and holds something else: name a folder that is new, or the folder of a pipeline",
        out=out,
    )
    for stage in pipeline.stages:
        for text in stage.text if isinstance(stage, PretrainingStage) else ():
            file.require(
                Path(text) not in (out, *out.parents),
                ("out",),
                "{out} is inside {text}, whose files [{name}] reads as text: name another folder",
                out=out,
                text=text,
                name=stage.name,
            )


def _check_pretraining(file: TomlFile, pipeline: Pipeline, stage: PretrainingStage) -> None:
    with _at(file, stage.name, "text"):
        for one in stage.text:
            file.require(
                is_text([one]),
                (stage.name, "text"),
                "{one} is prepared data: give the text itself, because all stages share one tokenizer",
                one=one,
            )
            source_of(one)
    with _at(file, stage.name, "triples"):
        if stage.triples is not None:
            read_graph({"train": stage.triples.files})
    for labelled in stage.labelled:
        _check_labelled(file, stage.name, labelled)
    recipe = _check_recipe(file, pipeline, stage)
    fresh = stage.start is None and stage.run is None
    if stage.text:
        with _at(file, stage.name, "text"):
            reading = Reading(lexicon=tuple(map(Path, pipeline.lexicon)), lines=stage.lines)
            check_reading(recipe, reading, None if fresh else Path(stage.run or "."))
            check_pairs(recipe, reading.corpus(stage.text))


def _check_labelled(file: TomlFile, stage: str, given: LabelledFile) -> None:
    with _at(file, stage, "labelled"):
        kind = tasks.kind_of(given.train)
        file.require(
            kind is not None,
            (stage, "labelled"),
            "no task reads {train} by its columns: docs/adapt.md lists the columns of every task",
            train=given.train,
        )
        adapt.read_files(tasks.get(str(kind)), given.train, given.dev)


def _check_recipe(file: TomlFile, pipeline: Pipeline, stage: PretrainingStage) -> Recipe:
    """The recipe of a stage without triples. It is made step by step, so that an error names the right field."""
    named = pipeline.recipe if stage.recipe is None else stage.recipe
    with _at(file, *((stage.name, "recipe") if stage.recipe else ("recipe",))):
        recipes.get(named, size=recipes.smallest(named))
    plain = replace(pipeline, variant="paper", settings=())
    alone = replace(stage, settings=())
    with _at(file, "size"):
        chosen_recipe(plain, alone, tracks=False)
    with _at(file, "variant"):
        chosen_recipe(replace(plain, variant=pipeline.variant), alone, tracks=False)
    with _at(file, "set"):
        chosen_recipe(pipeline, alone, tracks=False)
    with _at(file, stage.name, "set" if stage.settings else "text"):
        found = chosen_recipe(pipeline, stage, tracks=False)
        check_training(found)
    with _at(file, stage.name, "triples" if stage.triples else "labelled"):
        check_training(chosen_recipe(pipeline, stage))
    return found


def _check_folder(file: TomlFile, stage: AdaptingStage) -> None:
    """Read all files of a folder of tasks, as `adapt` does."""
    with _at(file, stage.name, "train"):
        found, notices = find(Path(stage.train))
        file.require(not notices, (stage.name, "train"), "{notices}", notices="; ".join(notices))
        file.require(
            any(task.train for task in found),
            (stage.name, "train"),
            "{folder} has no task with a train file: name it NAME/train.jsonl",
            folder=stage.train,
        )
    with _at(file, stage.name, "set"):
        override(Many(), stage.settings)


def _check_adapting(file: TomlFile, stage: AdaptingStage) -> None:
    """Read all files of a task, as `adapt` does."""
    if stage.many:
        _check_folder(file, stage)
        return
    columns = Columns.of(stage.text_column, stage.label_column)
    with _at(file, stage.name, "task" if stage.task else "train"):
        named = bool(stage.text_column or stage.label_column)
        kind = stage.task or tasks.kind_of(stage.train, columns) or ("classify" if named else None)
        file.require(
            kind is not None,
            (stage.name, "train"),
            "no task reads {train} by its columns: name the columns with text_column and label_column, or the kind of task "
            "with task ({known})",
            train=stage.train,
            known=", ".join(tasks.names()),
        )
        part = tasks.get(str(kind))
    of_task, of_tune = tuning_settings(stage.settings)
    with _at(file, stage.name, "set"):
        part = override(part, of_task)
    with _at(file, stage.name, "tune"):
        way = tuned_by(stage.tune, of_tune)
    with _at(file, stage.name, "unlabelled" if stage.unlabelled else "tune"):
        check_unlabelled(way, bool(stage.unlabelled))
        if stage.unlabelled:
            read_unlabelled(part, stage.unlabelled, columns)
    for field, given in (("train", stage.train), ("dev", stage.dev), ("test", stage.test)):
        with _at(file, stage.name, field):
            if given is not None:
                adapt.read_files(part, given, None, columns)


@contextmanager
def _at(file: TomlFile, *keys: str) -> Iterator[None]:
    """An error inside names the line of this field."""
    try:
        yield
    except UserError as error:
        if str(error).startswith(f"{file.path}, line "):
            raise
        file.fail(keys, "{error}", error=error)
