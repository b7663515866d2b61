"""What can be known to be wrong before anything is trained: recipes, text, the files of tasks, and the output folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from unmask import adapt, recipes, run, tasks
from unmask.adapt.many_settings import Many
from unmask.adapt.unlabelled import check_unlabelled, read_unlabelled
from unmask.adapt.ways import task_with, tuned_by, tuning_settings
from unmask.api.from_text import Reading, check_pairs, check_reading, is_text
from unmask.comparison.task_files import find
from unmask.errors import UserError
from unmask.knowledge.entity_names import read_names
from unmask.knowledge.folder import read_about
from unmask.knowledge.graph import read_graph
from unmask.pipeline.chosen_recipe import chosen_recipe, own_file
from unmask.pipeline.description import AdaptingStage, EntityGraph, Pipeline, PretrainingStage, Triples
from unmask.pipeline.labelled_files import check_file, check_names
from unmask.pipeline.toml_file import TomlFile
from unmask.pretraining.mixture import needed_columns
from unmask.recipe import Recipe
from unmask.settings import override
from unmask.system import check_training, with_network_of
from unmask.tasks.classify import Columns
from unmask.text.documents import source_of
from unmask.text.links import LINKS

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
    if stage.triples is not None:
        _check_triples(file, stage.name, "triples", stage.triples)
    with _at(file, stage.name, "labelled"):
        for labelled in stage.labelled:
            check_file(labelled)
    _check_recipe(file, pipeline, stage)
    recipe = _check_network(file, pipeline, stage)
    graph = Path(stage.graph.folder or stage.graph.files[0]) if stage.graph else None
    fresh = stage.start is None and stage.run is None
    if stage.text:
        with _at(file, stage.name, "text"):
            reading = Reading(lexicon=tuple(map(Path, pipeline.lexicon)), graph=graph, lines=stage.lines)
            check_reading(recipe, reading, None if fresh else Path(stage.run or "."))
            check_pairs(recipe, reading.corpus(stage.text))


def check_networks(file: TomlFile, pipeline: Pipeline) -> None:
    """Refuse stages whose recipe cannot train the network that it continues, also if other stages are left out."""
    for stage in pipeline.pretraining:
        _check_network(file, pipeline, stage)


def _check_network(file: TomlFile, pipeline: Pipeline, stage: PretrainingStage) -> Recipe:
    """The recipe of a stage, with the network that it continues."""
    with _at(file, stage.name, "recipe" if stage.recipe else "from"):
        recipe = _continued(pipeline, stage, chosen_recipe(pipeline, stage, tracks=False))
    _check_graph(file, pipeline, stage, recipe)
    return recipe


def _continued(pipeline: Pipeline, stage: PretrainingStage, recipe: Recipe) -> Recipe:
    """The recipe of a stage with the network that it continues. An error if the recipe cannot train that network."""
    if stage.run is not None:
        base = run.recipe_to_continue(Path(stage.run), own_file(pipeline))
        return with_network_of(recipe, base)
    before = next((one for one in pipeline.pretraining if one.name == stage.start), None)
    if before is None:
        return recipe
    return with_network_of(recipe, _continued(pipeline, before, chosen_recipe(pipeline, before, tracks=False)))


def _check_graph(file: TomlFile, pipeline: Pipeline, stage: PretrainingStage, recipe: Recipe) -> None:
    """Refuse a graph that cannot be read, that nothing reads, or that is not the graph of an earlier stage; and text without
    a graph, if the network reads entities."""
    gone = "".join(f"without [{one.name}], " for one in pipeline.left_out)
    file.require(
        bool(stage.graph) or not stage.text or LINKS not in needed_columns(recipe),
        (stage.name, "recipe" if stage.recipe else "text"),
        "{gone}the network of [{name}] reads the entities of a text: name files of triples, or a folder of 'unmask graph', such as "
        'graph = "triples.tsv"',
        gone=gone,
        name=stage.name,
    )
    if stage.graph is None:
        return
    with _at(file, stage.name, "graph"):
        file.require(
            LINKS in needed_columns(recipe),
            (stage.name, "graph"),
            "{gone}graph has no effect, because the network of [{name}] reads no entities: leave it out, or add "
            'recipe = "ernie-thu"',
            gone=gone,
            name=stage.name,
        )
        if stage.graph.folder:
            read_about(Path(stage.graph.folder))
        else:
            _check_triples(file, stage.name, "graph", stage.graph)
        before = _graph_before(pipeline, stage)
        file.require(
            before is None or before.graph == stage.graph,
            (stage.name, "graph"),
            "[{name}] continues the network of [{before}], which knows the entities of another graph: name the same graph",
            name=stage.name,
            before=before and before.name,
        )


def _graph_before(pipeline: Pipeline, stage: PretrainingStage) -> PretrainingStage | None:
    """The nearest stage that a stage continues and that has a graph."""
    before = next((one for one in pipeline.pretraining if one.name == stage.start), None)
    return before if before is None or before.graph else _graph_before(pipeline, before)


def _check_triples(file: TomlFile, stage: str, field: str, given: Triples | EntityGraph) -> None:
    with _at(file, stage, field):
        graph, _ = read_graph({"train": given.files})
    with _at(file, stage, "names"):
        read_names(Path(given.names) if given.names else None, graph.entities)


def _check_recipe(file: TomlFile, pipeline: Pipeline, stage: PretrainingStage) -> None:
    """Make the recipe of a stage step by step, so that an error names the right field."""
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
        check_training(chosen_recipe(pipeline, stage, tracks=False))
    with _at(file, stage.name, "labelled"):
        check_names(stage.labelled, chosen_recipe(pipeline, stage, tracks=False))
    with _at(file, stage.name, "triples" if stage.triples else "labelled"):
        check_training(chosen_recipe(pipeline, stage))


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
    with _at(file, stage.name, "tune"):
        way = tuned_by(stage.tune, of_tune)
    with _at(file, stage.name, "set"):
        part = task_with(part, of_task, stage.tune)
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
