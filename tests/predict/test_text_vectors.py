"""One vector per text: pooling by explicit loops, losses beside those of sentence-transformers with the same vectors."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.small import random_batch
from unmask.batch import Batch, Hidden
from unmask.init_weights import InitWeights
from unmask.predict import CosineLoss, InBatchLoss, PairClassLoss, TextVectors

WIDTH = 8


def module(spec: TextVectors) -> nn.Module:
    torch.manual_seed(0)
    return spec.build(WIDTH, torch.zeros(1), InitWeights(deviation=0.5))


def read(examples: int, texts: int, seed: int = 0) -> tuple[Batch, Hidden]:
    """Examples of several texts, and the vectors of their tokens."""
    batch = random_batch(examples * texts, 12, seed=seed)
    x = torch.randn(examples * texts, 12, WIDTH, generator=torch.Generator().manual_seed(seed))
    return batch.replace(label=torch.arange(examples) % 3, counted=torch.ones(examples)), Hidden((x,))


class Given(nn.Module):
    """Gives sentence-transformers the vectors that it is given."""

    device = "cpu"

    def forward(self, features: dict) -> dict:
        return {"sentence_embedding": features["vectors"]}


def features(vectors: torch.Tensor) -> list[dict]:
    return [{"vectors": vectors[:, number]} for number in range(vectors.shape[1])]


def mean_loss(head: nn.Module, hidden: Hidden, batch: Batch) -> torch.Tensor:
    found = head(hidden, batch)
    return found.total / found.count


@pytest.mark.parametrize("pool", ["summary", "mean", "max", "weighted"])
def test_each_way_to_pool_is_what_its_formula_says(pool):
    batch, hidden = read(3, 2)
    head = module(TextVectors(pool=pool))
    found = head.decode(hidden, batch)
    assert found.shape == (3, 2, WIDTH)
    for row in range(6):
        tokens = hidden.last[row][batch.real[row]]
        if pool == "summary":
            wanted = hidden.last.flatten(0, 1)[batch.summary[row]]
        elif pool == "mean":
            wanted = tokens.sum(0) / len(tokens)
        elif pool == "max":
            wanted = torch.stack([max(column) for column in tokens.T])
        else:
            powers = [torch.exp(head.weigh.weight[0] @ token + head.weigh.bias[0]) for token in tokens]
            wanted = sum(power * token for power, token in zip(powers, tokens, strict=True)) / sum(powers)
        assert torch.allclose(found.flatten(0, 1)[row], wanted, atol=1e-6)


def test_the_class_loss_equals_that_of_sentence_transformers():
    from sentence_transformers import losses as theirs

    batch, hidden = read(6, 2)
    head = module(TextVectors(loss=PairClassLoss(classes=3)))
    other = theirs.SoftmaxLoss(Given(), WIDTH, 3)
    other.classifier.load_state_dict(head.loss.out.state_dict())
    wanted = other(features(head.decode(hidden, batch)), batch.label)
    assert torch.allclose(mean_loss(head, hidden, batch), wanted, atol=1e-6)


def test_the_cosine_loss_equals_that_of_sentence_transformers():
    from sentence_transformers import losses as theirs

    batch, hidden = read(6, 2)
    numbers = torch.rand(6)
    batch = batch.replace(per_example={"answers": numbers[:, None]})
    head = module(TextVectors(loss=CosineLoss()))
    wanted = theirs.CosineSimilarityLoss(Given())(features(head.decode(hidden, batch)), numbers)
    assert torch.allclose(mean_loss(head, hidden, batch), wanted, atol=1e-6)


@pytest.mark.parametrize("texts", [2, 3, 4])
def test_the_loss_with_negatives_equals_that_of_sentence_transformers(texts):
    from sentence_transformers import losses as theirs

    batch, hidden = read(5, texts)
    head = module(TextVectors(loss=InBatchLoss(scale=15.0)))
    other = theirs.MultipleNegativesRankingLoss(Given(), scale=15.0)
    wanted = other(features(head.decode(hidden, batch)), None)
    assert torch.allclose(mean_loss(head, hidden, batch), wanted, atol=1e-5)


def test_first_dimensions_are_trained_as_vectors_of_their_own():
    batch, hidden = read(5, 2)
    batch = batch.replace(per_example={"answers": torch.rand(5, 1)})
    for loss in (InBatchLoss(), CosineLoss(), PairClassLoss(classes=3)):
        head = module(TextVectors(loss=loss, dims=(4, 2)))
        vectors = head.decode(hidden, batch)
        wanted = sum(head.loss(vectors[..., :dim], batch).mean() for dim in (8, 4, 2))
        assert torch.allclose(mean_loss(head, hidden, batch), wanted)


def test_the_class_of_a_short_vector_is_read_by_the_weights_of_its_dimensions():
    head = module(TextVectors(loss=PairClassLoss(classes=3)))
    vectors = torch.randn(4, 2, WIDTH)
    short = torch.cat((vectors[..., :3], torch.zeros(4, 2, WIDTH - 3)), -1)
    assert torch.allclose(head.loss.scores(vectors[..., :3]), head.loss.scores(short), atol=1e-6)


def test_the_same_text_is_not_a_negative_of_itself():
    """Two examples with the same second text: neither is a wrong answer to the other."""
    batch, hidden = read(3, 2)
    ids, x = batch.ids.clone(), hidden.last.clone()
    ids[3], x[3] = ids[1], x[1]
    batch, hidden = batch.replace(ids=ids), Hidden((x,))
    head = module(TextVectors(loss=InBatchLoss()))
    unit = nn.functional.normalize(head.decode(hidden, batch), dim=-1)
    scores = 20 * unit[:, 0] @ unit[:, 1].T
    wanted = [
        torch.logsumexp(scores[i, kept], 0) - scores[i, i] for i, kept in ((0, [0, 2]), (1, [1, 2]), (2, [0, 1, 2]))
    ]
    assert torch.allclose(mean_loss(head, hidden, batch), sum(wanted) / 3, atol=1e-6)


def test_the_first_text_of_an_example_is_not_its_negative():
    """As in a text whose sentences are compared with the next ones: the first of one pair is the second of another."""
    batch, hidden = read(3, 2)
    ids, x = batch.ids.clone(), hidden.last.clone()
    ids[5], x[5] = ids[0], x[0]
    batch, hidden = batch.replace(ids=ids), Hidden((x,))
    head = module(TextVectors(loss=InBatchLoss()))
    unit = nn.functional.normalize(head.decode(hidden, batch), dim=-1)
    scores = 20 * unit[:, 0] @ unit[:, 1].T
    wanted = [torch.logsumexp(scores[i, k], 0) - scores[i, i] for i, k in ((0, [0, 1]), (1, [0, 1, 2]), (2, [0, 1, 2]))]
    assert torch.allclose(mean_loss(head, hidden, batch), sum(wanted) / 3, atol=1e-6)


def test_an_example_with_fewer_negatives_adds_no_candidate():
    batch, hidden = read(4, 3)
    head = module(TextVectors(loss=InBatchLoss()))
    example = batch.example.clone()
    example[5] = -1  # the second example has no negative
    lacking = batch.replace(example=example)
    unit = nn.functional.normalize(head.decode(hidden, lacking), dim=-1)
    candidates = torch.cat((unit[:, 1], unit[[0, 2, 3], 2]))
    wanted = nn.functional.cross_entropy(20 * unit[:, 0] @ candidates.T, torch.arange(4))
    found = mean_loss(head, hidden, lacking)
    assert torch.isfinite(found)
    assert torch.allclose(found, wanted, atol=1e-5)
