"""Unknown names list the nearest; impossible values are refused before anything is written."""

import shutil

import pytest
import torch

from tests.bad_input.made import prepare
from tests.command import mistake, pretrain, snapshot


@pytest.mark.parametrize(
    "words,expected",
    [
        (["show", "brt"], "did you mean bert"),
        (["show", "bert", "--size", "tinny"], "did you mean tiny"),
        (["show", "bert", "--size", "enormous"], "base"),
        (["show", "bert", "--variant", "papr"], "did you mean paper"),
        (["show", "bert", "--set", "hide.budgt=0.2"], "did you mean hide.budget"),
        (["show", "bert", "--set", "hidee.budget=0.2"], "hide"),
        (["show", "bert", "--set", "schedule.7.length=64"], "schedule.1"),
        (["show", "bert", "--set", "hide.units=Word"], "did you mean Words"),
        (["show", "bert", "--set", "hide.budget"], "NAME=VALUE"),
        (["diff", "bert", "robert"], "did you mean"),
        (["explain", "gpt3", "a text"], "did you mean gpt or gpt2"),
    ],
)
def test_an_unknown_name_lists_the_nearest(words, expected):
    assert expected in mistake(*words)


def test_an_unknown_way_to_find_words_lists_the_nearest(corpus, tok, tmp_path):
    said = prepare(corpus, tok, tmp_path / "data", "--words", "space", call=mistake)
    assert "did you mean spaces?" in said


@pytest.mark.parametrize(
    "setting,expected",
    [
        ("hide.budget=15", "write 0.15 for 15%"),
        ("hide.budget=0", "(0, 1]"),
        ("hide.budget=much", "a number"),
        ("hide.replace.mask=0.95", "at most 1"),
        ("hide.copies=0", "1 or more"),
        ("system.backbone.heads=7", "multiple of backbone.heads"),
        ("system.backbone.heads=0", "1 or more"),
        ("system.backbone.layers=2.5", "a whole number"),
        ("system.backbone.dropout=1", "[0, 1)"),
        ("optimise.rate=-1", "over 0"),
        ("optimise.rate=nan", "a number"),
        ("optimise.curve=round", "one of linear"),
        ("optimise.warmup=10000", "write 0.1 for 10% of the steps"),
        ("optimise.decay=-0.1", "optimise.decay"),
        ("optimise.epsilon=0", "optimise.epsilon"),
        ("optimise.betas=0.9", "optimise.betas"),
        ("optimise.betas=(0.9,)", "optimise.betas"),
        ("schedule.0.rows=0", "1 or more"),
        ("schedule.0.share=0.5", "add up to 1"),
        ("schedule.0.length=4", "8 or more"),
    ],
)
def test_an_impossible_value_is_refused_before_anything_is_written(data, tmp_path, setting, expected):
    assert expected in pretrain("bert", data, tmp_path / "run", "--set", setting, call=mistake)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words,expected",
    [
        (["--budget", "nonsense"], "a budget is a number with a unit, such as 20m"),
        (["--budget", "0steps"], "over 0"),
        (["--set", "schedule.0.length=1024"], "lower schedule"),
        (["--set", "schedule.0.weights={'tokns': 2.0}"], "tokns"),
    ],
)
def test_a_run_that_cannot_start_leaves_nothing_behind(data, tmp_path, words, expected):
    assert expected in pretrain("bert", data, tmp_path / "run", *words, call=mistake)
    assert not (tmp_path / "run").exists()


def test_a_run_that_cannot_start_does_not_remove_the_one_it_would_replace(bert, data, tmp_path):
    shutil.copytree(bert, tmp_path / "run")
    before = snapshot(tmp_path / "run")
    for words in (["--budget", "nonsense"], ["--set", "schedule.0.length=1024"]):
        pretrain("bert", data, tmp_path / "run", "--overwrite", *words, call=mistake)
        assert snapshot(tmp_path / "run") == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_told(bert, data, tmp_path):
    said = pretrain("bert", data, tmp_path / "run", "--device", "cuda", call=mistake)
    assert "use --device cpu" in said
    assert "use --device cpu" in mistake("fill", bert, "The [MASK].", "--device", "cuda")
