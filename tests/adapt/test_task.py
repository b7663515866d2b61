"""A task is a part: it is saved with its run, read again, and all that adapts, scores and predicts knows only its protocol."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

import unmask
from tests.adapt.made import base_of
from tests.command import mistake, works
from unmask import recipe_file, recipes, tasks
from unmask.adapt import adapt
from unmask.adapt.data_notices import data_notices
from unmask.adapt.ways import task_with
from unmask.axes import Task
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.evaluate import evaluate_examples
from unmask.infer import answer, open_run
from unmask.infer.model import save_run
from unmask.run import from_json, to_json
from unmask.settings import override
from unmask.tasks import Choose, Classify, Span, Trained, Write
from unmask.tasks._compared import Compared
from unmask.tasks._questions import Asked
from unmask.tasks._sentences import Sentence
from unmask.tasks._training import Training
from unmask.tasks.choose import Question
from unmask.tasks.classify import Example
from unmask.tasks.multi import LabelledText
from unmask.tasks.rank import Candidate
from unmask.tasks.relation import Related
from unmask.tasks.write import Pair

EXAMPLES = {
    "classify": [Example(Text("the doctor"), "yes"), Example(Text("a river"), "no"), Example(Text("rain"), "no")],
    "choose": [Question("the doctor", ("slept", "froze"), 0), Question("a river", ("slept", "froze"), 1)],
    "embed": [Compared(("the doctor slept", "he slept")), Compared(("a river froze", "it froze"))],
    "multi": [
        LabelledText(Text("the doctor"), None, labels=("x", "y")),
        LabelledText(Text("a river"), None, labels=()),
    ],
    "number": [Example(Text("the doctor"), "1.5"), Example(Text("a river"), "-2"), Example(Text("rain"), "0.25")],
    "rank": [Candidate("who?", "the doctor", 1), Candidate("who?", "a river", 0), Candidate("what?", "a river", 2)],
    "relation": [Related("the doctor slept", (4, 10), (11, 16), "x"), Related("a river froze", (2, 7), (0, 1), "y")],
    "span": [Asked("who slept?", "the doctor slept", ("the doctor",), (0, 10)), Asked("what?", "a river", (), None)],
    "tag": [Sentence(("the", "doctor"), ("O", "B-X")), Sentence(("a", "river"), ("O", "O"))],
    "write": [Pair("the doctor slept", "he slept"), Pair("a river froze", "it froze")],
}


@pytest.fixture
def base(tokenizers, tmp_path):
    return base_of("bert", tokenizers["wordpiece"], tmp_path / "base")


@pytest.mark.parametrize("name", tasks.names())
def test_every_task_has_all_that_the_protocol_asks_for(name):
    asked = {member for member in vars(Task) if not member.startswith("_")}
    assert {"read", "recipe", "lay_out", "answer", "judge"} <= asked
    assert not asked - set(dir(tasks.get(name)))


@pytest.mark.parametrize("name", tasks.names())
def test_a_run_says_how_it_was_made(name, base, tmp_path):
    task = override(tasks.get(name), ["epochs=1", "examples=2"])
    for _ in adapt(base, EXAMPLES[name], tmp_path / "run", task=task, seed=7):
        pass
    model = open_run(tmp_path / "run", device="cpu")
    made = model.recipe.task
    assert made.trained == Trained(examples=len(EXAMPLES[name]), seed=7, fresh=False)
    assert (made.epochs, made.examples, made.rate, made.length) == (1.0, 2, pytest.approx(5e-5 * 768 / 16), 48)
    assert made.labels == {
        "classify": ("no", "yes"),
        "multi": ("x", "y"),
        "relation": ("x", "y"),
        "tag": ("O", "B-X"),
    }.get(name, ())
    assert None not in [getattr(made, field.name) for field in fields(Training)]
    assert from_json(to_json(model.recipe)) == model.recipe
    assert made.hyperparameters(recipes.get("gpt")).rate == made.rate  # nothing is left for the recipe to decide


@pytest.mark.parametrize("name", tasks.names())
def test_every_task_is_adapted_scored_and_answered_by_the_same_calls(name, base, tmp_path):
    save_run(base, tmp_path / "base")
    some = EXAMPLES[name]
    records = list(adapt(base, some, tmp_path / "run", task=tasks.get(name), dev=some))
    assert "validation_score" in records[-1]
    model = open_run(tmp_path / "run", device="cpu")
    assert evaluate_examples(model, some)["examples"] == len(some)
    found = answer(model, some).answers
    assert len(found) == len(some)
    assert all(set(one.columns(1)) and json.dumps(one.as_json(1)) for one in found)


def test_the_labels_may_be_given_and_their_order_is_kept(base, tmp_path):
    task = Classify(epochs=1, labels=("yes", "maybe", "no"))
    for _ in adapt(base, EXAMPLES["classify"], tmp_path / "run", task=task):
        pass
    assert open_run(tmp_path / "run", device="cpu").labels == ("yes", "maybe", "no")
    with pytest.raises(UserError, match="does not name all labels of the training examples: add 'no', or leave"):
        list(adapt(base, EXAMPLES["classify"], tmp_path / "other", task=Classify(labels=("yes", "maybe"))))


@pytest.mark.parametrize("task", [Choose(), Write()])
def test_an_example_without_its_right_answer_cannot_be_learned_from(task, base, tmp_path):
    lacking = Question("x", ("a", "b")) if isinstance(task, Choose) else Pair("x")
    known = EXAMPLES["choose" if isinstance(task, Choose) else "write"]
    with pytest.raises(UserError, match="example 3 of 3: the example has no (label|target)"):
        list(adapt(base, [*known, lacking], tmp_path / "run", task=task))
    assert not (tmp_path / "run").exists()


def test_a_model_that_was_not_adapted_says_so(base):
    with pytest.raises(UserError, match="was not adapted to a task; it predicts tokens: adapt it first"):
        answer(base, ["the doctor"])


def test_a_model_that_writes_answers_from_the_command_line_and_in_python(base, tmp_path):
    for _ in adapt(base, EXAMPLES["write"], tmp_path / "run", task=Write(epochs=1)):
        pass
    (tmp_path / "new.jsonl").write_text('{"source": "the doctor", "id": 5}\n')
    works("predict", tmp_path / "run", tmp_path / "new.jsonl", "--out", tmp_path / "out.jsonl")
    (row,) = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    (found,) = unmask.load(tmp_path / "run", device="cpu").predict("the doctor")
    assert row == {"source": "the doctor", "id": 5, "written": found.text}
    said = mistake("predict", tmp_path / "run", "the doctor", "--top", 2)
    assert "--top 2 asks for several answers, but the model writes one text for each source: leave --top out" in said


def test_a_new_kind_of_task_needs_nothing_but_its_part(base, tmp_path):
    file = recipe_file.load(Path(__file__).parent / "new_task.py")
    task = file.parts["Length"](epochs=20, examples=3, rate=3e-3)
    texts = [
        "rain",
        "the doctor examined the report",
        "a river",
        "every window near London",
        "no",
        "the old engine slept",
    ]
    records = list(adapt(base, texts, tmp_path / "run", task=task, dev=texts))
    assert records[-1]["epochs"][-1]["dev_right"] == 1.0
    assert records[-1]["notices"] == ["best 1.0"]
    model = open_run(tmp_path / "run", device="cpu", recipe=file)
    assert answer(model, texts).answers == [len(text) > 12 for text in texts]


def test_the_task_of_a_run_of_an_earlier_format_comes_from_its_head():
    def task(run):
        return unmask.load(f"tests/runs/{run}", device="cpu").recipe.task

    assert (task("format_1/bert-adapted").labels, task("format_1/bert-adapted").texts) == (("neg", "pos"), None)
    found = task("format_2/electra-learned-classify")
    assert found == Classify(length=16, pool="summary", pooler=False, labels=("0", "1", "2"), texts=1)
    assert task("format_2/bert-choose") == Choose(length=32, pooler=True, activation="tanh")
    assert task("format_2/unilm-write") == Write(length=16, hidden=0.7)
    assert task("format_2/unilm") is task("format_1/bert") is None


def test_a_setting_of_another_task_is_refused_with_the_tasks_that_have_it():
    with pytest.raises(UserError, match="--task classify has no setting 'strict': it is one of span; leave it out"):
        task_with(Classify(), ["strict=true"], None)


def test_settings_without_effect_are_refused(tokenizers, tmp_path):
    with pytest.raises(UserError, match="stride=0.3 has no effect on texts that are cut: set long=strides too"):
        Classify(stride=0.3)
    asked = [Asked("who?", "the cat sat", ("the cat",), (0, 7))]
    with pytest.raises(UserError, match="threshold=2 has no effect, because every training question has an answer"):
        Span(threshold=2).learn(asked)
    assert Span(threshold=2, no_answer=True).learn(asked).threshold == 2
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    with pytest.raises(UserError, match="patience=2 ends the training by the scores on a dev set, and there is none"):
        list(adapt(base, [Example(Text("a"), "x"), Example(Text("b"), "y")], tmp_path / "r", task=Classify(patience=2)))
    assert not (tmp_path / "r").exists()


def test_a_named_label_without_a_training_example_is_reported():
    some = [Example(Text(text), label) for text, label in zip("abcd", "xyxy", strict=True)]
    assert data_notices(Classify(labels=("x", "y", "z")), some, []) == [
        "labels without a training example, which the model never learns: 'z'"
    ]
    assert data_notices(Classify(), some, []) == []
