"""Contract 1: change a token, and no output that may not see it moves. Contract 7: packed equals alone."""

import torch

from unmask.see import Permuted, visible, visible_before


def test_no_position_is_moved_by_a_token_it_may_not_see(case):
    system = case.system().eval()
    batch, _ = system.prepare(case.batch(4))
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


def test_what_is_predicted_by_a_stream_of_its_own_is_moved_by_nothing_it_may_not_see(case):
    """XLNet's query stream: neither the target itself nor what comes after it in the order."""
    system = case.system().eval()
    batch, _ = system.prepare(case.batch(4))
    with torch.no_grad():
        before = system.look(batch).query
        if before is None:
            return
        sees = visible_before(batch).flatten(0, 1)[batch.targets.where]  # N key
        row, used = batch.targets.where // batch.shape[1], batch.targets.weight > 0
        for place in range(0, batch.shape[1], 3):
            ids = batch.ids.clone()
            ids[:, place] = (ids[:, place] + 7) % case.tokenizer.vocabulary.size
            moved = (system.look(batch.replace(ids=ids)).query - before).abs().amax(-1) > 0
            assert not (moved & ~sees[:, place] & used).any()
            seeing = sees[:, place] & used & batch.real[row, place]
            assert moved[seeing].all()


def test_a_loss_does_not_read_the_token_that_it_predicts(case):
    """Where tokens stay in place (XLNet): another token at a target moves no score there."""
    system = case.system().eval()
    batch, _ = system.prepare(case.batch(2))
    if not isinstance(case.recipe.see, Permuted):
        return
    head = system.predict["tokens"]
    with torch.no_grad():
        before = head.at_targets(system.look(batch), batch)
        used = (batch.targets.weight > 0).nonzero()[:, 0].tolist()
        assert used
        for number in used:
            ids = batch.ids.clone()
            place = int(batch.targets.where[number])
            ids.view(-1)[place] = (ids.view(-1)[place] + 7) % case.tokenizer.vocabulary.size
            changed = batch.replace(ids=ids)
            assert torch.equal(head.at_targets(system.look(changed), changed)[number], before[number])
            alone = batch.targets.replace(
                weight=torch.zeros_like(batch.targets.weight).index_fill(0, torch.tensor([number]), 1.0)
            )
            losses = [system.step(b.replace(targets=alone), None)[0]["tokens"].total for b in (batch, changed)]
            assert torch.equal(*losses)


def test_what_is_remembered_never_depends_on_what_comes_later(case):
    """Memory: a batch gives the same whatever follows it, and sees no more of the batch before than it kept."""
    system = case.system().eval()
    batch, _ = system.prepare(case.batch(4))
    with torch.no_grad():
        _, state = system.step(batch, None)
        if state is None:
            return
        kept = batch.reuse or batch.shape[1]
        for place in range(batch.shape[1]):
            ids = batch.ids.clone()
            ids[:, place] = (ids[:, place] + 7) % case.tokenizer.vocabulary.size
            _, other = system.step(batch.replace(ids=ids), None)
            moved = (other.layers - state.layers).abs().amax((1, 3)) > 0  # B M
            at = moved.shape[1] - kept  # where the memory of this batch begins
            assert not moved[:, :at].any()
            blind = ~visible(batch)[:, :kept, place]
            blind[:, place : place + 1] = False
            assert not (moved[:, at:] & blind).any()
            assert place >= kept or moved[:, at + place].all()


def test_each_example_of_a_packed_row_gets_what_it_gets_alone(case):
    system = case.system().eval()
    batch = case.batch(3, length=128)
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
