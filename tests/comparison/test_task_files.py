"""A folder of tasks: which kind of task each file is, and what is left out."""

import json

import pytest

from unmask.comparison.task_files import find
from unmask.errors import UserError

ROWS = {
    "classify": {"text": "good", "label": "1"},
    "choose": {"context": "x", "choices": ["a", "b"], "label": 0},
    "write": {"source": "x", "target": "y"},
    "tag": {"tokens": ["x"], "tags": ["O"]},
    "span": {"question": "x", "context": "y", "answers": []},
    "number": {"text": "x", "label": 0.5},
    "multi": {"text": "x", "labels": ["a"]},
    "rank": {"query": "x", "passage": "y", "label": 1},
    "relation": {"text": "xyz", "head": [0, 1], "tail": [2, 3], "label": "a"},
}


def write(file, row, times=2):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for _ in range(times)), encoding="utf-8")


def test_the_columns_tell_the_kind_of_task(tmp_path):
    for name, row in ROWS.items():
        for split in ("train", "dev", "test"):
            write(tmp_path / name / f"{split}.jsonl", row)
    write(tmp_path / "pair" / "train.jsonl", {"text_a": "a", "text_b": "b", "label": "x"})
    write(tmp_path / "pair" / "dev.jsonl", {"text_a": "a", "text_b": "b", "label": "x"})
    write(tmp_path / "blimp.jsonl", {"good": "a", "bad": "b"})
    for split in ("train", "test"):
        (tmp_path / "columns").mkdir(exist_ok=True)
        (tmp_path / "columns" / f"{split}.conll").write_text("a O\n")
    (tmp_path / "wiki.2019.txt").write_text("Some text.")
    found, notices = find(tmp_path)
    assert not notices
    kinds = {task.name: task.kind for task in found}
    assert kinds == {name: name for name in ROWS} | {
        "blimp": None,
        "columns": "tag",
        "pair": "classify",
        "wiki.2019": None,
    }
    pair = next(task for task in found if task.name == "pair")
    assert pair.test.name == "dev.jsonl"
    assert pair.dev is None  # a dev set that is scored chooses no epoch


def test_what_no_kind_of_task_reads_is_named_and_the_others_go_on(tmp_path):
    write(tmp_path / "sst2" / "train.jsonl", ROWS["classify"])
    write(tmp_path / "sst2" / "test.jsonl", ROWS["classify"])
    write(tmp_path / "ner" / "train.jsonl", {"words": ["a"], "marks": ["O"]})
    write(tmp_path / "ner" / "test.jsonl", {"words": ["a"], "marks": ["O"]})
    write(tmp_path / "alone.jsonl", ROWS["classify"])
    (tmp_path / "empty").mkdir()
    (tmp_path / "picture.png").write_bytes(b"x")
    found, notices = find(tmp_path)
    assert [task.name for task in found] == ["sst2"]
    said = " | ".join(notices)
    for words in (
        "ner is left out: no kind of task reads the columns words, marks",
        "no train file",
        "test or dev",
        "png",
    ):
        assert words in said, words


def test_options_of_a_task_are_checked(tmp_path):
    for split in ("train", "test"):
        write(tmp_path / "a" / f"{split}.jsonl", ROWS["classify"])
    write(tmp_path / "b.jsonl", {"good": "a", "bad": "b"})
    options = tmp_path / "a" / "task.json"
    options.write_text('{"settings": ["epochs=2"], "examples": 5}')
    task = find(tmp_path)[0][0]
    assert (task.task().epochs, task.examples) == (2.0, 5)
    wrong_tune = (
        '{"tune": 3}',
        '{"tune": "hed"}',
        '{"settings": ["tune.rank=4"]}',
        '{"tune": "head", "settings": ["tune.rank=4"]}',
    )
    for wrong in ("[]", '{"epochs": 2}', '{"settings": ["nothing=2"]}', '{"examples": "many"}', *wrong_tune):
        options.write_text(wrong)
        found, notices = find(tmp_path)
        assert [task.name for task in found] == ["b"], wrong
        assert len(notices) == 1


def test_a_task_may_name_a_way_of_tuning(tmp_path):
    for split in ("train", "test"):
        write(tmp_path / "a" / f"{split}.jsonl", ROWS["classify"])
    plain = find(tmp_path)[0][0]
    assert plain.way() is None
    options = tmp_path / "a" / "task.json"
    options.write_text('{"tune": "lora", "settings": ["tune.rank=3", "epochs=2"]}')
    task = find(tmp_path)[0][0]
    assert (task.way().rank, task.task().epochs) == (3, 2.0)
    assert task.key != plain.key  # scores of another way of tuning are measured again
    options.write_text('{"tune": "cvt"}')
    with pytest.raises(UserError, match="learns from texts without labels, and a folder of tasks has none"):
        find(tmp_path)


def test_a_folder_without_tasks_is_refused(tmp_path):
    with pytest.raises(UserError, match="it is empty"):
        find(tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        find(tmp_path / "none")
    for name in ("a.jsonl", "a.csv"):
        (tmp_path / name).write_text("good,bad\nx,y\n" if name.endswith("csv") else '{"good": "x", "bad": "y"}\n')
    with pytest.raises(UserError, match="two tasks with the name a"):
        find(tmp_path)


def test_tasks_are_in_the_order_of_their_numbers(tmp_path):
    for name in ("32 labels", "8 labels", "pairs"):
        write(tmp_path / f"{name}.jsonl", {"good": "a", "bad": "b"})
    assert [task.name for task in find(tmp_path)[0]] == ["8 labels", "32 labels", "pairs"]
