"""Drawing: the chances after temperature, top-k and top-p by the formula, and draws that follow them."""

import pytest
import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from unmask.infer.sampling import Sampling, chances, pick

SCORES = torch.tensor([[2.0, 1.0, 0.5, 0.0, -1.0, 3.0, 0.4, -0.3], [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]])
WAYS = [
    Sampling(), Sampling(0.5), Sampling(2.0), Sampling(top_k=3), Sampling(top_k=100), Sampling(top_p=0.7),
    Sampling(top_p=1.0), Sampling(top_p=0.01), Sampling(1.5, 5, 0.6), Sampling(0.3, 2, 0.9),
]  # fmt: skip


@pytest.mark.parametrize("how", WAYS)
def test_that_the_chances_are_those_of_transformers(how):
    expected = TemperatureLogitsWarper(how.temperature)(None, SCORES) if how.temperature != 1 else SCORES
    if how.top_k is not None:
        expected = TopKLogitsWarper(how.top_k)(None, expected)
    if how.top_p is not None and how.top_p < 1:
        expected = TopPLogitsWarper(how.top_p)(None, expected)
    torch.testing.assert_close(chances(SCORES, how), expected.softmax(-1))


@pytest.mark.parametrize("how", WAYS)
def test_that_draws_follow_the_chances_and_no_other_token_is_drawn(how):
    draws = 20_000
    random = torch.rand(draws, generator=torch.Generator().manual_seed(0))
    for scores in SCORES:
        found = pick(scores.expand(draws, -1), how, random)
        wanted = chances(scores[None], how)[0]
        shares = torch.bincount(found, minlength=8) / draws
        assert not shares[wanted == 0].any()
        assert ((shares - wanted).abs() <= 5 * (wanted * (1 - wanted) / draws).sqrt() + 1e-9).all()


def test_that_the_largest_chance_there_is_draws_a_token_that_may_be_drawn():
    scores = torch.randn(64, 50_000, generator=torch.Generator().manual_seed(0))
    found = pick(scores, Sampling(top_k=5), torch.full((64,), 1 - 2.0**-24))
    best = scores.topk(5).indices
    assert (best == found[:, None]).any(1).all()
