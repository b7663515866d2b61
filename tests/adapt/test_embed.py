"""A model that makes one vector per text: trained by each loss, saved, scored, and read from files of every kind."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from tests.adapt.made import base_of
from tests.contracts.every import case
from unmask import adapt as adapting
from unmask import recipes
from unmask.adapt import adapt
from unmask.adapt.adapters import Adapters
from unmask.adapt.head import Head
from unmask.adapt.siatl import Siatl
from unmask.errors import UserError
from unmask.evaluate import evaluate_examples
from unmask.infer import Model, TaskReader, answer, embed, open_run
from unmask.infer.model import save_run
from unmask.metrics import pearson, spearman
from unmask.tasks import Embed
from unmask.tasks._compared import Compared
from unmask.tasks._vector_scores import retrieval

TEXTS = ["the doctor slept", "a river froze", "rain fell on the city", "she read a book", "the old man sings"]
PAIRS = list(zip(TEXTS, [*TEXTS[1:], TEXTS[0]], strict=True))
EXAMPLES = {
    "softmax": [Compared(pair, "yes" if number % 2 else "no") for number, pair in enumerate(PAIRS)],
    "cosine": [Compared(pair, f"{number}.5") for number, pair in enumerate(PAIRS)],
    "negatives": [Compared((*pair, TEXTS[number - 2])) for number, pair in enumerate(PAIRS)],
    "dropout": [Compared((text, text)) for text in TEXTS],
    "neighbour": [Compared(pair) for pair in PAIRS],
}


@pytest.fixture
def base(tokenizers, tmp_path):
    return base_of("bert", tokenizers["wordpiece"], tmp_path / "base")


def trained(base, some, out, **settings):
    for _ in adapt(base, some, out, task=Embed(**{"epochs": 1, "examples": 4} | settings)):
        pass
    return open_run(out, device="cpu")


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_is_trained_by_each_loss_and_makes_the_same_vectors_when_saved(name, tmp_path, monkeypatch):
    recipe, tokenizer = case(name).recipe, case(name).tokenizer
    graph = case(name).data / "graph"
    base = Model(recipe.system.build(recipe, tokenizer.vocabulary, 0), recipe, tokenizer, tmp_path / "base",
                 graph=graph if graph.is_dir() else None)  # fmt: skip
    made = []
    build = adapting.new_model
    monkeypatch.setattr(adapting, "new_model", lambda *given: made.append(build(*given)) or made[-1])
    for (loss, examples), pool in zip(EXAMPLES.items(), ("mean", "max", "summary", "weighted", "mean"), strict=True):
        saved = trained(base, examples, tmp_path / loss, loss=loss, dropout=0.1, pool=pool)
        found = embed(saved, TEXTS).value
        assert np.array_equal(found, embed(made[-1], TEXTS).value)
        assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
        assert len(np.unique(found.round(6), axis=0)) == len(TEXTS)


def test_the_loss_is_chosen_from_the_columns(base, tmp_path):
    files = {
        "softmax": [{"text_a": "the doctor", "text_b": "rain", "label": 1}, {"text_a": "a", "text_b": "b", "label": 0}],
        "cosine": [
            {"text_a": "the doctor", "text_b": "rain", "label": 1},
            {"text_a": "a", "text_b": "b", "label": 0.5},
        ],
        "negatives": [{"anchor": "the doctor", "positive": "rain"}, {"anchor": "a", "positive": "b", "negative": "c"}],
    }
    for loss, rows in files.items():
        (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        examples, _ = Embed().read(tmp_path / "t.jsonl", None)
        task = Embed().learn(examples)
        assert task.loss == loss
        assert (task.labels, task.low, task.high) == (
            (("0", "1"), None, None) if loss == "softmax" else ((), 0.5, 1.0) if loss == "cosine" else ((), None, None)
        )
    pairs, _ = Embed(loss="negatives").read(tmp_path / "t.jsonl", None)
    assert [example.texts for example in pairs] == [("the doctor", "rain"), ("a", "b", "c")]


def test_numbers_become_cosines_between_0_and_1():
    task = Embed().learn([Compared(("a", "b"), "0.0"), Compared(("c", "d"), "5.0"), Compared(("e", "f"), "2.5")])
    laid = task.lay_out([Compared(("a", "b"), "2.5"), Compared(("a", "b"), "5.0")])
    assert laid.answers["answers"].tolist() == [[0.5], [1.0]]


def test_numbers_reach_the_loss_as_they_are(base, tmp_path):
    """A label of 0.25 must not become 0 on its way through the rows."""
    model = trained(base, EXAMPLES["cosine"], tmp_path / "run")
    some = EXAMPLES["cosine"]
    (found,) = TaskReader(model).losses(model.recipe.task.lay_out(some)).values()
    cosines = np.array([one.cosine for one in answer(model, some).answers])
    assert found == pytest.approx(np.mean((cosines - np.arange(5) / 4) ** 2), abs=1e-6)


def test_plain_text_gives_each_line_twice_or_each_sentence_and_the_next(tmp_path):
    (tmp_path / "t.txt").write_text("One comes. Two comes!\nThree\n\nFour. Five.\n")
    twice, _ = Embed(loss="dropout").read(tmp_path / "t.txt", None)
    assert [example.texts for example in twice] == [
        (line, line) for line in ("One comes. Two comes!", "Three", "Four. Five.")
    ]
    next_ones, _ = Embed(loss="neighbour").read(tmp_path / "t.txt", None)
    assert [example.texts for example in next_ones] == [
        ("One comes.", "Two comes!"),
        ("Two comes!", "Three"),
        ("Four.", "Five."),
    ]


def test_the_note_on_text_without_documents_names_no_option_that_adapting_does_not_have(tmp_path):
    (tmp_path / "t.txt").write_text("One comes.\n" * 200)
    (note,) = Embed(loss="neighbour").read(tmp_path / "t.txt", None)[1]
    assert "put a blank line between documents" in note
    assert "--lines" not in note


def test_spearman_equals_scipys_with_ties():
    a, b = np.array([1, 2, 2, 3, 5, 5, 0.5]), np.array([3.0, 1, 4, 4, 4, 9, 0])
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert pearson(a, b) == pytest.approx(stats.pearsonr(a, b).statistic)
    assert spearman(a, np.ones(7)) == 0.0


def test_recall_and_mrr_are_those_of_an_explicit_loop():
    random = np.random.default_rng(0)
    texts = [(f"q{i}", f"p{i}", f"n{i}") for i in range(9)]
    vectors = [random.normal(size=(3, 4)) for _ in texts]
    ranks = []
    for i, own in enumerate(vectors):
        candidates = [rows[k] for rows in vectors for k in (1, 2)]
        scores = [own[0] @ c / np.linalg.norm(c) for c in candidates]
        ranks.append(1 + sum(score > scores[2 * i] for score in scores))
    found = retrieval(texts, vectors)
    assert found["recall_at_1"] == pytest.approx(np.mean([rank == 1 for rank in ranks]))
    assert found["mrr"] == pytest.approx(np.mean([1 / rank for rank in ranks]))


def test_a_second_right_text_is_not_a_wrong_one():
    texts, same = [("q", "p"), ("q", "r"), ("p", "q")], np.array([[1.0, 0.0], [1.0, 0.0]])
    assert retrieval(texts, [same, same, same])["mrr"] == pytest.approx((1 + 1 + 1 / 2) / 3)


def test_equal_vectors_for_all_texts_do_not_look_like_a_good_search():
    texts = [(f"q{i}", f"p{i}") for i in range(4)]
    assert retrieval(texts, [np.ones((2, 3))] * 4) == {"recall_at_1": 0.0, "mrr": 0.25}


def test_a_model_of_classes_is_scored_by_cosines_on_pairs_with_numbers(base, tmp_path):
    task = Embed(epochs=1, examples=4)
    (*_, last) = adapt(base, EXAMPLES["softmax"], tmp_path / "run", task=task, dev=EXAMPLES["cosine"])
    model = open_run(tmp_path / "run", device="cpu")
    a, b = (embed(model, list(texts)).value for texts in zip(*PAIRS, strict=True))
    expected = spearman((a * b).sum(1), np.arange(5) + 0.5)
    assert evaluate_examples(model, EXAMPLES["cosine"])["spearman"] == pytest.approx(expected)
    assert last["kept_score"] == pytest.approx(expected)
    assert "accuracy" in evaluate_examples(model, EXAMPLES["softmax"])


def test_training_on_a_few_pairs_makes_each_find_its_own(base, tmp_path):
    answers = ["a book", "the engine", "in the night", "of the house", "a patient"]
    some = [Compared(pair) for pair in zip(TEXTS, answers, strict=True)]
    for _ in adapt(base, some, tmp_path / "run", task=Embed(epochs=40, examples=5, rate=3e-3)):
        pass
    model = open_run(tmp_path / "run", device="cpu")
    assert evaluate_examples(model, some)["recall_at_1"] == 1.0


@pytest.mark.parametrize(
    "settings,examples,expected",
    [
        ({"loss": "dropout"}, "dropout", "has dropout 0: set dropout=0.1"),
        ({"loss": "cosine"}, "negatives", "needs a label for each pair"),
        ({"loss": "cosine"}, "softmax", "needs a number for each pair, got 'no'"),
        ({"loss": "softmax", "scale": 3.0}, "softmax", "scale has no effect with loss=softmax"),
        ({"low": 0.0}, "negatives", "low has no effect with loss=negatives"),
        ({"loss": "neighbour", "examples": 1}, "neighbour", "set examples=2 or more"),
        ({"dims": (400,)}, "negatives", "over the width of the network, 16"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(base, tmp_path, settings, examples, expected):
    with pytest.raises(UserError, match=expected):
        trained(base, EXAMPLES[examples], tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("way", [Head(), Siatl(language=0)])
def test_a_way_that_would_train_nothing_is_refused_and_the_way_that_it_names_works(base, tmp_path, way):
    save_run(base, base.folder)
    task = Embed(epochs=3)
    with pytest.raises(UserError, match="has no weights of its own: choose another way, such as --tune adapters"):
        list(adapt(base, EXAMPLES["cosine"], tmp_path / "run", task=task, tune=way))
    assert not (tmp_path / "run").exists()
    assert list(adapt(base, EXAMPLES["cosine"], tmp_path / "run", task=task, tune=Adapters()))[-1]["done"]


@pytest.mark.parametrize("values", [{"loss": "dropout"}, {"loss": "negatives", "dropout": 0.1}])
def test_dropout_is_refused_with_a_network_that_computes_without_it(base, tmp_path, values):
    task = Embed(pool="weighted", **values)
    with pytest.raises(UserError, match="with --tune head the network computes without dropout"):
        list(adapt(base, EXAMPLES[task.loss], tmp_path / "run", task=task, tune=Head()))


def test_texts_alone_need_a_loss_that_reads_them(tmp_path):
    (tmp_path / "t.txt").write_text("One.\n")
    with pytest.raises(UserError, match="set loss=dropout .* or loss=neighbour"):
        Embed().read(tmp_path / "t.txt", None)
    with pytest.raises(UserError, match="no text with two sentences"):
        Embed(loss="neighbour").read(tmp_path / "t.txt", None)


@pytest.mark.parametrize(
    "row,expected",
    [
        ({"text_a": "a"}, 'needs "text_a" and "text_b"'),
        ({"a": "a", "b": "b"}, 'needs "text_a" and "text_b"'),
        ({"anchor": "a", "positive": ""}, "a text is empty"),
        ({"anchor": "a", "positive": "b", "negative": ["c", 3]}, "not a string: 3"),
        ({"text_a": "a", "text_b": "b", "label": [1]}, "must be a word or a number"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path, row, expected):
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(UserError, match=expected) as error:
        Embed().read(tmp_path / "t.jsonl", None)
    assert "t.jsonl, line 1" in str(error.value)


def test_the_first_dimensions_are_cut_and_have_length_1(base, tmp_path):
    model = trained(base, EXAMPLES["negatives"], tmp_path / "run", dims=(4,))
    whole, short = embed(model, TEXTS).value, embed(model, TEXTS, dims=4)
    assert np.allclose(short.value, whole[:, :4] / np.linalg.norm(whole[:, :4], axis=1, keepdims=True), atol=1e-6)
    assert not short.notes
    assert embed(model, TEXTS, dims=5).notes
    with pytest.raises(UserError, match="between 1 and the width of the model, 16, got 17"):
        embed(model, TEXTS, dims=17)
    with pytest.raises(UserError, match="unmask adapt --task embed"):
        embed(base, TEXTS, dims=4)


def test_a_model_in_bfloat16_makes_nearly_the_same_vectors_and_answers(base, tmp_path):
    trained(base, EXAMPLES["softmax"], tmp_path / "run", pool="weighted")
    whole, half = (open_run(tmp_path / "run", device="cpu", half=half) for half in (False, True))
    assert (embed(whole, TEXTS).value * embed(half, TEXTS).value).sum(1).min() > 0.99
    for a, b in zip(answer(whole, PAIRS).answers, answer(half, PAIRS).answers, strict=True):
        assert a.probabilities["yes"] == pytest.approx(b.probabilities["yes"], abs=0.05)


def test_a_model_that_embeds_can_be_adapted_again_to_pairs_with_numbers(base, tmp_path):
    first = trained(base, EXAMPLES["neighbour"], tmp_path / "first")
    second = trained(first, EXAMPLES["cosine"], tmp_path / "second", rate=1e-9)
    assert second.recipe.task.loss == "cosine"
    assert np.allclose(embed(second, TEXTS).value, embed(first, TEXTS).value, atol=1e-4)
