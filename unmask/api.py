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
from unmask.tasks.classify import Classify, read

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
        """The prompt and what the model writes after it."""
        sampling = infer.Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
        return "".join(infer.generate(self.inner, prompt, tokens=tokens, sampling=sampling, seed=seed))

    def embed(
        self, texts: str | Sequence[str], *, pool: Literal["mean", "summary"] = "mean", layer: int = -1
    ) -> np.ndarray:
        """One vector per text."""
        return infer.embed(self.inner, [texts] if isinstance(texts, str) else texts, pool=pool, layer=layer)

    def predict(self, texts: str | tuple[str, str] | Sequence[str | tuple[str, str]]) -> list[infer.Prediction]:
        """The label of each text, or of each pair of texts."""
        single = isinstance(texts, str) or (isinstance(texts, tuple) and len(texts) == 2)
        several: Sequence[Any] = [texts] if single else texts  # type: ignore[assignment]
        return infer.classify(self.inner, [Text(*((t,) if isinstance(t, str) else t)) for t in several])

    def adapt(
        self, train: str | Path, out: str | Path, *, dev: str | Path | None = None, task: Classify | None = None,
        seed: int = 0, fresh: bool = False, overwrite: bool = False,
    ) -> Model:  # fmt: skip
        """Fine-tune on labelled examples; returns the adapted model."""
        steps = adapt.finetune(self.inner, read(train), out, dev=read(dev) if dev else (), task=task, seed=seed,
                               fresh=fresh, overwrite=overwrite)  # fmt: skip
        for _ in steps:
            pass
        return load(out, device=self.inner.device)

    def evaluate(self, file: str | Path) -> dict[str, Any]:
        """Accuracy, F1, MCC and the confusion matrix on labelled examples."""
        return evaluate.evaluate_file(self.inner, file)

    def export(self, out: str | Path, *, overwrite: bool = False) -> list[str]:
        """Write the model in Hugging Face format; returns the files written."""
        return convert.export_hf(self.inner, out, overwrite=overwrite)


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
    corpus: Paths, out: str | Path, *, tokenizer: str | Path, words: text.Words = "auto", holdout: float = 0.005,
    errors: str = "strict", workers: int | None = None, overwrite: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Tokenise a corpus into shards; returns the manifest."""
    manifest: dict[str, Any] = {}
    for manifest in prepare_shards(
        text.Corpus(_listed(corpus), errors=errors), text.Tokenizer.load(tokenizer), out,
        words=words, holdout=holdout, workers=workers, overwrite=overwrite,
    ):  # fmt: skip
        pass
    return manifest


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
    recipe: str | Recipe, sentence: str, *, size: str = "base", settings: Sequence[str] = (),
    tokenizer: str | Path | None = None, seed: int = 0, visit: int = 0,
) -> explanation.Explanation:  # fmt: skip
    """What a recipe hides, sees and predicts in a text."""
    chosen = recipe if isinstance(recipe, Recipe) else recipes.get(recipe, size=size, settings=list(settings))
    known = text.Tokenizer.load(tokenizer) if tokenizer is not None else None
    return explanation.explain(chosen, sentence, tokenizer=known, seed=seed, visit=visit)


def list_recipes() -> list[recipes.Entry]:
    """The family, oldest first."""
    return recipes.entries()


def import_hf(folder: str | Path, out: str | Path, *, overwrite: bool = False) -> tuple[Model, convert.Report]:
    """Bring in a model in Hugging Face format; returns it and what was loaded, missing and left over."""
    report = convert.import_hf(folder, out, overwrite=overwrite)
    return load(out), report


def _listed(paths: Paths) -> list[str | Path]:
    return [paths] if isinstance(paths, str | Path) else list(paths)
