"""The temperature of every kind of task whose answers have probabilities, against a scan of temperatures."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import unmask
from tests.adapt.made import base_of
from tests.convert.parts import SENTENCES
from unmask import text
from unmask.adapt import new_model
from unmask.api.model import Model
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.infer.answer import TaskReader
from unmask.infer.model import save_run
from unmask.tasks import Choose, Classify, Embed, Multi, Number, Relation, Span, Tag
from unmask.tasks._compared import Compared
from unmask.tasks._labelled import Example
from unmask.tasks._questions import Asked
from unmask.tasks._sentences import Sentence
from unmask.tasks.choose import Question
from unmask.tasks.multi import LabelledText
from unmask.tasks.relation import Related

LINES = [f"{one} {two}" for one in SENTENCES for two in ("the cat", "a dog ran", "rain")][:18]
NAMES = ("a", "b", "c")
SCAN = np.geomspace(0.05, 20, 60)


def other(names, name):
    return names[(names.index(name) + 1) % len(names)]


def of_labels(made):
    """Examples with the label that the model gives, and every third one with another."""

    def examples(answers):
        if answers is None:
            return [made(line, NAMES[i % 3]) for i, line in enumerate(LINES)]
        given = [one.label for one in answers]
        return [made(line, other(NAMES, given[i]) if i % 3 == 0 else given[i]) for i, line in enumerate(LINES)]

    return examples


def questions(answers):
    texts = [("yes", "no", "the cat")[: 2 + i % 2] for i in range(len(LINES))]
    right = [0] * len(LINES) if answers is None else [texts[i].index(one.label) for i, one in enumerate(answers)]
    turned = [(r + 1) % len(t) if i % 3 == 0 else r for i, (r, t) in enumerate(zip(right, texts, strict=True))]
    return [Question(line, t, r) for line, t, r in zip(LINES, texts, turned, strict=True)]


def several(answers):
    given = [NAMES[: i % 4] for i in range(len(LINES))] if answers is None else [one.labels for one in answers]
    turned = [tuple({*NAMES} - {*some}) if i % 3 == 0 else some for i, some in enumerate(given)]
    return [LabelledText(Text(line), None, labels=some) for line, some in zip(LINES, turned, strict=True)]


def tagged(answers):
    words = [tuple(line.split()) for line in LINES]
    given = (
        [tuple(NAMES[i % 3] for i in range(len(w))) for w in words] if answers is None else [a.tags for a in answers]
    )
    turned = [tuple(other(NAMES, t) if i % 3 == 0 else t for i, t in enumerate(tags)) for tags in given]
    return [Sentence(w, t) for w, t in zip(words, turned, strict=True)]


def asked(answers):
    places = [(0, 3)] * len(LINES) if answers is None else [one.best[i % 3][1] for i, one in enumerate(answers)]
    found = [Asked("who?", line, (line[slice(*p)],), p) for line, p in zip(LINES, places, strict=True)]
    return [*found, Asked("who?", LINES[0], ("nowhere",), None)]  # never among the spans


KINDS = {
    "classify": (Classify(), of_labels(lambda line, name: Example(Text(line), name))),
    "relation": (Relation(), of_labels(lambda line, name: Related(line, (0, 3), (4, 6), name))),
    "embed": (Embed(loss="softmax"), of_labels(lambda line, name: Compared((line, "a dog"), name))),
    "choose": (Choose(), questions),
    "multi": (Multi(), several),
    "tag": (Tag(labels=NAMES), tagged),
    "crf": (Tag(crf=True, labels=NAMES), tagged),
    "span": (Span(no_answer=False), asked),
}


def adapted(kind, folder):
    """A model with random weights, and examples that agree with most of its answers."""
    task, make = KINDS[kind]
    base = base_of("bert", text.train(text.WordPiece(vocab=58), SENTENCES), folder / "base")
    model = new_model(base, task.learn(make(None)).recipe(base), folder / "run", 0, fresh=False)
    with torch.no_grad():
        for name, parameter in model.system.named_parameters():
            if name.startswith("predict.") and ".out." in name:
                parameter.mul_(30.0)
    model.system.eval()
    answers = model.recipe.task.answer(TaskReader(model), make(None)).answers
    return model, make(answers[: len(LINES)])


def loss_at(model, examples, temperature):
    """The mean negative log-likelihood of what is right, by a model that answers with this temperature."""
    task = replace(model.recipe.task, temperature=float(temperature))
    found = task.probability_table(examples, task.answer(TaskReader(model), examples).answers)
    known = found.truth >= 0
    return -np.log(found.shares[known, found.truth[known]].clip(1e-12)).mean()


@pytest.mark.parametrize("kind", KINDS)
def test_the_temperature_of_every_task_has_the_lowest_loss_of_a_scan_and_keeps_the_answers(kind, tmp_path, monkeypatch):
    model, examples = adapted(kind, tmp_path)
    save_run(model, tmp_path / "run")
    task = type(model.recipe.task)
    monkeypatch.setattr(task, "read", lambda self, path, columns, *, labelled=True: (examples, {}))
    before = model.recipe.task.answer(TaskReader(model), examples).answers
    found = Model.of(model).calibrate(tmp_path / "examples.jsonl")
    losses = [loss_at(model, examples, one) for one in SCAN]
    assert 0 < int(np.argmin(losses)) < len(SCAN) - 1  # neither end
    assert loss_at(model, examples, found["temperature"]) <= min(losses) + 1e-5
    opened = unmask.load(tmp_path / "run", device="cpu")
    assert opened.recipe.task.temperature == found["temperature"] != 1
    after = opened.predict(examples)
    for name in ("label", "labels", "tags", "text"):
        assert [getattr(one, name, None) for one in before] == [getattr(one, name, None) for one in after]
    assert [one.columns(1) for one in before] != [one.columns(1) for one in after]


def test_a_temperature_needs_probabilities(tmp_path):
    base = base_of("bert", text.train(text.WordPiece(vocab=58), SENTENCES), tmp_path / "base")
    some = [Example(Text("a"), "1.5"), Example(Text("b"), "2.5")]
    model = new_model(base, Number().learn(some).recipe(base), tmp_path / "run", 0, fresh=False)
    with pytest.raises(UserError, match="its answers have no probabilities: calibrate a model that gives classes"):
        Model.of(model).calibrate(tmp_path / "examples.jsonl")
    with pytest.raises(UserError, match="temperature has no effect with loss=cosine, only with softmax"):
        Embed(loss="cosine", temperature=2.0).learn([Compared(("a", "b"), "0.5"), Compared(("a", "c"), "1.5")])
