"""Texts in passes: as many tokens as a pass may have, and no result depends on the texts that are read with it."""

import numpy as np
import pytest

from tests.adapt.made import base_of, loud, probabilities
from unmask import infer
from unmask.adapt import inherit
from unmask.data.examples import Laid, Text
from unmask.infer import Greedy
from unmask.infer.model import Model
from unmask.infer.passes import batches, laid_out, together
from unmask.tasks import Classify
from unmask.tasks.choose import Choose, Question

TEXTS = ["the doctor", "a river froze near london", "every window", "the old engine repaired the data " * 4, "rain"] * 5


@pytest.fixture
def small_passes(monkeypatch):
    monkeypatch.setattr("unmask.infer.passes.PASS", 100)
    monkeypatch.setattr("unmask.infer.passes.CPU_PASS", 100 * 16 / 768)  # the width of the models here is 16


def classifier(tokenizers, folder):
    base = base_of("bert", tokenizers["wordpiece"], folder)
    recipe = Classify(labels=("no", "yes"), dropout=0.0).recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 3)
    inherit(system, base, ["label"])
    loud(system.predict["label"])
    return Model(system.eval(), recipe, base.tokenizer, folder)


def test_every_text_is_read_once_in_passes_of_like_length_within_the_budget(tokenizers, tmp_path, small_passes):
    model = base_of("bert", tokenizers["wordpiece"], tmp_path)
    rows, _ = laid_out(model, Laid([Text(text) for text in TEXTS]))
    found = list(batches(model, rows))
    assert sorted(np.concatenate([chosen for chosen, _ in found]).tolist()) == list(range(len(TEXTS)))
    assert all(batch.real.sum() <= 100 and batch.real.sum(1).max() * len(chosen) <= 100 for chosen, batch in found)
    assert len(found[0][0]) > len(found[-1][0])  # more short texts than long ones


def test_the_rows_of_a_text_count_and_a_text_beyond_the_budget_is_read_alone():
    assert [some.tolist() for some in together([9_000, 3, 9_000, 20_000], rows=1)] == [[1], [0], [2], [3]]
    assert [some.tolist() for some in together([4_000, 4_000, 4_000], rows=2)] == [[0, 1], [2]]
    assert [len(some) for some in together([5] * 7, most=3)] == [3, 3, 1]


def test_an_embedding_does_not_depend_on_its_neighbours(tokenizers, tmp_path, small_passes):
    model = base_of("bert", tokenizers["wordpiece"], tmp_path)
    together_, alone = infer.embed(model, TEXTS).value, [infer.embed(model, [text]).value[0] for text in TEXTS]
    np.testing.assert_allclose(together_, alone, atol=1e-5)
    assert np.abs(together_[0] - together_[1]).max() > 1e-2


def test_a_label_does_not_depend_on_its_neighbours(tokenizers, tmp_path, monkeypatch):
    model = classifier(tokenizers, tmp_path)
    whole = probabilities(model, TEXTS)
    monkeypatch.setattr("unmask.infer.passes.CPU_PASS", 60 * 16 / 768)
    np.testing.assert_allclose(probabilities(model, TEXTS), whole, atol=1e-5)
    np.testing.assert_allclose([probabilities(model, [text])[0] for text in TEXTS], whole, atol=1e-5)
    assert np.ptp(whole[:, 0]) > 1e-3


def test_choices_do_not_depend_on_questions_with_more_choices(tokenizers, tmp_path, small_passes):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path)
    recipe = Choose(dropout=0.0).recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 3)
    loud(system.predict["choice"])
    model = Model(system.eval(), recipe, base.tokenizer, tmp_path)
    questions = [Question("the doctor", tuple(TEXTS[:count])) for count in (2, 5, 3)]
    for question, found in zip(questions, infer.answer(model, questions).answers, strict=True):
        (alone,) = infer.answer(model, [question]).answers
        assert found.probabilities == pytest.approx(alone.probabilities, abs=1e-5)


def test_texts_are_written_and_gone_on_with_as_they_are_alone(tokenizers, tmp_path, small_passes):
    unilm = base_of("unilm", tokenizers["wordpiece"], tmp_path)
    found = infer.generate(unilm, TEXTS[:5], tokens=6, sampling=Greedy()).value
    assert found == [infer.generate(unilm, [text], tokens=6, sampling=Greedy()).value[0] for text in TEXTS[:5]]
    assert len({one.ids for one in found}) > 1
    for text, one in zip(TEXTS, found, strict=False):
        assert "".join(infer.stream(unilm, text, tokens=6, sampling=Greedy()).value) == one.text
    gpt2 = base_of("gpt2", tokenizers["byte-bpe"], tmp_path)
    several = infer.generate(gpt2, TEXTS[:5], tokens=6, sampling=Greedy(), cut_left=True).value
    for text, one in zip(TEXTS, several, strict=False):
        assert one == infer.generate(gpt2, [text], tokens=6, sampling=Greedy(), cut_left=True).value[0]


def test_two_calls_share_no_notes(tokenizers, tmp_path):
    model = classifier(tokenizers, tmp_path)
    cut = {"texts longer than 48 tokens, cut": 1}
    long = "the river opened the case near London " * 20
    assert infer.embed(model, [long]).notes == infer.embed(model, [long]).notes == cut
    assert infer.answer(model, [long, "rain"]).notes == cut
    assert not infer.answer(model, ["rain"]).notes
