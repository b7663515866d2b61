"""Read a pipeline file: every field is checked before anything is trained, and an error names the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unmask import run
from unmask.pipeline.description import AdaptingStage, EntityGraph, Pipeline, PipelineStage, PretrainingStage, Triples
from unmask.pipeline.fields import OF_A_FILE, adapts, stage_tables, texts_of
from unmask.pipeline.labelled_files import labelled_files
from unmask.pipeline.read_budget import read_budget
from unmask.pipeline.toml_file import TomlFile, path_in

MIX = 1 / 3  # the share of the steps that read triples and examples, in a stage that also reads text


def read_pipeline(file: TomlFile) -> Pipeline:
    """The pipeline that a file describes. Paths in it begin at the folder of the file."""
    tables, values = stage_tables(file), file.data
    pretrains = [name for name, table in tables.items() if not adapts(table)]
    file.require(
        "out" in values,
        (),
        'out is missing: name the folder that everything is written to, such as out = "pipelines/mine"',
    )
    file.require(
        "recipe" in values or not pretrains,
        (),
        'recipe is missing: name the recipe that the stages pretrain, such as recipe = "bert"',
    )
    total, shares = read_budget(file, {name: tables[name] for name in pretrains})
    starts = _starts(file, tables)
    stages: dict[str, PipelineStage] = {
        name: _adapting(file, name, table, starts[name]) if adapts(table)
        else _pretraining(file, name, table, starts[name], shares[name])
        for name, table in tables.items()
    }  # fmt: skip
    order = _in_order(file, stages)
    _check_text(file, stages)
    for name in ("size", "tokenizer"):
        file.require(
            name not in values or any(stages[one].start is None and stages[one].run is None for one in pretrains),
            (name,),
            "{name} has no effect, because the network comes from a run: leave it out",
            name=name,
        )
    return Pipeline(
        out=path_in(file, values["out"]), recipe=_recipe(file, values.get("recipe", "")), size=values.get("size", "base"),
        variant=values.get("variant", "paper"), settings=texts_of(values.get("set")),
        tokenizer=_existing(file, values, "tokenizer"), lexicon=tuple(_files(file, values, "lexicon")), budget=total,
        stages=tuple(order),
    )  # fmt: skip


def _check_text(file: TomlFile, stages: dict[str, PipelineStage]) -> None:
    """A stage that reads only labelled examples needs a tokenizer and data, which come from the text of another stage."""
    pretraining = [stage for stage in stages.values() if isinstance(stage, PretrainingStage)]
    alone = next((stage for stage in pretraining if stage.labelled and not stage.text and not stage.triples), None)
    if alone is not None and not any(stage.text for stage in pretraining):
        file.fail(
            (alone.name, "labelled"),
            "[{name}] has labelled examples and no text, and no other stage has text: add text, or use 'train' to adapt to the task",
            name=alone.name,
        )


def _starts(file: TomlFile, tables: dict[str, dict[str, Any]]) -> dict[str, tuple[str | None, str | None]]:
    """What each stage starts from: another stage, or a run. Without `from` it is the last stage above it that pretrains."""
    found: dict[str, tuple[str | None, str | None]] = {}
    before: str | None = None
    for name, table in tables.items():
        given = table.get("from")
        if given is None:
            file.require(
                before is not None or not adapts(table),
                (name,),
                '[{name}] starts from nothing: put a stage that pretrains before it, or name a run: from = "runs/bert"',
                name=name,
            )
            found[name] = (before, None)
        elif given in tables:
            found[name] = (given, None)
        else:
            found[name] = (None, _run(file, name, given, list(tables)))
        before = before if adapts(table) else name
    return found


def _run(file: TomlFile, name: str, given: str, stages: list[str]) -> str:
    folder = path_in(file, given)
    file.require(
        (folder / run.RECIPE).is_file() and (folder / run.WEIGHTS).is_file(),
        (name, "from"),
        "[{name}] starts from {given!r}, which is not a stage ({stages}), and there is no finished run at {folder}",
        name=name,
        given=given,
        stages=", ".join(stages),
        folder=folder,
    )
    return str(folder)


def _in_order(file: TomlFile, stages: dict[str, PipelineStage]) -> list[PipelineStage]:
    """The stages, each after the one that it starts from; otherwise as in the file."""
    order: list[PipelineStage] = []
    while len(order) < len(stages):
        done = {stage.name for stage in order}
        ready = [
            stage for name, stage in stages.items() if name not in done and (stage.start is None or stage.start in done)
        ]
        if not ready:
            _tell_cycle(file, {name: stage for name, stage in stages.items() if name not in done})
        order.append(ready[0])
    return order


def _tell_cycle(file: TomlFile, stages: dict[str, PipelineStage]) -> None:
    name, seen = next(iter(stages)), []
    while name not in seen:
        seen.append(name)
        name = str(stages[name].start)
    cycle = [*seen[seen.index(name) :], name]
    file.fail(
        (cycle[0], "from"),
        "the stages start from each other in a cycle: {cycle}; one of them must start from another stage, from a run or from nothing",
        cycle=" from ".join(cycle),
    )


def _pretraining(
    file: TomlFile, name: str, table: dict[str, Any], start: tuple[str | None, str | None], share: float
) -> PretrainingStage:
    text, triples = texts_of(table.get("text")), None
    for field in ("names", "ask"):
        file.require(
            field not in table or "triples" in table or (field == "names" and "graph" in table),
            (name, field),
            "{field} says how triples are read, and [{name}] has none: leave it out",
            field=field,
            name=name,
        )
    if "triples" in table:
        files = tuple(_files(file, table, "triples", name))
        triples = Triples(files, _existing(file, table, "names", name), table.get("ask", "tail"))
    file.require(
        "lines" not in table or bool(text),
        (name, "lines"),
        "lines says how text is read, and [{name}] has no text: leave it out",
        name=name,
    )
    file.require(
        "graph" not in table or bool(text),
        (name, "graph"),
        "the entities of graph are found in text, and [{name}] has no text: add text, or use triples to read the graph itself",
        name=name,
    )
    labelled = labelled_files(file, name, texts_of(table.get("labelled")))
    file.require(
        "mix" not in table or (bool(text) and bool(triples or labelled)),
        (name, "mix"),
        "mix is the share of the steps that read triples or labelled examples instead of text, and [{name}] does not have both: "
        "leave it out",
        name=name,
    )
    mix = table.get("mix", MIX if text else 1.0)
    file.require(0 < mix < 1 or not text, (name, "mix"), "mix must be over 0 and under 1, got {mix}", mix=mix)
    return PretrainingStage(
        name, *start, share, tuple(str(path_in(file, one)) for one in text), table.get("lines", False), triples, labelled, mix,
        _recipe(file, table["recipe"]) if "recipe" in table else None, texts_of(table.get("set")),
        _graph(file, name, table) if "graph" in table else None,
    )  # fmt: skip


def _graph(file: TomlFile, name: str, table: dict[str, Any]) -> EntityGraph:
    """Files of triples, or a folder that 'unmask graph' wrote."""
    given = [path_in(file, one) for one in texts_of(table["graph"])]
    if len(given) > 1 or not given[0].is_dir():
        return EntityGraph(tuple(_files(file, table, "graph", name)), _existing(file, table, "names", name))
    file.require(
        "names" not in table or "triples" in table,
        (name, "names"),
        "names has no effect, because the folder {folder} has the names of its entities: leave it out",
        folder=given[0],
    )
    return EntityGraph((), folder=str(given[0]))


def _adapting(file: TomlFile, name: str, table: dict[str, Any], start: tuple[str | None, str | None]) -> AdaptingStage:
    seeds, train = table.get("seeds", 1), path_in(file, table["train"])
    file.require(seeds > 0, (name, "seeds"), "seeds must be 1 or more, got {seeds}", seeds=seeds)
    for field in OF_A_FILE if train.is_dir() else ():
        file.require(
            field not in table,
            (name, field),
            "{field} is for the file of one task, and {train} is a folder of tasks: leave it out",
            field=field,
            train=train,
        )
    return AdaptingStage(
        name, *start, str(train) if train.is_dir() else str(_existing(file, table, "train", name)), _existing(file, table, "dev", name),
        _existing(file, table, "test", name), table.get("task"), table.get("tune"), seeds, texts_of(table.get("set")),
        texts_of(table.get("text_column")), table.get("label_column"),
        tuple(str(path_in(file, one)) for one in texts_of(table.get("unlabelled"))),
    )  # fmt: skip


def _files(file: TomlFile, table: dict[str, Any], field: str, *of: str) -> list[str]:
    found = [str(path_in(file, one)) for one in texts_of(table.get(field))]
    for one in found:
        file.require(Path(one).is_file(), (*of, field), "there is no such file: {one}", one=one)
    return found


def _existing(file: TomlFile, table: dict[str, Any], field: str, *of: str) -> str | None:
    """The path of a file (of a tokenizer, also of a run folder) that must be there; None if the field is not given."""
    if field not in table:
        return None
    path = path_in(file, table[field])
    file.require(
        path.is_file() or (field == "tokenizer" and (path / run.TOKENIZER).is_file()),
        (*of, field),
        "there is no such file: {path}",
        path=path,
    )
    return str(path)


def _recipe(file: TomlFile, name: str) -> str:
    """A recipe's name, or the path of a recipe file."""
    return str(path_in(file, name)) if name.endswith(".py") else name
