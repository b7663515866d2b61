"""Penalties on vectors against explicit loops."""

import torch

from tests.small import random_batch
from unmask.batch import Hidden
from unmask.init_weights import InitWeights
from unmask.predict import FastVectors, LargeVectors


def test_penalties_are_the_mean_squares_of_vectors_and_of_their_changes():
    torch.manual_seed(0)
    batch = random_batch(rows=3, length=20, examples=2)
    hidden = Hidden((torch.randn(3, 20, 6),), decoded=torch.randn(3, 20, 6))
    sizes, changes = [], []
    for row in range(3):
        for place in range(20):
            if batch.example[row, place] < 0:
                continue
            sizes += hidden.decoded[row, place].square().tolist()
            if place and batch.example[row, place] == batch.example[row, place - 1]:
                changes += (hidden.last[row, place] - hidden.last[row, place - 1]).square().tolist()
    for part, expected in ((LargeVectors(), sizes), (FastVectors(), changes)):
        head = part.build(6, None, InitWeights())
        loss = head(hidden, batch)
        assert torch.allclose(loss.total / loss.count, torch.tensor(expected).mean())
        assert head.count(batch) == loss.count == len(expected) / 6
        assert part.penalty
