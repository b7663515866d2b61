"""The adaptive softmax against torch's own, and adaptive embeddings by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.small import random_batch
from unmask import recipes
from unmask.backbone.adaptive_embedding import AdaptiveEmbedding
from unmask.batch import Hidden
from unmask.errors import UserError
from unmask.hide import Next
from unmask.init_weights import InitWeights
from unmask.predict import Adaptive
from unmask.settings import override
from unmask.system import cost

WIDTH, VOCABULARY, CUTOFFS = 8, 40, (10, 25)


def embedding() -> AdaptiveEmbedding:
    torch.manual_seed(0)
    made = AdaptiveEmbedding(VOCABULARY, WIDTH, CUTOFFS, 2, deviation=0.01)
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made


def test_the_loss_and_all_scores_are_those_of_torch():
    table = embedding()
    table.projections[0].data = torch.eye(WIDTH)  # torch's head has no projection
    head = Adaptive().build(WIDTH, table.weight, InitWeights("normal", 0.5))
    oracle = nn.AdaptiveLogSoftmaxWithLoss(WIDTH, VOCABULARY, list(CUTOFFS), div_value=2.0, head_bias=True)
    with torch.no_grad():
        head.cluster_bias.normal_()
        head.bias[0].normal_()
        oracle.head.weight.copy_(torch.cat((table.tables[0], head.cluster)))
        oracle.head.bias.copy_(torch.cat((head.bias[0], head.cluster_bias)))
        for tail, rows, projection in zip(oracle.tail, table.tables[1:], table.projections[1:], strict=True):
            tail[0].weight.copy_(projection.T)
            tail[1].weight.copy_(rows)
    batch = Next().apply(random_batch(rows=3, length=20, examples=2, size=VOCABULARY), None, 0)
    vectors = torch.randn(3, 20, WIDTH)
    used = batch.targets["tokens"].weight > 0
    expected = oracle(vectors.flatten(0, 1)[batch.targets["tokens"].at][used], batch.targets["tokens"].ids[used])
    loss = head(Hidden((vectors,)), batch)
    assert float(loss.count) == int(used.sum()) == float(head.count(batch))
    assert torch.allclose(loss.total / loss.count, expected.loss, atol=1e-5)
    scores = head.decode(Hidden((vectors,)), batch)
    assert torch.allclose(scores.flatten(0, 1), oracle.log_prob(vectors.flatten(0, 1)), atol=1e-5)


def test_an_embedding_is_the_row_of_its_cluster_brought_to_the_full_width():
    table = embedding()
    ids = torch.tensor([[0, 9, 10], [24, 25, 39]])
    found = table(ids)
    for row in range(2):
        for place in range(3):
            token = int(ids[row, place])
            cluster = sum(token >= edge for edge in CUTOFFS)
            vector = table.tables[cluster][token - (0, *CUTOFFS)[cluster]]
            assert torch.allclose(found[row, place], table.projections[cluster] @ vector, atol=1e-6)
    assert [t.shape[1] for t in table.tables] == [8, 4, 2]


def test_it_needs_adaptive_embeddings_and_cutoffs_that_rise():
    recipe = recipes.get("transformer-xl", size="tiny")
    with pytest.raises(UserError, match="Adaptive needs adaptive embeddings.*TransformerXL.cutoffs=") as error:
        cost(recipe.replace(predict={"tokens": Adaptive()}), VOCABULARY)
    assert "because it computes scores with" in str(error.value)
    clusters = override(recipe, ["system.backbone.cutoffs=(10, 20)"])
    with pytest.raises(UserError, match="predict.tokens=Tokens needs one table of token embeddings"):
        cost(clusters, VOCABULARY)
    for wrong in ((0, 5), (20, 10), (10, 40)):
        with pytest.raises(UserError, match="cutoffs must be increasing"):
            AdaptiveEmbedding(VOCABULARY, WIDTH, wrong, 2, deviation=0.01)


def test_a_cluster_may_have_an_output_projection_of_its_own():
    table = embedding()
    shared, own = (
        Adaptive().build(WIDTH, table.weight, InitWeights("normal", 0.5)),
        Adaptive(own=(1,)).build(WIDTH, table.weight, InitWeights("normal", 0.5)),
    )
    assert [a is b for a, b in zip(own.projections, table.projections, strict=True)] == [True, False, True]
    with torch.no_grad():
        for mine, other in zip((own.cluster, own.cluster_bias), (shared.cluster, shared.cluster_bias), strict=True):
            mine.copy_(other)
    vectors = Hidden((torch.randn(2, 3, WIDTH),))
    moved = (own.decode(vectors, None) - shared.decode(vectors, None)).abs().amax((0, 1)) > 1e-4
    assert moved.tolist() == [CUTOFFS[0] <= token < CUTOFFS[1] for token in range(VOCABULARY)]
    with pytest.raises(UserError, match=r"own must contain only clusters from 0 to 2, got \(3,\)"):
        Adaptive(own=(3,)).build(WIDTH, table.weight, InitWeights("normal", 0.5))
