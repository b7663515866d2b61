"""A corpus that cannot be read is named, with the place and what to do."""

import gzip
import json
import zlib

import numpy as np
import pytest

from tests.bad_input.made import prepare
from tests.command import mistake
from unmask.text import documents as reading


def test_a_missing_corpus_is_named(tok, tmp_path):
    said = prepare(tmp_path / "none.txt", tok, tmp_path / "data", call=mistake)
    assert "no such corpus" in said
    assert "none.txt" in said
    assert "no such corpus" in mistake("tokenizer", tmp_path / "none.txt", "--out", tmp_path / "t.json")


@pytest.mark.parametrize("content", ["", "\n \n\t\n"])
def test_an_empty_corpus_is_named_and_leaves_nothing_behind(tok, tmp_path, content):
    (tmp_path / "void.txt").write_text(content)
    said = prepare(tmp_path / "void.txt", tok, tmp_path / "data", call=mistake)
    assert "void.txt" in said
    assert "empty" in said
    assert "empty" in mistake("tokenizer", tmp_path / "void.txt", "--vocab", 50, "--out", tmp_path / "t.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["void.txt"]


def test_a_folder_without_text_and_a_file_of_unknown_format_are_told_what_is_read(tok, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.docx").write_text("x")
    assert ".jsonl" in prepare(tmp_path / "folder", tok, tmp_path / "data", call=mistake)
    assert ".jsonl" in prepare(tmp_path / "text.docx", tok, tmp_path / "data", call=mistake)


def test_a_byte_that_is_not_utf8_is_named_with_its_file_and_offset(tok, tmp_path):
    good = "The doctor slept.\n\n" * 5
    (tmp_path / "latin.txt").write_bytes(good.encode() + "Caf\xe9 open.\n".encode("latin-1"))
    for words in (("tokenizer", tmp_path / "latin.txt", "--vocab", 40),
                  ("prepare", tmp_path / "latin.txt", "--tokenizer", tok, "--workers", 1)):  # fmt: skip
        said = mistake(*words, "--out", tmp_path / "out")
        assert "latin.txt is not UTF-8" in said
        assert f"0xe9 at offset {len(good) + 3}" in said
        assert "--errors replace" in said
        assert not (tmp_path / "out").exists()


def test_bytes_that_are_not_utf8_are_replaced_and_counted_on_request(tok, tmp_path):
    (tmp_path / "latin.txt").write_bytes("Caf\xe9.\n\nTh\xe9.\n\nFine.\n".encode("latin-1"))
    ran = prepare(tmp_path / "latin.txt", tok, tmp_path / "data", "--errors", "replace")
    assert "2 lines with bytes that are not UTF-8, replaced" in ran.err
    notes = json.loads((tmp_path / "data" / "manifest.json").read_text())["notes"]
    assert notes == {"lines with bytes that are not UTF-8, replaced": 2}
    assert "strict or replace" in prepare("x", tok, tmp_path / "d", "--errors", "ignore", call=mistake)


def test_a_very_long_line_is_cut_into_parts_and_counted(tok, tmp_path, monkeypatch):
    text = "The doctor slept. " * 200
    (tmp_path / "long.txt").write_text(text + "\n\nShort.\n")
    prepare(tmp_path / "long.txt", tok, tmp_path / "whole", "--holdout", 0)
    monkeypatch.setattr(reading, "LONGEST_TEXT", 500)
    ran = prepare(tmp_path / "long.txt", tok, tmp_path / "parts", "--holdout", 0)
    assert "1 document longer than 500 characters, cut into parts" in ran.err
    whole, parts = (json.loads((tmp_path / n / "manifest.json").read_text()) for n in ("whole", "parts"))
    assert parts["documents"] > whole["documents"] == 2
    assert parts["tokens"] == whole["tokens"]


def test_a_line_too_long_for_the_memory_is_named_with_its_place(tok, tmp_path, monkeypatch):
    (tmp_path / "long.txt").write_text("Fine.\n" + "x" * 5000)
    monkeypatch.setattr(reading, "LONGEST_LINE", 1000)
    said = prepare(tmp_path / "long.txt", tok, tmp_path / "data", call=mistake)
    assert "at byte 6" in said
    assert "line breaks" in said


def test_a_truncated_gzip_is_named_as_damaged(tok, tmp_path):
    noise = np.random.default_rng(0)
    text = " ".join(map(str, noise.integers(1 << 30, size=5000))).encode()
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(text)[:-2000])
    said = prepare(tmp_path / "cut.txt.gz", tok, tmp_path / "data", call=mistake)
    assert "cut.txt.gz is damaged" in said
    assert "again" in said
    assert not (tmp_path / "data").exists()


def test_a_gzip_with_wrong_bytes_is_named_as_damaged(tok, tmp_path):
    raw = bytearray(gzip.compress(b"The doctor slept. " * 1000))
    raw[10] |= 0b110  # a kind of block that does not exist
    with pytest.raises(zlib.error):
        gzip.decompress(raw)
    (tmp_path / "bad.txt.gz").write_bytes(raw)
    assert "is damaged" in prepare(tmp_path / "bad.txt.gz", tok, tmp_path / "data", call=mistake)


@pytest.mark.parametrize("line", ["not json", '{"body": "x"}', '{"text": 5}', '["text"]'])
def test_a_line_of_json_without_a_text_is_named_with_its_number(tok, tmp_path, line):
    (tmp_path / "c.jsonl").write_text('{"text": "Fine."}\n' + line)
    said = prepare(tmp_path / "c.jsonl", tok, tmp_path / "data", call=mistake)
    assert "line 2" in said
    assert '"text"' in said


@pytest.mark.parametrize("share", ["0", "1.5", "-0.1"])
def test_an_impossible_share_of_a_corpus_is_refused(corpus, tok, tmp_path, share):
    assert "(0, 1]" in prepare(f"{corpus}:{share}", tok, tmp_path / "data", call=mistake)


@pytest.mark.parametrize("share", ["lots", "15", "100%", "-1%", "nan"])
def test_a_holdout_that_means_nothing_is_refused(corpus, tok, tmp_path, share):
    said = prepare(corpus, tok, tmp_path / "data", f"--holdout={share}", call=mistake)
    assert "0.5%" in said
    assert not (tmp_path / "data").exists()


def test_a_large_holdout_holds_out_about_so_much(corpus, tok, tmp_path):
    prepare(corpus, tok, tmp_path / "data", "--holdout", "0.75")
    splits = json.loads((tmp_path / "data" / "manifest.json").read_text())["splits"]
    assert sum(shard["documents"] for shard in splits["train"]) == pytest.approx(30, abs=8)


def test_too_little_text_to_hold_some_out_is_an_error_as_a_whole_and_a_note_as_a_document(tok, tmp_path):
    (tmp_path / "one.txt").write_text("The doctor slept.\n\nThe river rose.\n")
    said = prepare(tmp_path / "one.txt", tok, tmp_path / "a", "--whole", call=mistake)
    assert "0.5% of 14 tokens is less than 512 tokens" in said
    assert not (tmp_path / "a").exists()
    assert said.endswith("pass --holdout 0 to hold out nothing")
    prepare(tmp_path / "one.txt", tok, tmp_path / "b", "--whole", "--holdout", "0")
    assert "too few to hold" not in prepare(tmp_path / "one.txt", tok, tmp_path / "c").err
    (tmp_path / "single.txt").write_text("The doctor slept.\n")
    ran = prepare(tmp_path / "single.txt", tok, tmp_path / "d")
    assert "tokens in one document, too few to hold some out" in ran.err


@pytest.mark.parametrize("size", [1200, 5000, 40_000])
def test_the_advised_holdout_is_enough(tok, tmp_path, size):
    (tmp_path / "one.txt").write_text("The doctor slept.\n" * (size // 5))
    said = prepare(tmp_path / "one.txt", tok, tmp_path / "a", "--whole", call=mistake)
    advised = said.partition("pass --holdout ")[2].split()[0]
    prepare(tmp_path / "one.txt", tok, tmp_path / "b", "--whole", "--holdout", advised)
    ran = prepare(tmp_path / "one.txt", tok, tmp_path / "c")
    assert f"pass --holdout {advised} or more" in ran.err
    assert "too few" not in prepare(tmp_path / "one.txt", tok, tmp_path / "d", "--holdout", advised).err
    for name in "bd":
        splits = json.loads((tmp_path / name / "manifest.json").read_text())["splits"]
        assert sum(shard["tokens"] for shard in splits["holdout"]) >= 500
