"""The public Python API: what `import unmask` gives. The verbs of the command line are the same calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np

from unmask import adapt, convert, evaluate, explanation, infer, pretraining, recipes, screen, text
from unmask.data.examples import Text
from unmask.data.prepare import prepare as prepare_shards
from unmask.errors import require
from unmask.progress import Progress, follow, tell, warn_of
from unmask.recipe import MAIN, Recipe
from unmask.tasks import Choose, Classify, Write
from unmask.tasks.choose import Question
from unmask.tasks.classify import Columns
from unmask.train import log

Paths = str | Path | Sequence[str | Path]
P = ParamSpec("P")
R = TypeVar("R")


def _noted(method: Callable[Concatenate[Model, P], R]) -> Callable[Concatenate[Model, P], R]:
    """What a method cuts from its texts is a warning (`unmask.errors.Notice`)."""

    @wraps(method)
    def called(self: Model, *args: P.args, **options: P.kwargs) -> R:
        before = Counter(self.inner.notes)
        found = method(self, *args, **options)
        warn_of(self.inner.notes, before, stacklevel=2)
        return found

    return called


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
    def fill(self, sentence: str, *, top: int = 5) -> list[list[infer.Guess]]:
        """The most likely tokens at each [MASK]."""
        return infer.fill(self.inner, sentence, top=top)

    @_noted
    def generate(
        self, prompt: str | Sequence[str], *, tokens: int = 50, greedy: bool = False, temperature: float | None = None,
        top_k: int | None = None, top_p: float | None = None, repetition_penalty: float = 1.0, beams: int | None = None,
        length_penalty: float | None = None, samples: int = 1, cut_left: bool = False, cached: bool = True, seed: int = 0,
    ) -> Any:  # fmt: skip
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
        return found[0].text if single else [one.text for one in found]

    @_noted
    def embed(
        self, texts: str | Sequence[str], *, pool: Literal["mean", "summary"] = "mean", layer: int = -1
    ) -> np.ndarray:
        """One vector per text."""
        return infer.embed(self.inner, [texts] if isinstance(texts, str) else texts, pool=pool, layer=layer)

    @_noted
    def predict(
        self, texts: str | tuple[str, str] | Question | Sequence[str | tuple[str, str] | Question]
    ) -> list[infer.Prediction]:
        """The label of each text, or of each pair of texts; of a model that chooses, the choice of each question."""
        if isinstance(texts, Question) or self.inner.chooses:
            return infer.choose(self.inner, [texts] if isinstance(texts, Question) else texts)  # type: ignore[arg-type]
        single = isinstance(texts, str) or (isinstance(texts, tuple) and len(texts) == 2)
        several: Sequence[Any] = [texts] if single else texts  # type: ignore[assignment]
        return infer.classify(self.inner, [Text(*((t,) if isinstance(t, str) else t)) for t in several])

    def adapt(
        self, train: str | Path, out: str | Path, *, dev: str | Path | None = None,
        task: Choose | Classify | Write | None = None, text: str | Sequence[str] | None = None, label: str | None = None,
        seed: int = 0, fresh: bool = False, overwrite: bool = False, progress: Progress = True,
    ) -> Model:  # fmt: skip
        """Fine-tune on a file of examples, to tell labels apart, choose or write; returns the adapted model.

        `text` and `label` name the columns of the file; of a pair, `text` names two. The scores of
        all epochs, and which one was kept, are in the last record of its `history`. `progress`: as for `unmask.pretrain`."""
        steps = adapt.adapt_to_files(self.inner, train, out, dev=dev, task=task or Classify(), columns=Columns.of(text, label),
                                     seed=seed, fresh=fresh, overwrite=overwrite)  # fmt: skip
        follow(steps, progress, partial(screen.training, title=f"adapting {self.inner.folder.name}"))
        return load(out, device=self.inner.device)

    @_noted
    def evaluate(
        self, file: str | Path, *, context: int | None = None, stride: int | None = None, memory: int | None = None,
        whole: bool = False, lines: bool = False, encoding: str = "utf-8", text: str | Sequence[str] | None = None,
        label: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The scores on a file of the model's task: accuracy, macro F1, MCC and the confusion matrix, or ROUGE-L.

        `text` and `label` name the columns of the file. Of a language model, the scores on a text: loss, perplexity, bits
        per byte; the other options say how it is read."""
        return evaluate.evaluate_file(self.inner, file, context=context, stride=stride, memory=memory, whole=whole,
                                      lines=lines, encoding=encoding, columns=Columns.of(text, label))  # fmt: skip

    @_noted
    def context_curve(
        self, file: str | Path, *, lengths: Sequence[int] | None = None, whole: bool = False
    ) -> dict[str, Any]:
        """The loss of the same tokens of a text when the model may look back 1, 2, 4 ... tokens."""
        return evaluate.context_curve(self.inner, file, lengths=lengths, whole=whole)

    @_noted
    def zero_shot(
        self, file: str | Path, *, prompt: str | Path, normalise: Literal["token", "byte", "none"] = "token",
        unconditional: bool = False, cut_left: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """The scores on a file of questions, put in the words of a template (its text, or the file that holds it)."""
        scoring = evaluate.Scoring(normalise=normalise, unconditional=unconditional, cut_left=cut_left)
        return evaluate.evaluate_prompts(self.inner, file, prompt=prompt, scoring=scoring)

    def export(self, out: str | Path, *, generator: bool = False, overwrite: bool = False) -> convert.Exported:
        """Write the model, or its generator, in Hugging Face format; returns what was written and what left out."""
        return convert.export_hf(self.inner, out, generator=generator, overwrite=overwrite)


def load(folder: str | Path, *, device: str | None = None, half: bool = False) -> Model:
    """The model in a run folder; `half`: in bfloat16, for speed on a GPU."""
    return Model(infer.open_run(folder, device=device, half=half))


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
    tensorboard: bool = False, progress: Progress = True,
) -> Model:  # fmt: skip
    """Pretrain a recipe on prepared data, of size base or, from `start`, of that run's size.

    `budget`: 20m (the default), 2h, 1e9tok, 5000steps or 1e17flop. `start`: a run to continue from, on new text. `resume`:
    go on with a run that was cut off; `pretrain(None, (), out, resume=True)` is enough. `compiled`: None compiles on a GPU
    where it pays. `progress`: draw as the command line does (True), draw nothing and warn of notices (False), or a
    function that is called with every record."""
    chosen = _chosen(recipe, size, variant, settings, start) if recipe is not None else None
    records = pretraining.pretrain(
        chosen, _listed(data), out, budget=budget, start=start, seed=seed, device=device, compiled=compiled, resume=resume,
        overwrite=overwrite, tensorboard=tensorboard,
    )  # fmt: skip
    follow(
        records, progress, partial(screen.training, title=f"{chosen.name} {chosen.size}" if chosen else Path(out).name)
    )
    return load(out, device=device)


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
    recipe: str | Recipe, size: str | None, variant: str, settings: Sequence[str], start: str | Path | None = None
) -> Recipe:
    """A recipe as it is, or by its name; to go on from a run it has that run's size."""
    if isinstance(recipe, Recipe):
        named = size is None and variant == "paper" and not settings
        require(named, "size, variant and settings belong to a recipe's name, and a Recipe was given: leave them out")
        return recipe
    if start is None:
        return recipes.get(recipe, size=size or "base", variant=variant, settings=list(settings))
    require(size is None, f"the network comes from {start}: leave size out, or leave start out")
    return recipes.continued(recipe, start, variant=variant, settings=list(settings))


def _listed(paths: Paths) -> list[str | Path]:
    return [paths] if isinstance(paths, str | Path) else list(paths)
