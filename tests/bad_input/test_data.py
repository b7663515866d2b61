"""Prepared data that is damaged, or of another tokenizer, is refused before anything is written."""

import shutil

import pytest

from tests.command import mistake, pretrain


def test_a_folder_that_was_not_prepared_is_told_how_to(tmp_path):
    (tmp_path / "raw").mkdir()
    assert "unmask prepare" in pretrain("bert", tmp_path / "raw", tmp_path / "run", call=mistake)
    assert not (tmp_path / "run").exists()


def test_data_of_two_tokenizers_is_not_mixed(shards, tmp_path):
    both = (shards["wordpiece"], shards["byte-bpe"])
    said = mistake("pretrain", "bert", *both, "--out", tmp_path / "run", "--size", "tiny", "--device", "cpu")
    assert "another tokenizer" in said
    assert "prepare both with the same one" in said


def test_a_run_is_not_continued_on_data_of_another_tokenizer(bert, shards, tmp_path):
    said = pretrain("roberta", shards["byte-bpe"], tmp_path / "run", "--from", bert, call=mistake)
    assert "another tokenizer" in said
    assert f"--tokenizer {bert}" in said
    assert not (tmp_path / "run").exists()


def test_a_data_folder_whose_tokenizer_was_swapped_is_refused(data, shards, tmp_path):
    shutil.copytree(data, tmp_path / "data")
    shutil.copy(shards["byte-bpe"] / "tokenizer.json", tmp_path / "data" / "tokenizer.json")
    assert "another tokenizer" in pretrain("bert", tmp_path / "data", tmp_path / "run", call=mistake)


@pytest.mark.parametrize("column", ["ids", "word", "sentence", "document"])
def test_a_checksum_that_fails_names_the_file(data, tmp_path, column):
    shutil.copytree(data, tmp_path / "data")
    file = tmp_path / "data" / f"train-00000.{column}"
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    said = pretrain("bert", tmp_path / "data", tmp_path / "run", call=mistake)
    assert f"{file} is damaged" in said
    assert "prepare" in said


def test_a_missing_column_and_a_damaged_manifest_are_named(data, tmp_path):
    shutil.copytree(data, tmp_path / "data")
    (tmp_path / "data" / "train-00000.word").unlink()
    assert "train-00000.word is missing" in pretrain("bert", tmp_path / "data", tmp_path / "run", call=mistake)
    manifest = tmp_path / "data" / "manifest.json"
    manifest.write_text(manifest.read_text()[:50])
    said = pretrain("bert", tmp_path / "data", tmp_path / "run", call=mistake)
    assert "manifest.json" in said


@pytest.mark.parametrize("weight", ["0", "0.0"])
def test_a_weight_of_nothing_is_refused(data, tmp_path, weight):
    assert "over 0" in pretrain("bert", f"{data}:{weight}", tmp_path / "run", call=mistake)
    assert not (tmp_path / "run").exists()
