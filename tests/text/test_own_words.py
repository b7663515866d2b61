"""A user's own words change where Chinese words begin, and so what is hidden; a bad file is named with its line."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import sys

import numpy as np
import pytest
import rjieba

import unmask
from tests.command import mistake, works
from tests.text.test_encode import begins
from unmask.data import Shards
from unmask.errors import UserError
from unmask.text import Characters, OwnWords, encode_documents, train

TEXT = "我的小米手环在云计算大会上坏了，英国和美国队长也来了。"
OWN = ["小米手环", "云计算大会", "和美"]


@pytest.fixture
def made(tmp_path):
    def write(*lines: str, name: str = "mine.txt"):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return tmp_path / name

    return write


def words_of(text: str, own: OwnWords | None) -> list[str]:
    document = encode_documents([text], train(Characters(), [text]), "auto", own=own)[0]
    edges = [*np.flatnonzero(begins(document)).tolist(), len(text)]
    return [text[a:b] for a, b in zip(edges, edges[1:], strict=False)]


def test_own_words_are_words_and_the_words_around_them_stay(made):
    before, after = words_of(TEXT, None), words_of(TEXT, OwnWords.load([made(*OWN)]))
    assert before == list(rjieba.cut(TEXT))
    assert "小米手环" not in before
    assert {"小米手环", "云计算大会", "美国"} <= set(after)
    assert "和美" not in after
    assert "".join(after) == TEXT
    assert before[-5:] == after[-5:]


@pytest.mark.parametrize(
    "line",
    [
        "小米手环",
        "小米手环 5",
        "小米手环 nz",
        "小米手环 5 nz",
        "  小米手环  5 n ",
        "小米手环\tphrase\t7",
        "\ufeff小米手环\r",
    ],
)
def test_jiebas_format_and_a_lexicon_are_read(made, line):
    own = OwnWords.load([made(line, "", "# a comment")])
    assert own.record[0]["words"] == 1
    assert "小米手环" in words_of(TEXT, own)
    assert not own.notes


def test_a_frequency_counts(made):
    assert "英国和美国" in words_of(TEXT, OwnWords.load([made("英国和美国 900000 n")]))
    own = OwnWords.load([made("的小 1 n")])
    assert "的小" not in words_of(TEXT, own)
    assert own.notes == {
        "words of --words-from that the segmenter still cuts, such as '的小': raise their frequency": 1
    }


def test_several_files_count_together_and_others_are_not_changed(made, tmp_path):
    one, two = made("小米手环", name="one.txt"), tmp_path / "two.txt.gz"
    two.write_bytes(gzip.compress("云计算大会 3\n".encode()))
    own = OwnWords.load([one, two])
    assert {"小米手环", "云计算大会"} <= set(words_of(TEXT, own))
    assert own.record[1] == {"file": "two.txt.gz", "sha256": hashlib.sha256(two.read_bytes()).hexdigest(), "words": 1}
    assert words_of(TEXT, None) == list(rjieba.cut(TEXT))
    assert words_of(TEXT, pickle.loads(pickle.dumps(own))) == words_of(TEXT, own)


def test_entries_of_a_lexicon_that_cannot_be_words_are_left_out_and_counted(made):
    own = OwnWords.load([made("小米手环\tphrase\t7", "New York\tentity", "of the\tphrase", "2019\tentity")])
    assert own.record[0]["words"] == 1
    assert own.notes == {"entries of a lexicon in --words-from that cannot be words, left out": 3}


def test_words_without_a_chinese_character_are_told(made):
    own = OwnWords.load([made("小米手环", "Covid-19x")])
    assert list(own.notes) == [
        "words of --words-from without a Chinese character, such as 'Covid-19x': they have an effect only in lines with Chinese characters"
    ]


BAD = {
    "number": (["好", "5 n"], "line 2: there is no word in '5 n'"),
    "marks": (["好", "", "。。 3"], "line 3: there is no word in"),
    "tab": (["\tphrase"], "line 1: there is no word in"),
    "space": (["New York"], "line 1: the word 'New York' has a space"),
    "tag": (["小米手环 5 NZ"], "line 1: the word '小米手环 5 NZ' has a space"),
    "zero": (["小米手环 0"], "line 1: the frequency is 0 in"),
    "empty": ([""], "has no words: write one word per line"),
}


@pytest.mark.parametrize("lines,message", BAD.values(), ids=BAD)
def test_a_bad_file_is_named_with_its_line(made, lines, message):
    with pytest.raises(UserError, match=r"mine.txt") as error:
        OwnWords.load([made(*lines)])
    assert message in str(error.value)


def test_a_missing_file_and_another_encoding_are_named(made, tmp_path):
    with pytest.raises(UserError, match=r"no file with words at .*none.txt"):
        OwnWords.load([tmp_path / "none.txt"])
    (tmp_path / "gb.txt").write_bytes("我们的\n小米手环在\n这个人说\n".encode("gb18030"))
    with pytest.raises(UserError, match=r"gb.txt is not UTF-8: it looks like GB18030; convert it: iconv -f gb18030"):
        OwnWords.load([tmp_path / "gb.txt"])


def test_words_by_spaces_are_refused_and_so_is_a_missing_segmenter(made, monkeypatch):
    file = made("小米手环")
    for way in ("spaces", "none"):
        with pytest.raises(UserError, match=f"--words {way} does not use.*--lexicon"):
            OwnWords.load([file], way)
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(UserError, match=r"unmask\[zh\]"):
        OwnWords.load([file])


def test_prepared_data_has_the_words_and_says_where_from(made, tmp_path):
    (tmp_path / "text.txt").write_text("\n\n".join([TEXT] * 8), encoding="utf-8")
    file, tok = made(*OWN, "的小 1"), tmp_path / "tok.json"
    works("tokenizer", tmp_path / "text.txt", "--kind", "characters", "--out", tok)
    words = ("prepare", tmp_path / "text.txt", "--tokenizer", tok, "--holdout", "20%")
    said = works(*words, "--words-from", file, "--out", tmp_path / "own", "--workers", 2).err
    assert "1 word of --words-from that the segmenter still cuts" in said
    manifest = json.loads((tmp_path / "own" / "manifest.json").read_text())
    assert manifest["words_from"] == [
        {"file": "mine.txt", "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "words": 4}
    ]
    works(*words, "--out", tmp_path / "plain", "--workers", 1)
    made_in_python = unmask.prepare(
        tmp_path / "text.txt", tmp_path / "python", tokenizer=tok, holdout=0.2, words_from=file, workers=1
    )
    assert made_in_python["words_from"] == manifest["words_from"]
    read = {name: (tmp_path / name / "train-00000.word").read_bytes() for name in ("own", "plain", "python")}
    assert read["own"] == read["python"] != read["plain"]
    assert Shards(tmp_path / "plain").manifest["words_from"] == []
    said = mistake(*words, "--words", "spaces", "--words-from", file, "--out", tmp_path / "no")
    assert "--words-from is for the Chinese segmenter" in said
    assert not (tmp_path / "no").exists()
