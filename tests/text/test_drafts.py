"""What is written is whole or not there, and folders that were made for it go with it."""

from __future__ import annotations

import os

import pytest

from tests.command import mistake
from unmask.errors import UserError
from unmask.text.atomic_write import check_free, drafted


def interrupted(out, folder, other=None):
    with drafted(out, folder=folder) as draft:
        (other or (draft / "a" if folder else draft)).write_text("half")
        raise KeyboardInterrupt


@pytest.mark.parametrize("folder", [False, True])
def test_a_draft_takes_the_place_when_all_is_written_and_nothing_is_left_when_not(tmp_path, folder):
    out = tmp_path / "new" / "deep" / "out"
    with pytest.raises(KeyboardInterrupt):
        interrupted(out, folder)
    assert not list(tmp_path.iterdir())
    for text in ("first", "second"):
        with drafted(out, folder=folder) as draft:
            (draft / "a" if folder else draft).write_text(text)
            assert not out.exists() or text == "second"
        assert (out / "a" if folder else out).read_text() == text
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_folders_that_were_there_or_hold_something_else_stay(tmp_path):
    out = tmp_path / "new" / "out"
    with pytest.raises(KeyboardInterrupt):
        interrupted(out, False, tmp_path / "new" / "mine")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine"]


def test_a_file_is_not_replaced_by_a_folder_nor_a_folder_by_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="is a file"):
        check_free(tmp_path / "file", overwrite=True, folder=True)
    with pytest.raises(UserError, match="is a folder"):
        check_free(tmp_path, overwrite=True)
    with pytest.raises(UserError, match="exists already.*--overwrite"):
        check_free(tmp_path / "file", overwrite=False)


def test_mistakes_of_prepare_and_tokenizer_come_before_the_work_and_leave_no_folder(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("Fine.\n\nText.\n")
    (tmp_path / "file").write_text("mine")
    monkeypatch.setattr("unmask.text.training.train", lambda *_, **__: pytest.fail("it was trained"))
    corpus, new = tmp_path / "a.txt", tmp_path / "new" / "deep"
    assert "is a folder" in mistake("tokenizer", corpus, "--out", tmp_path, "--overwrite")
    assert "unknown kind" in mistake("tokenizer", tmp_path / "none.txt", "--kind", "x", "--out", new / "t.json")
    assert "no such corpus" in mistake("tokenizer", tmp_path / "none.txt", "--out", new / "t.json")
    assert "no tokenizer" in mistake("prepare", corpus, "--tokenizer", tmp_path / "t.json", "--out", new / "data")
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_may_not_be_written_is_found_before_training(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("Fine.\n")
    (tmp_path / "closed").mkdir(mode=0o555)
    monkeypatch.setattr("unmask.text.training.train", lambda *_, **__: pytest.fail("it was trained"))
    assert "ermission denied" in mistake("tokenizer", tmp_path / "a.txt", "--out", tmp_path / "closed" / "t.json")
