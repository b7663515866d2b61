"""Embeddings that start as vectors counted in the training text: each step by explicit loops, and the weights of a run."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import unmask
from tests.command import ONE_STAGE, mistake, pretrain
from tests.small import vocabulary
from unmask import recipes
from unmask.errors import UserError
from unmask.pretraining import Mixture
from unmask.pretraining import pretrain as train
from unmask.system import token_biases
from unmask.train import checkpoint
from unmask.vectors import FromCounts
from unmask.vectors.from_counts import log_frequencies, positive_pmi, reduced, word_vectors


def pieces(*documents):
    """A text in one piece."""
    ids = np.array([token for document in documents for token in document], np.int64)
    numbers = np.array([i for i, document in enumerate(documents) for _ in document], np.int64)
    return lambda tokens: iter([(ids, numbers)])


def random_text(words, tokens, seed=0):
    return np.random.default_rng(seed).integers(0, words, tokens).tolist()


def test_neighbours_are_counted_by_distance_and_never_across_documents():
    documents = [random_text(6, 40), random_text(6, 1, 1), random_text(6, 25, 2)]
    counts, often = FromCounts(window=3, contexts=4).counted(6, pieces(*documents))
    frequency = [sum(document.count(token) for document in documents) for token in range(6)]
    assert often.tolist() == frequency
    chosen = sorted(range(6), key=lambda token: -frequency[token])[:4]
    for token in range(6):
        for column, context in enumerate(chosen):
            expected = sum(
                4 - abs(i - j)
                for document in documents
                for i, a in enumerate(document)
                for j, b in enumerate(document)
                if i != j and abs(i - j) <= 3 and (a, b) == (token, context)
            )
            assert counts[token, column] == expected


def test_pmi_is_that_of_the_formula():
    counts = torch.tensor([[3, 0, 1], [0, 2, 5], [0, 0, 0]], dtype=torch.int32)
    often = [sum(counts[i][j].item() for i in range(3)) ** 0.75 for j in range(3)]
    for i in range(3):
        for j in range(3):
            cell, row = counts[i][j].item(), counts[i].sum().item()
            expected = max(0.0, math.log(cell / row / (often[j] / sum(often)))) if cell else 0.0
            assert positive_pmi(counts)[i][j].item() == pytest.approx(expected, abs=1e-5)


def test_the_decomposition_is_that_of_a_full_one():
    table = torch.rand(60, 40).matmul(torch.diag(torch.linspace(1, 0, 40) ** 4)).matmul(torch.rand(40, 40))
    left, sizes, _ = torch.linalg.svd(table, full_matrices=False)
    exact = left[:, :8] * sizes[:8].sqrt()
    found = reduced(table, 8)
    torch.testing.assert_close(found @ found.T, exact @ exact.T, rtol=1e-3, atol=1e-3)
    before = torch.random.get_rng_state()
    assert torch.equal(reduced(table, 8), found)  # the same every time
    assert torch.equal(torch.random.get_rng_state(), before)


def test_tokens_with_the_same_neighbours_get_like_vectors():
    """Tokens 0 and 1 stand after 2 and before 3; tokens 4 and 5 after 6 and before 7; tokens 8 to 19 anywhere."""
    dice, text = np.random.default_rng(0), []
    for _ in range(2_000):
        kind = 4 * dice.integers(2)
        text += [kind + 2, kind + dice.integers(2), kind + 3, *dice.integers(8, 20, 2)]
    counts, _ = FromCounts(window=2).counted(20, pieces(text))
    vectors = word_vectors(counts, 6)
    assert vectors.shape == (20, 6)
    torch.testing.assert_close(vectors.square().mean(1), torch.ones(20))
    alike = torch.nn.functional.cosine_similarity(vectors[:, None], vectors[None], dim=2)
    assert min(alike[0, 1], alike[4, 5]) > 0.9
    assert alike[:2, 4:6].max() < 0.5


def test_a_table_that_is_wider_than_the_vocabulary_is_filled_too():
    vectors = word_vectors(torch.randint(1, 9, (5, 4), dtype=torch.int32), 16)
    assert vectors.shape == (5, 16)
    assert torch.isfinite(vectors).all()


def test_rare_tokens_and_columns_for_positions_keep_what_they_have():
    text = random_text(7, 200) + [7, 7]  # token 7 occurs twice, token 8 never
    table = torch.randn(9, 12) * 0.05
    table[:, :4] = 0.0
    before = table.clone()
    notice = FromCounts().fill(table, [], [None] * 9, pieces(text))
    assert "7 of 9 tokens start as word vectors, counted in 202 tokens" in notice
    assert not table[:, :4].any()
    assert torch.equal(table[7:], before[7:])
    size = before[:, 4:].square().mean().sqrt()
    torch.testing.assert_close(table[:7, 4:].square().mean(1).sqrt(), size.expand(7))
    assert not torch.equal(table[:7], before[:7])


def test_tokens_without_neighbours_keep_what_they_have():
    """Nothing is known about them, so all would get the same vector."""
    alone = [[7], [8]] * 30
    table = torch.randn(9, 12)
    before = table.clone()
    notice = FromCounts().fill(table, [], [None] * 9, pieces(random_text(7, 200), *alone))
    assert "7 of 9 tokens start as word vectors" in notice
    assert torch.equal(table[7:], before[7:])


@pytest.mark.parametrize("documents", [[[1, 2, 3]], [[1] * 20], [[1], [2], [3]] * 20])
def test_a_text_in_which_no_tokens_can_be_compared_leaves_all_random_numbers(documents):
    table = torch.randn(9, 4)
    before = table.clone()
    notice = FromCounts().fill(table, [], [None] * 9, pieces(*documents))
    assert "fewer than two tokens occur 5 times in the text and have neighbours: all embeddings start" in notice
    assert torch.equal(table, before)


def test_output_biases_start_as_how_often_tokens_occur():
    """A network whose vectors say nothing predicts each token as often as it occurs: by the formula, and by the loss of the text."""
    text = random_text(7, 300) + [7] * 50
    biases = [torch.zeros(9), torch.ones(9)]
    notice = FromCounts().fill(torch.randn(9, 4), biases, [None] * 9, pieces(text))
    assert "and output biases as their log frequencies" in notice
    often = np.bincount(text, minlength=9)
    for bias in biases:
        torch.testing.assert_close(
            bias.softmax(0).double(), torch.from_numpy((often + 0.5) / (often + 0.5).sum()), rtol=1e-5, atol=0
        )
        assert abs(bias.mean()) < 1e-6
    (plain,) = unwritten = [torch.zeros(9)]
    notice = FromCounts(biases=False).fill(torch.randn(9, 4), unwritten, [None] * 9, pieces(text))
    assert "output biases" not in notice
    assert not plain.any()
    loss = torch.nn.functional.cross_entropy(biases[0].expand(len(text), 9), torch.tensor(text))
    share = often[often > 0] / len(text)
    assert loss.item() == pytest.approx(-(share * np.log(share)).sum(), abs=0.01)


def test_sums_of_a_wide_window_are_not_too_large_for_the_table():
    tokens, window = 4_000, 1_000
    counts, _ = FromCounts(window=window).counted(2, pieces([0] * tokens))
    expected = sum(2 * (window + 1 - distance) * (tokens - distance) for distance in range(1, window + 1))
    assert counts[0, 0] == expected > 2**31


@pytest.mark.parametrize("name", ["window", "contexts", "tokens"])
def test_values_below_one_are_refused(name):
    with pytest.raises(UserError, match=f"start.{name} must be 1 or more, got 0"):
        FromCounts(**{name: 0})


def vectors_of(run, data):
    """The embeddings of a run, and what they would be if they were filled again from the same random numbers."""
    model, mixture = unmask.load(run), Mixture.open([data])
    table = model.system.backbone.embed.token.weight.detach()
    system = model.recipe.system.build(model.recipe, model.tokenizer.vocabulary, 0)
    again = system.backbone.embed.token.weight.detach().clone()
    first = again.clone()
    FromCounts().fill(again, [], [], mixture.sample)
    return table, again, first


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    home = tmp_path_factory.mktemp("data")
    (home / "a.txt").write_text("the cat sat on the mat and the dog sat near the door\n\n" * 200)
    unmask.train_tokenizer([home / "a.txt"], home / "tok.json", kind="wordpiece")
    unmask.prepare([home / "a.txt"], home / "data", tokenizer=home / "tok.json")
    return home / "data"


@pytest.mark.parametrize("dropout", ["auto", "0.1"])
def test_training_begins_with_the_counted_vectors(dropout, data, tmp_path):
    """With dropout=auto the networks are built twice, because the number of visits is not known before."""
    settings = ["start=FromCounts", "optimise.rate=1e-12", f"system.backbone.dropout={dropout}"]
    ran = pretrain("roberta", data, tmp_path / "run", *[part for one in settings for part in ("--set", one)], steps=1)
    assert "start as word vectors, counted in" in ran.err
    table, again, first = vectors_of(tmp_path / "run", data)
    torch.testing.assert_close(table, again, atol=1e-6, rtol=0)
    assert (table - first).abs().max() > 0.01
    often = sum(np.bincount(ids, minlength=len(table)) for ids, _ in Mixture.open([data]).sample(10**9))
    (bias,) = token_biases(unmask.load(tmp_path / "run").system)
    torch.testing.assert_close(bias.detach(), log_frequencies(often), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "name, biases",
    [("bert", 1), ("spanbert", 2), ("electra", 1), ("awd-lstm", 1), ("mass", 1), ("gpt2", 0), ("bart", 0)],
)
def test_the_biases_are_those_of_all_outputs_that_predict_tokens(name, biases):
    recipe = recipes.get(name, size="tiny")
    found = token_biases(recipe.system.build(recipe, vocabulary(50), 0))
    assert [tuple(one.shape) for one in found] == [(50,)] * biases
    assert recipe.start.biases is (name != "electra")  # its generator must not know the frequencies


def test_a_run_that_is_killed_before_its_first_checkpoint_starts_from_the_same_vectors(data, tmp_path, monkeypatch):
    recipe = recipes.get("roberta", size="tiny", settings=ONE_STAGE)
    assert recipe.start == FromCounts()
    options = {"budget": "2steps", "device": "cpu"}
    list(train(recipe, [data], tmp_path / "whole", **options))
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_state", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            list(train(recipe, [data], tmp_path / "cut", **options))
    assert checkpoint.newest(tmp_path / "cut") is None
    list(train(None, [], tmp_path / "cut", resume=True, device="cpu"))
    files = [(tmp_path / name / checkpoint.WEIGHTS).read_bytes() for name in ("whole", "cut")]
    assert files[0] == files[1]


def test_errors_in_the_data_are_found_before_the_text_is_counted(data, tmp_path):
    said = pretrain("roberta", f"{data}:0", tmp_path / "run", call=mistake)
    assert "the weight of a data set must be over 0, got [0.0]" in said
