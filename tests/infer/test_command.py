"""`unmask generate` as a user meets it."""

import json

import pytest

from tests.command import mistake, works
from tests.convert.parts import SENTENCES
from tests.infer.parts import gpt2
from unmask.infer import save_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home") / "run"
    save_run(gpt2(folder, "system.backbone.length=32"), folder)
    return folder


def said(run, *words):
    return works("generate", run, *words, "--device", "cpu").out


def lines(run, *words):
    return [json.loads(line) for line in said(run, *words, "--json").splitlines()]


def test_that_a_file_of_prompts_gives_a_line_each(run, tmp_path):
    prompts = ["The cat", "A small", "rain"]
    (tmp_path / "prompts.txt").write_text("\n".join(prompts) + "\n", encoding="utf-8")
    words = ("--file", tmp_path / "prompts.txt", "--tokens", 6, "--greedy")
    found = lines(run, *words)
    assert [one["prompt"] for one in found] == prompts
    assert [one["text"] for one in found] == [said(run, prompt, "--tokens", 6, "--greedy")[:-1] for prompt in prompts]
    assert said(run, *words) == "".join(one["text"] + "\n" for one in found)
    assert set(found[0]) == {"prompt", "sample", "text", "ended"}


def test_that_every_option_reaches_what_it_is_for(run):
    plain = lines(run, "The cat", "--tokens", 12)
    assert plain == lines(run, "The cat", "--tokens", 12, "--no-cache")
    several = lines(run, "The cat", "--tokens", 12, "--samples", 3)
    assert [one["sample"] for one in several] == [0, 1, 2]
    assert several[:1] == plain
    greedy = lines(run, "The cat", "--tokens", 12, "--greedy")
    assert (
        greedy
        == lines(run, "The cat", "--tokens", 12, "--top-k", 1)
        == lines(run, "The cat", "--tokens", 12, "--beams", 1)
    )
    for words in (["--beams", 4], ["--beams", 4, "--length-penalty", -2], ["--greedy", "--repetition-penalty", 2],
                  ["--temperature", 3], ["--seed", 1], ["--top-p", 0.1]):  # fmt: skip
        assert lines(run, "The cat", "--tokens", 12, *words) != plain
    assert said(run, "The cat", "--tokens", 12, "--half", "--greedy").startswith("The cat")


def test_that_what_cannot_be_is_told_in_one_line(run, tmp_path):
    long = " ".join(SENTENCES)
    assert "reads at most 32" in mistake("generate", run, long, "--device", "cpu")
    assert said(run, long, "--cut-left", "--tokens", 2).startswith(long)
    assert "one of the two" in mistake("generate", run)
    assert "one of the two" in mistake("generate", run, "The", "--file", tmp_path / "prompts.txt")
    assert "no such file" in mistake("generate", run, "--file", tmp_path / "prompts.txt")
    assert "cannot be combined with --top-p" in mistake("generate", run, "The", "--beams", 2, "--top-p", 0.5)
    assert "write --greedy" in mistake("generate", run, "The", "--temperature", 0)
