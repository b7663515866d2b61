"""ERNIE's levels: each row takes one, and a token counts to the largest unit that it has there."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hide.test_spans import groups, with_lexicon
from tests.small import hides, random_batch
from unmask import recipes
from unmask.axes import columns_of
from unmask.batch import Batch
from unmask.errors import UserError
from unmask.hide import Levels, Words

TOKENS, PHRASES, ENTITIES = Levels(phrase=0.0, entity=0.0), Levels(token=0.0, entity=0.0), Levels(token=0.0, phrase=0.0)


def by_hand(batch: Batch, row: int, level: str) -> list[list[int]]:
    """The units of a row: neighbours belong together that share the largest unit which the level allows."""
    columns = {"entity": ("entity", "phrase", "word"), "phrase": ("phrase", "word"), "token": ()}[level]

    def unit(place: int) -> tuple[str, int]:
        for name in columns:
            column = batch.columns.get(name)
            if column is not None and column[row, place] >= 0:
                return name, int(column[row, place])
        return "token", place

    found: list[list[int]] = []
    for place in range(batch.shape[1]):
        if batch.columns["word"][row, place] < 0:
            continue
        if found and found[-1][-1] == place - 1 and unit(found[-1][-1]) == unit(place):
            found[-1].append(place)
        else:
            found.append([place])
    return found


@given(
    rows=st.integers(1, 3), length=st.integers(20, 48), examples=st.integers(1, 3), seed=st.integers(0, 1 << 30),
    missing=st.sampled_from([(), ("entity",), ("phrase",), ("phrase", "entity")]),
)  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_each_level_has_its_largest_units_and_falls_back_to_the_next_smaller(rows, length, examples, seed, missing):
    batch = with_lexicon(random_batch(rows, length, examples, seed=seed), seed)
    batch = batch.replace(columns={n: c for n, c in batch.columns.items() if n not in missing})
    for level, units in (("token", TOKENS), ("phrase", PHRASES), ("entity", ENTITIES)):
        labels = units.label(batch, seed, batch.visit)
        assert torch.equal(labels < 0, batch.columns["word"] < 0)
        assert int(labels.max()) < length
        for row in range(rows):
            assert groups(labels[row].tolist()) == by_hand(batch, row, level), level


def test_a_phrase_of_three_words_an_entity_within_it_and_a_word_of_two_tokens():
    """[CLS] a b ##b c d e [SEP]: the phrase is "b c d", the entity "d e"."""
    word = torch.tensor([[-1, 0, 1, 1, 2, 3, 4, -1]])
    zero = torch.zeros_like(word)
    batch = Batch(
        ids=zero + 9, example=zero, segment=zero, position=zero, row=zero[:, 0],
        visit=zero[:, 0], summary=zero[:, 0], label=zero[:, 0], counted=zero[:, 0].float(),
        columns={"word": word, "sentence": zero, "phrase": torch.tensor([[-1, -1, 0, 0, 0, 0, -1, -1]]), "entity": torch.tensor([[-1, -1, -1, -1, -1, 0, 0, -1]])},
    )  # fmt: skip
    visit = batch.visit
    assert TOKENS.label(batch, 0, visit).tolist() == [[-1, 0, 1, 2, 3, 4, 5, -1]]
    assert PHRASES.label(batch, 0, visit).tolist() == [[-1, 0, 1, 1, 1, 1, 2, -1]]
    assert ENTITIES.label(batch, 0, visit).tolist() == [[-1, 0, 1, 1, 1, 2, 2, -1]]


@pytest.mark.parametrize("shares", [(1, 1, 1), (2, 1, 1), (0, 1, 3), (1, 0, 1)])
def test_rows_take_their_level_by_the_shares(shares):
    many = 3000
    one = with_lexicon(random_batch(rows=1, length=48), 1)
    batch = one.replace(
        **{n: getattr(one, n).expand(many, 48) for n in ("ids", "example")},
        columns={n: c.expand(many, 48) for n, c in one.columns.items()},
        row=torch.arange(many), visit=torch.zeros(many, dtype=torch.long),
    )  # fmt: skip
    known = [by_hand(one, 0, level) for level in ("token", "phrase", "entity")]
    assert len({str(units) for units in known}) == 3
    labels = Levels(*map(float, shares)).label(batch, 0, batch.visit)
    kinds, counts = torch.unique(labels, dim=0, return_counts=True)
    found = {str(groups(kind.tolist())): int(count) for kind, count in zip(kinds, counts, strict=True)}
    for units, share in zip(known, shares, strict=True):
        wanted = share / sum(shares)
        error = (wanted * (1 - wanted) / many) ** 0.5
        assert abs(found.pop(str(units), 0) / many - wanted) <= 4 * error
    assert not found


def test_a_row_takes_another_level_at_another_visit_but_keeps_it_within_one():
    batch = with_lexicon(random_batch(rows=30, length=48))
    cut = Levels().label(batch, 0, batch.visit)
    assert torch.equal(cut, Levels().label(batch, 0, batch.visit))
    assert not torch.equal(cut, Levels().label(batch, 0, batch.visit + 1))


def test_a_level_needs_the_columns_that_it_reads_and_no_others():
    assert columns_of(TOKENS) == set()
    assert columns_of(Levels(phrase=0.0, entity=0.0, of=Words())) == {"word"}
    assert columns_of(PHRASES) == {"word", "phrase"}
    assert columns_of(ENTITIES) == {"word", "phrase", "entity"}
    assert columns_of(Levels()) == {"word", "phrase", "entity"}


def test_the_recipe_goes_through_the_levels_one_after_the_other_or_mixes_them():
    assert [hide.units for hide in hides(recipes.get("ernie"))] == [TOKENS, PHRASES, ENTITIES]
    assert [hide.units for hide in hides(recipes.get("ernie", variant="mixed"))] == [Levels()]


def test_what_is_set_of_the_recipe_holds_in_every_stage():
    recipe = recipes.get("ernie", settings=["hide.copies=10", "schedule.1.hide.budget=0.3", "hide.budget=0.2"])
    assert [hide.copies for hide in hides(recipe)] == [10, 10, 10]
    assert [hide.budget for hide in hides(recipe)] == [0.2, 0.3, 0.2]  # what is set of one stage counts there
    assert [type(h.units).__name__ for h in hides(recipes.get("ernie", settings=["hide.units=Words"]))] == ["Words"] * 3


@pytest.mark.parametrize("shares", [(-1.0, 1.0, 1.0), (0.0, 0.0, 0.0)])
def test_impossible_shares_are_a_mistake(shares):
    with pytest.raises(UserError, match="shares of 0 or more, and at least one above 0"):
        Levels(*shares)
