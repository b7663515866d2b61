"""Chinese whole words, from the text to the masked row: every hidden unit is one word of the segmenter."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.small import masking
from unmask.batch import Batch
from unmask.data import Blocks, Texts
from unmask.data.arrange import special_ids
from unmask.data.pack import pack
from unmask.data.pack_examples import batch_of
from unmask.hide import Words
from unmask.text import ByteBPE, Characters, Tokenizer, WordPiece, encode_documents, train

rjieba = pytest.importorskip("rjieba")

LAYOUT, LENGTH = "[CLS] a [SEP]", 96
COMMON = "我们今天去北京大学看望老师和同学他说中国经济发展很快"
LINES = [
    "我们今天去北京大学看望老师和同学。", "他说中国经济发展很快，大家都很高兴！", "我买了3件T恤和2部iPhone14手机，共3.5万元。",
    "龘靐齉爩是很难写的汉字，𠮷野家不是。", "Hello世界，C++和Python都是编程语言。", "今天气温是-3.14℃，café很暖和😀👩‍🚀。",
    "ＡＢＣ１２３（全角）与abc123（半角）", "他的e-mail是wang_li@example.com.cn，请联系。", "乒乓球拍卖完了。", "研究生命的起源",
]  # fmt: skip


def made(kind: str) -> Tokenizer:
    """Trained on common characters alone, so that rarer ones are [UNK] (or bytes)."""
    corpus = [
        COMMON,
        "hello hello python python mail mail example example abc abc 123 123 com com",
        "，。！（）.@+-_ " * 2,
    ] * 3
    kinds = {"wordpiece": WordPiece(vocab=90), "characters": Characters(vocab=60), "byte-bpe": ByteBPE(vocab=300)}
    return train(kinds[kind], corpus)


TOKENIZERS = {kind: made(kind) for kind in ("wordpiece", "characters", "byte-bpe")}


def rows_of_documents(texts: list[str], tokenizer: Tokenizer) -> Batch:
    """Through encoding, arranging and packing, several texts in a row; the label of an example is its text's number."""
    joined = Texts.of(encode_documents(texts, tokenizer, "rjieba"))
    runs = Blocks(cross=False, fill=False).runs(joined, LAYOUT, LENGTH, None)
    assert len(runs.label) == len(texts)  # every text is one example
    runs = replace(runs, label=np.arange(len(texts)))
    rows = pack(joined, runs, special_ids(tokenizer, LAYOUT), tokenizer.vocabulary.pad, LENGTH, True)
    batch = batch_of(rows, np.arange(len(rows)))
    assert batch.shape[1] <= LENGTH
    return batch


def places_of(batch: Batch) -> dict[int, tuple[int, list[int]]]:
    """For every text, its row and the places of its tokens, [CLS] and [SEP] left out."""
    slots = len(batch.label) // batch.shape[0]
    found = {}
    for index in batch.counted.nonzero()[:, 0].tolist():
        row, slot = divmod(index, slots)
        at = [p for p in range(batch.shape[1]) if batch.example[row, p] == slot]
        found[int(batch.label[index])] = (row, at[1:-1])
    return found


def words_of(text: str) -> list[tuple[int, int]]:
    """First and last character (exclusive) of every word, as the segmenter cuts the text itself."""
    ends = np.cumsum([len(word) for word in rjieba.cut(text)]).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def units_of(text: str, tokenizer: Tokenizer) -> list[tuple[list[int], set[int]]]:
    """By the tokenizer's own offsets: neighbouring tokens that touch the same word are one unit; and its words.

    There is one word in a unit, unless a token itself reaches from one word into the next."""
    words = words_of(text)
    found: list[tuple[list[int], set[int]]] = []
    for number, (start, end) in enumerate(tokenizer.backend.encode(text, add_special_tokens=False).offsets):
        while text[start].isspace():  # a space counts to the word that it stands before
            start += 1
        touched = {w for w, (a, b) in enumerate(words) if a < max(end, start + 1) and start < b}
        assert touched
        if found and found[-1][1] & touched:
            found[-1][0].append(number)
            found[-1][1].update(touched)
        else:
            found.append(([number], touched))
    return found


def check(texts: list[str], tokenizer: Tokenizer, budget: float, seed: int) -> int:
    """Every property of the masked rows; returns how many units were hidden."""
    batch = rows_of_documents(texts, tokenizer)
    after = masking(units=Words(), budget=budget).apply(batch, tokenizer.vocabulary, seed)
    targets, length = after.targets["tokens"], batch.shape[1]
    used = targets.weight > 0
    hidden = {int(w): (int(i), int(a), int(b)) for w, i, a, b in
              zip(targets.where[used], targets.ids[used], targets.start[used], targets.end[used], strict=True)}  # fmt: skip
    count = 0
    for number, (row, at) in places_of(batch).items():
        plain = tokenizer.backend.encode(texts[number], add_special_tokens=False).ids
        assert batch.ids[row, at].tolist() == plain  # nothing lost on the way, [UNK] included
        assert batch.ids[row, at[0] - 1] == tokenizer.role("cls") == after.ids[row, at[0] - 1]
        assert batch.ids[row, at[-1] + 1] == tokenizer.role("sep") == after.ids[row, at[-1] + 1]
        for tokens, _ in units_of(texts[number], tokenizer):
            flat = [row * length + at[t] for t in tokens]
            chosen = [f in hidden for f in flat]
            assert all(chosen) or not any(chosen)
            assert not (chosen[0] and tokenizer.role("unk") in [plain[t] for t in tokens])
            if not chosen[0]:
                assert after.ids[row, [at[t] for t in tokens]].tolist() == [plain[t] for t in tokens]
                continue
            count += 1
            for f, t in zip(flat, tokens, strict=True):
                assert hidden[f] == (plain[t], flat[0], flat[-1])
    assert count == len({(a, b) for _, a, b in hidden.values()})
    return count


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_every_hidden_unit_is_one_word_of_the_segmenter(kind):
    plain = [*LINES[:4], *LINES[-2:]]  # in the others the segmenter parts "caf" and "é", which may be one token
    joined = [text for text in plain if any(len(words) > 1 for _, words in units_of(text, TOKENIZERS[kind]))]
    assert joined == ([LINES[0]] if kind == "byte-bpe" else [])  # where a token holds bytes of 师 and of 和
    lines = [text for text in LINES if text not in joined]
    assert sum(check(lines, TOKENIZERS[kind], 0.4, seed) for seed in range(5)) > 50


