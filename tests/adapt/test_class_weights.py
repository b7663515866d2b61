"""The weights of labels in the loss, for every task whose answers have labels."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from tests.adapt.made import base_of
from tests.convert.parts import SENTENCES
from unmask import text
from unmask.adapt import new_model
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.infer.answer import TaskReader
from unmask.tasks import Classify, Embed, Multi, Rank, Relation, Tag
from unmask.tasks._compared import Compared
from unmask.tasks._labelled import Example
from unmask.tasks._sentences import Sentence
from unmask.tasks.multi import LabelledText
from unmask.tasks.rank import Candidate
from unmask.tasks.relation import Related

NAMES = ["a", "b", "b", "b", "c"]


def several(*labels):
    return LabelledText(Text("the cat"), None, labels=labels)


OF_CLASSES = {
    "classify": (Classify(), [Example(Text("the cat"), name) for name in NAMES]),
    "relation": (Relation(), [Related("the cat sat", (0, 3), (4, 7), name) for name in NAMES]),
    "embed": (Embed(loss="softmax"), [Compared(("the cat", "the dog"), name) for name in NAMES]),
    "tag": (Tag(), [Sentence(("the",), (name,)) for name in NAMES]),
}
OF_YES = {
    "multi": (Multi(labels=("x",)), [several("x"), several(), several(), several()]),
    "rank": (Rank(), [Candidate("the cat", "the dog", float(yes)) for yes in (1, 0, 0, 0)]),
}


def losses(task, examples, folder):
    """The loss of each example, from the same random network."""
    base = base_of("bert", text.train(text.WordPiece(vocab=58), SENTENCES), folder)
    model = new_model(base, task.learn(examples).recipe(base), folder, 0, fresh=False)
    return [sum(TaskReader(model).losses(model.recipe.task.lay_out([one])).values()) for one in examples]


@pytest.mark.parametrize("kind", OF_CLASSES)
def test_balanced_classes_have_the_weights_of_sklearn(kind):
    task, examples = OF_CLASSES[kind]
    learned = replace(task, balance=True).learn(examples)
    wanted = compute_class_weight("balanced", classes=np.array(["a", "b", "c"]), y=NAMES)
    assert learned.weights == pytest.approx(wanted.tolist())
    assert learned.learn(examples[:3]).weights == learned.weights  # a part of the examples learns with those of all


@pytest.mark.parametrize("kind", OF_YES)
def test_a_balanced_yes_counts_as_much_as_the_no(kind):
    task, examples = OF_YES[kind]
    assert replace(task, balance=True).learn(examples).weights == (3.0,)


@pytest.mark.parametrize("kind", [*OF_CLASSES, *OF_YES])
def test_a_weight_multiplies_the_loss_of_its_label(kind, tmp_path):
    task, examples = (OF_CLASSES | OF_YES)[kind]
    weights = (2.0, 3.0, 5.0) if kind in OF_CLASSES else (7.0,)
    of = [2.0, 3.0, 3.0, 3.0, 5.0] if kind in OF_CLASSES else [7.0, 1.0, 1.0, 1.0]
    plain, weighted = (losses(one, examples, tmp_path) for one in (task, replace(task, weights=weights)))
    assert weighted == pytest.approx([w * loss for w, loss in zip(of, plain, strict=True)], rel=1e-5)


@pytest.mark.parametrize("kind", [*OF_CLASSES, *OF_YES])
def test_balance_and_weights_together_are_refused(kind):
    task, examples = (OF_CLASSES | OF_YES)[kind]
    with pytest.raises(UserError, match="balance=true computes .* leave one of them out"):
        replace(task, balance=True, weights=(1.0, 2.0, 3.0)).learn(examples)


def test_weights_without_effect_or_of_another_number_are_refused(tmp_path):
    with pytest.raises(UserError, match="balance has no effect with loss=cosine, only with softmax"):
        Embed(balance=True).learn([Compared(("the cat", "the dog"), number) for number in ("0.5", "1.0")])
    with pytest.raises(UserError, match="a single tag has no weight: set crf=false"):
        losses(Tag(crf=True, balance=True), OF_CLASSES["tag"][1], tmp_path)
    with pytest.raises(UserError, match="no effect with lists=2.*set lists=none"):
        Rank(lists=2, balance=True)
    with pytest.raises(UserError, match=r"one number from 0 for each class \(3 in all\), got \(1.0, 2.0\)"):
        losses(Relation(weights=(1.0, 2.0)), OF_CLASSES["relation"][1], tmp_path)
