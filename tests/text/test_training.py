"""The same text gives the same tokenizer, in every process; and a vocabulary that cannot be had is told with one that can."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter

import pytest
from tokenizers import pre_tokenizers, trainers

from tests.command import mistake, works
from tests.conftest import documents
from unmask.errors import UserError
from unmask.text import BPE, KINDS, Unigram, WordBPE, WordPiece, kind_named, train, train_to_file
from unmask.text import training as module
from unmask.text.tokenizer import BERT_NAMES, GPT_NAMES

CHINESE = [
    "他说：“我用 Python 写。” <unk> 北京大学在北京 ①②③ ＡＢＣ\n",
    "上海大学不在北京，naïve café Żółć 我们的学校\n",
]


def invented(count: int) -> list[str]:
    """Lines of words that nobody knows, most of them rare: many pairs of characters are equally frequent."""
    dice = random.Random(0)
    words = ["".join(dice.choices("aeioubcdfglmnprst", k=dice.randint(2, 9))) for _ in range(3000)]
    return [" ".join(words[int(3000 * dice.random() ** 2)] for _ in range(12)) + "\n" for _ in range(count)]


TEXTS = documents(50, seed=1) + invented(600) + CHINESE * 3
VOCAB = {
    "wordpiece": 400,
    "bpe": 400,
    "word-bpe": 400,
    "byte-bpe": 400,
    "unigram": 100,
    "characters": 40,
    "whole-words": 60,
}
SCRIPT = """
import sys
from tests.text.test_training import TEXTS, VOCAB
from unmask.text import kind_named, train
for name, vocab in VOCAB.items():
    print(name, train(kind_named(name, vocab), TEXTS).checksum)
