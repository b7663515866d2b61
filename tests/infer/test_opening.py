"""A text begins as the documents of training did: with the special tokens of the layout before it."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.convert.parts import model_of, recipe_of, tokenizer
from unmask import tasks
from unmask.errors import UserError
from unmask.evaluate.prompts import Scoring, _asked, _beginning
from unmask.infer import Sampling
from unmask.infer.generate import _encoded
from unmask.infer.model import open_run, save_run
from unmask.infer.next_token import NextToken
from unmask.tasks.prompt import PromptQuestion


@pytest.fixture
def gpt(tokenizers, tmp_path):
    return model_of(recipe_of("gpt"), tokenizers["word-bpe"], tmp_path / "gpt")


def test_that_a_prompt_of_gpt_begins_with_its_start_and_an_empty_one_after_the_end_of_another(gpt):
    role, encode = gpt.tokenizer.role, gpt.tokenizer.encode
    assert _encoded(NextToken(gpt), ["the doctor", ""], 8, False)[0] == [
        [role("start"), *encode("the doctor")],
        [role("sep"), role("start")],
    ]


def test_that_a_question_of_gpt_begins_so_too(gpt):
    role, encode = gpt.tokenizer.role, gpt.tokenizer.encode
    asked = _asked(
        gpt, PromptQuestion("the doctor examined ", ("the report", "no evidence"), 0), 1, Scoring(), Counter()
    )
    assert asked.before == [role("start"), *encode("the doctor examined")]
    assert _beginning(gpt) == [role("sep"), role("start")]


def test_that_gpt2_has_nothing_before_its_text(tmp_path):
    model = model_of(recipe_of("gpt2"), tokenizer("gpt2"), tmp_path)
    assert model.opening == []
    assert _encoded(NextToken(model), [""], 8, False)[0] == [[model.tokenizer.role("sep")]]


def test_that_answers_of_the_same_tokens_are_refused(gpt):
    with pytest.raises(UserError, match="two answers have the same tokens"):
        _asked(gpt, PromptQuestion("the doctor", ("the report", "The  report"), 0), 1, Scoring(), Counter())


@pytest.mark.parametrize("value", [float("inf"), 1e39, 1e-40])
def test_that_a_temperature_no_number_bears_is_refused(value):
    with pytest.raises(UserError, match="temperature must be between"):
        Sampling(temperature=value)


def test_that_an_unknown_device_is_told(gpt, tmp_path):
    save_run(gpt, tmp_path / "run")
    with pytest.raises(UserError, match="device must be cpu, cuda or cuda:NUMBER, got 'tpu'"):
        open_run(tmp_path / "run", device="tpu")


def test_that_only_what_can_be_adapted_to_is_a_task():
    assert tasks.names() == [
        "choose", "classify", "embed", "multi", "number", "rank", "relation", "span", "tag", "write",
    ]  # fmt: skip
