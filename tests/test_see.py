"""Who sees whom, by explicit loops over queries and keys."""

import pytest
import torch
from scipy.stats import chi2

from tests.small import random_batch, vocabulary
from unmask import recipes
from unmask.errors import UserError
from unmask.see import Everything, LeftToRight, Mixed, Prefix, RightToLeft, visible


@pytest.mark.parametrize("see", [Everything(), LeftToRight()], ids=["everything", "left"])
def test_a_query_sees_exactly_what_the_rule_allows(see):
    batch = random_batch(rows=2, length=32, examples=3)
    found = visible(batch.replace(rank=see.rank(batch)))
    for row in range(2):
        for query in range(32):
            for key in range(32):
                same = batch.example[row, query] == batch.example[row, key]
                if batch.example[row, query] < 0:
                    assert not found[row, query, key] or same
                    continue
                allowed = bool(same) and (see.pattern == "everything" or key <= query)
                assert bool(found[row, query, key]) == allowed


@pytest.mark.parametrize("see", [Everything(), LeftToRight()], ids=["everything", "left"])
def test_every_token_sees_itself(see):
    batch = random_batch(rows=2, length=24, examples=2)
    assert torch.diagonal(visible(batch.replace(rank=see.rank(batch))), dim1=1, dim2=2).all()


def test_without_a_rank_nothing_can_be_seen():
    with pytest.raises(AssertionError, match="see has not been applied"):
        visible(random_batch(rows=1, length=16))


EVERYTHING, PREFIX, LEFT, RIGHT = range(4)  # the modes of UniLM's rows
VIEWS = {EVERYTHING: Everything(), PREFIX: Prefix(), LEFT: LeftToRight(), RIGHT: RightToLeft()}


def may_see(mode: int, batch, row: int, query: int, key: int) -> bool:
    """The rule of each view, told by the places of query and key."""
    if batch.example[row, query] != batch.example[row, key]:
        return False
    if mode == PREFIX:
        first = batch.segment[row, key] == 0
        return bool(first) or (bool(batch.segment[row, query] == 1) and key <= query)
    return {EVERYTHING: True, LEFT: key <= query, RIGHT: key >= query}[mode]


def check_rows(seen, batch, modes: list[int]) -> None:
    found = visible(seen)
    for row, mode in enumerate(modes):
        for query in range(batch.shape[1]):
            for key in range(batch.shape[1]):
                if batch.example[row, query] >= 0:
                    assert bool(found[row, query, key]) == may_see(mode, batch, row, query, key), (mode, query, key)


@pytest.mark.parametrize("mode", VIEWS)
def test_each_view_of_unilm_is_the_rule_of_its_paper(mode):
    batch = random_batch(rows=2, length=32, examples=2, seed=mode)
    assert set(batch.segment.unique().tolist()) == {0, 1}
    check_rows(VIEWS[mode].apply(batch), batch, [mode] * 2)
    assert torch.equal(VIEWS[mode].apply(batch).segment, batch.segment)
    assert VIEWS[mode].draw(batch, 0) is batch
    assert VIEWS[mode].serving == VIEWS[mode]
    assert VIEWS[mode].writing == Prefix()


def test_mixed_rows_each_take_the_view_of_their_mode():
    batch = random_batch(rows=8, length=24, examples=2)
    modes = [EVERYTHING, PREFIX, LEFT, RIGHT] * 2
    seen = Mixed().apply(batch.replace(mode=torch.tensor(modes)))
    check_rows(seen, batch, modes)
    for row, mode in enumerate(modes):
        own = {EVERYTHING: {0: 0, 1: 1}, PREFIX: {0: 4, 1: 5}, LEFT: {0: 2, 1: 2}, RIGHT: {0: 3, 1: 3}}[mode]
        assert seen.segment[row].tolist() == [own[s] for s in batch.segment[row].tolist()]


