"""Contract 1: change a token, and no output that may not see it moves. Contract 7: packed equals alone."""

import torch

from unmask.see import visible


def test_no_position_is_moved_by_a_token_it_may_not_see(case):
    system = case.system().eval()
    batch, _ = system.prepare(case.loader().batch(4))
    sees = visible(batch)  # B query key
    with torch.no_grad():
        before = system.look(batch).last
        for place in range(0, batch.shape[1], 3):
            ids = batch.ids.clone()
            ids[:, place] = (ids[:, place] + 7) % case.tokenizer.vocabulary.size
            after = system.look(batch.replace(ids=ids)).last
            moved = (after - before).abs().amax(-1) > 0
            blind = ~sees[:, :, place]
            blind[:, place] = False
            assert not (moved & blind).any()
            seeing = sees[:, :, place] & batch.real
            assert moved[seeing].float().mean() > 0.9 or not batch.real[:, place].any()


def test_each_example_of_a_packed_row_gets_what_it_gets_alone(case):
    system = case.system().eval()
    batch = case.loader(length=128).batch(3)
    if int(batch.example.max()) == 0:
        from tests.small import random_batch

        batch = random_batch(rows=3, length=64, examples=3, size=case.tokenizer.vocabulary.size)
    assert int(batch.example.max()) > 0
    per_token = ("ids", "word", "sentence", "segment", "position")
    with torch.no_grad():
        together = system.look(batch).last
        for row in range(batch.shape[0]):
            for number in range(int(batch.example[row].max()) + 1):
                mine = batch.example[row] == number
                columns = {name: getattr(batch, name)[row : row + 1, mine] for name in per_token}
                alone = batch.replace(**columns, example=torch.zeros(1, int(mine.sum()), dtype=torch.long))
                assert torch.allclose(system.look(alone).last[0], together[row, mine], atol=1e-5)
