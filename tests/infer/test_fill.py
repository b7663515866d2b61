"""Fill: gaps in every spelling, and one pass of the network."""

import pytest

from tests.convert.parts import SENTENCES, model_of, recipe_of, tokenizer
from unmask import infer, text

MASKED = "The cat {} on the mat."


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return model_of(recipe_of("bert"), tokenizer(), tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize(
    "mask",
    ["[MASK]", "[mask]", "[Mask]", "<mask>", "<MASK>", "【MASK】", "【mask】", "［MASK］", "［ＭＡＳＫ］", "[ MASK ]"],
)
def test_a_gap_may_be_spelled_as_people_spell_it(model, mask):
    assert infer.fill(model, MASKED.format(mask)).value == infer.fill(model, MASKED.format("[MASK]")).value


def test_a_gap_in_chinese_text_may_have_chinese_brackets(tmp_path):
    characters = text.train(text.Characters(vocab=40), ["今天天气很好。明天天气也很好。"] * 3)
    model = model_of(recipe_of("bert"), characters, tmp_path)
    assert infer.fill(model, "今天【MASK】气很【mask】。").value == infer.fill(model, "今天[MASK]气很[MASK]。").value


def test_brackets_around_another_word_are_text(model):
    with pytest.raises(ValueError, match="write \\[MASK\\]"):
        infer.fill(model, "The [cat] <sat> on [masks].")


def test_the_network_reads_the_text_once(model, monkeypatch):
    looked = []
    look = type(model.system).look
    monkeypatch.setattr(type(model.system), "look", lambda system, batch: looked.append(1) or look(system, batch))
    infer.fill(model, MASKED.format("[MASK]"))
    assert len(looked) == 1


def test_a_text_that_is_too_long_is_cut_and_noted(model):
    assert infer.fill(model, "[MASK] " + " ".join(SENTENCES * 4)).notes
