"""Adapted models of every kind that transformers has: exported, opened there with the same scores, and imported again."""

import itertools

import pytest
import torch
import transformers as hf

from tests.convert.in_transformers import EXPORTED, opened
from tests.convert.parts import (
    PARITY,
    TEXTS,
    folder_of,
    look,
    model_of,
    recipe_of,
    score,
    shaken,
    tokenizer,
    tokenizer_for,
)  # fmt: skip
from unmask import recipes
from unmask.convert import architecture_of, export_hf, import_hf
from unmask.data.examples import Text
from unmask.errors import UserError
from unmask.infer import answer
from unmask.infer.answer import TaskReader
from unmask.infer.model import open_run
from unmask.settings import override
from unmask.tasks import Choose, Multi, Number, Relation, Span, Tag
from unmask.tasks._questions import Asked
from unmask.tasks._sentences import Sentence
from unmask.tasks.choose import Question
from unmask.tasks.classify import Classify, Example
from unmask.tasks.multi import LabelledText

KINDS = {
    "tag": (Tag(), [Sentence(("the", "cat"), ("O", "B-X")), Sentence(("a", "dog"), ("I-Y", "O"))], hf.AutoModelForTokenClassification),
    "span": (Span(), [Asked("who?", "the cat sat", ("the cat",), (0, 7))], hf.AutoModelForQuestionAnswering),
    "number": (Number(), [Example(Text("a"), "3.5"), Example(Text("b"), "9")], hf.AutoModelForSequenceClassification),
    "multi": (Multi(), [LabelledText(Text("a"), None, labels=("x", "y")), LabelledText(Text("b"), None, labels=("z",))], hf.AutoModelForSequenceClassification),
}  # fmt: skip
CHOICES = [
    name
    for name, variant in EXPORTED
    if variant == "paper" and ("choice",) in architecture_of(recipes.get(name, size="tiny")).family.architectures
]
QUESTIONS = [
    Question("A small boat crossed the river. Who sat?", ("the cat", "the old houses every morning", "rain"), 1),
    Question("the dog ran", ("away", "over the mat, and the sun was so hot"), 0),
]
RECIPES = ["bert", "roberta", "albert", "electra", "xlnet", "gpt2", "ernie", "spanbert", "deberta", "modernbert"]


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


@pytest.mark.parametrize("kind, name", [*itertools.product(KINDS, RECIPES), ("span", "bart")])
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


@pytest.mark.parametrize("name", RECIPES)
def test_a_calibrated_model_has_the_same_probabilities_in_transformers(name, tmp_path):
    base = model_of(recipe_of(name), tokenizer_for(recipe_of(name)), tmp_path)
    task = Classify(labels=("a", "b"), texts=1, temperature=2.5)
    model = model_of(task.recipe(base), base.tokenizer, tmp_path)
    export_hf(model, tmp_path / "hf")
    network = opened(hf.AutoModelForSequenceClassification, tmp_path / "hf")
    for text, expected in zip(TEXTS, answer(model, TEXTS).answers, strict=True):
        shares = theirs(network, "classify", look(model, [text])[0]).softmax(-1)
        assert shares[0].tolist() == pytest.approx(list(expected.probabilities.values()), abs=1e-4)


@pytest.mark.parametrize("kind", ["tag", "span", "multi"])
def test_the_temperature_of_every_head_is_exported(kind, tmp_path):
    model = adapted("bert", kind, tmp_path / "run", "temperature=2.5")
    export_hf(model, tmp_path / "hf")
    network = opened(KINDS[kind][2], tmp_path / "hf")
    (head,) = model.recipe.predict
    batch, hidden = look(model, TEXTS[:1])
    mine = score(model, head, batch, hidden) / 2.5
    torch.testing.assert_close(mine, theirs(network, kind, batch)[:, : mine.shape[1]], **PARITY)


def test_the_temperature_of_choices_is_exported_and_that_of_a_head_without_a_place_is_left_out(tmp_path):
    recipe = recipe_of("bert")
    base = model_of(recipe, tokenizer_for(recipe), tmp_path / "base")
    weights = []
    for temperature in (1.0, 2.5):
        model = model_of(Choose(temperature=temperature).recipe(base), base.tokenizer, tmp_path / "run")
        export_hf(model, tmp_path / "hf", overwrite=True)
        network = hf.AutoModelForMultipleChoice.from_pretrained(tmp_path / "hf")
        weights.append(network.classifier.weight / model.system.predict["choice"].out.weight)
    torch.testing.assert_close(*(one / one.mean() for one in weights))
    torch.testing.assert_close(weights[1].mean(), torch.tensor(0.4))
    related = model_of(Relation(labels=("a", "b"), temperature=2.5).recipe(base), base.tokenizer, tmp_path / "related")
    assert export_hf(related, tmp_path / "without").left_out == ("relation",)


