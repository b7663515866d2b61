"""The work of a pipeline: each stage with its seed becomes commands, an output folder and a fingerprint of all that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unmask import run
from unmask.comparison.entry import Entry
from unmask.comparison.task_files import find
from unmask.pipeline.call import Call
from unmask.pipeline.chosen_recipe import chosen_recipe, own_file, size_of, track_settings
from unmask.pipeline.description import (
    UNTRAINED,
    AdaptingStage,
    EntityGraph,
    Pipeline,
    PipelineStage,
    PretrainingStage,
    Triples,
)
from unmask.pipeline.fingerprint import digest, key_of
from unmask.text.documents import source_of

RUNS, MADE = "runs", "made"  # folders of a pipeline: trained models; tokenizers and data


@dataclass(frozen=True)
class Work:
    """Something to do once. Works with the same fingerprint are the same work."""

    stage: str
    does: str
    out: Path
    calls: tuple[Call, ...]
    made_from: Mapping[str, Any]  # what decides the result; of files, a hash by name
    seed: int = 0
    trial: int = 0  # of several trainings of a stage that adapts
    budget: str | None = None
    start: str | None = None  # what it starts from, in words
    trains: bool = True  # False: it makes a tokenizer or data

    @property
    def key(self) -> str:
        return key_of(self.made_from)


def works_of(pipeline: Pipeline, whole: Pipeline, *, seed: int = 0, device: str | None = None) -> list[Work]:
    """All that a pipeline does, in order. `whole`: the pipeline as the file describes it, whose tokenizer is used."""
    planner = _Planner(pipeline, whole, seed, device)
    return [*planner.made.values(), *planner.trained]


class _Planner:
    def __init__(self, pipeline: Pipeline, whole: Pipeline, seed: int, device: str | None) -> None:
        self.pipeline, self.whole, self.seed, self.device = pipeline, whole, seed, device
        self.made: dict[Path, Work] = {}
        self.trained: list[Work] = []
        self.first: dict[str, Work] = {}  # the work that others start from, by the name of its stage
        budgets = pipeline.budgets
        for stage in pipeline.stages:
            if isinstance(stage, PretrainingStage):
                self._add(self._pretraining(stage, budgets[stage.name]))
            else:
                for trial in range(stage.seeds):
                    self._add(self._adapting(stage, trial))

    def _add(self, work: Work) -> None:
        self.trained.append(work)
        self.first.setdefault(work.stage, work)

    def _make(
        self, verb: str, words: tuple[Any, ...], made_from: dict[str, Any], suffix: str, options: dict[str, Any]
    ) -> Work:
        out = self.whole.out / MADE / f"{verb}-{key_of(made_from)}{suffix}"
        call = Call(verb, words, options | {"--out": out})
        self.made[out] = Work(verb, f"makes {out.name}", out, (call,), made_from, trains=False)
        return self.made[out]

    def _tokenizer(self, stage: PretrainingStage) -> tuple[Path, str]:
        """The file or run whose tokenizer a stage uses, and its fingerprint."""
        given = self.pipeline.root(stage) or self.whole.tokenizer
        if given is None:
            return self._trained_tokenizer()
        file = Path(given) / run.TOKENIZER if Path(given).is_dir() else Path(given)
        return Path(given), digest(file)

    def _trained_tokenizer(self) -> tuple[Path, str]:
        """It is trained on the first text of the whole pipeline: all variants share it, and other text for a later stage leaves
        the earlier stages as they are."""
        whole, stages = self.whole, self.whole.pretraining
        first = next((stage for stage in stages if stage.text), stages[0])
        pairs = self._triples(first.triples) if first.triples and not first.text else None
        own = [one for one in (*whole.settings, *first.settings) if one.startswith("tokenizer")]
        made_from = {
            "text": _digests(first.text), "triples": pairs.key if pairs else None, "lines": first.lines, "settings": own,
            "kind": repr(chosen_recipe(whole, first, tracks=False).tokenizer),
        }  # fmt: skip
        options = {
            "--for": first.recipe or whole.recipe,
            "--variant": _not_usual(whole.variant),
            "--set": own,
            "--lines": first.lines,
        }
        work = self._make("tokenizer", (pairs.out,) if pairs else first.text, made_from, ".json", options)
        return work.out, work.key

    def _triples(self, triples: Triples) -> Work:
        """The file of pairs of texts."""
        names = [triples.names] if triples.names else []
        made_from = {"triples": _digests(triples.files), "names": _digests(names), "ask": triples.ask}
        words = tuple(Path(one) for one in triples.files)
        ask = None if triples.ask == "tail" else triples.ask
        return self._make("triples", words, made_from, ".jsonl", {"--names": triples.names, "--ask": ask})

    def _graph(self, graph: EntityGraph) -> tuple[Path, dict[str, Any]]:
        """The folder with the vectors of a graph, and the hashes of the files that they come from."""
        if graph.folder is not None:
            return Path(graph.folder), {"graph": _digests(map(str, sorted(Path(graph.folder).iterdir())))}
        made_from = {"triples": _digests(graph.files), "names": _digests([graph.names] if graph.names else [])}
        options = {"--names": graph.names, "--device": self.device}
        made = self._make("graph", tuple(map(Path, graph.files)), made_from, "", options)
        return made.out, {"graph": made_from["triples"] | made_from["names"]}

    def _pretraining(self, stage: PretrainingStage, budget: str) -> Work:
        whole, recipe = self.whole, stage.recipe or self.whole.recipe
        fresh = stage.start is None and stage.run is None
        tokenizer, key = self._tokenizer(stage) if fresh else (None, None)
        words, reads, data = self._read_by(stage)
        graph, read_graph = self._graph(stage.graph) if stage.graph else (None, {})
        entry = Entry(recipe, recipe, size_of(self.pipeline, stage), whole.variant, (*whole.settings, *stage.settings))
        tracks = track_settings(chosen_recipe(self.pipeline, stage, tracks=False), stage, data)
        made_from = reads | read_graph | {
            "recipe": recipe, "size": whole.size if fresh else None, "variant": whole.variant, "settings": list(entry.settings), "code": entry.key,
            "lexicon": _digests(whole.lexicon), "tokenizer": key, "start": self._start_key(stage), "budget": budget, "seed": self.seed,
        }  # fmt: skip
        out = self._run_folder(stage.name, made_from)
        options = {
            "--size": whole.size if fresh else None, "--variant": _not_usual(whole.variant), "--from": self._start(stage), "--tokenizer": tokenizer,
            "--lexicon": list(whole.lexicon) if stage.text else [], "--graph": graph, "--lines": stage.lines, "--set": [*entry.settings, *tracks],
            "--budget": budget, "--seed": self.seed or None, "--device": self.device, "--out": out,
        }  # fmt: skip
        call = Call("pretrain", (recipe, *words), options)
        return Work(stage.name, stage.does, out, (call,), made_from, self.seed, budget=budget, start=_called(stage))

    def _read_by(self, stage: PretrainingStage) -> tuple[tuple[str, ...], dict[str, Any], Path | None]:
        """The data in the command of a stage, the hashes of all that it reads, and the prepared triples of a track."""
        words, data = stage.text, None
        reads: dict[str, Any] = {"text": _digests(stage.text), "lines": stage.lines} if stage.text else {}
        if stage.triples is not None:
            pairs = self._triples(stage.triples)
            reads |= pairs.made_from
            data = self._prepared(stage, pairs) if words or stage.labelled else None
            words = words or (str(pairs.out),)
        if stage.labelled:
            files = [file for one in stage.labelled for file in (one.train, one.dev) if file]
            reads |= {"labelled": _digests(files), "tracks": [one.name for one in stage.labelled]}
            # a run has data, also if only examples are read
            words = words or next(one.text for one in self.whole.pretraining if one.text)
        return words, reads | ({"mix": stage.mix} if stage.triples or stage.labelled else {}), data

    def _prepared(self, stage: PretrainingStage, pairs: Work) -> Path:
        """The data folder of pairs of texts, for a track of a stage that also reads text."""
        tokenizer, key = self._tokenizer(stage)
        made_from = {"triples": pairs.key, "tokenizer": key}
        return self._make("prepare", (pairs.out,), made_from, "", {"--tokenizer": tokenizer}).out

    def _adapting(self, stage: AdaptingStage, trial: int) -> Work:
        base, fresh = self._start(stage), False
        if base is None:
            base, fresh = self._untrained(), True
        seed = self.seed * stage.seeds + trial
        columns = {"--text": list(stage.text_column), "--label": stage.label_column}
        opened = {"--recipe": own_file(self.whole), "--device": self.device}
        made_from = _task_digests(stage) | {
            "task": stage.task, "tune": stage.tune, "settings": list(stage.settings), "columns": [*stage.text_column, stage.label_column],
            "start": self._start_key(stage) or self.first[UNTRAINED].key, "fresh": fresh, "seed": seed,
        }  # fmt: skip
        out = self._run_folder(stage.name, made_from)
        options = columns | {"--task": stage.task, "--tune": stage.tune, "--unlabelled": list(stage.unlabelled), "--dev": stage.dev, "--set": list(stage.settings), "--seed": seed or None,
                             "--fresh": fresh, **opened, "--out": out}  # fmt: skip
        calls = [Call("adapt", (base, Path(stage.train)), options)]
        if stage.scored:
            calls.append(Call("evaluate", (out, Path(stage.scored)), columns | opened))
        start = _called(stage) or UNTRAINED
        return Work(stage.name, stage.does, out, tuple(calls), made_from, self.seed, trial, start=start)

    def _untrained(self) -> Path:
        """A run whose network is adapted with random weights: all stages that pretrain are left out."""
        if UNTRAINED not in self.first:
            of = next(
                stage for stage in self.pipeline.left_out if isinstance(stage, PretrainingStage) and not stage.run
            )
            self._add(self._pretraining(replace(of, name=UNTRAINED, start=None), "1steps"))
        return self.first[UNTRAINED].out

    def _start(self, stage: PipelineStage) -> Path | None:
        return self.first[stage.start].out if stage.start else Path(stage.run) if stage.run else None

    def _start_key(self, stage: PipelineStage) -> str | None:
        if stage.start:
            return self.first[stage.start].key
        return digest(Path(stage.run) / run.WEIGHTS) if stage.run else None

    def _run_folder(self, name: str, made_from: Mapping[str, Any]) -> Path:
        return self.whole.out / RUNS / f"{name}-{key_of(made_from)}"


def _called(stage: PipelineStage) -> str | None:
    return stage.start or (Path(stage.run).name if stage.run else None)


def _not_usual(variant: str) -> str | None:
    return None if variant == "paper" else variant


def _task_digests(stage: AdaptingStage) -> dict[str, Any]:
    """The hashes of all files of a task, or of all tasks of a folder."""
    if stage.many:
        return {"train": {str(Path(stage.train) / task.name): task.key for task in find(Path(stage.train))[0]}}
    given = {"train": stage.train, "dev": stage.dev, "scored": stage.scored}
    return {name: _digests([file]) for name, file in given.items() if file} | {"unlabelled": _digests(stage.unlabelled)}


def _digests(arguments: Any) -> dict[str, str]:
    """The hash of each file that these arguments name; a share of its documents is part of it."""
    return dict(_files(list(arguments)))


def _files(arguments: list[str]) -> Iterator[tuple[str, str]]:
    for argument in arguments:
        if Path(argument).is_file():
            yield argument, digest(argument)
            continue
        source = source_of(argument)
        for file in source.files:
            yield str(file), digest(file) + (f":{source.share:g}" if source.share < 1 else "")
