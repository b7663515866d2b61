"""Both neighbours of a token: each half predicts its own side; sampled scores against the formula."""

import math

import torch

from tests.small import random_batch, vocabulary
from unmask.batch import Hidden
from unmask.hide import Next, Previous, apply_rules
from unmask.init_weights import InitWeights
from unmask.predict import Neighbours
from unmask.predict.neighbours import log_uniform, log_uniform_share

WIDTH, SIZE = 8, 200


def made(samples=None):
    torch.manual_seed(0)
    batch = apply_rules((Next(), Previous()), random_batch(rows=2, length=20, examples=2), vocabulary(), 0)
    head = Neighbours(samples=samples).build(WIDTH, torch.empty(SIZE, WIDTH // 2, device="meta"), InitWeights())
    head.bias.data.normal_()
    return head, batch, Hidden((torch.randn(2, 20, WIDTH),))


def test_each_half_predicts_the_neighbour_at_its_side():
    head, batch, hidden = made()
    total, count = 0.0, 0
    for row in range(2):
        for place in range(20):
            for step, half in ((1, slice(4)), (-1, slice(4, 8))):
                other = place + step
                if not 0 <= other < 20 or batch.example[row, place] < 0:
                    continue
                if batch.example[row, place] == batch.example[row, other]:
                    scores = head.weight @ hidden.last[row, place, half] + head.bias
                    total -= float(scores.log_softmax(0)[batch.ids[row, other]])
                    count += 1
    loss = head(hidden, batch)
    assert loss.count == head.count(batch) == count
    assert torch.allclose(loss.total, torch.tensor(total))


def test_sampled_scores_are_corrected_by_how_often_a_token_is_drawn():
    head, batch, hidden = made(samples=30)
    torch.manual_seed(3)
    found = head(hidden, batch)
    torch.manual_seed(3)
    total = 0.0
    for name, half in (("tokens", slice(4)), ("previous", slice(4, 8))):
        drawn = log_uniform(30, SIZE, torch.device("cpu")).tolist()
        targets = batch.targets[name]
        for at, right, weight in zip(targets.at, targets.ids.tolist(), targets.weight, strict=True):
            x = hidden.last.flatten(0, 1)[at, half]

            def score(token, x=x):
                chance = math.log((token + 2) / (token + 1)) / math.log(SIZE + 1)
                return float(head.weight[token] @ x + head.bias[token]) - math.log(30 * chance)

            others = [score(token) for token in drawn if token != right]
            total -= float(weight) * (score(right) - math.log(sum(math.exp(s) for s in [score(right), *others])))
    assert torch.allclose(found.total, torch.tensor(total), rtol=1e-4)
    assert torch.equal(
        head.eval()(hidden, batch).total, made()[0].eval()(hidden, batch).total
    )  # exact when it is measured


def test_tokens_are_drawn_as_often_as_the_formula_says():
    torch.manual_seed(0)
    drawn = log_uniform(200_000, 50, torch.device("cpu"))
    share = log_uniform_share(torch.arange(50), 50)
    assert abs(float(share.sum()) - 1) < 1e-5
    assert torch.allclose(drawn.bincount(minlength=50) / 200_000, share, atol=4e-3)