def test_what_transformers_cannot_compute_is_refused(tmp_path):
    with pytest.raises(UserError, match="gpt2 predicts a number without a bias.*--set mean=0.0 --set deviation=1.0"):
        export_hf(adapted("gpt2", "number", tmp_path / "run"), tmp_path / "hf")
    with pytest.raises(UserError, match="bert has no CRF: adapt with crf=false"):
        export_hf(adapted("bert", "tag", tmp_path / "run", "crf=true"), tmp_path / "hf")


@pytest.mark.parametrize("kind, head", [("tag", "tags"), ("span", "span")])
@pytest.mark.parametrize("name, norm, wanted", [("modernbert", "none", "1e-05"), ("bert", "1e-5", "none")])
def test_layers_before_tags_and_answers_that_a_network_does_not_have_are_refused(
    name, norm, wanted, kind, head, tmp_path
):
    model = adapted(name, kind, tmp_path / "run")
    recipe = override(model.recipe, [f"predict.{head}.norm={norm}"])
    with pytest.raises(UserError, match=f"before the output for each token .predict.{head}.norm={wanted}.*adapt again"):
        architecture_of(recipe)


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


def chooser(name, folder, *settings):
    base = model_of(recipe_of(name), tokenizer_for(recipe_of(name)), folder)
    return model_of(override(Choose(), settings).recipe(base), base.tokenizer, folder)


def their_choices(folder, question, network=None):
    """The scores that transformers gives to the choices, from raw text with what lies in the folder alone."""
    network = network or opened(hf.AutoModelForMultipleChoice, folder)
    texts = [question.context] * len(question.choices), list(question.choices)
    encoded = hf.AutoTokenizer.from_pretrained(folder)(*texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        return network(**{name: value[None] for name, value in encoded.items()}).logits[0]


def our_choices(model, question):
    return torch.from_numpy(TaskReader(model).scores("choice scores", Choose().lay_out([question]))[0][0])


@pytest.mark.parametrize("name", CHOICES)
def test_transformers_gives_the_same_score_to_every_choice_and_the_model_comes_back(name, tmp_path):
    model = chooser(name, tmp_path / "run")  # with the head that the recipe has by default
    done = export_hf(model, tmp_path / "hf")
    assert "choice" not in done.left_out
    assert done.architecture.endswith("ForMultipleChoice")
    report = import_hf(tmp_path / "hf", tmp_path / "back")
    assert (report.architecture, report.missing, len(report.left_over)) == (done.architecture, (), 1)
    assert "adds the same number to the score of every choice" in report.notes[0]
    back = open_run(tmp_path / "back", device="cpu")
    assert type(back.recipe.task) is Choose
    assert next(iter(back.recipe.predict.values())).dropout == model.recipe.predict["choice"].dropout
    for question in QUESTIONS:
        mine = our_choices(model, question)
        torch.testing.assert_close(mine, their_choices(tmp_path / "hf", question), **PARITY)
        torch.testing.assert_close(our_choices(back, question), mine, **PARITY)
    assert answer(back, QUESTIONS).answers[0].label == answer(model, QUESTIONS).answers[0].label


def test_a_context_that_is_too_long_is_cut_as_the_docs_say(tmp_path):
    model = chooser("bert", tmp_path / "run")
    export_hf(model, tmp_path / "hf")
    question = Question(" ".join([QUESTIONS[0].context] * 9), QUESTIONS[0].choices, 0)
    made = hf.AutoTokenizer.from_pretrained(tmp_path / "hf", truncation_side="left")
    texts = [question.context] * len(question.choices), list(question.choices)
    encoded = made(*texts, truncation="only_first", padding=True, return_tensors="pt")
    assert encoded["input_ids"].shape[1] == model.length
    network = opened(hf.AutoModelForMultipleChoice, tmp_path / "hf")
    with torch.no_grad():
        theirs = network(**{name: value[None] for name, value in encoded.items()}).logits[0]
    torch.testing.assert_close(our_choices(model, question), theirs, **PARITY)


CONFIGS = {
    "Bert": {"type_vocab_size": 2}, "Roberta": {"type_vocab_size": 1, "pad_token_id": 0, "max_position_embeddings": 65}, "Albert": {"embedding_size": 12},
    "Electra": {"embedding_size": 12}, "Ernie": {"use_task_id": False}, "ModernBert": {"pad_token_id": 0},
    "XLNet": {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24},
}  # fmt: skip


@pytest.mark.parametrize("title", CONFIGS)
def test_a_chooser_of_transformers_is_imported_with_the_scores_of_its_choices(title, tmp_path):
    shape = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 64,
    }
    tokens = tokenizer("unigram" if title == "XLNet" else "wordpiece")
    values = ({} if title == "XLNet" else shape) | {"vocab_size": tokens.vocabulary.size} | CONFIGS[title]
    network = shaken(getattr(hf, f"{title}ForMultipleChoice")(getattr(hf, f"{title}Config")(**values)))
    report = import_hf(folder_of(network, tokens, tmp_path / "hf"), tmp_path / "run")
    bias = next(name for name in network.state_dict() if name in ("classifier.bias", "logits_proj.bias"))
    assert (report.missing, report.left_over) == ((), (bias,))
    model = open_run(tmp_path / "run", device="cpu")
    segments = model.recipe.system.backbone.segments > 1
    for question in QUESTIONS:
        for number, reading in enumerate(question.readings):  # one by one: then no text is padded
            batch, _ = look(model, [reading])
            extra = {"token_type_ids": batch.segment[None]} if segments else {}
            with torch.no_grad():
                theirs = network(input_ids=batch.ids[None], attention_mask=batch.real.long()[None], **extra).logits[0]
            mine = our_choices(model, question)[number : number + 1]
            torch.testing.assert_close(mine + network.state_dict()[bias], theirs, **PARITY)


