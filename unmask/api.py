"""The public Python API: what `import unmask` gives. The verbs of the command line are the same calls."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np

from unmask import adapt, convert, evaluate, explanation, infer, pretraining, recipes, run, screen, text
from unmask.axes import Task
from unmask.data.prepare import prepare as prepare_shards
from unmask.errors import Notice, require
from unmask.progress import Progress, follow, tell, warn_of
from unmask.recipe import MAIN, Recipe
from unmask.recipe_file import RecipeFile, file_used_by
from unmask.tasks import Classify
from unmask.tasks.classify import Columns
from unmask.train import log

Paths = str | Path | Sequence[str | Path]
P = ParamSpec("P")
R = TypeVar("R")


def _noted(method: Callable[Concatenate[Model, P], infer.Noted[R]]) -> Callable[Concatenate[Model, P], R]:
    """A method whose notes are warnings (`unmask.errors.Notice`), such as what it cut from its texts."""

    @wraps(method)
    def called(self: Model, *args: P.args, **options: P.kwargs) -> R:
        found = method(self, *args, **options)
        warn_of(found.notes, Counter(), stacklevel=2)
        return found.value

    return called


def _scored(record: dict[str, Any]) -> infer.Noted[dict[str, Any]]:
    """Scores, apart from their notes."""
    return infer.Noted({name: value for name, value in record.items() if name != "notes"}, Counter(record["notes"]))


class Model:
    """A trained model and all that can be done with it."""

    def __init__(self, inner: infer.Model) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"<Model {self.inner.folder}: {self.inner.recipe.name} {self.inner.recipe.size} on {self.inner.device}>"

    @property
    def recipe(self) -> Recipe:
        return self.inner.recipe

    @property
    def tokenizer(self) -> text.Tokenizer:
        return self.inner.tokenizer

    @property
    def labels(self) -> tuple[str, ...]:
        return self.inner.labels

    @property
    def history(self) -> list[dict[str, Any]]:
        """The records of the training that made it, from the log of its run: a record each."""
        return log.read(self.inner.folder)

    @_noted
    def fill(self, sentence: str, *, top: int = 5) -> infer.Noted[list[list[infer.Guess]]]:
        """The most likely tokens at each [MASK]."""
        return infer.fill(self.inner, sentence, top=top)

    @_noted
    def generate(
        self, prompt: str | Sequence[str], *, tokens: int = 50, greedy: bool = False, temperature: float | None = None,
        top_k: int | None = None, top_p: float | None = None, repetition_penalty: float = 1.0, beams: int | None = None,
        length_penalty: float | None = None, samples: int = 1, cut_left: bool = False, cached: bool = True, seed: int = 0,
    ) -> infer.Noted[Any]:  # fmt: skip
        """The prompt and what the model writes after it; of a model adapted to write, the text it writes from it.

        A text for a text; for a sequence of them a list, with all samples of the first, then of the second, and so on."""
        sampling = infer.decoding(
            greedy=greedy, temperature=temperature, top_k=top_k, top_p=top_p, repetition_penalty=repetition_penalty,
            beams=beams, length_penalty=length_penalty,
        )  # fmt: skip
        single = isinstance(prompt, str)
        require(
            not single or samples == 1, f"{samples} samples make a list: write generate([prompt], samples={samples})"
        )
        found = infer.texts(
            self.inner, [prompt] if isinstance(prompt, str) else prompt, tokens=tokens, sampling=sampling, seed=seed,
            samples=samples, cut_left=cut_left, cached=cached,
        )  # fmt: skip
        texts = [one.text for one in found.value]
        return infer.Noted(texts[0] if single else texts, found.notes)

    @_noted
    def embed(
        self, texts: str | Sequence[str], *, pool: Literal["mean", "summary"] = "mean", layer: int = -1
    ) -> infer.Noted[np.ndarray]:
        """One vector per text."""
        return infer.embed(self.inner, [texts] if isinstance(texts, str) else texts, pool=pool, layer=layer)

    @_noted
    def predict(self, texts: Any) -> infer.Noted[list[Any]]:
        """The answer to each example of the model's task: the label of each text or pair of texts, the choice of each
        `Question`, or the text that is written from each source. One example may be given without a list."""
        pair = isinstance(texts, tuple) and len(texts) == 2 and all(isinstance(text, str) for text in texts)
        single = pair or isinstance(texts, str) or not isinstance(texts, Sequence)
        found = infer.answer(self.inner, [texts] if single else texts)
        return infer.Noted(list(found.answers), found.notes)

    def adapt(
        self, train: str | Path, out: str | Path, *, dev: str | Path | None = None,
        task: Task | None = None, text: str | Sequence[str] | None = None, label: str | None = None,
        seed: int = 0, fresh: bool = False, overwrite: bool = False, progress: Progress = True,
    ) -> Model:  # fmt: skip
        """Fine-tune on a file of examples, to tell labels apart, choose or write; returns the adapted model.

        `text` and `label` name the columns of the file; of a pair, `text` names two. The scores of
        all epochs, and which one was kept, are in the last record of its `history`. `progress`: as for `unmask.pretrain`."""
        steps = adapt.adapt_to_files(self.inner, train, out, dev=dev, task=task or Classify(), columns=Columns.of(text, label),
                                     seed=seed, fresh=fresh, overwrite=overwrite)  # fmt: skip
        follow(steps, progress, partial(screen.training, title=f"adapting {self.inner.folder.name}"))
        return load(out, device=self.inner.device, recipe=run.file_for(out, file_used_by(self.recipe)))

    @_noted
    def evaluate(
        self, file: str | Path, *, context: int | None = None, stride: int | None = None, memory: int | None = None,
        whole: bool = False, lines: bool = False, encoding: str = "utf-8", text: str | Sequence[str] | None = None,
        label: str | None = None,
    ) -> infer.Noted[dict[str, Any]]:  # fmt: skip
        """The scores on a file of the model's task: accuracy, macro F1, MCC and the confusion matrix, or ROUGE-L.

        `text` and `label` name the columns of the file. Of a language model, the scores on a text: loss, perplexity, bits
        per byte; the other options say how it is read."""
        return _scored(evaluate.evaluate_file(self.inner, file, context=context, stride=stride, memory=memory, whole=whole,
                                              lines=lines, encoding=encoding, columns=Columns.of(text, label)))  # fmt: skip

    @_noted
    def context_curve(
        self, file: str | Path, *, lengths: Sequence[int] | None = None, whole: bool = False
    ) -> infer.Noted[dict[str, Any]]:
        """The loss of the same tokens of a text when the model may look back 1, 2, 4 ... tokens."""
        return _scored(evaluate.context_curve(self.inner, file, lengths=lengths, whole=whole))

    @_noted
    def zero_shot(
        self, file: str | Path, *, prompt: str | Path, normalise: Literal["token", "byte", "none"] = "token",
        unconditional: bool = False, cut_left: bool = False,
    ) -> infer.Noted[dict[str, Any]]:  # fmt: skip
        """The scores on a file of questions, put in the words of a template (its text, or the file that holds it)."""
        scoring = evaluate.Scoring(normalise=normalise, unconditional=unconditional, cut_left=cut_left)
        return _scored(evaluate.evaluate_prompts(self.inner, file, prompt=prompt, scoring=scoring))

    def export(self, out: str | Path, *, generator: bool = False, overwrite: bool = False) -> convert.Exported:
        """Write the model, or its generator, in Hugging Face format; returns what was written and what left out."""
        return convert.export_hf(self.inner, out, generator=generator, overwrite=overwrite)


def load(
    folder: str | Path, *, device: str | None = None, half: bool = False, recipe: str | Path | RecipeFile | None = None
) -> Model:
    """The model in a run folder; `half`: in bfloat16, for speed on a GPU.

    `recipe`: the .py file of the run's recipe, if the run uses parts of it."""
    model = infer.open_run(folder, device=device, half=half, recipe=recipe)
    for notice in model.notices:
        warnings.warn(notice, Notice, stacklevel=2)
    return Model(model)


