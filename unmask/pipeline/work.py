"""The work of a pipeline: each stage with its seed becomes commands, an output folder and a fingerprint of all that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unmask import run
from unmask.comparison.entry import Entry
from unmask.pipeline.call import Call
from unmask.pipeline.chosen_recipe import chosen_recipe, own_file, size_of, track_settings
from unmask.pipeline.description import AdaptingStage, Pipeline, PipelineStage, PretrainingStage, Triples
from unmask.pipeline.fingerprint import digest, key_of
from unmask.text.documents import source_of

RUNS, MADE = "runs", "made"  # folders of a pipeline: trained models; tokenizers and data
UNTRAINED = "untrained"


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

    def _make(self, verb: str, words: tuple[Any, ...], made_from: dict[str, Any], suffix: str, **options: Any) -> Work:
        out = self.whole.out / MADE / f"{verb}-{key_of(made_from)}{suffix}"
        given = {f"--{name.replace('recipe', 'for').replace('settings', 'set')}": one for name, one in options.items()}
        work = Work(
            verb, f"makes {out.name}", out, (Call(verb, words, given | {"--out": out}),), made_from, trains=False
        )
        self.made[out] = work
        return work

    def _tokenizer(self) -> tuple[Path, str]:
        """The file or run whose tokenizer is used, and its fingerprint.

        It is trained on the first text of the whole pipeline, so that all variants share it, and other text for a later stage
        leaves the earlier stages as they are."""
        given = self.whole.tokenizer or next((stage.run for stage in self.whole.stages if stage.run), None)
        if given is not None:
            file = Path(given) / run.TOKENIZER if Path(given).is_dir() else Path(given)
            return Path(given), digest(file)
        stages = [stage for stage in self.whole.stages if isinstance(stage, PretrainingStage)]
        first = next((stage for stage in stages if stage.text), stages[0])
        pairs = self._triples(first.triples) if first.triples and not first.text else None
        own = [one for one in (*self.whole.settings, *first.settings) if one.startswith("tokenizer")]
        made_from = {
            "text": _digests(first.text), "triples": pairs.key if pairs else None, "lines": first.lines, "settings": own,
            "kind": repr(chosen_recipe(self.whole, first, tracks=False).tokenizer),
        }  # fmt: skip
        work = self._make(
            "tokenizer", (pairs.out,) if pairs else first.text, made_from, ".json", recipe=first.recipe or self.whole.recipe,
            variant=None if self.whole.variant == "paper" else self.whole.variant, settings=own, lines=first.lines,
        )  # fmt: skip
        return work.out, work.key

    def _triples(self, triples: Triples) -> Work:
        """The file of pairs of texts."""
        names = [triples.names] if triples.names else []
        made_from = {"triples": _digests(triples.files), "names": _digests(names), "ask": triples.ask}
        words = tuple(Path(one) for one in triples.files)
        ask = None if triples.ask == "tail" else triples.ask
        return self._make("triples", words, made_from, ".jsonl", names=triples.names, ask=ask)

    def _pretraining(self, stage: PretrainingStage, budget: str) -> Work:
        whole, words, data = self.whole, stage.text, None
        fresh = stage.start is None and stage.run is None
        made_from: dict[str, Any] = {"text": _digests(stage.text), "lines": stage.lines} if stage.text else {}
        if stage.triples is not None:
            pairs = self._triples(stage.triples)
            made_from |= pairs.made_from
            data = self._prepared(pairs) if words or stage.labelled else None
            words = words or (str(pairs.out),)
        if stage.labelled:
            files = [file for one in stage.labelled for file in (one.train, one.dev) if file]
            made_from |= {"labelled": _digests(files), "tracks": [one.name for one in stage.labelled]}
            words = words or self._any_text()
        made_from |= {"mix": stage.mix} if stage.triples or stage.labelled else {}
        settings = [*whole.settings, *stage.settings]
        settings += track_settings(chosen_recipe(whole, stage, tracks=False), stage, data)
        recipe = stage.recipe or whole.recipe
        entry = Entry(recipe, recipe, size_of(whole, stage), whole.variant, (*whole.settings, *stage.settings))
        made_from |= {
            "recipe": recipe, "size": whole.size if fresh else None, "variant": whole.variant, "settings": list(entry.settings), "code": entry.key,
            "lexicon": _digests(whole.lexicon), "start": self._start_key(stage), "budget": budget, "seed": self.seed,
        }  # fmt: skip
        tokenizer = self._tokenizer() if fresh else None
        made_from |= {"tokenizer": tokenizer[1]} if tokenizer else {}
        out = self._run_folder(stage.name, made_from)
        options = {
            "--size": whole.size if fresh else None, "--variant": None if whole.variant == "paper" else whole.variant,
            "--from": self._start(stage), "--tokenizer": tokenizer[0] if tokenizer else None,
            "--lexicon": list(whole.lexicon) if stage.text else [], "--lines": stage.lines, "--set": settings, "--budget": budget,
            "--seed": self.seed or None, "--device": self.device, "--out": out,
        }  # fmt: skip
        return Work(
            stage.name, stage.does, out, (Call("pretrain", (recipe, *words), options),), made_from, self.seed,
            budget=budget, start=_called(stage),
        )  # fmt: skip

    def _any_text(self) -> tuple[str, ...]:
        """Text for a stage that reads only labelled examples: a run has data, and this stage never reads it."""
        stages = [stage for stage in self.whole.stages if isinstance(stage, PretrainingStage)]
        return next(stage.text for stage in stages if stage.text)

    def _prepared(self, pairs: Work) -> Path:
        """The data folder of pairs of texts, for a track of a stage that also reads text."""
        tokenizer, key = self._tokenizer()
        made_from = {"triples": pairs.key, "tokenizer": key}
        return self._make("prepare", (pairs.out,), made_from, "", tokenizer=tokenizer).out

    def _adapting(self, stage: AdaptingStage, trial: int) -> Work:
        base, fresh = self._start(stage), False
        if base is None:
            base, fresh = self._untrained(), True
        seed = self.seed * stage.seeds + trial
        files = {name: _digests([one]) for name, one in (("train", stage.train), ("dev", stage.dev)) if one}
        columns = {"--text": list(stage.text_column), "--label": stage.label_column}
        opened = {"--recipe": own_file(self.whole), "--device": self.device}
        made_from = files | {
            "task": stage.task, "tune": stage.tune, "settings": list(stage.settings), "columns": [*stage.text_column, stage.label_column],
            "start": self._start_key(stage) or self.first[UNTRAINED].key, "fresh": fresh, "seed": seed,
            "scored": _digests([stage.scored] if stage.scored else []),
        }  # fmt: skip
        made_from |= {"unlabelled": _digests(stage.unlabelled)} if stage.unlabelled else {}
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
            of = next(stage for stage in self.pipeline.left_out if isinstance(stage, PretrainingStage))
            self._add(self._pretraining(replace(of, name=UNTRAINED), "1steps"))
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
