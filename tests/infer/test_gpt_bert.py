"""GPT-BERT, trained for a few steps: it writes and is scored with its left-to-right track, and fills gaps with its other one."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from unmask import evaluate, recipes
from unmask.data.examples import Text, rows_of
from unmask.data.pack_examples import batch_of
from unmask.infer import Beams, Greedy, Model, fill, generate, open_run
from unmask.infer.batches import left_padded
from unmask.pretraining import pretrain

SMALL = [
    "schedule.*.length=32", "schedule.*.rows=4", "system.backbone.length=48", "system.backbone.width=32",
    "system.backbone.feedforward=64",
]  # fmt: skip
PROMPTS = ["The doctor", "a small company sold the report", "Our"]
TEXT = "The judge opened the case."


@pytest.fixture(scope="module")
def model(shards, tmp_path_factory) -> Model:
    out = tmp_path_factory.mktemp("gpt-bert") / "run"
    recipe = recipes.get("gpt-bert", size="tiny", settings=SMALL)
    for _ in pretrain(recipe, [shards["byte-bpe"]], out, budget="3steps", device="cpu", compiled=False):
        pass
    found = open_run(out, device="cpu")
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():  # a few steps teach one token; so that each text has its own next token
        for parameter in found.system.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=random) * 0.3)
    return found


@torch.no_grad()
def next_scores(model: Model, ids: list[int]) -> torch.Tensor:
    """The scores after a text that is read alone and whole, each token from those before it."""
    batch = left_padded([ids], 0)
    causal = batch.replace(rank=batch.position)
    return model.system.predict["tokens"].decode(model.system.backbone(causal)[0], causal)[0, -1]


def log_likelihood(model: Model, before: list[int], answer: list[int]) -> float:
    """Token by token, nothing after a token is there to be seen."""
    rows = [next_scores(model, before + answer[:i]).double().log_softmax(-1) for i in range(len(answer))]
    return sum(row[token].item() for row, token in zip(rows, answer, strict=True))


def test_its_tracks_differ_and_it_writes_with_the_one_that_reads_from_left_to_right(model):
    assert model.system.backbone.pattern == "ranked"
    assert (model.recipe.writing, model.recipe.writes) == ("left", {"left"})


@pytest.mark.parametrize("how", [Greedy(), Beams(beams=3)], ids=["greedy", "beams"])
def test_it_writes_the_same_with_and_without_a_cache(model, how):
    cached, whole = (generate(model, PROMPTS, tokens=12, sampling=how, cached=on).value for on in (True, False))
    assert cached == whole
    assert len({one.ids for one in cached}) > 1


def test_what_it_writes_is_the_likeliest_token_after_those_before_it(model):
    end = model.tokenizer.role("sep")
    never = [i for i in model.tokenizer.vocabulary.special if i != end]
    for prompt, found in zip(PROMPTS, generate(model, PROMPTS, tokens=8, sampling=Greedy()).value, strict=True):
        ids = [*model.opening, *model.tokenizer.encode(prompt)]
        for token in found.ids:
            assert int(next_scores(model, ids).index_fill(0, torch.tensor(never), -torch.inf).argmax()) == token
            ids.append(token)


def test_a_gap_is_filled_from_the_place_before_it_and_both_sides_are_seen(model):
    text = "The judge [MASK] the case near [MASK]."
    found = fill(model, text, top=3).value
    rows, _ = rows_of([Text(model.tokenizer.with_mask(text))], [0], model.tokenizer, model.recipe.layout, model.length)
    batch = batch_of(rows, np.arange(1))
    gaps = (batch.ids[0] == model.tokenizer.role("mask")).nonzero()[:, 0].tolist()
    with torch.no_grad():
        everything = batch.replace(rank=torch.zeros_like(batch.ids))
        scores = model.system.predict["tokens"].decode(model.system.backbone(everything)[0], everything)[0]
    scores[:, list(model.tokenizer.vocabulary.special)] = -torch.inf
    for guesses, gap in zip(found, gaps, strict=True):
        expected = scores[gap - 1].softmax(-1).topk(3)
        assert [guess.token for guess in guesses] == [model.tokenizer.readable(i) for i in expected.indices.tolist()]
        assert [guess.probability for guess in guesses] == pytest.approx(expected.values.tolist(), rel=1e-4)
        assert not torch.allclose(scores[gap].softmax(-1).topk(3).values, expected.values, rtol=1e-2)
    other = fill(model, text.replace("near", "after"), top=3).value
    assert other[0] != found[0]  # what comes after a gap counts


def test_its_loss_on_a_text_is_that_of_reading_from_left_to_right(model, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    assert evaluate.is_language_model(model)
    found = evaluate.evaluate_file(model, path)
    end = model.tokenizer.role("sep")
    answer = [*model.opening, *model.tokenizer.encode(TEXT), end]
    assert found["tokens"] == len(answer)
    assert found["loss"] * len(answer) == pytest.approx(-log_likelihood(model, [end], answer), rel=1e-4)


def test_it_is_asked_in_words_by_the_likelihood_of_each_answer(model, tmp_path):
    path, choices = tmp_path / "questions.jsonl", ["the case", "a long bridge", "no evidence"]
    path.write_text(json.dumps({"who": "judge", "choices": choices, "answer": 1}), encoding="utf-8")
    found = evaluate.evaluate_prompts(model, path, prompt="The {who} opened ")
    before = model.tokenizer.encode("The judge opened")
    likely = []
    for choice in choices:
        whole = model.tokenizer.encode("The judge opened " + choice)
        assert whole[: len(before)] == before
        answer = whole[len(before) :]
        likely.append(log_likelihood(model, [*model.opening, *before], answer) / len(answer))
    assert found["examples"] == 1
    assert found["accuracy"] == float(np.argmax(likely) == 1)
    assert found["predictions"][0]["scores"] == pytest.approx(likely, rel=1e-4)