def test_the_sentence_task_counts_only_in_rows_that_see_everything():
    batch = random_batch(rows=8, length=24, examples=2)
    counted = batch.counted.clone()
    counted[3] = 0.0  # a place that was never used
    modes = [EVERYTHING, PREFIX, LEFT, RIGHT, RIGHT, EVERYTHING, PREFIX, EVERYTHING]
    seen = Mixed().apply(batch.replace(mode=torch.tensor(modes), counted=counted))
    expected = [float(counted[2 * row + k]) * (mode == EVERYTHING) for row, mode in enumerate(modes) for k in range(2)]
    assert seen.counted.tolist() == expected


@pytest.mark.parametrize("see", [Mixed(), Mixed(0.5, 0.0, 0.25, 0.25), Mixed(0.0, 1.0, 0.0, 0.0)])
def test_modes_are_drawn_by_their_shares(see):
    many = 6000
    batch = random_batch(rows=1, length=16).replace(row=torch.arange(many), visit=torch.zeros(many, dtype=torch.long))
    counts = torch.bincount(see.draw(batch, 7).mode, minlength=4).tolist()
    shares = [see.everything, see.prefix, see.left, see.right]
    assert all(count == 0 for count, share in zip(counts, shares, strict=True) if share == 0)
    terms = [(c - many * s) ** 2 / (many * s) for c, s in zip(counts, shares, strict=True) if s]
    assert sum(terms) <= chi2.ppf(0.9999, 3)


def test_the_mode_is_a_function_of_seed_row_and_visit():
    batch = random_batch(rows=60, length=16)
    mode = Mixed().draw(batch, 1).mode
    some = [40, 3]
    alone = batch.replace(row=batch.row[some], visit=batch.visit[some])
    assert torch.equal(Mixed().draw(alone, 1).mode, mode[some])
    for other in (Mixed().draw(batch, 2), Mixed().draw(batch.replace(visit=batch.visit + 1), 1)):
        assert not torch.equal(other.mode, mode)


def test_without_a_mode_rows_see_everything_as_they_do_when_served():
    batch = random_batch(rows=2, length=24, examples=2)
    seen, plain = Mixed().apply(batch), Everything().apply(batch)
    for name in ("rank", "segment", "counted"):
        assert torch.equal(getattr(seen, name), getattr(plain, name)), name
    assert Mixed().serving == Everything()
    assert Mixed().writing.serving == Everything()  # also of a model that was adapted to write
    assert Mixed().writing == Mixed(0.0, 1.0, 0.0, 0.0)
    assert (Mixed().writes, Mixed(0.5, 0.0, 0.5, 0.0).writes) == ("second", "nothing")


def test_looking_reads_with_what_apply_says():
    recipe = recipes.get("unilm", size="tiny")
    system = recipe.system.build(recipe, vocabulary(), 0).eval()
    batch = random_batch(rows=4, length=24, examples=2).replace(mode=torch.tensor([0, 1, 2, 3]))
    with torch.no_grad():
        found = system.look(batch).last
        assert torch.equal(found, system.backbone(recipe.see.apply(batch))[0].last)
        assert torch.equal(found, system.look(recipe.see.apply(batch)).last)  # what is there already stays
        everything = system.look(batch.replace(mode=None)).last
    assert torch.equal(found[0], everything[0])
    assert all(not torch.allclose(found[row], everything[row], atol=1e-3) for row in (1, 2, 3))


@pytest.mark.parametrize("shares", [(0.5, 0.5, 0.5, 0.5), (1.5, -0.5, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)])
def test_impossible_shares_of_views_are_a_mistake(shares):
    with pytest.raises(UserError, match="the shares of see's views must be 0 or more and add up to 1"):
        Mixed(*shares)


def test_mixed_views_need_a_backbone_with_six_segments():
    recipe = recipes.get("bert", size="tiny", settings=["see=Mixed"])
    with pytest.raises(UserError, match="6 segments apart, and the backbone 2: set system.backbone.segments=6"):
        recipe.system.build(recipe, vocabulary(), 0)
    mended = recipes.get("bert", size="tiny", settings=["see=Mixed", "system.backbone.segments=6"])
    assert mended.system.build(mended, vocabulary(), 0).backbone.embed.segment.num_embeddings == 6
