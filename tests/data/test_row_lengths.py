"""Rows of random length: their distribution, the text they cover, and the same rows after a resume."""

import numpy as np
import pytest
import torch

from tests.data.made import loader_of
from tests.data.test_continuing import loader, reader, two_shards
from unmask.data import ContinuingRows
from unmask.data.row_lengths import SHORTEST, RowLengths
from unmask.errors import UserError
from unmask.train import AdamW, Moment

RANDOM = ContinuingRows(deviation=3.0, half=0.2)


def test_lengths_are_normal_around_the_usual_length_or_half_of_it():
    drawn = RowLengths(70, 5.0, 0.05).drawn(5_000_000, seed=0, visit=0)
    long = drawn[drawn > 52]
    assert abs(len(long) / len(drawn) - 0.95) < 0.003
    assert abs(long.mean() - 69.5) < 0.1  # whole numbers: what is drawn is rounded down
    assert abs(long.std() - 5) < 0.2
    assert abs(drawn[drawn <= 52].mean() - 34.5) < 0.3
    assert drawn.max() == 80
    assert drawn.sum() <= 5_000_000 < drawn.sum() + 80
    assert not np.array_equal(drawn, RowLengths(70, 5.0, 0.05).drawn(5_000_000, seed=0, visit=1)[: len(drawn)])
    assert RowLengths(8, 5.0, 0.5).drawn(10_000, 0, 0).min() == SHORTEST


def test_streams_are_read_without_gaps_and_the_rate_is_in_proportion_to_the_length():
    plain, drawn = loader(streams=4, length=32), loader(RANDOM, streams=4, length=32)
    text = torch.cat([plain.batch(4).ids for _ in range(6)], 1)
    batches = [drawn.batch(4) for _ in range(6)]
    read = torch.cat([batch.ids for batch in batches], 1)[:, : text.shape[1]]
    assert torch.equal(read, text[:, : read.shape[1]])
    assert len({batch.shape[1] for batch in batches}) > 2
    assert [batch.pace for batch in batches] == [batch.shape[1] / 32 for batch in batches]
    assert plain.batch(4).pace == 1.0
    optimise = AdamW(rate=0.1, warmup=0.0, curve="constant")
    optimiser = optimise.build(torch.nn.Linear(2, 2))
    optimise.set(optimiser, Moment(1, 0.0, 0.1, pace=0.5))
    assert [group["lr"] for group in optimiser.param_groups] == [0.05, 0.05]


def test_a_resumed_loader_draws_the_same_lengths_also_in_the_next_visit():
    whole = loader(RANDOM, streams=4)
    expected = [whole.batch(4) for _ in range(60)]
    assert max(int(batch.visit.max()) for batch in expected) >= 1
    for stop in (1, 17, 40):
        first = loader(RANDOM, streams=4)
        for _ in range(stop):
            first.batch(4)
        again = loader(RANDOM, streams=4, state=first.state())
        for batch in expected[stop : stop + 5]:
            found = again.batch(4)
            assert torch.equal(found.ids, batch.ids)
            assert torch.equal(found.per_row["begins"], batch.per_row["begins"])


def test_held_out_rows_have_the_usual_length_and_two_data_sets_are_refused():
    held = reader(RANDOM, shuffled=False)
    assert held.lengths is None
    with pytest.raises(UserError, match="need one data set and one track"):
        loader_of([reader(RANDOM), reader(RANDOM, data=two_shards())], [1.0, 1.0], 4)