"""


def test_every_kind_is_the_same_in_every_process():
    seen = set()
    for number in (1, 2, 3, 4):
        set_up = {"PYTHONHASHSEED": str(number), "RAYON_NUM_THREADS": str(number), "PYTHONPATH": os.getcwd()}
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=os.environ | set_up, capture_output=True, text=True, check=True
        )
        seen.add(ran.stdout)
    assert len(seen) == 1
    assert len(ran.stdout.splitlines()) == len(KINDS) - 1  # bytes are not trained


def naive(words: Counter[str], names: list[str], size: int, prefix: str, suffix: str) -> tuple[list[str], list]:
    """BPE by an explicit loop: the most frequent pair first; of equal ones that with the smaller ids."""

    def split(word):
        marked = [*word[0], *(prefix + character for character in word[1:])]
        return [*marked[:-1], marked[-1] + suffix]

    symbols = {symbol for word in words for symbol in split(word)} | {character for word in words for character in word}
    vocab = names + sorted(symbols, key=lambda symbol: (len(symbol) > 1, symbol))
    parts, merges = {word: split(word) for word in words}, []
    while len(vocab) < size:
        pairs: Counter = Counter()
        for word, pieces in parts.items():
            for pair in zip(pieces, pieces[1:], strict=False):
                pairs[pair] += words[word]
        pair = min(pairs, key=lambda pair: (-pairs[pair], vocab.index(pair[0]), vocab.index(pair[1])), default=None)
        if pair is None or pairs[pair] < 2:
            break
        new = pair[0] + pair[1].removeprefix(prefix)
        merges.append(list(pair))
        vocab += [new] * (new not in vocab)
        for word, pieces in parts.items():
            joined: list[str] = []
            for piece in pieces:
                if joined and (joined[-1], piece) == pair and joined[-1] is not None:
                    joined[-1] = new
                else:
                    joined.append(piece)
            parts[word] = joined
    return vocab, merges


@pytest.mark.parametrize(
    ("kind", "names", "prefix", "suffix"),
    [(WordPiece(vocab=170), BERT_NAMES, "##", ""), (WordBPE(vocab=170), GPT_NAMES, "", "</w>")],
)
def test_merges_are_those_of_an_explicit_loop(kind, names, prefix, suffix):
    texts = [*documents(12, seed=2), *CHINESE]
    backend, _ = kind.blank()
    words = Counter(
        word
        for text in texts
        for word, _ in backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(text))
    )
    vocab, merges = naive(words, names, 170, prefix, suffix)
    state = json.loads(train(kind, texts).backend.to_str())
    assert sorted(state["model"]["vocab"], key=state["model"]["vocab"].get) == vocab
    assert state["model"].get("merges", merges) == merges
    assert [token["content"] for token in state["added_tokens"]] == names


@pytest.mark.parametrize("suffix", [None, "</w>"])
def test_a_limited_alphabet_keeps_the_commonest_characters_and_of_equal_ones_the_first(suffix):
    text = "".join(
        character * times for character, times in zip("zyxwvutsrq", (9, 8, 7, 3, 3, 3, 3, 3, 3, 3), strict=True)
    )
    kept = "rqzyxs"  # q, r, s, ... come equally often

    class Limited:
        vocab, at_most = 20, True

        def blank(self):
            backend, _ = BPE().blank()
            backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
            marks = {} if suffix is None else {"end_of_word_suffix": suffix}
            made = {"limit_alphabet": 6, "special_tokens": BERT_NAMES, "min_frequency": 99, "show_progress": False}
            return backend, trainers.BpeTrainer(vocab_size=20, **made, **marks)

    found = set(train(Limited(), [" ".join(text)]).backend.get_vocab()) - set(BERT_NAMES)
    assert {token.removesuffix(suffix or "") for token in found} == set(kept)
    assert {len(token) for token in found} == ({1} if suffix is None else {1, 5})


def test_special_tokens_in_the_text_are_text_while_training():
    texts = ["<unk> <unk> <pad> unknown"] * 5
    assert "<unk></w>" not in train(WordBPE(vocab=50), texts, at_most=True).backend.get_vocab()


def test_a_corpus_that_can_be_read_only_once_is_enough():
    assert train(WordPiece(vocab=150), iter(TEXTS)).checksum == train(WordPiece(vocab=150), TEXTS).checksum


def test_scores_of_a_unigram_are_rounded_and_in_order():
    vocab = json.loads(train(Unigram(vocab=150), TEXTS).backend.to_str())["model"]["vocab"]
    scores = [score for _, score in vocab[5:]]
    assert scores == sorted(scores, reverse=True)
    assert scores == [round(score, 4) for score in scores]
    assert [name for name, _ in vocab[:5]] == BERT_NAMES


def test_characters_that_were_left_no_piece_have_the_lowest_score_of_all():
    low = -14.64996257776
    given = [["[UNK]", 0.0], ["b", low], ["a", low + 1e-4], ["ab", low + 2e-4], ["c", low + 3e-4 + 2e-13], ["d", -3.2]]
    expected = [("d", -3.2), ("ab", round(low + 2e-4, 4)), *((name, round(low, 4)) for name in "abc")]
    assert module._settled(given, 1) == [["[UNK]", 0.0], *expected]


@pytest.mark.parametrize("name", ["wordpiece", "bpe", "word-bpe", "byte-bpe", "unigram"])
def test_the_usual_vocabulary_is_capped_at_what_the_text_allows_and_the_advice_works(tmp_path, name):
    (tmp_path / "text.txt").write_text("\n\n".join(TEXTS), encoding="utf-8")
    words = ("tokenizer", tmp_path / "text.txt", "--kind", name)
    capped = works(*words, "--out", tmp_path / "a.json", "--json")
    result = json.loads(capped.out)
    usual = kind_named(name).vocab
    assert result["vocabulary"] < usual
    assert f"the usual number is {usual:,}" in next(iter(result["notes"]))
    said = mistake(*words, "--vocab", usual, "--out", tmp_path / "b.json")
    advised = said.partition("--vocab ")[2].split()[0]
    assert int(advised) == result["vocabulary"]
    works(*words, "--vocab", advised, "--out", tmp_path / "b.json")
    works(*words, "--vocab", int(advised) - 1, "--out", tmp_path / "c.json")


def test_a_unigram_vocabulary_smaller_than_the_alphabet_is_refused_with_the_smallest(tmp_path):
    with pytest.raises(UserError, match="more different characters than a vocabulary of 10 tokens") as said:
        train(Unigram(vocab=10), TEXTS)
    advised = int(str(said.value).partition("--vocab ")[2].split()[0])
    assert train(Unigram(vocab=advised), TEXTS).vocabulary.size == advised
    with pytest.raises(UserError):
        train(Unigram(vocab=advised - 1), TEXTS)


def test_nothing_is_left_behind_when_writing_fails(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(module.Tokenizer, "save", full)
    with pytest.raises(OSError, match="no space"):
        train_to_file(TEXTS, tmp_path / "a.json", WordPiece(vocab=150))
    assert not list(tmp_path.iterdir())
    with pytest.raises(UserError, match="is a folder"):
        train_to_file((), tmp_path, WordPiece(vocab=150), overwrite=True)
