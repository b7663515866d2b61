"""A corpus is read from every format it may come in, and a broken one says what is wrong with it."""

from __future__ import annotations

import gzip
import json
import lzma
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from unmask.errors import UserError
from unmask.text import Corpus, documents

TEXTS = ["The first text.\nIts second line.", "第二篇文章，😀", "Third."]


def compress(raw: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(raw)
    if suffix == ".xz":
        return lzma.compress(raw)
    if suffix == ".zst":
        return pyarrow.compress(raw, codec="zstd", asbytes=True)
    return raw


def content(format: str, folder: Path) -> bytes:
    if format == ".txt":
        return "\n\n".join(TEXTS).encode()
    if format == ".jsonl":
        return "\n".join(json.dumps({"id": 1, "text": text}) for text in TEXTS).encode()
    pyarrow.parquet.write_table(pyarrow.table({"text": TEXTS, "other": [1, 2, 3]}), folder / "made")
    return (folder / "made").read_bytes()


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def read(*arguments: str | Path, **options) -> list[str]:
    return [text.strip() for text in Corpus(arguments, **options)]


@pytest.mark.parametrize("compression", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize("format", [".txt", ".jsonl", ".parquet"])
def test_every_format_is_read_plain_and_compressed(tmp_path, format, compression):
    file = tmp_path / f"corpus{format}{compression}"
    file.write_bytes(compress(content(format, tmp_path), compression))
    corpus = Corpus([file])
    assert [text.strip() for text in corpus] == TEXTS
    assert corpus.bytes_done == corpus.bytes_total == file.stat().st_size


def test_several_compressed_streams_in_one_file_are_read_to_the_end(tmp_path):
    for suffix in (".gz", ".xz", ".zst"):
        file = tmp_path / f"corpus.txt{suffix}"
        file.write_bytes(compress(b"one\n\n", suffix) + compress(b"two\n", suffix))
        assert read(file) == ["one", "two"]


def test_blank_lines_part_documents_and_a_file_without_any_is_one(tmp_path):
    assert read(write(tmp_path / "a.txt", "\n\na\nb\n \t\nc\n\n\nd\n")) == ["a\nb", "c", "d"]
    assert read(write(tmp_path / "b.txt", "a\nb\r\nc")) == ["a\nb\r\nc"]


def test_a_corpus_can_be_read_twice(tmp_path):
    corpus = Corpus([write(tmp_path / "a.txt", "a\n\nb")])
    assert list(corpus) == list(corpus)


def test_a_folder_is_read_in_order_of_names_and_other_files_are_left(tmp_path):
    (tmp_path / "inner").mkdir()
    write(tmp_path / "b.txt", "second")
    write(tmp_path / "a.jsonl", '{"text": "first"}')
    write(tmp_path / "inner" / "c.txt", "third")
    write(tmp_path / "notes.md", "no")
    assert read(tmp_path) == ["first", "second", "third"]


def test_a_glob_and_several_arguments_are_read_in_the_order_given(tmp_path):
    for name in ("b1", "b2", "a1"):
        write(tmp_path / f"{name}.txt", name)
    assert read(f"{tmp_path}/b*.txt", tmp_path / "a1.txt") == ["b1", "b2", "a1"]


def test_a_weight_takes_about_that_share_and_the_same_one_each_time(tmp_path):
    file = write(tmp_path / "a.txt", "\n\n".join(str(i) for i in range(4000)))
    taken = read(f"{file}:0.3")
    assert abs(len(taken) / 4000 - 0.3) < 0.03  # four standard deviations
    assert taken == read(f"{file}:0.3")
    assert taken != read(f"{file}:0.3", seed=1)
    assert len(read(f"{file}:1")) == 4000


def test_a_weight_may_follow_a_folder_or_a_glob(tmp_path):
    write(tmp_path / "a.txt", "\n\n".join(str(i) for i in range(200)))
    assert 30 < len(read(f"{tmp_path}:0.3")) < 90
    assert read(f"{tmp_path}:0.3") == read(f"{tmp_path}/*.txt:0.3")


@pytest.mark.parametrize("weight", ["0", "1.5", "-1", "nan"])
def test_a_weight_outside_its_range_is_an_error(tmp_path, weight):
    write(tmp_path / "a.txt", "a")
    with pytest.raises(UserError, match=r"share of a corpus must be in \(0, 1\]"):
        Corpus([f"{tmp_path / 'a.txt'}:{weight}"])


def test_a_file_whose_name_ends_like_a_weight_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a:0.txt", "text")
    assert read("a:0.txt") == ["text"]


def test_no_argument_a_missing_file_and_an_empty_folder_are_errors(tmp_path):
    with pytest.raises(UserError, match="no corpus given"):
        Corpus([])
    with pytest.raises(UserError, match="no such corpus: .*missing.txt"):
        Corpus([tmp_path / "missing.txt"])
    with pytest.raises(UserError, match="no such corpus"):
        Corpus([f"{tmp_path}/*.txt"])
    with pytest.raises(UserError, match="holds no .txt, .jsonl, .parquet file"):
        Corpus([tmp_path])


def test_an_unknown_format_lists_the_known_ones(tmp_path):
    for name in ("a.csv", "a.gz", "a", "a.txt.bz2"):
        with pytest.raises(UserError, match="unknown format: give .txt, .jsonl, .parquet"):
            Corpus([write(tmp_path / name, "text")])


@pytest.mark.parametrize("text", ["", "\n \n\t\n"])
def test_an_empty_corpus_is_an_error_that_names_the_file(tmp_path, text):
    with pytest.raises(UserError, match=r"holds no text: .*a\.txt is empty or blank"):
        list(Corpus([write(tmp_path / "a.txt", text)]))


def test_a_corpus_whose_pairs_all_lack_a_side_says_so(tmp_path):
    with pytest.raises(
        UserError, match=r"holds no text: 2 pairs with an empty source or target, left out; the first is .*line 1"
    ):
        list(Corpus([write(tmp_path / "a.jsonl", '{"source": "", "target": "x"}\n{"source": "y", "target": " "}\n')]))


def test_two_empty_files_are_empty(tmp_path):
    with pytest.raises(UserError, match=r"a\.txt, .*b\.txt are empty or blank"):
        list(Corpus([write(tmp_path / "a.txt", ""), write(tmp_path / "b.txt", "")]))


@pytest.mark.parametrize("compression", ["", ".gz"])
def test_bytes_that_are_not_utf8_are_named_with_their_offset(tmp_path, compression):
    raw = "good\n\nalso gööd\n".encode() + b"bad \xff here\n"
    file = tmp_path / f"a.txt{compression}"
    file.write_bytes(compress(raw, compression))
    with pytest.raises(UserError, match=rf"not UTF-8: byte 0xff at offset {raw.index(0xFF)};.*--errors replace"):
        list(Corpus([file]))


def test_bytes_that_are_not_utf8_can_be_replaced_and_are_counted(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"bad \xff here\ngood\nbad \xfe\n")
    corpus = Corpus([file], errors="replace")
    assert "".join(corpus) == "bad � here\ngood\nbad �\n"
    assert corpus.notes == {"lines with bytes that are not UTF-8, replaced": 2, documents.NO_BLANK_LINE: 1}


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_truncated_file_is_an_error_and_not_a_shorter_corpus(tmp_path, suffix):
    raw = "\n".join(str(i * 7919 % 10007) for i in range(20000)).encode()
    file = tmp_path / f"a.txt{suffix}"
    packed = compress(raw, suffix)
    file.write_bytes(packed[: len(packed) * 2 // 3])
    with pytest.raises(UserError, match="is damaged.*ends too early, after"):
        list(Corpus([file]))


@pytest.mark.parametrize("suffix", [".gz", ".xz"])  # a .zst file need not hold a checksum
def test_a_file_with_flipped_bits_is_an_error_that_names_it(tmp_path, suffix):
    raw = "\n".join(str(i * 7919 % 10007) for i in range(20000)).encode()
    packed = compress(raw, suffix)
    file = tmp_path / f"a.txt{suffix}"
    for place in range(20, len(packed) - 64, len(packed) // 12):
        file.write_bytes(
            packed[:place] + bytes(255 - byte for byte in packed[place : place + 64]) + packed[place + 64 :]
        )
        with pytest.raises(UserError, match="a.txt.* is damaged"):
            list(Corpus([file]))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_plain_file_with_a_compressed_name_is_an_error_that_names_it(tmp_path, suffix):
    with pytest.raises(UserError, match="is damaged"):
        list(Corpus([write(tmp_path / f"a.txt{suffix}", "plain text\n" * 10)]))


@pytest.mark.parametrize("line", ['{"body": "x"}', '"text"', "[1]", "{broken", "3"])
def test_a_json_line_without_text_is_named_by_its_number(tmp_path, line):
    file = write(tmp_path / "a.jsonl", '{"text": "fine"}\n\n' + line)
    with pytest.raises(UserError, match=r'a\.jsonl, line 3: this line is not a JSON object with a field "text"'):
        list(Corpus([file]))


def test_a_json_text_that_is_no_string_is_an_error(tmp_path):
    with pytest.raises(UserError, match='line 1: "text" must be a string, got 5'):
        list(Corpus([write(tmp_path / "a.jsonl", '{"text": 5}')]))


def test_blank_json_and_parquet_texts_are_left_out(tmp_path):
    assert read(write(tmp_path / "a.jsonl", '{"text": " "}\n{"text": "x"}')) == ["x"]
    pyarrow.parquet.write_table(pyarrow.table({"text": ["", None, "x", " "]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == ["x"]


def test_a_parquet_file_without_texts_is_an_error(tmp_path):
    with pytest.raises(UserError, match="is not a parquet file"):
        list(Corpus([write(tmp_path / "a.parquet", "text")]))
    pyarrow.parquet.write_table(pyarrow.table({"body": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(UserError, match=r'no column "text", it has \[.body.\]'):
        list(Corpus([tmp_path / "b.parquet"]))


def test_a_parquet_text_column_of_numbers_is_an_error(tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({"text": [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match="text"):
        list(Corpus([tmp_path / "a.parquet"]))


def test_a_line_too_long_for_memory_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "LONGEST_LINE", 100)
    assert read(write(tmp_path / "a.txt", "x" * 99 + "\n")) == ["x" * 99]
    with pytest.raises(UserError, match="has a line of more than .* at byte 6: add line breaks"):
        list(Corpus([write(tmp_path / "b.txt", "short\n" + "x" * 101)]))


@pytest.mark.parametrize("format", [".txt", ".jsonl"])
def test_a_long_document_is_cut_at_lines_and_counted_once(tmp_path, monkeypatch, format):
    monkeypatch.setattr(documents, "LONGEST_TEXT", 100)
    text = "".join(f"line number {i:2} of this text\n" for i in range(20))
    corpus = Corpus([write(tmp_path / f"a{format}", json.dumps({"text": text}) if format == ".jsonl" else text)])
    parts = list(corpus)
    assert "".join(parts) == text
    assert all(len(part) <= 100 and part.endswith("\n") for part in parts)
    assert len(parts) == 7  # three lines fit into each part
    blank = {documents.NO_BLANK_LINE: 1} if format == ".txt" else {}
    assert corpus.notes == {"documents longer than 100 characters, cut into parts": 1} | blank


def test_a_long_line_is_cut_at_spaces_and_a_long_word_anywhere(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "LONGEST_TEXT", 100)
    for text in ("word " * 77, "x" * 350, "x" * 250 + " " + "y" * 30):
        parts = list(Corpus([write(tmp_path / "a.txt", text)]))
        assert "".join(parts).strip() == text.strip()
        assert all(len(part) <= 100 for part in parts)
        if text.startswith("word"):
            assert all(part.endswith(" ") for part in parts)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbftext")
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "text"}')
    assert read(tmp_path / "a.txt", tmp_path / "a.jsonl") == ["text", "text"]


def test_half_a_character_in_a_json_text_is_replaced_or_refused_but_never_handed_on(tmp_path):
    file = write(tmp_path / "a.jsonl", '{"text": "a \\ud800 b"}')
    try:
        texts = read(file)
    except UserError:
        return
    assert "".join(texts).encode("utf-8")


def test_every_line_is_a_document_on_request(tmp_path):
    write(tmp_path / "a.txt", "one\n\n two \nthree")
    write(tmp_path / "b.jsonl", json.dumps({"text": "four\nfive"}))
    corpus = Corpus([tmp_path], lines=True)
    assert list(corpus) == ["one\n", " two \n", "three", "four\nfive"]
    assert not corpus.notes
    with pytest.raises(UserError, match="--lines is for .txt files"):
        Corpus([tmp_path / "b.jsonl"], lines=True)
    with pytest.raises(UserError, match="--whole.*--lines .*: give one"):
        Corpus([tmp_path], lines=True, whole=True)


def test_files_without_a_blank_line_are_counted_and_the_advice_is_given(tmp_path):
    write(tmp_path / "a.txt", "one\ntwo\n")
    write(tmp_path / "b.txt", "one\n\ntwo\n")
    write(tmp_path / "c.txt", "a single line\n")
    corpus = Corpus([tmp_path])
    assert len(list(corpus)) == 4
    assert corpus.notes == {documents.NO_BLANK_LINE: 1}
    assert "pass --lines" in documents.NO_BLANK_LINE
    for options in ({"whole": True}, {"lines": True}):
        other = Corpus([tmp_path], **options)
        list(other)
        assert not other.notes


def test_a_missing_package_is_found_before_the_files_before_it_are_read(tmp_path, monkeypatch):
    write(tmp_path / "a.txt", "one\n")
    write(tmp_path / "b.parquet", "")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="b.parquet needs pyarrow"):
        Corpus([tmp_path])