def test_a_choice_that_is_read_otherwise_is_refused_by_its_setting(tmp_path):
    with pytest.raises(UserError, match="bert reads a choice with a pooler, got pooler=False.*--set pooler=true"):
        export_hf(chooser("bert", tmp_path / "run", "pooler=false"), tmp_path / "hf")
    with pytest.raises(
        UserError, match="xlnet reads a choice with activation='tanh', got 'gelu'.*--set activation=tanh"
    ):
        export_hf(chooser("xlnet", tmp_path / "run", "activation=gelu"), tmp_path / "hf")
    done = export_hf(chooser("bert", tmp_path / "run", "pooler=true"), tmp_path / "hf")
    assert done.architecture == "BertForMultipleChoice"


@pytest.mark.parametrize("name", ["bert", "electra", "modernbert", "xlnet"])
def test_every_other_value_of_the_head_gives_the_same_scores_or_is_refused_by_name(name, tmp_path):
    recipe, tokens = chooser(name, tmp_path / "run").recipe, tokenizer_for(recipe_of(name))
    same, refused = [], {}
    for number, value in enumerate(OTHERS):
        try:
            changed = override(recipe, [f"predict.choice.{one}" for one in value.split()])
        except UserError:  # values that do not go together
            continue
        model, folder = model_of(changed, tokens, tmp_path / "run"), tmp_path / str(number)
        try:
            export_hf(model, folder)
        except UserError as error:
            refused[value] = str(error)
            continue
        same.append(value)
        torch.testing.assert_close(our_choices(model, QUESTIONS[0]), their_choices(folder, QUESTIONS[0]), **PARITY)
    assert "dropout=0.5" in same
    for value, said in refused.items():
        set_ = [one.split("=")[0] for one in value.split()] + ["activation"] * value.startswith("pooler=true")
        assert any(f"{field}=" in said for field in set_), (value, said)


OTHERS = [
    "dropout=0.5", "pool=mean", "pooler=false", "pooler=false activation=tanh", "pooler=true", "pooler=true activation=gelu", "activation=tanh",
    "activation=gelu", "pooler_bias=true", "pooler_bias=false", "pooler_norm=none", "pooler_norm=0.01",
    "pooler_norm=none pooler_bias=true",
]  # fmt: skip


def test_an_architecture_without_a_head_for_choices_leaves_it_out(tmp_path):
    done = export_hf(chooser("deberta", tmp_path / "run"), tmp_path / "hf")
    assert done.architecture == "DebertaModel"
    assert "choice" in done.left_out


def test_a_chooser_with_another_summary_is_refused(tmp_path):
    tokens = tokenizer("unigram")
    config = hf.XLNetConfig(
        vocab_size=tokens.vocabulary.size, d_model=16, n_layer=1, n_head=2, d_inner=24, summary_type="first"
    )
    folder = folder_of(hf.XLNetForMultipleChoice(config), tokens, tmp_path / "hf")
    with pytest.raises(UserError, match="summary_type='first', the backbone here can only do 'last'"):
        import_hf(folder, tmp_path / "run")
