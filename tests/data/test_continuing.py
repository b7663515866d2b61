"""ContinuingRows against a slow construction: one list of tokens for all documents, cut by hand."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
import torch

from tests.data.made import (
    FIRST,
    by_document,
    collection_of,
    examples_of,
    loader_of,
    random_texts,
    texts_of,
    with_levels,
)
from tests.data.test_loader import same
from unmask import chance
from unmask.batch import Batch
from unmask.data import Collection, ContinuingPairs, ContinuingRows, Texts, continuing_reader
from unmask.data.arrange import special_ids
from unmask.data.concatenation import Concatenation
from unmask.data.continuing_reader import ContinuingReader
from unmask.data.loader import Loader, TrackReaders, shared_out
from unmask.data.pack import pack
from unmask.data.validation import held_out
from unmask.errors import UserError
from unmask.recipes import get
from unmask.settings import override
from unmask.text import Characters, train
from unmask.text.columns import BEGINS

TOKENIZER = train(Characters(vocab=20), ["some text"])
CLS, SEP = (TOKENIZER.role(role) for role in ("cls", "sep"))
PLAIN, FRAMED, XLNET = "a [SEP]", "[CLS] a [SEP]", "a [SEP] b [SEP] [CLS]"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(continuing_reader, "BLOCK_TOKENS", 700)


def two_shards() -> Collection:
    return collection_of(random_texts(30, 6, 9), random_texts(25, 6, 9, seed=1))


def reader(arrange=None, data=None, layout=None, length=32, **options) -> ContinuingReader:
    arrange = ContinuingRows() if arrange is None else arrange
    layout = layout or (PLAIN if isinstance(arrange, ContinuingRows) else XLNET)
    data = two_shards() if data is None else data
    return arrange.open(data, TOKENIZER, layout, length, 0, **options)


def loader(arrange=None, streams=4, state=None, **options) -> Loader:
    return loader_of([reader(arrange, **options)], [1.0], streams, state)


def held(readers: list[ContinuingReader], rows: int, most: int) -> list[Batch]:
    return held_out([TrackReaders(readers)], rows, most)


def documents(data: Collection) -> list[list[list[int]]]:
    """All documents as lists of sentences of ids."""
    found = []
    for shard in data.shards:
        found += by_document(Texts(shard.ids, shard.sentence, shard.document, shard.columns))
    return found


def line(data: Collection, visit: int, before: list[int], after: list[int]) -> list[int]:
    """All tokens of a visit in one list."""
    numbers = np.arange(len(data))
    keys = chance.draw(numbers, 0, visit, chance.purpose("order of documents")).tolist()
    every = documents(data)
    order = sorted(numbers.tolist(), key=keys.__getitem__)
    return [token for number in order for token in before + sum(every[number], []) + after]


@pytest.mark.parametrize(("layout", "before", "after"), [(PLAIN, [], [SEP]), (FRAMED, [CLS], [SEP]), ("a", [], [])])
@pytest.mark.parametrize(("streams", "length"), [(1, 32), (4, 32), (3, 31), (7, 9)])
def test_the_rows_of_a_stream_are_its_stretch_of_the_whole_text(layout, before, after, streams, length):
    data = two_shards()
    made, steps = loader(data=data, layout=layout, streams=streams, length=length), 0
    for visit in range(2):
        whole = line(data, visit, before, after)
        stretch = len(whole) // streams
        steps = stretch // length
        rows = [made.batch(streams) for _ in range(steps)]
        assert {v for batch in rows for v in batch.visit.tolist()} == {visit}
        for stream in range(streams):
            found = torch.cat([batch.ids[stream] for batch in rows]).tolist()
            assert found == whole[stream * stretch : stream * stretch + steps * length]
    assert made.visits == 2
    assert steps > 1


def test_a_text_of_one_document_keeps_its_order():
    made = loader(data=collection_of(texts_of([[5] * 40])), layout="a", streams=2, length=20)
    for visit in range(2):
        rows = [made.batch(2) for _ in range(5)]
        assert torch.cat([batch.ids[0] for batch in rows]).tolist() == list(range(FIRST, FIRST + 100)), visit


def test_a_visit_has_its_own_order_of_documents():
    made = loader(streams=1)
    steps = made.cursors[0].reader.steps(1)
    first, second = ([made.batch(1).ids for _ in range(steps)] for _ in range(2))
    assert torch.cat(first).flatten().tolist() != torch.cat(second).flatten().tolist()


def test_words_and_sentences_are_numbered_within_the_row_and_special_tokens_are_in_none():
    data = two_shards()
    begins = {
        shard.ids[i]: (shard.columns["word"].values[i] == BEGINS, i in shard.sentence)
        for shard in data.shards
        for i in range(len(shard.ids))
    }
    made = loader(data=data, streams=3)
    for _ in range(10):
        batch = made.batch(3)
        for ids, word, sentence in zip(
            *(x.tolist() for x in (batch.ids, batch.columns["word"], batch.columns["sentence"])), strict=True
        ):
            words = sentences = -1
            before = SEP
            for token, w, s in zip(ids, word, sentence, strict=True):
                if token == SEP:
                    assert (w, s) == (-1, -1)
                else:
                    words += bool(begins[token][0] or before == SEP)
                    sentences += bool(begins[token][1] or before == SEP)
                    assert (w, s) == (words, sentences)
                before = token
        assert (batch.example == 0).all()
        assert (batch.segment == 0).all()
        assert torch.equal(batch.position, torch.arange(32).expand(3, 32))
        assert batch.summary.tolist() == [31, 63, 95]


def test_a_reopened_loader_gives_the_very_next_batches_wherever_it_stopped():
    for arrange in (ContinuingRows(), ContinuingPairs(reuse=12 / 32)):
        whole, sizes = loader(arrange, streams=5), [2, 2, 1] * 40
        batches, states = [], [whole.state()]
        for size in sizes:
            batches.append(whole.batch(size))
            states.append(json.loads(json.dumps(whole.state())))
        assert whole.visits >= 1
        for start in range(0, len(sizes), 7):
            again = loader(arrange, streams=5, state=states[start])
            for number in range(start, min(start + 9, len(sizes))):
                assert same(again.batch(sizes[number]), batches[number])
                assert again.state() == states[number + 1]


@pytest.mark.parametrize("arrange", [ContinuingRows(), ContinuingPairs(reuse=12 / 32)], ids=str)
def test_micro_batches_hold_the_same_rows(arrange):
    one, two = loader(arrange, streams=7), loader(arrange, streams=7)
    for _ in range(12):
        large, small = one.batch(7), [two.batch(n) for n in (3, 3, 1)]
        for name in ("ids", "segment", "row", "visit", "label"):
            assert torch.equal(getattr(large, name), torch.cat([getattr(b, name) for b in small]))
        for kind in ("columns", "per_row"):
            for name, values in getattr(large, kind).items():
                assert torch.equal(values, torch.cat([getattr(b, kind)[name] for b in small]))


def test_a_call_may_not_reach_into_the_next_step():
    made = loader(streams=4)
    made.batch(3)
    with pytest.raises(UserError, match="this step has 1 of its 4 rows left, got 2"):
        made.batch(2)
    made.batch(1)
    made.batch(4)


def test_no_two_rows_of_a_visit_share_their_address():
    made = loader_of([reader(), reader(data=collection_of(random_texts(40, 8, 9)))], [1.0, 2.0], 6)
    steps = min(cursor.reader.steps(cursor.slot.rows) for cursor in made.cursors)
    found = [made.batch(6).row for _ in range(steps)]
    assert len(torch.cat(found).unique()) == 6 * steps


def test_sets_of_a_mixture_do_not_share_their_randomness():
    made = loader_of([reader(ContinuingPairs(reuse=12 / 32)), reader(ContinuingPairs(reuse=12 / 32))], [1, 1], 2)
    batches = [made.batch(2) for _ in range(30)]
    assert all(torch.equal(batch.ids[0, :12], batch.ids[1, :12]) for batch in batches)  # the same text
    assert {tuple(batch.label.tolist()) for batch in batches} == {(0, 0), (0, 1), (1, 0), (1, 1)}


def positions(data: Collection) -> tuple[dict[int, int], set[int]]:
    """For every token: its place in the document order of the data; and the last token of every sentence."""
    every = documents(data)
    where = {t: i for i, t in enumerate(t for document in every for sentence in document for t in sentence)}
    return where, {sentence[-1] for document in every for sentence in document}


def pair(ids: list[int], reuse: int, segment: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Reused part, a and b of a row."""
    second = segment.index(1)
    assert ids[second - 1] == SEP
    assert ids[-2:] == [SEP, CLS]
    assert segment == [0] * second + [1] * (len(ids) - 1 - second) + [2]
    return ids[:reuse], ids[reuse : second - 1], ids[second:-2]