def train_tokenizer(
    corpus: Paths, out: str | Path, *, kind: str = "wordpiece", vocab: int | None = None, fold: bool = False,
    whole: bool = False, lines: bool = False, encoding: str = "utf-8", errors: str = "strict", overwrite: bool = False,
) -> text.Tokenizer:  # fmt: skip
    """Train a tokenizer on a corpus and write it to `out`. `whole`, `lines`, `encoding`, `errors`: as for `prepare`.

    `vocab`: how many tokens; None: the usual number, or as many as the text allows.
    `fold`: full-width letters, digits and marks are read as half-width ones, wherever the tokenizer is used."""
    stream = text.Corpus(_listed(corpus), errors=errors, encoding=encoding, whole=whole, lines=lines)
    wanted = text.kind_named(kind, vocab)
    made = text.train_to_file(stream, out, wanted, overwrite, at_most=vocab is None, fold=fold)
    warn_of(stream.notes, Counter(), stacklevel=2)
    return made


def prepare(
    corpus: Paths, out: str | Path, *, tokenizer: str | Path, words: text.Words = "auto",
    words_from: Paths = (), lexicon: Paths = (),
    holdout: float = 0.005, fold: bool = False, whole: bool = False, lines: bool = False, encoding: str = "utf-8",
    errors: str = "strict", workers: int | None = None, overwrite: bool = False, progress: Progress = True,
) -> dict[str, Any]:  # fmt: skip
    """Tokenise a corpus into shards, with the phrases and entities of a lexicon if one is given; returns the manifest.

    `words_from`: files with words of your own for the Chinese segmenter.
    `whole`: a .txt file is one document, and its blank lines are text, for models of characters and bytes.
    `lines`: every line of a .txt file is a document. `encoding`: utf-8, gb18030, big5, utf-16 or another.
    `fold`: full-width letters, digits and marks are read as half-width ones; the data's tokenizer does so from then on.
    `errors`: "strict", or "replace" to read on where bytes are damaged.
    `holdout`: the share of tokens kept for validation."""
    stream = text.Corpus(_listed(corpus), errors=errors, encoding=encoding, whole=whole, lines=lines)
    read = text.Tokenizer.load(tokenizer)
    records = prepare_shards(
        stream, read.folding() if fold else read, out, words=words,
        own=text.OwnWords.load(_listed(words_from), words) if words_from else None,
        lexicon=text.Lexicon.load(_listed(lexicon)) if lexicon else None, holdout=holdout, workers=workers,
        overwrite=overwrite,
    )  # fmt: skip
    manifest = follow(records, progress, partial(screen.reading, title="preparing"))
    tell(manifest["notes"], progress)
    return manifest


