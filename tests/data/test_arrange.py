"""Arrangements against plain loops written from the papers: BERT's pairs, RoBERTa's full sentences, GPT-2's stream."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np
import pytest

from tests.data.made import CLS, FIRST, SEP, by_document, examples_of, random_texts, texts_of
from unmask import recipes
from unmask.data import Blocks, FromTask, FullRows, NextSentence
from unmask.data.arrange import special_ids
from unmask.data.pairs import CUT, DRAWN, READ, Walk, truncate
from unmask.errors import UserError
from unmask.text import Characters, WordBPE, train

BERT, ROBERTA, GPT = "[CLS] a [SEP] b [SEP]", "[CLS] a [SEP]", "a [SEP]"


def dice(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def pairs_of(texts, arrange, length, seed=0):
    """(a, b, label) as lists of ids, read back from the rendered examples."""
    runs = arrange.runs(texts, BERT, length, dice(seed))
    found = []
    for ids, label in zip(examples_of(texts, runs), runs.label.tolist(), strict=True):
        middle = ids.index(SEP)
        assert ids[0] == CLS
        assert ids[-1] == SEP
        assert ids.count(SEP) == 2
        assert len(ids) <= length
        found.append((ids[1:middle], ids[middle + 1 : -1], label))
    return found


def places(texts):
    """The document and the sentence of every token id."""
    return {
        token: (d, s)
        for d, document in enumerate(by_document(texts))
        for s, sentence in enumerate(document)
        for token in sentence
    }


def test_a_pair_that_follows_follows_and_a_drawn_one_comes_from_another_document():
    texts = random_texts(40, 12, 15)
    where = places(texts)
    found = pairs_of(texts, NextSentence(), 64)
    assert {label for _, _, label in found} == {0, 1}
    for a, b, label in found:
        assert a
        assert b
        for text in (a, b):
            assert text == list(range(text[0], text[0] + len(text)))  # one unbroken stretch
            assert len({where[token][0] for token in text}) == 1  # of one document
        same = where[a[0]][0] == where[b[0]][0]
        assert same == (label == 0)
        if label == 0 and len(a) + len(b) < 61:  # nothing was cut
            assert b[0] == a[-1] + 1


def next_pairs(texts, room, random=0.5, short=0.1):
    """(a0, a1, b0, b1, label) before anything is cut."""
    walk = Walk(texts, (1 - random, 0.0, random), short, lonely=True)
    return [(*span, int(how == DRAWN)) for *span, how in walk.pairs(room, dice(), Counter())]


@pytest.mark.parametrize("random", [0.0, 0.5, 1.0])
def test_pairs_are_the_walk_of_the_paper(random):
    """Steps of BERT's create_pretraining_data.py, each checked by a loop over sentences, before anything is cut."""
    texts = random_texts(30, 15, 9, seed=1)
    room = 40
    documents, where = by_document(texts), places(texts)
    walk = iter(next_pairs(texts, room, random=random, short=0.0))
    for d, document in enumerate(documents):
        i = 0
        while i < len(document):
            a0, a1, b0, b1, label = next(walk)
            j, size = i, 0
            while j < len(document) and size < room:  # the chunk: sentences until the target length is reached
                size += len(document[j])
                j += 1
            assert a0 + FIRST == document[i][0]
            split = next(s for s in range(i + 1, j + 1) if a1 + FIRST == document[s - 1][-1] + 1)
            assert split < j or j - i == 1
            if j - i == 1:
                assert label == 1  # nothing is left to follow
            if label == 0:
                assert (b0, b1 + FIRST) == (a1, document[j - 1][-1] + 1)
                i = j
            else:
                other, first = where[b0 + FIRST]
                assert other != d
                assert documents[other][first][0] == b0 + FIRST
                size, last = 0, first
                while last < len(documents[other]):
                    size += len(documents[other][last])
                    last += 1
                    if size >= room - (a1 - a0):
                        break
                assert b1 - b0 == size
                i = split  # the rest of the chunk is used again
    assert next(walk, None) is None


@pytest.mark.parametrize("random", [0.0, 0.5])
def test_every_sentence_is_part_of_a_first_text_or_of_one_that_follows(random):
    texts = random_texts(30, 10, 12)
    covered = np.zeros(len(texts.ids), int)
    for a0, a1, b0, b1, label in next_pairs(texts, 61, random=random):
        covered[a0:a1] += 1
        if label == 0:
            covered[b0:b1] += 1
    assert (covered == 1).all()


def test_half_of_the_pairs_are_drawn_and_the_split_is_uniform():
    texts = texts_of([[1] * 2000 for _ in range(40)])  # sentences of one token: every target is met exactly
    room = 61
    labels = np.array([pair[4] for pair in next_pairs(texts, room)])
    assert abs(labels.mean() - 0.5) < 4 * 0.5 / len(labels) ** 0.5
    follows = next_pairs(texts, room, random=0.0, short=0.0)
    firsts = np.array([a1 - a0 for a0, a1, _, b1, _ in follows if b1 - a0 == room])
    counts = np.bincount(firsts, minlength=room)[1:]
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 100  # 59 degrees of freedom, 99.9%


