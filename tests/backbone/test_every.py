"""Positions before every layer: a table for each, read by the place in the example."""

from dataclasses import replace

import torch

from tests.small import random_batch
from unmask.backbone import Learned, Transformer
from unmask.see import LeftToRight

SHAPE = Transformer(layers=3, width=16, heads=2, feedforward=32, length=40, positions=Learned(every=True), dropout=0.0)


def test_a_table_of_its_own_is_added_before_every_layer_after_the_first():
    torch.manual_seed(0)
    model = SHAPE.build(200, "left").eval()
    batch = LeftToRight().apply(random_batch(rows=2, length=40, examples=3))
    fed: list[torch.Tensor] = []
    for block in model.blocks:
        block.register_forward_pre_hook(lambda _, given: fed.append(given[0]))
    with torch.no_grad():
        layers = model(batch)[0].layers
    assert torch.equal(fed[0], layers[0])  # the embeddings hold the first
    for number in (1, 2):
        table = model.places[number - 1].weight
        for row in range(2):
            for place in range(40):
                expected = layers[number][row, place] + table[batch.position[row, place]]
                assert torch.allclose(fed[number][row, place], expected)
    tables = [p for name, p in model.named_parameters() if p.shape == (40, 16)]
    assert len(tables) == 3
    assert all(float(table.detach().std()) > 0 for table in tables)


def test_without_it_there_are_no_further_tables():
    plain = replace(SHAPE, positions=Learned()).build(200, "left")
    assert not any(name.startswith("places") for name, _ in plain.named_parameters())
