"""Tracks that share a batch each fill a fixed number of its rows, in order, whatever the size of a micro-batch."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from tests.data.test_loader import same
from unmask import recipes
from unmask.data import Blocks, ContinuingPairs, ContinuingRows
from unmask.errors import UserError
from unmask.pretraining import Mixture, pretrain
from unmask.recipe import Recipe, Track
from unmask.settings import flat, override
from unmask.train import Machine, Trainer

SHARES = (("main", 3), ("prefix", 3), ("left", 1), ("right", 1))  # of eight rows


def unilm(*settings: str) -> Recipe:
    shape = ["schedule.0.length=32", "schedule.*.rows=8", "optimise.warmup=0.1"]
    return recipes.get("unilm", size="tiny", settings=[*shape, *settings])


def with_arrange(recipe: Recipe, track: str, arrange) -> Recipe:
    changed = dataclasses.replace(recipe.tracks[track], arrange=arrange)
    return recipe.replace(tracks=recipe.tracks | {track: changed})


@pytest.fixture(scope="module")
def mixture(shards) -> Mixture:
    return Mixture.open([shards["wordpiece"]])


def loader(mixture: Mixture, recipe: Recipe | None = None, rows: int = 8, state=None):
    return mixture.loader(recipe or unilm(), 32, 0, state, rows)


def joined(batches, name: str) -> torch.Tensor:
    return torch.cat([getattr(batch, name) for batch in batches])


def test_every_step_has_the_rows_of_each_track_in_order(mixture):
    made = loader(mixture)
    for _ in range(3):
        batch = made.batch(8)
        assert batch.tracks == SHARES
        assert (batch.row >> 56).tolist() == [0, 0, 0, 1, 1, 1, 2, 3]
    assert loader(mixture, rows=12).batch(12).tracks == (("main", 4), ("prefix", 4), ("left", 2), ("right", 2))


@pytest.mark.parametrize("sizes", [(4, 4), (1,) * 8, (3, 3, 2), (2, 5, 1)])
def test_micro_batches_of_any_size_hold_the_same_rows_in_the_same_order(mixture, sizes):
    one, two = loader(mixture), loader(mixture)
    for _ in range(4):
        whole, parts = one.batch(8), [two.batch(size) for size in sizes]
        for name in ("ids", "row", "visit", "label", "segment"):
            assert torch.equal(getattr(whole, name), joined(parts, name))
        names = [name for part in parts for name, count in part.tracks for _ in range(count)]
        assert names == [name for name, count in SHARES for _ in range(count)]


def test_a_call_may_not_reach_into_the_next_step(mixture):
    made = loader(mixture)
    made.batch(6)
    with pytest.raises(UserError, match="this step has 2 of its 8 rows left, got 3"):
        made.batch(3)


def test_tracks_do_not_read_the_same_rows_at_the_same_time(mixture):
    made = loader(mixture)
    for _ in range(3):
        batch = made.batch(8)
        assert len({tuple(ids) for ids in batch.ids.tolist()}) == 8
        assert len(batch.row.unique()) == 8


def test_a_reopened_loader_gives_the_very_next_rows_of_every_track(mixture):
    whole, states, batches, sizes = loader(mixture), [], [], [3, 3, 2] * 6
    for size in sizes:
        states.append(json.loads(json.dumps(whole.state())))
        batches.append(whole.batch(size))
    for start in (0, 1, 5, 9, 14):
        again = loader(mixture, state=states[start])
        for number in range(start, min(start + 4, len(sizes))):
            assert same(again.batch(sizes[number]), batches[number])
    with pytest.raises(UserError, match="started with 8 rows in a step, got 4"):
        loader(mixture, rows=4, state=states[1])


def test_a_mixture_of_data_sets_is_read_by_every_track(shards, plain_shards):
    mixture = Mixture.open([shards["wordpiece"], f"{plain_shards['wordpiece']}:0.5"])
    made = loader(mixture)
    rows = torch.cat([made.batch(8).row for _ in range(12)])
    track, source = rows >> 56, (rows >> 48) & 255
    for number in range(4):
        mine = source[track == number]
        assert 0.25 < (mine == 1).float().mean() < 0.42
    assert len(rows.unique()) == len(rows)


@pytest.mark.parametrize("arrange", [None, Blocks(), Blocks(cross=False)], ids=["as main", "Blocks", "packed blocks"])
def test_two_halves_of_a_step_give_the_gradients_of_the_whole(mixture, arrange):
    recipe = with_arrange(unilm(), "left", arrange)
    recipe = override(recipe, [f"{name}=0.0" for name in flat(recipe) if name.endswith("dropout")])
    found = []
    for sizes in ((8,), (4, 4), (3, 3, 2)):
        trainer = Trainer(recipe.system.build(recipe, mixture.tokenizer.vocabulary, 0), recipe.optimise, Machine(), 0)
        made = loader(mixture, recipe)
        means = trainer.gradients([made.batch(size) for size in sizes], {}, 1)
        found.append((means, [p.grad for p in trainer.system.parameters() if p.grad is not None]))
    for means, gradients in found[1:]:
        for name, mean in found[0][0].items():
            assert torch.allclose(mean, means[name], atol=1e-5)
        for whole, parts in zip(found[0][1], gradients, strict=True):
            assert torch.allclose(whole, parts, atol=1e-5)


def test_a_track_may_arrange_documents_in_another_way(mixture, shards, tmp_path):
    recipe = with_arrange(unilm(), "left", Blocks())
    batch = loader(mixture, recipe).batch(8)
    each = batch.counted.view(8, -1).sum(1)
    assert (batch.segment.amax(1) == torch.tensor([1, 1, 1, 1, 1, 1, 0, 1])).all()
    assert each[6] == 1
    assert (batch.summary.view(8, -1) // 32 == torch.arange(8)[:, None]).all()
    records = list(pretrain(recipe, [shards["wordpiece"]], tmp_path / "run", budget="3steps", device="cpu"))
    assert any(record.get("done") for record in records)
    assert any("validation_loss" in record for record in records)


def test_validation_has_the_tracks_in_their_proportions_and_never_changes(mixture):
    held = mixture.validation(unilm(), 32, 0, "cpu")
    counts = dict.fromkeys(dict(SHARES), 0)
    for batch in held:
        ((name, count),) = batch.tracks
        assert count == len(batch.ids)
        counts[name] += count
    total = sum(counts.values())
    assert total > 4
    for name, share in (("main", 1 / 3), ("prefix", 1 / 3), ("left", 1 / 6), ("right", 1 / 6)):
        assert abs(counts[name] - share * total) < 1
    assert all(same(a, b) for a, b in zip(held, mixture.validation(unilm(), 32, 0, "cpu"), strict=True))
    assert len(torch.cat([batch.row for batch in held]).unique()) == total


def test_recipes_without_tracks_have_none_in_their_batches(mixture):
    recipe = recipes.get("bert", size="tiny", settings=["schedule.0.length=32"])
    assert loader(mixture, recipe).batch(8).tracks == ()
    assert all(batch.tracks == () for batch in mixture.validation(recipe, 32, 0, "cpu"))


def test_tracks_of_continuing_rows_continue_each_its_own(mixture):
    settings = ["arrange=ContinuingRows", "schedule.0.length=16", "schedule.*.rows=6"]
    recipe = recipes.get("transformer-xl", size="tiny", settings=settings)
    recipe = recipe.replace(tracks={"other": Track(share=0.5)}, layout="a [SEP]")
    made = mixture.loader(recipe, 16, 0, None, 6)
    steps = [made.batch(6) for _ in range(3)]
    assert steps[0].tracks == (("main", 3), ("other", 3))
    assert (torch.stack([batch.row for batch in steps]).diff(dim=0) == 1).all()  # the next step of each stream
    alone = mixture.loader(recipe.replace(tracks={}), 16, 0, None, 3)
    for batch in steps:
        assert torch.equal(alone.batch(3).ids, batch.ids[:3])
    assert not torch.equal(steps[0].ids[:3], steps[0].ids[3:])
    held = mixture.validation(recipe, 16, 0, "cpu")
    assert {batch.tracks[0][0] for batch in held} == {"main", "other"}


def test_refusals_say_what_to_do(mixture):
    with pytest.raises(
        UserError, match="the track 'right' would not be read: .* none of the 3 rows of a step; raise its share"
    ):
        mixture.check(unilm("schedule.*.rows=3"))
    for arrange in (ContinuingRows(), ContinuingPairs()):
        with pytest.raises(UserError, match="the tracks 'main' and 'left' share each batch, so a memory"):
            loader(mixture, with_arrange(unilm(), "left", arrange))