@pytest.mark.parametrize(("length", "reuse"), [(32, 12), (31, 15), (24, 4), (40, 35)])
def test_pairs_go_on_in_the_stream_and_then_follow_or_come_from_elsewhere(length, reuse):
    data = two_shards()
    made = loader(ContinuingPairs(reuse=reuse / length), data=data, streams=5, length=length)
    whole = line(data, 0, [], [SEP])
    stretch, room = len(whole) // 3, length - reuse - 3
    _, ends = positions(data)
    labels = []
    steps = made.cursors[0].reader.steps(5)
    assert steps == (stretch - reuse - room - 1) // reuse + 1
    for step in range(steps):
        batch = made.batch(5)
        assert batch.per_row["backward"].tolist() == [False, True, False, True, False]
        for stream in range(5):
            mine = whole[stream // 2 * stretch : (stream // 2 + 1) * stretch]
            begins = {sentence[0] for document in documents(data) for sentence in document}
            lasts = ends
            if stream % 2:
                mine, begins, lasts = mine[::-1], ends, begins
            reused, a, b = pair(batch.ids[stream].tolist(), reuse, batch.segment[stream].tolist())
            label = int(batch.label[stream])
            labels.append(label)
            at = step * reuse
            assert reused + a == mine[at : at + reuse + len(a)]
            assert len(a) + len(b) == room
            candidates = [n for n in range(1, room) if mine[at + reuse + n - 1] in lasts]
            assert len(a) in candidates or not candidates
            here = at + reuse + len(a)
            here += mine[here] == SEP and bool(candidates)
            assert (b == mine[here : here + len(b)]) == (label == 0)
            if label:
                sight = set(mine[at : at + reuse + room + 1]) - {SEP}
                assert not sight & set(b)
                text = whole[::-1] if stream % 2 else whole
                assert any(text[i : i + len(b)] == b for i in range(len(text)))  # one unbroken stretch, as it is read
    assert 0.35 < np.mean(labels) < 0.65


def test_a_drawn_second_text_begins_with_a_sentence():
    data = two_shards()
    made = loader(ContinuingPairs(reuse=12 / 32, random=1.0), data=data, streams=2)
    first = {sentence[0] for document in documents(data) for sentence in document}
    last = {sentence[-1] for document in documents(data) for sentence in document}
    found = []
    for _ in range(20):
        batch = made.batch(2)
        for ids, segment, starts in zip(batch.ids.tolist(), batch.segment.tolist(), (first, last), strict=True):
            found.append(pair(ids, 12, segment)[2][0] in starts)
    assert np.mean(found) > 0.8  # the rest belongs to a sentence that the row itself holds the head of


@pytest.mark.parametrize("backward", [False, True])
def test_the_start_of_a_sentence_is_found_from_any_place_in_it(backward):
    data = two_shards()
    forward = Concatenation(data, np.arange(len(data)), (), (1,))
    every = [[s[::-1] for s in d[::-1]] for d in documents(data)[::-1]] if backward else documents(data)
    expected: list[int] = []
    for document in every:
        at = len(expected) + backward  # backward, the separator comes first and counts to the text after it
        expected += [at] * backward
        for sentence in document:
            expected += [at] * len(sentence)
            last, at = at, at + len(sentence)
        expected += [last] * (not backward)
    places = np.arange(len(expected))
    assert (forward.reversed if backward else forward).sentence_start(places).tolist() == expected


def test_the_place_of_a_drawn_text_may_be_anywhere():
    data = collection_of(random_texts(20, 6, 9))
    made = loader(ContinuingPairs(reuse=12 / 32, random=1.0, both=False), data=data, streams=1)
    where, _ = positions(data)
    found = set()
    for _ in range(200):
        batch = made.batch(1)
        found |= {where[t] for t in pair(batch.ids[0].tolist(), 12, batch.segment[0].tolist())[2] if t != SEP}
    assert len(found) > 0.9 * len(where)


def test_units_of_reversed_rows_are_those_of_the_text():
    data = collection_of(with_levels(random_texts(60, 8, 9)))
    shard = data.shards[0]
    made = loader(ContinuingPairs(reuse=12 / 32), data=data, streams=2)

    def breaks(column: str, one: int, two: int) -> bool:
        """Whether a unit ends between two tokens that stand side by side in the text."""
        later = max(one, two)
        if column == "word":
            return bool(shard.columns["word"].values[later] == BEGINS)
        if column == "sentence":
            return later in shard.sentence
        return shard.columns[column].values[later] != 2

    for _ in range(30):
        batch = made.batch(2)
        for row in range(2):
            ids = [token - FIRST if token >= FIRST else None for token in batch.ids[row].tolist()]
            for column in ("word", "sentence", "phrase", "entity"):
                numbers = batch.columns[column][row].tolist()
                marks = shard.columns[column].values if column in ("phrase", "entity") else None
                for token, number in zip(ids, numbers, strict=True):
                    assert (number >= 0) == (token is not None and (marks is None or marks[token] > 0))
                for i in range(len(ids) - 1):
                    one, two = ids[i], ids[i + 1]
                    if one is not None and two is not None and min(numbers[i], numbers[i + 1]) >= 0:
                        assert abs(one - two) == 1
                        assert numbers[i + 1] - numbers[i] == breaks(column, one, two)


def test_a_sentence_longer_than_the_room_is_cut():
    made = loader(ContinuingPairs(reuse=12 / 32), data=collection_of(texts_of([[400]])), streams=2)
    sizes = set()
    for _ in range(20):
        batch = made.batch(2)
        sizes |= {len(pair(i, 12, s)[1]) for i, s in zip(batch.ids.tolist(), batch.segment.tolist(), strict=True)}
    assert sizes <= set(range(1, 17))
    assert len(sizes) > 8
    noted = sum(made.notes.values(), Counter())
    assert noted["first texts that end within a sentence, because the sentence is too long"] >= 40


def test_without_both_all_streams_read_forward():
    data = two_shards()
    made = loader(ContinuingPairs(reuse=12 / 32, both=False), data=data, streams=4)
    whole = line(data, 0, [], [SEP])
    stretch = len(whole) // 4
    batch = made.batch(4)
    assert "backward" not in batch.per_row
    for stream in range(4):
        assert batch.ids[stream, :12].tolist() == whole[stream * stretch : stream * stretch + 12]


def test_streams_are_shared_out_by_weight():
    assert shared_out([1.0], 5) == [5]
    assert shared_out([5, 3, 2], 10) == [5, 3, 2]
    assert shared_out([2, 1], 7) == [5, 2]
    assert shared_out([1, 0.01], 8) == [8, 0]
    plain, known = two_shards(), collection_of(with_levels(random_texts(60, 8, 9)))
    made = loader_of([reader(data=plain), reader(data=known)], [1, 2], 6)
    alone = loader_of([reader(data=plain)], [1.0], 2)
    for _ in range(5):
        for rows in (1, 5):
            batch = made.batch(rows)
            assert batch.columns["phrase"].shape == batch.ids.shape
        assert torch.equal(alone.batch(2).ids[1], batch.ids[0])
        assert (batch.columns["phrase"][0] == -1).all()
        assert (batch.columns["phrase"][1:] >= 0).any()


def test_sets_of_a_mixture_begin_their_visits_each_in_its_time():
    def make(state=None):
        small, large = collection_of(random_texts(8, 6, 9)), two_shards()
        return loader_of([reader(data=small), reader(data=large)], [1, 1], 2, state)

    whole = make()
    for _ in range(20):
        last = whole.batch(2)
    assert last.visit[0] > last.visit[1]
    assert same(make(whole.state()).batch(2), whole.batch(2))


def test_the_next_stage_begins_a_visit_with_any_number_of_streams():
    first = loader(streams=4)
    assert first.after_stage()["places"] == [{"visit": 0, "block": 0, "row": 0}]
    first.batch(4)
    second = loader(streams=2, length=64, state=first.after_stage())
    assert second.batch(2).visit.tolist() == [1, 1]


def test_held_out_text_is_read_in_order_in_at_least_four_rows():
    data = two_shards()
    whole = [token for document in documents(data) for token in [*sum(document, []), SEP]]
    batches = held([reader(data=data, shuffled=False)], 16, 100)
    assert [batch.shape for batch in batches] == [(4, 32)] * 4
    found = torch.stack([batch.ids for batch in batches], 1).reshape(4, -1)
    for stream in range(4):
        begin = stream * (len(whole) // 4)
        assert found[stream].tolist() == whole[begin : begin + 4 * 32]
    tokens = len(whole)
    few = held([reader(data=data, shuffled=False)], 1000, 100)
    streams, steps = len(few[0].ids), len(few)
    assert steps == tokens // streams // 32 >= 4
    assert tokens // (streams + 1) // 32 < 4
    assert len(held([reader(data=data, shuffled=False)], 1000, 3)[0].ids) == 3
    short = collection_of(texts_of([[40]]))
    assert [b.shape for b in held([reader(data=short, shuffled=False)], 1000, 9)] == [(1, 32)]
    assert held([reader(data=collection_of(texts_of([[20]])), shuffled=False)], 1000, 9) == []


@pytest.mark.parametrize("arrange", [ContinuingRows(), ContinuingPairs(reuse=12 / 32)], ids=str)
def test_the_same_arrangement_makes_rows_of_texts_at_hand(arrange):
    texts = random_texts(30, 6, 9)
    layout = PLAIN if isinstance(arrange, ContinuingRows) else XLNET
    runs = arrange.runs(texts, layout, 32, np.random.default_rng(0))
    rows = pack(texts, runs, special_ids(TOKENIZER, layout), 0, 32, arrange.packed)
    assert (rows.example[:-1] == 0).all()
    assert len(rows) > 5
    assert len(examples_of(texts, runs)) == len(rows)
    if isinstance(arrange, ContinuingPairs):
        sentences = [s for d in by_document(texts) for s in d]
        for ids, segment in zip(rows.ids.tolist(), rows.segment.tolist(), strict=True):
            _, a, _ = pair(ids, 12, segment)
            assert a[-1] in {s[-1] for s in sentences}


@pytest.mark.parametrize("tokens", [3, 4, 5, 20, 28])
def test_a_text_that_fills_no_row_makes_a_shorter_one(tokens):
    texts = texts_of([[tokens]])
    runs = ContinuingPairs(reuse=12 / 32).runs(texts, XLNET, 32, np.random.default_rng(0))
    (ids,) = examples_of(texts, runs)
    assert [token for token in ids if token >= FIRST] == list(range(FIRST, FIRST + min(tokens, 29)))


@pytest.mark.parametrize("setting", ["arrange=ContinuingRows", "arrange=ContinuingPairs(reuse=0.25)"])
def test_a_recipe_may_be_given_streams_and_may_leave_them(setting):
    changed = get("gpt2", size="tiny", settings=[setting])
    assert changed.arrange.continuous
    assert getattr(changed.arrange, "reuse", None) == (None if "ContinuingRows" in setting else 0.25)
    assert not override(changed, ["arrange=Blocks"]).arrange.continuous


def test_refusals_say_what_to_do():
    with pytest.raises(
        UserError, match=r"too few for 60 streams with rows of 32 tokens: 3\d would fit, so lower schedule"
    ):
        loader(streams=60)
    with pytest.raises(UserError, match="too few for 1 streams with rows of 900 tokens: 1 would fit|give more text"):
        loader(data=collection_of(texts_of([[20]])), streams=1, length=900)
    with pytest.raises(
        UserError,
        match=r"arrange.reuse=0.875 leaves no room for two texts in a row of 32 tokens: set arrange.reuse=0.5",
    ):
        reader(ContinuingPairs(reuse=28 / 32))
    reader(ContinuingPairs(reuse=27 / 32))
    with pytest.raises(UserError, match="arrange.reuse must be in"):
        ContinuingPairs(reuse=0)
    with pytest.raises(UserError, match="arrange.random must be in"):
        ContinuingPairs(random=50)
    with pytest.raises(UserError, match="is too short to draw a second text"):
        reader(ContinuingPairs(reuse=12 / 32), data=collection_of(texts_of([[60]])))
    with pytest.raises(UserError, match="has no place for a second text"):
        reader(ContinuingPairs(reuse=12 / 32), layout=PLAIN)
    with pytest.raises(
        UserError, match="started with 4 rows in a step, got 3, and each row of a step has .* or start a new run"
    ):
        loader(streams=3, state=loader(streams=4).state())
    with pytest.raises(UserError, match="another number of data sets"):
        loader_of([reader(), reader()], [1, 1], 4, loader(streams=4).state())


@pytest.mark.parametrize("arrange", [ContinuingRows(), ContinuingPairs(reuse=12 / 32)], ids=str)
def test_only_the_first_rows_of_a_visit_begin_a_stretch(arrange):
    made = loader(arrange, streams=4)
    steps = made.cursors[0].reader.steps(4)
    found = [bool(batch.per_row["begins"].all()) for batch in (made.batch(4) for _ in range(2 * steps + 1))]
    assert found == [step % steps == 0 for step in range(2 * steps + 1)]
