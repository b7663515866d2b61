"""Tracks that share a batch: each has its rows, its view, its segments and its objectives; UniLM is the example."""

from __future__ import annotations

import pytest
import torch

from tests.small import masking, random_batch, vocabulary
from tests.test_see import EVERYTHING, LEFT, PREFIX, RIGHT, VIEWS, check_rows
from unmask import recipes
from unmask.batch import Batch
from unmask.errors import UserError
from unmask.hide import Next
from unmask.recipe import MAIN, Stage, Track
from unmask.see import Everything, LeftToRight, Prefix
from unmask.settings import override
from unmask.system import SENTENCE, asked, objectives
from unmask.system.cost import predicted_share
from unmask.system.tracks import hide_tracks, joined, only_asked, rows_of

SHARES = ((MAIN, 2), ("prefix", 3), ("left", 1), ("right", 2))
MODES = [EVERYTHING] * 2 + [PREFIX] * 3 + [LEFT] + [RIGHT] * 2  # of each row
SEGMENTS = {EVERYTHING: (0, 1), PREFIX: (4, 5), LEFT: (2, 2), RIGHT: (3, 3)}


@pytest.fixture(scope="module")
def recipe():
    return recipes.get("unilm", size="tiny", settings=["schedule.0.length=32"])


def shared_batch(seed: int = 0) -> Batch:
    return random_batch(rows=8, length=24, examples=2, seed=seed).replace(tracks=SHARES)


def hidden(recipe, batch: Batch, seed: int = 0) -> Batch:
    tracks = recipe.all_tracks()
    return hide_tracks(
        tracks, batch, vocabulary(), seed, {name: asked(recipe, track) for name, track in tracks.items()}
    )


def test_unilms_tracks_have_the_views_segments_and_shares_of_its_paper(recipe):
    tracks = recipe.all_tracks()
    assert list(tracks) == [MAIN, "prefix", "left", "right"]
    assert [track.see for track in tracks.values()] == [VIEWS[mode] for mode in (EVERYTHING, PREFIX, LEFT, RIGHT)]
    assert [track.segments for track in tracks.values()] == [(), (4, 5), (2, 2), (3, 3)]
    assert [track.share for track in tracks.values()] == pytest.approx([1 / 3, 1 / 3, 1 / 6, 1 / 6])
    assert all(track.hide == recipe.hide and track.arrange == recipe.arrange for track in tracks.values())
    assert (recipe.writing, recipe.writes) == ("prefix", {"second"})
    assert recipe.replace(writes_with=None).writes == set()
    assert recipe.replace(writes_with="left").writes == set()  # it learned to fill gaps, not to continue a text


def test_the_rows_of_each_track_have_its_view_and_its_segments(recipe):
    batch = shared_batch()
    after = hidden(recipe, batch)
    check_rows(after, batch, MODES)
    for row, mode in enumerate(MODES):
        assert after.segment[row].tolist() == [SEGMENTS[mode][s] for s in batch.segment[row].tolist()]


def test_the_sentence_task_counts_only_in_the_rows_of_main(recipe):
    batch = shared_batch()
    counted = batch.counted.clone()
    counted[1] = 0.0  # a place that was never used
    after = hidden(recipe, batch.replace(counted=counted))
    expected = [float(counted[2 * row + k]) * (mode == EVERYTHING) for row, mode in enumerate(MODES) for k in range(2)]
    assert after.counted.tolist() == expected
    assert torch.equal(after.label, batch.label)
    system = recipe.system.build(recipe, vocabulary(), 0)
    counts = system.hide(batch)[1]
    assert counts[SENTENCE] == 4  # two rows of two examples
    assert counts["tokens"] == after.targets["tokens"].weight.sum()


def test_tracks_that_share_a_batch_are_hidden_as_their_rows_alone(recipe):
    batch, begin, tracks = shared_batch(), 0, recipe.all_tracks()
    together = hidden(recipe, batch, seed=3)
    places = len(together.targets["tokens"].where) // 8
    for name, rows in SHARES:
        mine = rows_of(batch, begin, begin + rows)
        alone = hide_tracks({MAIN: tracks[name]}, mine, vocabulary(), 3, {MAIN: asked(recipe, tracks[name])})
        for field in ("ids", "rank", "segment", "position", "row"):
            assert torch.equal(getattr(together, field)[begin : begin + rows], getattr(alone, field)), (name, field)
        examples = slice(begin * 2, (begin + rows) * 2)
        assert torch.equal(together.counted[examples], alone.counted)
        assert torch.equal(together.summary[examples], alone.summary + begin * 24)
        part, found = together.targets["tokens"], alone.targets["tokens"]
        mine_places = slice(begin * places, (begin + rows) * places)
        for field in ("where", "at", "start", "end"):
            assert torch.equal(getattr(part, field)[mine_places], getattr(found, field) + begin * 24), (name, field)
        for field in ("ids", "weight"):
            assert torch.equal(getattr(part, field)[mine_places], getattr(found, field)), (name, field)
        begin += rows