def make_lexicon(
    corpus: Paths, out: str | Path, *, graph: Paths = (), mining: text.Mining | None = None, lines: bool = False,
    encoding: str = "utf-8", errors: str = "strict", overwrite: bool = False, progress: Progress = True,
) -> dict[str, Any]:  # fmt: skip
    """Mine phrases from a corpus (none: ()) and take the names of a knowledge graph; returns what was written."""
    stream = text.Corpus(_listed(corpus), errors=errors, encoding=encoding, lines=lines) if corpus else None
    records = text.make_lexicon(stream, out, graph=_listed(graph), mining=mining, overwrite=overwrite)
    summary = follow(records, progress, partial(screen.reading, title="mining", unit="words"))
    tell(summary["notes"], progress)
    return summary


def pretrain(
    recipe: str | Recipe | None, data: Paths, out: str | Path, *, size: str | None = None, variant: str = "paper",
    settings: Sequence[str] = (), budget: str | None = None, start: str | Path | None = None, seed: int | None = None,
    device: str | None = None, compiled: bool | None = None, resume: bool = False, overwrite: bool = False,
    tensorboard: bool = False, recipe_file: str | Path | None = None, progress: Progress = True,
) -> Model:  # fmt: skip
    """Pretrain a recipe on prepared data, of size base or, from `start`, of that run's size.

    `recipe`: a name, a .py file such as "./mine.py", or a Recipe. `recipe_file`: the .py file of the recipe of the run
    that `start` or `resume` opens, if that run uses parts of it.

    `budget`: 20m (the default), 2h, 1e9tok, 5000steps or 1e17flop. `start`: a run to continue from, on new text. `resume`:
    go on with a run that was cut off; `pretrain(None, (), out, resume=True)` is enough. `compiled`: None compiles on a GPU
    where it pays. `progress`: draw as the command line does (True), draw nothing and warn of notices (False), or a
    function that is called with every record."""
    chosen = _chosen(recipe, size, variant, settings, start, recipe_file) if recipe is not None else None
    records = pretraining.pretrain(
        chosen, _listed(data), out, budget=budget, start=start, seed=seed, device=device, compiled=compiled, resume=resume,
        overwrite=overwrite, tensorboard=tensorboard, recipe_file=recipe_file,
    )  # fmt: skip
    follow(
        records, progress, partial(screen.training, title=f"{chosen.name} {chosen.size}" if chosen else Path(out).name)
    )
    return load(out, device=device, recipe=run.file_for(out, recipe_file or file_used_by(chosen)))


