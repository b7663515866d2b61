"""Real stages at size tiny: a pipeline that is stopped in the middle of a stage ends with the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.command import run, works
from tests.pipeline.made import folder
from unmask import run_pipeline

TINY = """\
out = "out"
recipe = "bert"
size = "tiny"
set = ["tokenizer.vocab=200", "schedule.*.length=32", "schedule.*.rows=4"]
[general]
text = "wiki/"
budget = "4steps"
[knowledge]
text = "reviews.txt"
lines = true
triples = "graph.tsv"
mix = 0.5
budget = "3steps"
[entities]
recipe = "ernie-thu"
text = "wiki/"
graph = "graph.tsv"
budget = "2steps"
[task]
train = "train.jsonl"
test = "test.jsonl"
set = ["epochs=1", "length=32"]
"""


def weights(results: dict) -> dict[str, bytes]:
    return {
        one["stage"]: Path(one["run"], "weights.safetensors").read_bytes() for one in results["variants"][0]["runs"]
    }


def test_stopped_in_two_stages_and_resumed_it_ends_with_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    file, shown = folder(tmp_path / "stopped", TINY), []
    for stage in ("general", "knowledge"):
        seen = len(shown)

        def stop(stage=stage, seen=seen) -> bool:
            """After the first record of this stage."""
            new = shown[seen:]
            begun = next((n for n, one in enumerate(new) if one.get("stage") == stage), len(new))
            return any("step" in one for one in new[begun:])

        assert run_pipeline(file, device="cpu", progress=shown.append, stop=stop)["stopped"]
        assert [one["stage"] for one in shown if one.get("event") == "stage"][-1] == stage
    resumed = run_pipeline(file, device="cpu", progress=shown.append)
    assert not resumed["stopped"]
    straight = run_pipeline(folder(tmp_path / "straight", TINY), device="cpu", progress=False)
    assert weights(resumed) == weights(straight)
    assert resumed["variants"][0]["scores"] == straight["variants"][0]["scores"]
    assert [one["steps"] for one in straight["variants"][0]["runs"]][:3] == [4, 3, 2]

    again = works("pipeline", tmp_path / "straight" / "mine.toml", "--device", "cpu")
    assert "1 of 8: tokenizer is finished" in again.err
    assert "task" in again.out
    planned = json.loads(works("pipeline", tmp_path / "straight" / "mine.toml", "--plan", "--json").out)
    assert {one["state"] for one in planned} == {"finished"}
    assert run("pipeline", tmp_path / "straight" / "mine.toml", "--json").code == 0
