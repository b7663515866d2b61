"""The public Python API: what `import unmask` gives. The verbs of the command line are the same calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unmask import adapt, convert, evaluate, explanation, infer, pretraining, recipes, text
from unmask.data.given import Text
from unmask.data.prepare import prepare as prepare_shards
from unmask.recipe import Recipe
from unmask.tasks import Choose, Classify, Write
from unmask.tasks.choose import Question

Paths = str | Path | Sequence[str | Path]


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

    def fill(self, sentence: str, *, top: int = 5) -> list[list[infer.Guess]]:
        """The most likely tokens at each [MASK]."""
        return infer.fill(self.inner, sentence, top=top)

    def generate(
        self, prompt: str, *, tokens: int = 50, temperature: float = 1.0, top_k: int | None = None,
        top_p: float | None = None, seed: int = 0,
    ) -> str:  # fmt: skip
        """The prompt and what the model writes after it; of a model adapted to write, the text it writes from it."""
        sampling = infer.Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
        second = self.recipe.see.writes == "second"  # type: ignore[attr-defined]
        write = infer.write if second else infer.generate
        return "".join(write(self.inner, prompt, tokens=tokens, sampling=sampling, seed=seed))

    def embed(
        self, texts: str | Sequence[str], *, pool: Literal["mean", "summary"] = "mean", layer: int = -1
    ) -> np.ndarray:
        """One vector per text."""
        return infer.embed(self.inner, [texts] if isinstance(texts, str) else texts, pool=pool, layer=layer)

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
        task: Choose | Classify | Write | None = None, seed: int = 0, fresh: bool = False, overwrite: bool = False,
    ) -> Model:  # fmt: skip
        """Fine-tune on a file of examples, to tell labels apart, choose or write; returns the adapted model."""
        steps = adapt.adapt_to_files(self.inner, train, out, dev=dev, task=task or Classify(), seed=seed,
                                     fresh=fresh, overwrite=overwrite)  # fmt: skip
        for _ in steps:
            pass
        return load(out, device=self.inner.device)

    def evaluate(self, file: str | Path) -> dict[str, Any]:
        """The scores on a file of the model's task: accuracy, F1, MCC and the confusion matrix, or ROUGE-L."""
        return evaluate.evaluate_file(self.inner, file)

    def export(self, out: str | Path, *, generator: bool = False, overwrite: bool = False) -> convert.Exported:
        """Write the model, or its generator, in Hugging Face format; returns what was written and what left out."""
        return convert.export_hf(self.inner, out, generator=generator, overwrite=overwrite)


def load(folder: str | Path, *, device: str | None = None) -> Model:
    """The model in a run folder."""
    return Model(infer.open_run(folder, device=device))


def train_tokenizer(
    corpus: Paths, out: str | Path, *, kind: str = "wordpiece", vocab: int | None = None,
    errors: str = "strict", overwrite: bool = False,
) -> text.Tokenizer:  # fmt: skip
    """Train a tokenizer on a corpus and write it to `out`."""
    return text.train_to_file(text.Corpus(_listed(corpus), errors=errors), out, text.kind_named(kind, vocab), overwrite)


def prepare(
    corpus: Paths, out: str | Path, *, tokenizer: str | Path, words: text.Words = "auto", lexicon: Paths = (),
    holdout: float = 0.005, errors: str = "strict", workers: int | None = None, overwrite: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Tokenise a corpus into shards, with the phrases and entities of a lexicon if one is given; returns the manifest."""
    manifest: dict[str, Any] = {}
    for manifest in prepare_shards(
        text.Corpus(_listed(corpus), errors=errors), text.Tokenizer.load(tokenizer), out, words=words,
        lexicon=text.Lexicon.load(_listed(lexicon)) if lexicon else None, holdout=holdout, workers=workers,
        overwrite=overwrite,
    ):  # fmt: skip
        pass
    return manifest


def make_lexicon(
    corpus: Paths, out: str | Path, *, graph: Paths = (), mining: text.Mining | None = None, errors: str = "strict",
    overwrite: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Mine phrases from a corpus (none: ()) and take the names of a knowledge graph; returns what was written."""
    summary: dict[str, Any] = {}
    stream = text.Corpus(_listed(corpus), errors=errors) if corpus else None
    for summary in text.make_lexicon(stream, out, graph=_listed(graph), mining=mining, overwrite=overwrite):
        pass
    return summary


def pretrain(
    recipe: str | Recipe, data: Paths, out: str | Path, *, size: str = "base", variant: str = "paper",
    settings: Sequence[str] = (), **options: Any,
) -> Model:  # fmt: skip
    """Pretrain a recipe on prepared data; the options are those of `unmask.pretraining.pretrain`."""
    chosen = (
        recipe
        if isinstance(recipe, Recipe)
        else recipes.get(recipe, size=size, variant=variant, settings=list(settings))
    )
    for _ in pretraining.pretrain(chosen, _listed(data), out, **options):
        pass
    return load(out, device=options.get("device"))


def explain(
    recipe: str | Recipe, sentence: str, *, size: str = "base", variant: str = "paper", settings: Sequence[str] = (),
    tokenizer: str | Path | None = None, lexicon: Paths = (), stage: int | None = None, seed: int = 0, visit: int = 0,
) -> explanation.Explanation:  # fmt: skip
    """What a recipe hides, sees and predicts in a text; `stage` counts from 1, none is the last."""
    chosen = (
        recipe
        if isinstance(recipe, Recipe)
        else recipes.get(recipe, size=size, variant=variant, settings=list(settings))
    )
    known = text.Tokenizer.load(tokenizer) if tokenizer is not None else None
    units = text.Lexicon.load(_listed(lexicon)) if lexicon else None
    return explanation.explain(chosen, sentence, tokenizer=known, lexicon=units, stage=stage, seed=seed, visit=visit)


def list_recipes() -> list[recipes.Entry]:
    """The family, oldest first."""
    return recipes.entries()


def import_hf(
    folder: str | Path, out: str | Path, *, generator: str | Path | None = None, overwrite: bool = False
) -> tuple[Model, convert.Report]:
    """Bring in a model in Hugging Face format; returns it and what was loaded, missing and left over."""
    report = convert.import_hf(folder, out, generator=generator, overwrite=overwrite)
    return load(out), report


def _listed(paths: Paths) -> list[str | Path]:
    return [paths] if isinstance(paths, str | Path) else list(paths)
