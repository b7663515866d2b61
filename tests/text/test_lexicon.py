"""Phrases and entities of a lexicon: how its files are read, what is wrong with some, and where entries stand in texts."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import pickle
import re
import sys
import unicodedata
from functools import cache
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
import rjieba
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.command import mistake
from tests.conftest import documents
from tests.text.test_encode import begins
from unmask.batch import Document
from unmask.errors import UserError
from unmask.text import ByteBPE, Characters, Lexicon, Tokenizer, Unigram, WordPiece, encode_documents, train
from unmask.text.boundaries import classes_of, codes_of

KINDS = ("wordpiece", "characters", "byte-bpe", "unigram")
SAMPLES = ["我在北京大学学习computer science，今年2024年！", "New York 是美国的城市😀，价格3.14元。"] * 5


@cache
def tokenizer(kind: str) -> Tokenizer:
    kinds = {
        "wordpiece": WordPiece(vocab=220, lowercase=False),
        "characters": Characters(vocab=150),
        "byte-bpe": ByteBPE(vocab=400),
        "unigram": Unigram(vocab=140),
    }
    return train(kinds[kind], documents(40) + SAMPLES)


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def load(tmp_path):
    """A lexicon of these phrases and entities."""

    def made(phrases: list[str], entities: list[str] | None = None) -> Lexicon:
        lines = [f"{p}\tphrase" for p in phrases] + [f"{e}\tentity" for e in entities or []]
        return Lexicon.load([write(tmp_path / "made.tsv", *lines)])

    return made


def matched(lexicon: Lexicon, text: str, level: str = "phrase") -> list[str]:
    return [text[a:b] for a, b in lexicon.matches(text, classes_of(codes_of(text)), level)]


def spelled(document: Document, kind: str, level: str = "phrase") -> list[str]:
    """The units of a level, as their tokens spell them."""
    marks = document.columns[level].values
    begins = np.flatnonzero(marks == 1)
    ends = [next((j for j in range(i + 1, len(marks)) if marks[j] != 2), len(marks)) for i in begins]
    return [tokenizer(kind).decode(document.ids[a:b].tolist()).strip() for a, b in zip(begins, ends, strict=True)]


def test_a_file_may_hold_comments_blank_lines_more_columns_and_entries_that_begin_with_a_hash(tmp_path):
    file = write(tmp_path / "a.tsv", "\ufeff# a comment\there", "", "New York\tentity\t12\tQ60", "#metoo\tphrase",
                 "  \t ", "C#\tphrase\r", " 北京 \t entity ")  # fmt: skip
    lexicon = Lexicon.load([file])
    assert lexicon.record == (
        {"file": "a.tsv", "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "phrase": 2, "entity": 2},
    )
    assert matched(lexicon, "#metoo, C# and New York, 北京") == ["#metoo", "C#"]
    assert matched(lexicon, "#metoo, C# and New York, 北京", "entity") == ["New York", "北京"]


def test_an_entry_of_both_levels_counts_in_both_and_twice_the_same_line_once(load):
    lexicon = load(["New York", "New York"], ["New York"])
    assert lexicon.record[0]["phrase"] == lexicon.record[0]["entity"] == 1
    assert matched(lexicon, "in New York") == matched(lexicon, "in New York", "entity") == ["New York"]


def test_several_files_plain_or_compressed_are_one_lexicon(tmp_path):
    one = write(tmp_path / "one.tsv", "old engine\tphrase")
    for name, opener in (("two.tsv.gz", gzip.open), ("three.tsv.xz", lzma.open)):
        with opener(tmp_path / name, "wt", encoding="utf-8") as file:
            file.write(f"{name[:3]} doctor\tphrase\n")
    lexicon = Lexicon.load([one, tmp_path / "two.tsv.gz", tmp_path / "three.tsv.xz"])
    assert [entry["file"] for entry in lexicon.record] == ["one.tsv", "two.tsv.gz", "three.tsv.xz"]
    assert matched(lexicon, "two doctor, thr doctor, old engine") == ["two doctor", "thr doctor", "old engine"]


WRONG = {
    "no tab": ("New York entity", "line 2: there is no tab in 'New York entity': write the entry, a tab and its level"),
    "hash": ("#comment", "line 2: there is no tab in '#comment'"),
    "empty": (" \tphrase", "line 2: the entry before the tab is empty"),
    "level": ("New York\tperson", "line 2: 'New York' has the unknown level 'person': allowed are phrase and entity"),
    "no level": ("New York\t", "line 2: 'New York' has the unknown level '': allowed are phrase and entity"),
    "case": ("New York\tPhrase", "line 2: 'New York' has the unknown level 'Phrase'"),
}


@pytest.mark.parametrize("line,message", WRONG.values(), ids=WRONG)
def test_a_wrong_line_is_named_with_its_file_and_number(tmp_path, line, message):
    file = write(tmp_path / "bad.tsv", "a fine entry\tphrase", line)
    with pytest.raises(UserError) as error:
        Lexicon.load([file])
    assert str(error.value).startswith(f"{file}, {message}")
    assert "\n" not in str(error.value)


def test_a_lexicon_that_cannot_be_read_is_a_mistake(tmp_path):
    (tmp_path / "latin.tsv").write_bytes("fine\tphrase\ncafé\tphrase\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"latin.tsv is not UTF-8: line 2, byte 0xe9; convert the file"):
        Lexicon.load([tmp_path / "latin.tsv"])
    with pytest.raises(UserError, match="no lexicon at .*none.tsv: write one, or make one with 'unmask lexicon"):
        Lexicon.load([tmp_path / "none.tsv"])
    with pytest.raises(UserError, match="has no entries"):
        Lexicon.load([write(tmp_path / "empty.tsv", "# nothing", "")])
    with pytest.raises(UserError, match="no lexicon was given"):
        Lexicon.load([])
    (tmp_path / "cut.tsv.gz").write_bytes(gzip.compress(b"a b\tphrase\n" * 5000)[:40])
    with pytest.raises(UserError, match="cut.tsv.gz is damaged"):
        Lexicon.load([tmp_path / "cut.tsv.gz"])


def test_prepare_shows_a_bad_lexicon_as_one_line_and_leaves_nothing(tmp_path, corpus, tokenizers):
    tokenizers["wordpiece"].save(tmp_path / "tok.json")
    bad = write(tmp_path / "bad.tsv", "New York")
    words = ("prepare", corpus, "--tokenizer", tmp_path / "tok.json", "--out", tmp_path / "data", "--workers", 1)
    assert "bad.tsv, line 1: there is no tab" in mistake(*words, "--lexicon", bad)
    assert "no lexicon at" in mistake(*words, "--lexicon", tmp_path / "gone.tsv")
    assert not (tmp_path / "data").exists()


def test_without_the_library_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    with pytest.raises(UserError, match=r"pip install 'unmask\[lexicon\]'"):
        Lexicon.load([write(tmp_path / "a.tsv", "New York\tentity")])


def test_nothing_imports_the_library_before_a_lexicon_is_loaded():
    import subprocess

    code = "import sys, unmask.api.corpus, unmask.api.runs, unmask.cli, unmask.text.lexicon; sys.exit('ahocorasick_rs' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_pickled_lexicon_is_loaded_again_from_its_files(load):
    again = pickle.loads(pickle.dumps(load(["old engine"], ["London"])))
    assert matched(again, "an old engine in London") == ["old engine"]
    assert matched(again, "an old engine in London", "entity") == ["London"]


def test_matches_are_leftmost_then_longest_and_never_overlap(load):
    lexicon = load(["北京", "北京大学", "大学生", "学生", "New York", "New York Times", "York Times Square"])
    assert matched(lexicon, "北京大学生") == ["北京大学"]
    assert matched(lexicon, "在北京的大学生") == ["北京", "大学生"]
    assert matched(lexicon, "the New York Times Square") == ["New York Times"]


def test_case_is_exact(load):
    assert matched(load(["apple"]), "Apple apple APPLE") == ["apple"]


@pytest.mark.parametrize(
    "text,found",
    [
        ("party", []), ("art", ["art"]), ("an art, art-work", ["art", "art"]), ("arts", []), ("3art", []),
        ("art😀", ["art"]), ("艺术art史", ["art"]), ("smart art", ["art"]), ("artificial", []), ("artë", []),
    ],
)  # fmt: skip
def test_a_word_of_letters_is_not_cut_in_two(load, text, found):
    assert matched(load(["art"]), text) == found


def test_han_may_be_cut_anywhere_and_so_may_the_edge_between_scripts(load):
    assert matched(load(["京大", "T恤"]), "北京大学的T恤衫") == ["京大", "T恤"]
    assert matched(load(["T恤"]), "AT恤") == []


def test_without_a_lexicon_nothing_was_looked_for():
    document = encode_documents(["New York"], tokenizer("characters"), "auto")[0]
    assert document.columns.keys() == {"word"}


def test_a_level_without_entries_finds_nothing(load):
    document = encode_documents(["in New York"], tokenizer("characters"), "auto", load(["New York"]))[0]
    assert document.columns["phrase"].values.tolist() == [0, 0, 1, *[2] * 8]  # the space before it is its first token
    assert not document.columns["entity"].values.any()
    assert document.columns["entity"].values.dtype == np.uint8


@pytest.mark.parametrize("kind", KINDS)
def test_units_are_spelled_by_their_tokens_with_the_space_before_them(kind, load):
    lexicon = load(["old engine", "the river", "北京大学"], ["London", "北京", "😀"])
    text = "our old engine near the river, London.\nin London我在北京大学 😀 😀"
    document = encode_documents([text], tokenizer(kind), "auto", lexicon)[0]
    units = [unit.replace(" ", "") for unit in spelled(document, kind)]
    assert units[:2] == ["oldengine", "theriver"]
    assert len(units) == 3
    assert (document.columns["entity"].values == 1).sum() == 4  # 北京 is here a part of the word 北京大学
    assert [unit.replace(" ", "") for unit in spelled(document, kind, "entity")[:2]] == ["London", "London"]


@pytest.mark.parametrize(
    "entry,marks",
    [
        ("北", [1, 2, 0, 0, 0, 0]), ("京", None), ("大", None), ("学", [0, 0, 0, 0, 1, 2]),
        ("京大", [0, 0, 1, 2, 0, 0]), ("北京", None), ("大学", None), ("北京大学", [1, 2, 2, 2, 2, 2]),
    ],
)  # fmt: skip
def test_a_match_that_begins_or_ends_inside_a_token_is_dropped(load, entry, marks):
    alone = train(ByteBPE(vocab=267), ["北京大学 " * 60])
    assert alone.encode_many(["北京大学"])[0].offsets == [(0, 1), (0, 1), (1, 3), (2, 3), (3, 4), (3, 4)]
    assert encode_documents(["北京大学"], alone, "none", load([entry]))[0].columns["phrase"].values.tolist() == (
        marks or [0] * 6
    )


@pytest.mark.parametrize(
    "text,entries,found",
    [
        ("英国和美国队长", ["和美", "美国"], ["美国"]),  # not {和 美}国, and what it overlaps is found
        ("英国和美国队长", ["和美国", "和美"], ["和美国"]),
        ("一家中医院", ["中医"], []),
        ("party in the art hall", ["art", "part", "art hall"], ["art hall"]),
        ("北京大学在北京", ["北京", "北京大学"], ["北京大学", "北京"]),
    ],
)
def test_a_unit_keeps_to_the_boundaries_of_words(load, text, entries, found):
    letters = train(Characters(vocab=80), [text])
    document = encode_documents([text], letters, "auto", load(entries))[0]
    marks = document.columns["phrase"].values.tolist()
    shape = "".join(map(str, marks))
    assert [text[unit.start() : unit.end()].strip() for unit in re.finditer("12*", shape)] == found
    for place, mark in enumerate(marks):
        if mark == 1 or (mark != 2 and place and marks[place - 1]):
            assert begins(document)[place] or text[place] == " "


def test_the_bytes_of_one_character_are_one_unit(load):
    text = "龘 x"
    document = encode_documents([text], tokenizer("byte-bpe"), "none", load(["龘"]))[0]
    spans = tokenizer("byte-bpe").encode_many([text])[0].offsets
    size = sum(span == (0, 1) for span in spans)
    assert size > 1
    assert document.columns["phrase"].values.tolist() == [1] + [2] * (size - 1) + [0] * (len(spans) - size)


@pytest.mark.parametrize("kind", KINDS)
def test_no_match_runs_over_a_line_break_or_into_the_next_text(kind, load):
    lexicon = load(["old engine", "北京大学"])
    for text in ("the old\nengine", "old \nengine", "北京\n大学", "old\u2028engine", "北京\r\n大学"):
        assert not encode_documents([text], tokenizer(kind), "auto", lexicon)[0].columns["phrase"].values.any()
    for document in encode_documents(["the old", "engine 北京", "大学"], tokenizer(kind), "auto", lexicon):
        assert not document.columns["phrase"].values.any()


def test_many_texts_at_once_give_what_each_gives_alone(load):
    lexicon = load(["old engine", "北京"], ["London"])
    texts = ["an old engine", "", "London 北京\n\nold engine", "   ", "北京"]
    together = encode_documents(texts, tokenizer("wordpiece"), "auto", lexicon)
    for text, document in zip(texts, together, strict=True):
        alone = encode_documents([text], tokenizer("wordpiece"), "auto", lexicon)[0]
        assert document.columns["phrase"].values.tolist() == alone.columns["phrase"].values.tolist()
        assert document.columns["entity"].values.tolist() == alone.columns["entity"].values.tolist()
        assert len(document.columns["phrase"].values) == len(document.ids)


PIECES = [
    "北京",
    "大学",
    "京",
    "的",
    "𠀀",
    "龘",
    " ",
    "  ",
    "New",
    "York",
    "art",
    "arts",
    "x",
    "10",
    "3.14",
    "C#",
    "，",
    "。",
]
PIECES += ["-", "'", "😀", "👍🏽", "é", "Привет", "\t", "\n", "…", "ａ", "[UNK]", "の", "た"]
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=25).map("".join)
ENTRIES = st.lists(
    st.lists(st.sampled_from([p for p in PIECES if p not in "\t\n"]), min_size=1, max_size=3).map("".join).map(str.strip),
    min_size=1, max_size=12, unique=True,
).map(lambda entries: [entry for entry in entries if entry and not entry.startswith("# ")] or ["北京"])  # fmt: skip


def letter(character: str) -> bool:
    han = "㐀" <= character <= "䶿" or "一" <= character <= "鿿" or "豈" <= character <= "\ufaff"
    category = unicodedata.category(character)
    return not han and character <= "\uffff" and (category[0] in "LNM" or category in ("Cf", "Cs"))


def brute_matches(line: str, entries: list[str]) -> list[tuple[int, int]]:
    """Leftmost, longest, one after the other, of all that cut no run of letters and no word of the segmenter."""
    words = list(accumulate((len(word) for word in rjieba.cut(line)), initial=0))
    han = any(not letter(character) and unicodedata.name(character, "").startswith("CJK UNIFIED") for character in line)

    def cuts(edge: int) -> bool:
        apart = 0 < edge < len(line) and letter(line[edge - 1]) and letter(line[edge])
        return apart or (han and edge < len(line) and edge not in words and not line[edge].isspace())

    found, at = [], 0
    while at < len(line):
        ends = [at + len(entry) for entry in entries if line.startswith(entry, at)]
        end = max((end for end in ends if not cuts(at) and not cuts(end)), default=at)
        found += [(at, end)] * (end > at)
        at = max(end, at + 1)
    return found


def brute_marks(line: str, spans: list[tuple[int, int]], entries: list[str]) -> list[int]:
    """A match counts if a token begins with it and no token is partly in it."""
    held = []
    for start, end in spans:
        mine = {c for c in range(start, end) if not line[c].isspace() or line[c] == "\n"}
        held.append(mine or {next((c for c in range(start, len(line)) if not line[c].isspace()), len(line))})
    marks = [0] * len(spans)
    for a, b in brute_matches(line, entries):
        inside = [i for i, mine in enumerate(held) if mine & set(range(a, b))]
        if inside and min(held[inside[0]]) == a and all(mine <= set(range(a, b)) for mine in (held[i] for i in inside)):
            for i in inside:
                marks[i] = 2
            marks[inside[0]] = 1
    return marks


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS, phrases=ENTRIES, entities=ENTRIES)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_columns_agree_with_a_search_by_brute_force(kind, load, text, phrases, entities):
    document = encode_documents([text], tokenizer(kind), "auto", load(phrases, entities))[0]
    lines = [line for line in text.splitlines(keepends=True) if line.strip()]
    if lines:
        lines[-1] = lines[-1].rstrip()
    spans = [encoding.offsets for encoding in tokenizer(kind).encode_many(lines)]
    for level, entries in (("phrase", phrases), ("entity", entities)):
        expected = [mark for line, own in zip(lines, spans, strict=True) for mark in brute_marks(line, own, entries)]
        assert document.columns[level].values.tolist() == expected