def test_every_target_of_a_shared_batch_is_the_token_that_stood_there(recipe):
    batch = shared_batch(seed=2)
    after = hidden(recipe, batch, seed=2)
    targets = after.targets["tokens"]
    used = targets.weight > 0
    assert torch.equal(targets.ids[used], batch.ids.flatten()[targets.where[used]])
    assert set((targets.where[used] // 24).tolist()) == set(range(8))  # of every row
    assert (targets.start <= targets.where).all()
    assert (targets.where <= targets.end).all()
    hidden_at = torch.zeros(8 * 24, dtype=torch.bool).index_fill(0, targets.where[used], True).view(8, 24)
    assert torch.equal(after.ids[~hidden_at], batch.ids[~hidden_at])


def test_rows_apart_and_joined_again_are_the_batch():
    batch = random_batch(rows=5, length=20, examples=2).replace(per_row={"begins": torch.arange(5) > 2})
    again = joined([rows_of(batch, 0, 2), rows_of(batch, 2, 3), rows_of(batch, 3, 5)])
    for name in ("ids", "example", "segment", "position", "row", "visit", "summary", "label", "counted"):
        assert torch.equal(getattr(again, name), getattr(batch, name)), name
    assert again.columns.keys() == batch.columns.keys()
    assert all(torch.equal(again.columns[name], batch.columns[name]) for name in batch.columns)
    assert torch.equal(again.per_row["begins"], batch.per_row["begins"])
    part = rows_of(batch, 2, 4)
    assert torch.equal(part.ids.flatten()[part.summary], batch.ids.flatten()[batch.summary[4:8]])


def test_targets_that_only_some_tracks_have_are_joined_by_name():
    batch = random_batch(rows=3, length=20)
    words = vocabulary()
    first = masking().apply(rows_of(batch, 0, 1), words, 0)
    second = Next(ahead=2).apply(rows_of(batch, 1, 3), words, 0)
    found = joined([first, second]).targets
    assert set(found) == {"tokens", "ahead_2"}
    assert torch.equal(found["ahead_2"].at, second.targets["ahead_2"].at + 20)
    assert torch.equal(found["ahead_2"].where, second.targets["ahead_2"].where + 20)
    tokens = [*first.targets["tokens"].where.tolist(), *(second.targets["tokens"].where + 20).tolist()]
    assert found["tokens"].where.tolist() == tokens


def test_only_what_a_track_predicts_is_kept(recipe):
    batch = Next(ahead=2).apply(random_batch(rows=2, length=20), vocabulary(), 0)
    track, main = recipe.all_tracks()["left"], recipe.all_tracks()[MAIN]
    found = only_asked(track, batch, asked(recipe, track))
    assert set(batch.targets) == {"tokens", "ahead_2"}
    assert found.targets["tokens"] is batch.targets["tokens"]
    assert not found.targets["ahead_2"].weight.any()
    assert not found.counted.any()
    assert only_asked(main, batch, asked(recipe, main)) is batch


@pytest.fixture
def deep():
    """A recipe with several losses for each entry of `predict`."""
    return recipes.get("char-transformer", size="tiny", settings=["schedule.0.length=32", "system.backbone.layers=3"])


@pytest.mark.parametrize("named", [("tokens", "layer"), ("tokens", "layer_1"), ("second", "layer_second")])
def test_a_track_names_an_entry_that_stands_for_several_losses_or_one_of_these(named, deep):
    recipe = deep.replace(tracks={"own": Track(share=0.5, predict=named)})
    kept = {"ahead_2" if "second" in name else "tokens" for name in named}
    track, batch = recipe.all_tracks()["own"], random_batch(rows=4, length=32)
    alone = hide_tracks({"own": track}, batch, vocabulary(), 0, {"own": asked(recipe, track)})
    assert {name for name, found in alone.targets.items() if found.weight.any()} == kept
    both, counts = recipe.system.build(recipe, vocabulary(), 0).hide(batch.replace(tracks=((MAIN, 2), ("own", 2))))
    for name, found in both.targets.items():
        assert bool(found.weight[found.where >= 2 * 32].any()) == (name in kept), name
    assert all(counts[name] == both.targets[part.target].weight.sum() for name, part in objectives(recipe).items())


@pytest.mark.parametrize("named, left_out", [(("layer",), "tokens"), (("tokens",), "layer")])
def test_a_track_cannot_leave_out_an_objective_whose_targets_it_keeps(named, left_out, deep):
    recipe = deep.replace(tracks={"own": Track(share=0.5, predict=named)})
    with pytest.raises(UserError, match=rf"tracks\.own\.predict leaves out {left_out}, but keeps the targets"):
        recipe.system.build(recipe, vocabulary(), 0)


def test_targets_that_an_objective_predicts_and_no_track_keeps_are_a_mistake(deep):
    recipe = deep.replace(tracks={"own": Track(share=1.0, predict=("tokens", "layer"))})
    with pytest.raises(
        UserError, match="predict.second predicts the targets 'ahead_2', but no track with rows keeps them"
    ):
        recipe.system.build(recipe, vocabulary(), 0)


def test_a_track_keeps_the_targets_that_the_generator_fills():
    base = recipes.get("electra", size="tiny", settings=["schedule.0.length=32"])
    recipe = base.replace(tracks={"judged": Track(share=0.5, predict=tuple(base.predict))})
    assert "tokens" not in base.predict
    batch = random_batch(rows=4, length=32).replace(tracks=((MAIN, 2), ("judged", 2)))
    found, _ = recipe.system.build(recipe, vocabulary(), 0).hide(batch)
    usual, _ = base.system.build(base, vocabulary(), 0).hide(batch.replace(tracks=()))
    assert torch.equal(found.targets["tokens"].where, usual.targets["tokens"].where)
    losses, _ = recipe.system.build(recipe, vocabulary(), 0).step(found)
    assert all(loss.count > 0 for loss in losses.values())


def test_a_batch_that_names_no_tracks_is_of_main_or_of_the_track_with_all_rows(recipe):
    batch = random_batch(rows=4, length=24, examples=2)
    assert torch.equal(hidden(recipe, batch).rank, Everything().rank(batch))
    written = recipe.replace(tracks={"prefix": Track(share=1.0, see=Prefix(), segments=(4, 5), predict=("tokens",))})
    after = hidden(written, batch)
    assert torch.equal(after.rank, Prefix().rank(batch))
    assert torch.equal(after.segment, batch.segment + 4)
    system = written.system.build(written, vocabulary(), 0).eval()
    with torch.no_grad():  # it still reads with main
        assert torch.equal(system.look(batch).last, system.backbone(Everything().apply(batch))[0].last)


def test_looking_reads_with_the_track_that_is_named(recipe):
    system = recipe.system.build(recipe, vocabulary(), 0).eval()
    batch = random_batch(rows=2, length=24, examples=2)
    with torch.no_grad():
        everything = system.look(batch).last
        assert torch.equal(everything, system.backbone(Everything().apply(batch))[0].last)
        for name, mode in (("prefix", PREFIX), ("left", LEFT), ("right", RIGHT)):
            own = VIEWS[mode].apply(batch).replace(segment=torch.tensor(SEGMENTS[mode])[batch.segment])
            found = system.look(batch, name).last
            assert torch.equal(found, system.backbone(own)[0].last)
            assert torch.equal(found, system.look(own, name).last)  # what is there already stays
            assert all(not torch.allclose(found[row], everything[row], atol=1e-3) for row in range(2))


def test_what_a_stage_hides_holds_in_every_track_without_a_rule_of_its_own(recipe):
    own = recipe.replace(
        tracks=recipe.tracks | {"right": Track(share=1 / 6, see=VIEWS[RIGHT], hide=masking(budget=0.5))}
    )
    system = own.system.build(own, vocabulary(), 0)
    all_masked = masking(budget=0.3, mask=1.0, random=0.0)
    batch = shared_batch()
    after = system.hide(batch, all_masked)[0]
    expected = {name: track.hide for name, track in own.all_tracks(Stage(hide=all_masked)).items()}
    assert [hide.budget for hide in expected.values()] == [0.3, 0.3, 0.3, 0.5]
    begin = 0
    for name, rows in SHARES:
        alone = expected[name].apply(rows_of(batch, begin, begin + rows), vocabulary(), 0)
        assert torch.equal(after.ids[begin : begin + rows], alone.ids), name
        begin += rows


def test_predictions_are_the_mean_over_the_tracks(recipe):
    mixed = recipe.replace(
        tracks={"left": Track(share=0.25, see=LeftToRight(), hide=Next())}, hide=masking(budget=0.15), writes_with=None
    )
    assert predicted_share(mixed) == pytest.approx(0.75 * 0.15 + 0.25 * 1.0)


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            ["tracks.left.share=0.9"],
            r"the shares of the tracks must add up to at most 1 \('main' has the rest\), got 1\.4",
        ),
        (["tracks.left.share=-0.1"], r"tracks\.\*\.share must be in \(0, 1\], got -0\.1"),
        (["writes_with=middle"], "writes_with must name a track, got 'middle': use main, prefix, left, right, or none"),
    ],
)
def test_impossible_tracks_are_a_mistake(recipe, settings, message):
    with pytest.raises(UserError, match=message):
        override(recipe, settings)


def test_tracks_with_their_own_segments_need_a_backbone_that_has_them(recipe):
    narrow = override(recipe, ["system.backbone.segments=2"])
    with pytest.raises(
        UserError, match="6 kinds of segments, but the backbone distinguishes only 2: set system.backbone.segments=6"
    ):
        narrow.system.build(narrow, vocabulary(), 0)
    enough = override(recipe, ["system.backbone.segments=6"])
    assert enough.system.build(enough, vocabulary(), 0).backbone.embed.segment.num_embeddings == 6


def test_a_track_that_predicts_what_the_recipe_does_not_is_a_mistake(recipe):
    strange = recipe.replace(tracks={"left": Track(share=0.5, see=LeftToRight(), predict=("tokns",))}, writes_with=None)
    with pytest.raises(UserError, match=r"only objectives of unilm \(tokens, sentence\), got \['tokns'\]"):
        strange.system.build(strange, vocabulary(), 0)