def test_a_word_whose_first_byte_is_in_the_token_before_is_hidden_with_it():
    check(LINES[:1], TOKENIZERS["byte-bpe"], 0.4, 0)


def test_known_words_are_whole_and_neighbours_are_not_joined():
    """By hand, not by the segmenter: what a reader would call a word."""
    units = [
        {
            text[words_of(text)[w][0] : words_of(text)[w][1]]
            for _, ws in units_of(text, TOKENIZERS["wordpiece"])
            for w in ws
        }
        for text in LINES
    ]
    assert {"北京大学", "老师", "今天"} <= units[0]
    assert {"T恤", "iPhone14", "3.5"} <= units[2]  # Latin letters, digits and a point within a word
    batch = rows_of_documents(["今天气温是3.5"], TOKENIZERS["wordpiece"])
    assert batch.columns["word"][0, :10].tolist() == [-1, 0, 0, 1, 1, 2, 3, 3, 3, -1]


def test_a_word_with_an_unknown_character_is_not_hidden_and_the_others_are():
    tokenizer = TOKENIZERS["wordpiece"]
    unknown, text = tokenizer.role("unk"), "今天的气温很高，齉字难写"
    batch = rows_of_documents([text], tokenizer)
    plain = batch.ids[0, 1:-1].tolist()
    assert plain.count(unknown) >= 4
    known = {1 + t for tokens, _ in units_of(text, tokenizer) for t in tokens
             if all(plain[other] != unknown for other in tokens)}  # fmt: skip
    assert 0 < len(known) < sum(i != unknown for i in plain)  # a known character of a word with an unknown one
    seen: set[int] = set()
    for seed in range(40):
        after = masking(units=Words(), budget=0.5).apply(batch, tokenizer.vocabulary, seed)
        seen |= set(after.targets["tokens"].where[after.targets["tokens"].weight > 0].tolist())
        assert unknown not in after.ids[after.ids != batch.ids].tolist()  # never drawn
    assert seen == known


ALPHABET = (
    list(COMMON) + list("龘靐齉爩𠮷䶮々〇") + list("，。！？、：《》（）“”…—") + list("abcXYZéñİß") + list("0123456789")
    + list(".,!?-_@#+%&' ") + list("１２ＡＢ℃㎡①") + ["😀", "👩‍🚀", "🇨🇳", "️", "T恤", "3.14", "C++", "北京大学", "hello "]
)  # fmt: skip
MIXED = st.lists(st.sampled_from(ALPHABET), min_size=1, max_size=22).map("".join)


@given(texts=st.lists(MIXED, min_size=1, max_size=3), seed=st.integers(0, 1 << 30), budget=st.floats(0.1, 1.0),
       kind=st.sampled_from(["wordpiece", "characters"]))  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_any_mixture_of_scripts_is_hidden_by_the_words_of_the_segmenter(texts, seed, budget, kind):
    tokenizer = TOKENIZERS[kind]
    texts = [text.strip() for text in texts]
    assume(all(any("一" <= c <= "鿿" for c in text) for text in texts))  # others are cut at spaces
    assume(all(tokenizer.encode(text) for text in texts))
    assume(all(tokenizer.roles.get("mask") not in tokenizer.encode(text) for text in texts))
    check(texts, tokenizer, budget, seed)


def test_a_whole_clause_is_one_word_for_transformers_and_several_for_us():
    """Its whole-word masking joins tokens whose offsets touch: Chinese has no spaces, so a clause is one word."""
    transformers = pytest.importorskip("transformers")
    collator = getattr(transformers, "DataCollatorForLanguageModeling", None)
    if collator is None or "whole_word_mask" not in inspect.signature(collator).parameters:
        pytest.skip("this version of transformers masks no whole words by offsets")
    ours, clause = TOKENIZERS["wordpiece"], "我们今天去北京大学看望老师和同学"
    names = {f"{role}_token": ours.token(ours.role(role)) for role in ("pad", "unk", "cls", "sep", "mask")}
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=ours.backend, **names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hide = collator(theirs, whole_word_mask=True, mlm_probability=0.3, seed=0)
    told = theirs(clause, return_offsets_mapping=True, return_special_tokens_mask=True, add_special_tokens=False)
    shares = {float((hide([dict(told)])["labels"] >= 0).float().mean()) for _ in range(60)}
    assert shares == {0.0, 1.0}  # all of it or nothing: a clause, not a word

    batch = rows_of_documents([clause], ours)
    text = batch.columns["word"] >= 0
    hidden = torch.zeros_like(text)
    sizes = set()
    for seed in range(60):
        targets = masking(units=Words(), budget=0.3).apply(batch, ours.vocabulary, seed).targets["tokens"]
        used = targets.weight > 0
        sizes |= set((targets.end - targets.start + 1)[used].tolist())
        hidden.flatten()[targets.where[used]] = True
        assert 0 < int(used.sum()) < int(text.sum())
    assert sizes == {1, 2, 4}  # 去, 今天, 北京大学
    assert torch.equal(hidden, text)  # and every word has its turn
