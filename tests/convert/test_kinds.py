"""Adapted models of every kind that transformers has: exported, opened there with the same scores, and imported again."""

import pytest
import torch
import transformers as hf

from tests.convert.in_transformers import opened
from tests.convert.parts import PARITY, TEXTS, look, model_of, recipe_of, score, tokenizer_for
from unmask.convert import export_hf, import_hf
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.infer import answer
from unmask.infer.model import open_run
from unmask.settings import override
from unmask.tasks import Multi, Number, Span, Tag
from unmask.tasks._questions import Asked
from unmask.tasks._sentences import Sentence
from unmask.tasks.classify import Example
from unmask.tasks.multi import LabelledText

KINDS = {
    "tag": (Tag(), [Sentence(("the", "cat"), ("O", "B-X")), Sentence(("a", "dog"), ("I-Y", "O"))], hf.AutoModelForTokenClassification),
    "span": (Span(), [Asked("who?", "the cat sat", ("the cat",), (0, 7))], hf.AutoModelForQuestionAnswering),
    "number": (Number(), [Example(Text("a"), "3.5"), Example(Text("b"), "9")], hf.AutoModelForSequenceClassification),
    "multi": (Multi(), [LabelledText(Text("a"), None, labels=("x", "y")), LabelledText(Text("b"), None, labels=("z",))], hf.AutoModelForSequenceClassification),
}  # fmt: skip
RECIPES = ["bert", "roberta", "albert", "electra", "xlnet", "gpt2", "ernie", "spanbert", "deberta"]


def adapted(name, kind, folder, *settings):
    """A model of a task with weights that are all different; its head is the one that the recipe has by default."""
    task, some, _ = KINDS[kind]
    base = model_of(recipe_of(name), tokenizer_for(recipe_of(name)), folder)
    return model_of(override(task, settings).learn(some).recipe(base), base.tokenizer, folder)


def theirs(network, kind, batch):
    # where texts are padded does not matter to the scores of real tokens
    extra = (
        {"token_type_ids": batch.segment}
        if network.config.model_type in ("bert", "albert", "electra", "ernie", "xlnet")
        else {}
    )
    with torch.no_grad():
        out = network(input_ids=batch.ids, attention_mask=batch.real.long(), **extra)
    return torch.stack((out.start_logits, out.end_logits), 2) if kind == "span" else out.logits


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("kind", KINDS)
def test_transformers_gives_the_same_scores_and_the_model_comes_back(name, kind, tmp_path):
    settings = ["mean=0.0", "deviation=1.0"] if (name, kind) == ("gpt2", "number") else []
    model = adapted(name, kind, tmp_path / "run", *settings)
    done = export_hf(model, tmp_path / "hf")
    assert model.recipe.predict.keys().isdisjoint(done.left_out)
    network = opened(KINDS[kind][2], tmp_path / "hf")
    assert type(network).__name__ == done.architecture
    (head,) = model.recipe.predict
    import_hf(tmp_path / "hf", tmp_path / "back")
    back = open_run(tmp_path / "back", device="cpu")
    for text in TEXTS:  # one by one, because labels of some networks are read from the last token
        batch, hidden = look(model, [text])
        mine = score(model, head, batch, hidden)
        if kind == "number":
            mine = mine * model.recipe.task.deviation + model.recipe.task.mean
        other = theirs(network, kind, batch)
        torch.testing.assert_close(mine, other[:, : mine.shape[1]], **PARITY)
        again = score(back, next(iter(back.recipe.predict)), *look(back, [text]))
        torch.testing.assert_close(mine, again, **PARITY)
    assert back.recipe.task.labels == model.recipe.task.labels
    assert type(back.recipe.task) is type(model.recipe.task)
    given = {"tag": "the cat sat", "span": ("who?", "the cat sat"), "number": "the cat", "multi": "the cat"}[kind]
    first, second = (answer(one, [given]).answers[0] for one in (model, back))
    assert type(first) is type(second)


def test_what_transformers_cannot_compute_is_refused(tmp_path):
    with pytest.raises(UserError, match="gpt2 predicts a number without a bias.*--set mean=0.0 --set deviation=1.0"):
        export_hf(adapted("gpt2", "number", tmp_path / "run"), tmp_path / "hf")
    with pytest.raises(UserError, match="bert has no CRF: adapt with crf=false"):
        export_hf(adapted("bert", "tag", tmp_path / "run", "crf=true"), tmp_path / "hf")


def test_config_json_says_what_kind_of_labels_these_are(tmp_path):
    export_hf(adapted("bert", "multi", tmp_path / "run"), tmp_path / "multi")
    export_hf(adapted("bert", "number", tmp_path / "run"), tmp_path / "number")
    export_hf(adapted("bert", "tag", tmp_path / "run"), tmp_path / "tag")
    multi, number, tag = (hf.AutoConfig.from_pretrained(tmp_path / name) for name in ("multi", "number", "tag"))
    assert (multi.problem_type, number.problem_type, number.num_labels) == (
        "multi_label_classification",
        "regression",
        1,
    )
    assert tag.id2label == {0: "O", 1: "B-X", 2: "I-Y"}