@pytest.mark.parametrize(
    "shares", [(0.5, 0.0, 0.5), (0.5, 0.5, 0.0), (0.34, 0.33, 0.33)], ids=["BERT", "ALBERT", "three"]
)
def test_a_tenth_of_the_documents_aim_at_a_random_shorter_length_each_at_one(shares):
    """As in the programs of BERT and ALBERT: the target is drawn before the walk over a document, and stays."""
    documents, size, room = 2000, 200, 61
    texts = texts_of([[1] * size for _ in range(documents)])  # sentences of one token: every target is met exactly
    targets = [set() for _ in range(documents)]
    for a0, a1, b0, b1, how in Walk(texts, shares, 0.1, lonely=False).pairs(room, dice(), Counter()):
        document = a0 // size
        ends = (document + 1) * size, (b0 // size + 1) * size
        if a0 + room + 2 <= ends[0] and b1 < ends[1]:  # no end of a document cuts it short
            targets[document].add(a1 - a0 + b1 - b0)
            assert how == DRAWN or b0 == a1
    assert all(len(found) == 1 for found in targets)
    lengths = np.array([found.pop() for found in targets])
    assert lengths.max() == room
    assert lengths.min() >= 2
    wanted = 0.1 * (room - 2) / (room - 1)
    short = lengths[lengths < room]
    assert abs(len(short) / documents - wanted) < 4 * (wanted * (1 - wanted) / documents) ** 0.5
    assert abs(short.mean() - (2 + room - 1) / 2) < 4 * 17 / len(short) ** 0.5


def test_drawn_texts_come_from_all_other_documents_and_places():
    texts = texts_of([[1] * 1500 for _ in range(6)])
    seen = set()
    for a0, _, b0, _, label in next_pairs(texts, 20, random=1.0):
        assert label == 1
        seen.add((a0 // 1500, b0 // 1500))
    assert seen == {(a, b) for a in range(6) for b in range(6) if a != b}


def test_truncation_takes_from_the_longer_text_one_token_at_a_time():
    rng = dice(3)
    a = np.cumsum(rng.integers(1, 60, (500, 2)), 1)
    b = np.cumsum(rng.integers(1, 60, (500, 2)), 1)
    for chance in (None, dice(4)):
        cut_a, cut_b = a.copy(), b.copy()
        lost = truncate(cut_a, cut_b, 50, chance)
        for k in range(500):
            x, y = int(a[k, 1] - a[k, 0]), int(b[k, 1] - b[k, 0])
            total = x + y
            while x + y > 50:
                if x > y:
                    x -= 1
                else:
                    y -= 1
            assert (cut_a[k, 1] - cut_a[k, 0], cut_b[k, 1] - cut_b[k, 0]) == (x, y)
            assert lost[k] == total - x - y
            assert a[k, 0] <= cut_a[k, 0] <= cut_a[k, 1] <= a[k, 1]
            if chance is None:
                assert cut_a[k, 0] == a[k, 0]
                assert cut_b[k, 0] == b[k, 0]


def test_truncation_by_chance_takes_half_from_the_front():
    a, b = np.tile([0, 1000], (400, 1)), np.tile([0, 10], (400, 1))
    truncate(a, b, 510, dice())
    assert abs(a[:, 0].mean() - 250) < 4 * (500 * 0.25 / 400) ** 0.5


def test_cut_tokens_are_noted():
    runs = NextSentence().runs(texts_of([[50, 50], [50, 50]]), BERT, 32, dice())
    assert 0 < runs.notes[CUT] < runs.notes[READ]
    assert not NextSentence(random=0.0, short=0.0).runs(texts_of([[3, 3], [3, 3]]), BERT, 32, dice()).notes


def test_pairs_need_two_documents_and_some_room():
    with pytest.raises(UserError, match="need two documents or more"):
        NextSentence().runs(texts_of([[3, 3]]), BERT, 32, dice())
    with pytest.raises(UserError, match="leave no room for a pair"):
        NextSentence().runs(texts_of([[3], [3]]), BERT, 4, dice())
    with pytest.raises(UserError, match=r"arrange.random must be in \[0, 1\], got 50"):
        NextSentence(random=50)


def test_segments_of_a_pair_are_those_of_the_layout():
    runs = NextSentence(random=0.0, short=0.0).runs(texts_of([[3, 4], [5, 6]]), BERT, 32, dice())
    assert runs.segment.reshape(-1, 5).tolist() == [[0, 0, 0, 1, 1]] * len(runs.label)
    assert (runs.summary % 5 == 0).all()


def full_sentences(texts, length: int, cross: bool) -> list[list[int]]:
    """RoBERTa's FULL-SENTENCES: sentences in order until the next does not fit; a separator ends each document's part."""
    blocks: list[list[list[int]]] = []  # of parts
    for document in by_document(texts):
        begun = False
        for sentence in document:
            pieces = [sentence[k : k + length - 2] for k in range(0, len(sentence), length - 2)]
            for piece in pieces:
                used = 1 + sum(len(part) + 1 for part in blocks[-1]) if blocks else length
                if begun and used + len(piece) <= length:
                    blocks[-1][-1].extend(piece)
                elif not begun and cross and used + len(piece) + 1 <= length:
                    blocks[-1].append(list(piece))
                else:
                    blocks.append([list(piece)])
                begun = True
    return [[CLS, *chain.from_iterable([*part, SEP] for part in parts)] for parts in blocks]


@pytest.mark.parametrize("cross", [True, False])
@pytest.mark.parametrize("length, longest", [(32, 9), (16, 40), (64, 30), (8, 3)])
def test_blocks_are_full_sentences_packed_greedily(cross, length, longest):
    texts = random_texts(60, 10, longest, seed=length)
    runs = Blocks(cross=cross).runs(texts, ROBERTA, length, dice())
    assert examples_of(texts, runs) == full_sentences(texts, length, cross)
    split = sum(len(s) > length - 2 for document in by_document(texts) for s in document)
    assert runs.notes["sentences longer than a row, split"] == split


@pytest.mark.parametrize("cross", [True, False])
def test_filled_blocks_begin_alike_and_are_full_unless_the_document_ends(cross):
    texts = random_texts(60, 10, 20, seed=2)
    plain = examples_of(texts, Blocks(cross=cross).runs(texts, ROBERTA, 48, dice()))
    filled = examples_of(texts, Blocks(cross=cross, fill=True).runs(texts, ROBERTA, 48, dice()))
    ends = {document[-1][-1] for document in by_document(texts)}
    assert len(plain) == len(filled)
    for before, after in zip(plain, filled, strict=True):
        assert after[: len(before) - 1] == before[:-1]
        added = after[len(before) - 1 : -1]
        assert added == list(range(before[-2] + 1, before[-2] + 1 + len(added)))  # the head of what follows
        assert after[-1] == SEP
        assert len(after) == 48 or after[-2] in ends
    assert any(len(a) < len(b) for a, b in zip(plain, filled, strict=True))


def test_roberta_never_cuts_a_sentence_that_fits_a_row_and_repeats_none():
    texts = random_texts(60, 10, 20, seed=4)
    for variant in ("paper", "document", "static"):
        blocks = examples_of(texts, recipes.get("roberta", variant=variant).arrange.runs(texts, ROBERTA, 48, dice()))
        read = [token for block in blocks for token in block if token not in (CLS, SEP)]
        assert read == texts.ids.tolist()
        starts = {sentence[0] for document in by_document(texts) for sentence in document}
        assert all(block[1] in starts for block in blocks)


def test_blocks_summarise_by_cls_or_by_their_last_token():
    texts = random_texts(20, 6, 9)
    for layout, place in ((ROBERTA, 0), (GPT, -1), ("a [SEP] [CLS]", -1)):
        runs = Blocks().runs(texts, layout, 32, dice())
        for number, run in enumerate(runs.summary.tolist()):
            mine = np.flatnonzero(runs.example == number)
            assert run == mine[place]


def test_blocks_may_share_rows_only_if_they_end_with_their_document():
    assert not Blocks(cross=True).packed
    assert Blocks(cross=False).packed


def test_blocks_need_room_for_a_sentence():
    with pytest.raises(UserError, match="leave no room for a sentence"):
        Blocks().runs(texts_of([[3]]), ROBERTA, 2, dice())


@pytest.mark.parametrize("length", [1, 7, 16, 10_000])
@pytest.mark.parametrize("layout", [GPT, ROBERTA])
def test_a_stream_is_all_documents_end_to_end_cut_into_full_rows(layout, length):
    texts = random_texts(25, 6, 9)
    runs = FullRows().runs(texts, layout, length, dice())
    examples = examples_of(texts, runs)
    opening = [CLS] if layout == ROBERTA else []
    expected = [[*opening, *chain.from_iterable(document), SEP] for document in by_document(texts)]
    assert list(chain.from_iterable(examples)) == list(chain.from_iterable(expected))
    assert all(len(example) == length for example in examples[:-1])
    assert 1 <= len(examples[-1]) <= length
    assert runs.summary.tolist() == [np.flatnonzero(runs.example == e)[-1] for e in range(len(examples))]


def test_given_examples_cannot_be_arranged():
    with pytest.raises(UserError, match="cannot be pretrained"):
        FromTask().runs(texts_of([[3]]), GPT, 8, dice())


def test_special_ids_are_those_the_layout_needs():
    tokenizer = train(Characters(vocab=20), ["some text"])
    roles = tokenizer.roles
    assert special_ids(tokenizer, BERT)[:3] == [roles["cls"], roles["sep"], roles["mask"]]
    gpt = train(WordBPE(vocab=16), ["some text some text"])
    ids = special_ids(gpt, "[START] a [DELIMITER] b [EXTRACT]")
    assert ids[3:] == [gpt.role("start"), gpt.role("delimiter"), gpt.role("extract")]
    with pytest.raises(UserError, match=r"no start token \(none of <start>\)"):
        special_ids(tokenizer, "[START] a [DELIMITER] b [EXTRACT]")
