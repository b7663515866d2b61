"""Model: a trained model and all that can be done with it. Threads may share one: no method changes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from unmask import convert, evaluate, fonts, infer, screen
from unmask.api.adapting import TRIALS, Adapting
from unmask.api.calibrating import calibrate_run, if_sure
from unmask.api.extending import extend_run
from unmask.api.inputs import read_texts
from unmask.api.many_tasks import adapt_folder, evaluate_folder
from unmask.api.paths import Paths, listed
from unmask.axes import Task, Tune, gives_of
from unmask.errors import require
from unmask.infer.write_vectors import check_name, write_vectors
from unmask.progress import Progress, Tell, follow, tell_notes, tell_notice
from unmask.recipe_file import RecipeFile
from unmask.settings import override
from unmask.tasks.classify import Columns
from unmask.tasks.prompt import read as read_questions
from unmask.text import Corpus
from unmask.text.template import Template
from unmask.train import log
from unmask.tune_names import FULL

R = TypeVar("R")


class Model(infer.Model):
    """What a run folder holds, with a method for each use.

    What a method cut from its texts, and other notes on a result, are warnings (`unmask.errors.Notice`); or the function
    `tell` is called with them, as records {"notes": {what: how many}} and {"event": "notice", "text": ...}."""

    @classmethod
    def of(cls, model: infer.Model) -> Model:
        """The same model, with these methods."""
        return cls(**vars(model))

    def __repr__(self) -> str:
        return f"<Model {self.folder}: {self.recipe.name} {self.recipe.size} on {self.device}>"

    @property
    def history(self) -> list[dict[str, Any]]:
        """The records of the training that made it, from the log of its run: a record each."""
        return log.read(self.folder)

    @property
    def tasks(self) -> dict[str, Task]:
        """The tasks that it was trained on together, by name; {}: it was adapted to one task, or to none."""
        return self.recipe.tasks

    def task(self, name: str) -> Model:
        """The same model for one of its `tasks`: as one that was adapted to this task alone."""
        return Model.of(infer.one_task(self, name))

    @property
    def is_language_model(self) -> bool:
        """Whether it is scored on text rather than on examples: it was not adapted and predicts the next token."""
        return evaluate.is_language_model(self)

    @property
    def best_use(self) -> Literal["adapt", "fill", "generate"]:
        """What to do with it as it is: generate if it predicts the next token, fill if it fills gaps, otherwise adapt."""
        if "token scores" not in gives_of(self.recipe.predict):
            return "adapt"
        if "decoder" in gives_of(self.recipe.system):
            return "generate" if self.recipe.writes else "adapt"
        return "generate" if "left" in self.recipe.writes else "fill"

    def fill(self, sentence: str, *, top: int = 5, tell: Tell = None) -> list[list[infer.Guess]]:
        """The most likely tokens at each [MASK]."""
        return _told(infer.fill(self, sentence, top=top), tell)

    def attention(self, text: str, target: str | None = None, *, tell: Tell = None) -> infer.AttentionWeights:
        """How much each token of a text reads from every other token, by layer and head. `target`: instead, how much each token of
        this text, which a decoder writes, reads from the tokens of the first."""
        if target is not None:
            return _told(infer.attention_to_source(self, text, target), tell)
        return _told(infer.attention(self, text), tell)

    def generate(
        self, prompt: str | Sequence[str], *, tokens: int = 50, greedy: bool = False, temperature: float | None = None,
        top_k: int | None = None, top_p: float | None = None, repetition_penalty: float = 1.0, beams: int | None = None,
        length_penalty: float | None = None, length_offset: int | None = None, early: bool = False, least: int = 0,
        no_repeat: int = 0, samples: int = 1, cut_left: bool = False, cached: bool = True, seed: int = 0,
        tell: Tell = None,
    ) -> Any:  # fmt: skip
        """The prompt and what the model writes after it; of a model adapted to write, the text it writes from it.

        A text for a text; for a sequence of them a list, with all samples of the first, then of the second, and so on."""
        sampling = infer.decoding(
            greedy=greedy, temperature=temperature, top_k=top_k, top_p=top_p, repetition_penalty=repetition_penalty,
            beams=beams, length_penalty=length_penalty, length_offset=length_offset, early=early, least=least,
            no_repeat=no_repeat,
        )  # fmt: skip
        single = isinstance(prompt, str)
        require(
            not single or samples == 1,
            ("{samples} samples make a list: write generate([prompt], samples={samples})"),
            samples=samples,
        )
        found = infer.generate(
            self, [prompt] if isinstance(prompt, str) else prompt, tokens=tokens, sampling=sampling, seed=seed,
            samples=samples, cut_left=cut_left, cached=cached,
        )  # fmt: skip
        texts = [one.text for one in _told(found, tell)]
        return texts[0] if single else texts

    def generate_records(
        self, prompts: Sequence[str], *, sampling: infer.Decoding | None = None, tokens: int = 50, samples: int = 1,
        cut_left: bool = False, cached: bool = True, seed: int = 0, tell: Tell = None,
    ) -> list[infer.Generated]:  # fmt: skip
        """What `generate` gives for a list, with the prompt of each text, its tokens, and whether the model ended it.

        `sampling`: how tokens are chosen, from `unmask.decoding(...)`."""
        found = infer.generate(self, prompts, tokens=tokens, sampling=sampling, seed=seed, samples=samples,
                            cut_left=cut_left, cached=cached)  # fmt: skip
        return _told(found, tell)

    def stream(
        self, prompt: str, *, sampling: infer.Greedy | infer.Sampling | None = None, tokens: int = 50,
        cut_left: bool = False, cached: bool = True, seed: int = 0, tell: Tell = None,
    ) -> Iterator[str]:  # fmt: skip
        """The text that `generate` gives for a prompt, piece by piece while it is written. `sampling`: as above."""
        found = infer.stream(
            self, prompt, tokens=tokens, sampling=sampling, seed=seed, cut_left=cut_left, cached=cached
        )
        return _told(found, tell)

    def embed(
        self,
        texts: str | Sequence[str] | Sequence[Sequence[int]],
        *,
        pool: Literal["mean", "summary"] | None = None,
        layer: int | None = None,
        dims: int | None = None,
        tell: Tell = None,
    ) -> np.ndarray:
        """One vector per text, or per list of token ids. A model adapted to embed makes its own, of length 1; `dims` keeps the first dimensions.

        Of other models: the mean of all tokens, or the vector of the summary token. Layer 0 is the embeddings."""
        given = [texts] if isinstance(texts, str) else texts
        return _told(infer.embed(self, given, pool=pool, layer=layer, dims=dims), tell)

    def embed_file(
        self, file: str | Path, out: str | Path, *, pool: Literal["mean", "summary"] | None = None,
        layer: int | None = None, dims: int | None = None, overwrite: bool = False, tell: Tell = None,
    ) -> np.ndarray:  # fmt: skip
        """Write one vector for each text of a file to .npy, .csv or .jsonl; returns the vectors."""
        check_vectors(out, overwrite=overwrite)
        texts = read_texts(file, tell=tell)
        vectors = _told(infer.embed(self, texts, pool=pool, layer=layer, dims=dims), tell)
        write_vectors(Path(out), texts, vectors)
        return vectors

    def predict(self, texts: Any, *, threshold: float | None = None, tell: Tell = None) -> list[Any]:
        """The answer to each example of the model's task: the label of each text or pair of texts, the choice of each
        `Question`, or the text that is written from each source. One example may be given without a list.

        `threshold`: an answer whose probability is lower has the label "" (the text "", no such label)."""
        pair = isinstance(texts, tuple) and len(texts) == 2 and all(isinstance(text, str) for text in texts)
        single = pair or isinstance(texts, str) or not isinstance(texts, Sequence)
        found = infer.answer(self, [texts] if single else texts)
        answers = list(found.answers) if threshold is None else if_sure(found.answers, threshold)
        return _told(infer.Noted(answers, found.notes), tell)

    def answering(self, settings: Sequence[str]) -> Model:
        """The same model with other values of its task, such as "beams=1": those that only say how it answers."""
        task = infer.task_of_model(self)
        for name in (setting.partition("=")[0].strip() for setting in settings):
            known = (
                f"it can change {', '.join(task.later)}"
                if task.later
                else "this task has no values that can be changed"
            )
            require(
                name in task.later,
                "--set {name} cannot be changed after training: {known}",
                name=name,
                known=known,
            )
        return Model(**vars(self) | {"recipe": self.recipe.replace(task=override(task, settings))})

    def calibrate(
        self, file: str | Path, *, text: str | Sequence[str] | None = None, label: str | None = None
    ) -> dict[str, float]:
        """Set the temperature with which the probabilities of an adapted model fit a file of examples best; the run keeps it.

        Use examples that the model was not trained on. Returns the temperature, and the calibration error before and after."""
        return calibrate_run(self, Path(file), Columns.of(text, label))

    def examples(self, texts: Sequence[Any], *, where: Sequence[str] = ()) -> list[Any]:
        """Examples of the model's task, for `predict`. `where`: what errors call each."""
        return infer.task_of_model(self).given(texts, where)

    def read_examples(
        self, file: str | Path, *, text: str | Sequence[str] | None = None, tell: Tell = None
    ) -> list[Any]:
        """The examples of a file, for `predict`; each keeps all its columns. `text` names the column, of a pair two."""
        task, columns = infer.task_of_model(self), Columns.of(text)
        found, notes = task.read(Path(file), columns, labelled=False)
        tell_notice(task.described(Path(file), columns, labelled=False), tell)
        tell_notes(notes, tell)
        return found

    def adapt(
        self, train: str | Path, out: str | Path, *, dev: str | Path | None = None, task: str | Task | None = None,
        tune: str | Tune | None = None, settings: Sequence[str] = (), text: str | Sequence[str] | None = None,
        label: str | None = None, seed: int = 0, fresh: bool = False, seeds: int = 1, folds: int | None = None,
        unlabelled: Paths = (), overwrite: bool = False, resume: bool = False, stop: Callable[[], bool] = lambda: False,
        progress: Progress = True, warm: Callable[[], infer.Model] | None = None,
    ) -> Model:  # fmt: skip
        """Fine-tune on a file of examples of a task, or on a folder of tasks together; returns the adapted model.

        A folder has a subfolder for each task, with train.jsonl, dev.jsonl and test.jsonl: one model learns all of them (see
        `tasks` and `task`), and `settings` are those of `unmask.adapt.many_settings.Many`. The rest is about a file.
        `task`: a name of `unmask.list_tasks()`, or a task such as `Classify(epochs=5)`; None: the columns of the file say
        it. `tune`: which weights are trained, a name of `unmask.list_tunes()` or a part such as `Lora(rank=4)`; None: all
        weights. `unlabelled`: files and folders of texts without labels, for `tune="cvt"`. `settings`: changes of the task, such
        as "epochs=5", and of the way of tuning, such as "tune.rank=4". `text` and `label` name the columns of the file; of a pair, `text` names two. `fresh`: start from random weights, as the
        control of a comparison. The scores of all epochs, and which one was kept, are in the last record of its `history`.
        `seeds`: train this many times and keep the best on `dev`. `folds`: score each part of the examples by a model of the
        others, then train on all; labels that are probably wrong are listed in suspects.jsonl. The scores of both are in
        `trials`. `resume`: go on with an adaptation in `out` that was cut off; the rest must be the same. `stop`, `progress`: as
        for `unmask.pretrain`. `warm`: gives the model to start from in place of this one, such as a call of `unmask.warm`; it is
        called after the other values are checked. The run folder holds a report.html."""
        if Path(train).is_dir():
            _only_files(train, dev=dev, task=task, tune=tune not in (None, FULL), unlabelled=bool(listed(unlabelled)), text=text, label=label, seeds=seeds > 1, folds=folds, warm_text=warm)  # fmt: skip
            made = adapt_folder(
                self, Path(train), Path(out), settings=settings, seed=seed, fresh=fresh, overwrite=overwrite, resume=resume, stop=stop,
                progress=progress,
            )  # fmt: skip
            return Model.of(made)
        adapting = Adapting.of(
            self, train, dev=dev, task=task, tune=tune, settings=settings, columns=Columns.of(text, label),
            overwrite=overwrite, stop=stop, progress=progress, unlabelled=unlabelled, resume=resume, warm=warm,
        )  # fmt: skip
        return Model.of(adapting.run(Path(out), seed, fresh, seeds, folds))

    def label_curve(
        self, train: str | Path, out: str | Path, *, sizes: str, dev: str | Path, seeds: int = 1,
        task: str | Task | None = None, tune: str | Tune | None = None, settings: Sequence[str] = (),
        text: str | Sequence[str] | None = None, label: str | None = None, unlabelled: Paths = (), seed: int = 0,
        overwrite: bool = False, stop: Callable[[], bool] = lambda: False, progress: Progress = True,
        warm: Callable[[], infer.Model] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The score on `dev` by the number of labels, from this model and from random weights: `sizes`="100,1000,all".

        It is written to curve.json and report.html in the folder `out`; the models are not kept. The other options are those
        of `adapt`."""
        adapting = Adapting.of(
            self, train, dev=dev, task=task, tune=tune, settings=settings, columns=Columns.of(text, label),
            overwrite=overwrite, stop=stop, progress=progress, unlabelled=unlabelled, warm=warm,
        )  # fmt: skip
        return adapting.curve(Path(out), sizes, range(seed, seed + seeds))

    def find_rate(
        self, train: str | Path, out: str | Path, *, steps: int = 100, task: str | Task | None = None,
        tune: str | Tune | None = None, settings: Sequence[str] = (), text: str | Sequence[str] | None = None, label: str | None = None, seed: int = 0,
        overwrite: bool = False, progress: Progress = True, warm: Callable[[], infer.Model] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """A learning rate for `adapt`: the loss of a few steps at rates that grow. The model itself is not changed.

        The rates and losses are written to rates.json and drawn in report.html in the folder `out`; `suggested` is a tenth of
        the rate with the lowest loss."""
        adapting = Adapting.of(
            self, train, dev=None, task=task, tune=tune, settings=settings, columns=Columns.of(text, label),
            overwrite=overwrite, stop=lambda: False, progress=progress, warm=warm,
        )  # fmt: skip
        return adapting.rates(Path(out), steps, seed)

    @property
    def trials(self) -> dict[str, Any] | None:
        """The scores of the seeds or folds that `adapt` tried; None if it trained once."""
        file = self.folder / TRIALS
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None

    def add(self, folder: str | Path, *, recipe: str | Path | RecipeFile | None = None) -> Model:
        """The model in a run folder that holds only what was trained on this one, such as adapters. It uses the weights of
        this model in memory: many small models, one base. `recipe`: as for `unmask.load`."""
        return Model.of(infer.open_on(self, folder, recipe=recipe))

    def extend(
        self, corpus: Paths, out: str | Path, *, tokens: int, lines: bool = False, encoding: str = "utf-8",
        overwrite: bool = False, tell: Tell = None,
    ) -> Model:  # fmt: skip
        """A model with up to this many new tokens, those that make the corpus shortest; written to `out`.

        The rows of a new token start as the mean of its old pieces. To train them, continue with `unmask.pretrain(...,
        start=out)` on text. `corpus`, `lines`, `encoding`: as for `unmask.prepare`."""
        texts = Corpus(listed(corpus), lines=lines, encoding=encoding)
        return Model.of(extend_run(self, texts, Path(out), tokens=tokens, overwrite=overwrite, tell=tell))

    def evaluate(
        self, file: str | Path, *, context: int | None = None, stride: int | None = None, memory: int | None = None,
        whole: bool = False, lines: bool = False, encoding: str = "utf-8", text: str | Sequence[str] | None = None,
        label: str | None = None, curve: str | Path | None = None, font: str | Path | None = None,
        progress: Progress = False, tell: Tell = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The scores on a file of the model's task: accuracy, macro F1, MCC and the confusion matrix, or ROUGE-L.

        `text` and `label` name the columns of the file. Of a model that was not adapted, the accuracy on a file of minimal
        pairs (`good`, `bad`, `paradigm`) or of last words (`context`, `answer`, `after`). Of a language model, the scores on a text: loss, perplexity, bits
        per byte; the other options say how it is read. `curve`: a .png or .json file for the loss by how far back it may
        look; `font`: a font file for that picture. `progress`: as for `unmask.pretrain`, for a long text."""
        require(
            font is None or (curve is not None and Path(curve).suffix == ".png"),
            "--font is for a picture: give --curve FILE.png too, or leave --font out",
        )
        if curve is not None:
            evaluate.check_file(Path(curve))
        columns = Columns.of(text, label)
        records = evaluate.score_file(self, file, context=context, stride=stride, memory=memory, whole=whole, lines=lines,
                                      encoding=encoding, columns=columns, curve=curve is not None)  # fmt: skip
        scores = follow(records, progress, partial(screen.reading, title="scoring", over="tokens"))
        if self.recipe.task is not None:
            tell_notice(infer.task_of_model(self).described(Path(file), columns), tell)
        if curve is not None:
            title = f"{self.folder.name} on {Path(file).name}"
            lacking = evaluate.write_curve(scores["curve"], Path(curve), title, Path(font) if font else None)
            tell_notice(fonts.notice(lacking) if lacking else None, tell)
            scores = scores | {"curve": scores["curve"]["points"]}
        return _scores(scores, tell)

    def evaluate_tasks(self, folder: str | Path, *, tell: Tell = None) -> dict[str, dict[str, Any]]:
        """The scores of a model with several tasks on a folder of tasks, by their names. `main`: the score that stands for all
        scores of a task, with its name."""
        return evaluate_folder(self, Path(folder), tell)

    def score_sentences(self, texts: str | Sequence[str], *, tell: Tell = None) -> np.ndarray:
        """How acceptable the model finds each text, in nats: its likelihood, its pseudo-likelihood, or how original its tokens
        look, as `evaluate` says for minimal pairs. Only scores of similar texts can be compared."""
        return _told(evaluate.score_sentences(self, [texts] if isinstance(texts, str) else texts), tell)

    def context_curve(
        self, file: str | Path, *, lengths: Sequence[int] | None = None, whole: bool = False, tell: Tell = None
    ) -> dict[str, Any]:
        """The loss of the same tokens of a text when the model may look back 1, 2, 4 ... tokens."""
        return _scores(evaluate.context_curve(self, file, lengths=lengths, whole=whole), tell)

    def zero_shot(
        self, file: str | Path, *, prompt: str | Path, normalise: Literal["token", "byte", "none"] = "token",
        unconditional: bool = False, cut_left: bool = False, progress: Progress = False, tell: Tell = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The scores on a file of questions, put in the words of a template (its text, or the file that holds it)."""
        scoring = evaluate.Scoring(normalise=normalise, unconditional=unconditional, cut_left=cut_left)
        records = evaluate.ask(self, read_questions(file, Template.read(prompt)), scoring)
        return _scores(follow(records, progress, partial(screen.reading, title="asking", over="tokens")), tell)

    def export(
        self, out: str | Path, *, generator: bool = False, peft: bool = False, sentence_transformers: bool = False,
        overwrite: bool = False,
    ) -> convert.Exported:  # fmt: skip
        """Write the model, or its generator, in Hugging Face format; returns what was written and what left out. What LoRA
        added is merged into the weights; with `peft`, only it and the head are written, for the library peft.

        `sentence_transformers`: a model that was adapted to embed, so that `SentenceTransformer(out)` opens it."""
        require(
            generator + peft + sentence_transformers <= 1,
            "--generator, --peft and --sentence-transformers write different things: give one of them",
        )
        if peft:
            return convert.export_peft(self, out, overwrite=overwrite)
        if sentence_transformers:
            return convert.export_sentence_transformers(self, out, overwrite=overwrite)
        return convert.export_hf(self, out, generator=generator, overwrite=overwrite)


def _only_files(folder: str | Path, **given: Any) -> None:
    """Refuse options that are for one task."""
    wrong = [name for name, value in given.items() if value]
    require(
        not wrong,
        "{folder} is a folder of tasks, and {wrong} works only with the file of one task: leave it out, or give a file",
        folder=folder,
        wrong=" and ".join(f"--{name}" for name in wrong).replace("_", "-"),
    )


def check_vectors(out: str | Path, *, overwrite: bool) -> None:
    """Refuse a file that vectors cannot be written to, before any work is done."""
    check_name(Path(out))
    require(
        overwrite or not Path(out).exists(),
        ("{out} exists already: choose another --out, or pass --overwrite"),
        out=out,
    )


def _told(found: infer.Noted[R], tell: Tell) -> R:
    """A result whose notes the caller was told."""
    tell_notes(found.notes, tell, depth=2)
    return found.value


def _scores(record: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Scores, apart from their notes."""
    tell_notes(record["notes"], tell, depth=2)
    return {name: value for name, value in record.items() if name != "notes"}
