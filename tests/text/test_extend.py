"""New tokens of a corpus join a tokenizer: old ids stay, new tokens are matched, and their old pieces are known."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from tests.conftest import documents, sentence
from unmask import text
from unmask.errors import UserError
from unmask.text import Tokenizer
from unmask.text.extend import extend

WORDS = ("cardiomyopathy", "cardiology", "thrombocytopenia", "nephrologist", "angiotensin")


def medical(count: int = 40) -> list[str]:
    dice = random.Random(1)
    made = [sentence(dice).lower().replace("report", dice.choice(WORDS)) for _ in range(6 * count)]
    return [" ".join(made[i : i + 6]) for i in range(0, len(made), 6)]


@pytest.mark.parametrize("kind", ["wordpiece", "byte-bpe", "word-bpe", "unigram"])
def test_old_tokens_keep_their_ids_and_old_text_its_tokens(kind, tokenizers, tmp_path):
    old = tokenizers[kind]
    made = extend(old, medical(), 12)
    made.tokenizer.save(tmp_path / "tokenizer.json")
    new = Tokenizer.load(tmp_path / "tokenizer.json")
    assert new.checksum == made.tokenizer.checksum
    before, after = (one.backend.get_vocab() for one in (old, new))
    assert {name: after[name] for name in before} == before
    size = old.vocabulary.size
    assert [after[one.name] for one in made.added] == list(range(size, size + len(made.added)))
    assert new.vocabulary.special == old.vocabulary.special
    words = sorted({word for one in documents(40) for word in one.split()})
    untouched = [word for word in words if all(i < size for i in new.encode(word))]
    assert len(untouched) > 10
    assert [new.encode(one) for one in untouched] == [old.encode(one) for one in untouched]


@pytest.mark.parametrize("kind", ["wordpiece", "byte-bpe", "word-bpe", "unigram"])
def test_new_tokens_are_matched_and_know_their_old_pieces(kind, tokenizers):
    old = tokenizers[kind]
    made = extend(old, medical(), 150)
    size = old.vocabulary.size
    pieces = {size + i: one.pieces for i, one in enumerate(made.added)}
    for one in [f"the {word}" for word in WORDS]:
        found = made.tokenizer.encode(one)
        assert any(i >= size for i in found)
        assert made.tokenizer.decode(found) == old.decode(old.encode(one))
        if kind != "unigram":  # a unigram model may cut a text at other places when it has more pieces
            assert [piece for i in found for piece in pieces.get(i, (i,))] == old.encode(one)
    for i, those in pieces.items():
        spelled = made.tokenizer.token(i)
        assert "".join(map(old.token, those)).replace("##", "") == spelled
        if kind == "unigram":
            assert [token.id for token in made.tokenizer.backend.model.tokenize(spelled)] == [i]
            assert tuple(token.id for token in old.backend.model.tokenize(spelled)) == those
    assert sum(map(len, map(made.tokenizer.encode, medical()))) < sum(map(len, map(old.encode, medical())))


def test_word_pieces_are_the_words_whose_splitting_costs_most(tokenizers):
    old = tokenizers["wordpiece"]
    times = Counter(word.strip(".!?") for one in medical() for word in one.split())
    cost = {word: n * (len(old.encode(word)) - 1) for word, n in times.items() if len(old.encode(word)) > 1 and n > 1}
    wanted = sorted(cost, key=lambda word: (-cost[word], word))[:3]
    assert [one.name for one in extend(old, medical(), 3).added] == wanted


@pytest.mark.parametrize("kind", ["byte-bpe", "word-bpe"])
def test_bpe_learns_the_merges_that_counting_again_each_time_gives(kind, tokenizers):
    old = tokenizers[kind]
    split = Counter()
    for one in medical():
        for word, _ in old.backend.pre_tokenizer.pre_tokenize_str(old.backend.normalizer.normalize_str(one)
                                                                  if old.backend.normalizer else one):  # fmt: skip
            split[tuple(token.value for token in old.backend.model.tokenize(word))] += 1
    split = Counter({word: n for word, n in split.items() if n > 1})
    wanted, known = [], set(old.backend.get_vocab())
    while len(wanted) < 15:
        pairs: Counter = Counter()
        for word, n in split.items():
            for pair in pairwise(word):
                pairs[pair] += n
        pair = min((p for p in pairs if "".join(p) not in known), key=lambda p: (-pairs[p], p))
        wanted.append(pair)
        known.add("".join(pair))
        joined: Counter = Counter()
        for word, n in split.items():
            now: list[str] = []
            for piece in word:
                if now and (now[-1], piece) == pair:
                    now[-1] = "".join(pair)
                else:
                    now.append(piece)
            joined[tuple(now)] += n
        split = joined
    assert [one.more for one in extend(old, medical(), 15).added] == wanted


def test_a_special_token_outside_the_model_keeps_its_id(tokenizers):
    backend = Backend(models.BPE(vocab={"a": 0, "b": 1, "c": 2, "ab": 3}, merges=[("a", "b")]))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.add_special_tokens(["<pad>", "<mask>"])
    made = extend(Tokenizer(backend), ["abc abc <mask>"], 5)
    assert made.tokenizer.encode("abc <mask>") == [6, 5]
    assert made.added[0].pieces == (3, 2)


@pytest.mark.parametrize("kind, said", [
    (text.Bytes(), "a token for each byte"), (text.Characters(), "a token for each word or character"),
    (text.WholeWords(), "a token for each word or character"),
])  # fmt: skip
def test_a_kind_without_pieces_is_refused_by_name(kind, said):
    with pytest.raises(UserError, match=f"{said} cannot be extended.*train a new tokenizer"):
        extend(text.train(kind, documents(20), at_most=True), medical(), 5)


def test_a_corpus_without_split_words_has_nothing_to_add(tokenizers):
    with pytest.raises(UserError, match="there is nothing to add"):
        extend(tokenizers["wordpiece"], ["the doctor. the doctor. the patient."], 5)
    with pytest.raises(UserError, match="1 or more, got 0"):
        extend(tokenizers["wordpiece"], medical(), 0)


def test_unknown_characters_are_no_pieces(tokenizers):
    words = ["th\u0436 r\u0436gime th\u0436 caf\u0436 windowsill windowsill engineering engineering\n"] * 50
    for kind in ("wordpiece", "unigram"):
        tokenizer = tokenizers[kind]
        unknown = tokenizer.vocabulary.unknown
        assert unknown in tokenizer.encode("\u0436")
        assert all(unknown not in new.pieces for new in extend(tokenizer, words, 30).added), kind