def explain(
    recipe: str | Recipe, sentence: str, *, size: str | None = None, variant: str = "paper", settings: Sequence[str] = (),
    track: str = MAIN, tokenizer: str | Path | None = None, lexicon: Paths = (), stage: int | None = None, seed: int = 0,
    visit: int = 0,
) -> explanation.Explanation:  # fmt: skip
    """What a track of a recipe hides, sees and predicts in a text; `stage` counts from 1, none is the last."""
    chosen = _chosen(recipe, size, variant, settings)
    known = text.Tokenizer.load(tokenizer) if tokenizer is not None else None
    units = text.Lexicon.load(_listed(lexicon)) if lexicon else None
    return explanation.explain(
        chosen, sentence, track=track, tokenizer=known, lexicon=units, stage=stage, seed=seed, visit=visit
    )


def list_recipes() -> list[recipes.Entry]:
    """The family, oldest first."""
    return recipes.entries()


def import_hf(
    folder: str | Path, out: str | Path, *, generator: str | Path | None = None, overwrite: bool = False
) -> tuple[Model, convert.Report]:
    """Bring in a model in Hugging Face format; returns it and what was loaded, missing and left over."""
    report = convert.import_hf(folder, out, generator=generator, overwrite=overwrite)
    return load(out), report


def _chosen(
    recipe: str | Recipe, size: str | None, variant: str, settings: Sequence[str], start: str | Path | None = None,
    recipe_file: str | Path | None = None,
) -> Recipe:  # fmt: skip
    """A recipe as it is, or by its name; to go on from a run it has that run's size."""
    if isinstance(recipe, Recipe):
        named = size is None and variant == "paper" and not settings
        require(named, "size, variant and settings belong to a recipe's name, and a Recipe was given: leave them out")
        return recipe
    if start is None:
        return recipes.get(recipe, size=size or "base", variant=variant, settings=list(settings))
    require(size is None, f"the network comes from {start}: leave size out, or leave start out")
    return recipes.continued(recipe, start, variant=variant, settings=list(settings), file=recipe_file)


def _listed(paths: Paths) -> list[str | Path]:
    return [paths] if isinstance(paths, str | Path) else list(paths)
