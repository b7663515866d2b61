"""The loader goes on at the very next row, keeps its shares, and reads everything once a visit."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter

import numpy as np
import pytest
import torch

from tests.data.made import collection_of, loader_of, random_texts, with_levels
from unmask.batch import Batch
from unmask.data import Blocks, Collection, FullRows, NextSentence, group_reader
from unmask.data.group_reader import GroupReader
from unmask.data.loader import TrackReaders, to_batch
from unmask.data.reader import Block, Place, Slot
from unmask.data.validation import held_out
from unmask.errors import UserError
from unmask.text import Characters, train

BERT, ROBERTA = "[CLS] a [SEP] b [SEP]", "[CLS] a [SEP]"
TOKENIZER = train(Characters(vocab=20), ["some text"])


def collection(seed: int = 0, documents: int = 60) -> Collection:
    return collection_of(random_texts(documents, 8, 9, seed=seed))


def reader(arrange=None, seed: int = 0, length: int = 32, data: Collection | None = None) -> GroupReader:
    arrange = arrange or NextSentence()
    data = collection() if data is None else data
    return arrange.open(data, TOKENIZER, BERT if arrange.classes else ROBERTA, length, seed)


def group(one: GroupReader, number: int) -> Block:
    """A group of the first visit."""
    return one.block(Place(0, number), Slot())


def validated(one: GroupReader, rows: int) -> list[Batch]:
    """The held-out rows, in batches of at most seven."""
    return held_out([TrackReaders([one])], rows, 7)


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(group_reader, "GROUP_TOKENS", 400)


def same(one: Batch, two: Batch) -> bool:
    values = [(getattr(one, f.name), getattr(two, f.name)) for f in dataclasses.fields(Batch)]
    return all(alike(a, b) for a, b in values)


def alike(a, b) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(a[name], b[name]) for name in a)
    return a.dtype == b.dtype and torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.parametrize("arrange", [NextSentence(), Blocks(), Blocks(cross=False), FullRows()], ids=str)
def test_a_reopened_loader_gives_the_very_next_batches_wherever_it_stopped(small_groups, arrange):
    whole = loader_of([reader(arrange)], [1.0])
    sizes = [3, 1, 7, 5, 64, 2] * 4
    batches, states = [], [whole.state()]
    for size in sizes:
        batches.append(whole.batch(size))
        states.append(json.loads(json.dumps(whole.state())))
    assert whole.visits >= 1
    assert len(reader(arrange).groups) > 2
    for start in range(0, len(sizes), 3):
        again = loader_of([reader(arrange)], [1.0], state=states[start])
        for number in range(start, min(start + 4, len(sizes))):
            assert same(again.batch(sizes[number]), batches[number])
            assert again.state() == states[number + 1]


def test_reopening_exactly_at_the_end_of_a_group_loses_and_repeats_nothing(small_groups):
    first = reader(Blocks())
    size = len(group(first, 0))
    whole = loader_of([first], [1.0])
    whole.batch(size)
    again = loader_of([reader(Blocks())], [1.0], state=whole.state())
    for _ in range(5):
        one, two = whole.batch(4), again.batch(4)
        assert same(one, two)
    assert whole.state() == again.state()


def test_batches_of_another_size_hold_the_same_rows_in_the_same_order(small_groups):
    one, two = loader_of([reader()], [1.0]), loader_of([reader()], [1.0])
    large = one.batch(60)
    small = [two.batch(n) for n in (1, 9, 20, 30)]
    for name in ("ids", "example", "row", "visit", "label"):
        assert torch.equal(getattr(large, name), torch.cat([getattr(b, name) for b in small]))
    assert torch.equal(large.columns["word"], torch.cat([b.columns["word"] for b in small]))


def test_a_visit_holds_every_row_of_every_group_once_and_the_next_visit_another_order(small_groups):
    one = reader(Blocks())
    total = sum(len(group(one, g)) for g in range(len(one.groups)))
    loader = loader_of([one], [1.0])
    first, second = loader.batch(total), loader.batch(total)
    assert (first.visit == 0).all()
    assert (second.visit == 1).all()
    assert len(set(first.row.tolist())) == total
    assert set(first.row.tolist()) == set(second.row.tolist())
    assert first.row.tolist() != second.row.tolist()


def test_documents_are_dealt_into_groups_once_each_and_none_is_much_too_large(small_groups):
    one = reader()
    assert sorted(np.concatenate(one.groups).tolist()) == list(range(60))
    lengths = one.collection.lengths
    assert all(lengths[numbers].sum() <= 400 + 2 * lengths.max() for numbers in one.groups)
    assert [g.tolist() for g in reader(seed=1).groups] != [g.tolist() for g in one.groups]
    assert [g.tolist() for g in reader().groups] == [g.tolist() for g in one.groups]


@pytest.mark.parametrize("tokens", [40, 100, 300, 777])
def test_no_group_is_too_small_for_pairs(monkeypatch, tokens):
    """A long document, or the last one dealt, must not be alone in its group: pairs need another document."""
    monkeypatch.setattr(group_reader, "GROUP_TOKENS", tokens)
    one = reader()
    assert min(len(group) for group in one.groups) >= 2
    for number in range(len(one.groups)):
        group(one, number)


def test_the_summary_of_every_example_of_a_batch_is_its_cls(small_groups):
    batch = loader_of([reader()], [1.0]).batch(40)
    chosen = batch.summary[batch.counted > 0]
    assert (batch.ids.flatten()[chosen] == TOKENIZER.role("cls")).all()
    per_row = batch.summary.view(40, -1) // batch.shape[1]
    assert (per_row[batch.counted.view(40, -1) > 0] == torch.arange(40).repeat_interleave(
        batch.counted.view(40, -1).sum(1).long()
    )).all()  # fmt: skip
    assert int(batch.counted.sum()) == int((batch.example.amax(1) + 1).sum())


def test_a_mixture_keeps_its_shares_at_every_moment(small_groups):
    readers = [reader(Blocks(), data=collection(seed)) for seed in range(3)]
    loader = loader_of(readers, [5, 3, 2])
    total = 0
    for size in (1, 7, 10, 32, 50, 100):
        loader.batch(size)
        total += size
        counts = loader.portions[0].counts
        assert counts.sum() == total
        assert (np.abs(counts - np.array([0.5, 0.3, 0.2]) * total) < 1.5).all()


def test_a_mixture_is_reopened_at_the_place_of_each_set(small_groups):
    def make(state=None):
        return loader_of([reader(Blocks(), data=collection(seed)) for seed in range(2)], [0.7, 0.3], state=state)

    whole = make()
    for _ in range(3):
        whole.batch(31)
    again = make(whole.state())
    for _ in range(3):
        assert same(whole.batch(13), again.batch(13))


def test_rows_of_different_sets_do_not_share_their_randomness(small_groups):
    batch = loader_of([reader(Blocks(), data=collection(seed)) for seed in range(2)], [1, 1]).batch(200)
    seen = Counter(zip(batch.row.tolist(), batch.visit.tolist(), strict=True))
    assert max(seen.values()) == 1


def test_the_next_stage_begins_at_a_group_not_begun(small_groups):
    loader = loader_of([reader()], [1.0])
    assert loader.after_stage() == loader.state()
    loader.batch(3)
    assert loader.after_stage()["places"] == [{"visit": 0, "block": 1, "row": 0}]
    loader_of([reader(length=64)], [1.0], state=loader.after_stage()).batch(2)
    last = loader_of(
        [reader()], [1.0], state={"places": [{"visit": 2, "block": len(reader().groups) - 1, "row": 1}], "counts": [1]}
    )
    assert last.after_stage()["places"] == [{"visit": 3, "block": 0, "row": 0}]


def test_validation_rows_never_change(small_groups):
    one = reader()
    before = validated(one, 50)
    loader_of([one], [1.0]).batch(100)
    assert all(same(a, b) for a, b in zip(before, validated(reader(), 50), strict=True))
    assert sum(len(batch.ids) for batch in before) == 50
    assert all((batch.visit == 0).all() for batch in before)
    every, fewer = (torch.cat([batch.ids for batch in found]) for found in (before, validated(reader(), 20)))
    assert torch.equal(fewer, every[:20])


def test_validation_takes_all_rows_where_there_are_fewer(small_groups):
    one = reader(Blocks())
    total = sum(len(group(one, g)) for g in range(len(one.groups)))
    assert sum(len(batch.ids) for batch in held_out([TrackReaders([one])], 10 * total, 7)) == total


def test_notes_of_the_arrangement_are_counted():
    loader = loader_of([reader(Blocks(), length=8)], [1.0])
    loader.batch(1)
    (notes,) = loader.notes.values()
    assert notes["sentences longer than a row, split"] > 0


def test_wrong_mixtures_are_mistakes():
    with pytest.raises(UserError, match="weight of a data set must be over 0"):
        loader_of([reader()], [0.0])
    with pytest.raises(UserError, match="another number of data sets"):
        loader_of([reader()], [1.0], state={"places": [{}, {}], "counts": [0, 0]})
    with pytest.raises(UserError, match="holds no document"):
        reader(data=Collection([]))


def known(seed: int = 0) -> Collection:
    """A collection that was prepared with a lexicon."""
    return collection_of(with_levels(random_texts(60, 8, 9, seed=seed)))


def test_batches_have_the_levels_of_their_rows(small_groups):
    one = reader(data=known())
    made = group(one, 0)
    taken = made.part(0, 9)
    batch, word = to_batch(taken.rows, taken.address, taken.visit), taken.rows.columns["word"].values
    for level in ("phrase", "entity"):
        column = batch.columns[level]
        assert column.dtype == torch.int64
        assert column.numpy().tolist() == made.rows.columns[level].values[made.order[:9]].tolist()
        assert column.max() > 3
        assert (column[word < 0] == -1).all()
        assert (column[word >= 0] == -1).any()


def test_batches_of_data_without_a_lexicon_have_no_levels(small_groups):
    batch = loader_of([reader()], [1.0]).batch(5)
    assert batch.columns.keys() == {"word", "sentence"}


def test_in_a_mixture_rows_of_data_without_a_lexicon_are_in_no_unit(small_groups):
    plain, both = (
        reader(Blocks(), data=collection(1)),
        [reader(Blocks(), data=known()), reader(Blocks(), data=collection(1))],
    )
    batch = loader_of(both, [0.5, 0.5]).batch(60)
    second = batch.row >= 1 << 48
    assert 0 < second.sum() < 60
    for column in (batch.columns["phrase"], batch.columns["entity"]):
        assert column.shape == batch.ids.shape
        assert (column[second] == -1).all()
        assert (column[~second] >= 0).any()
    assert torch.equal(batch.ids[second], loader_of([plain], [1.0]).batch(int(second.sum())).ids)
