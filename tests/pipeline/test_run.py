"""A pipeline that runs, is killed, stopped and changed: nothing is done twice, and what is done again is explained."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from tests.pipeline.made import FILE, FakeRunner, folder, tasks_in
from unmask import run_pipeline
from unmask.comparison.one_command import one_command
from unmask.errors import UserError

ALL = ["general", "knowledge", "domain", "task"]


def run(file: Path, runner: FakeRunner | None = None, **options) -> tuple[dict, list[str], list[dict]]:
    """The results, the stages that were trained, and the records of the stages."""
    runner, told = runner or FakeRunner(), []
    results = run_pipeline(file, progress=told.append, runner=runner, **options)
    return results, runner.stages, [one for one in told if one["event"] == "stage"]


def test_data_is_made_first_then_the_stages_follow_in_their_order(tmp_path):
    runner = FakeRunner()
    results, stages, _ = run(folder(tmp_path), runner)
    assert runner.verbs == ["tokenizer", "triples", "pretrain", "pretrain", "pretrain", "adapt", "evaluate"]
    assert stages == ALL
    runs = results["variants"][0]["runs"]
    assert [(one["stage"], one["from"], one["budget"]) for one in runs] == [
        ("general", None, "12steps"), ("knowledge", "general", "2steps"), ("domain", "knowledge", "6steps"), ("task", "domain", None),
    ]  # fmt: skip
    assert json.loads((tmp_path / "out" / "results.json").read_text())["variants"][0]["scores"]["task"]["mean"] == 0.5


def test_a_finished_stage_is_never_run_twice(tmp_path):
    file = folder(tmp_path)
    run(file)
    results, stages, told = run(file)
    assert stages == []
    assert {one["state"] for one in told} == {"finished"}
    assert results["variants"][0]["scores"]["task"]["mean"] == 0.5  # the score of the first time


@pytest.mark.parametrize("call", range(3, 7))
def test_a_pipeline_that_is_killed_goes_on_with_the_stage_that_it_was_in(tmp_path, call):
    file, killed = folder(tmp_path), FakeRunner(killed=call)
    with pytest.raises(KeyboardInterrupt):
        run(file, killed)
    _, stages, told = run(file)
    assert stages == ALL[call - 3 :]
    assert [one["state"] for one in told[2:]] == ["finished"] * (call - 3) + ["goes on"] + ["begins"] * (6 - call)
    assert killed.calls[-1].out == Path(told[call - 1]["out"])  # in the same folder, where the training is resumed


def test_a_pipeline_that_is_stopped_says_so_and_its_report_too(tmp_path):
    file = folder(tmp_path)
    results, stages, _ = run(file, FakeRunner(stopped=5))
    assert results["stopped"]
    assert stages == ["general", "knowledge", "domain"]
    assert not results["variants"][0]["scores"]
    assert "run the same command again to continue" in (tmp_path / "out" / "report.html").read_text()


def test_a_stage_whose_run_was_deleted_is_run_again(tmp_path):
    file = folder(tmp_path)
    results, _, _ = run(file)
    Path(results["variants"][0]["runs"][1]["run"], "weights.safetensors").unlink()
    assert run(file)[1] == ["knowledge"]


@pytest.mark.parametrize(
    ("name", "content", "stages", "why"),
    [
        ("reviews.txt", "other text\n", ["domain", "task"], "reviews.txt has changed"),
        ("train.jsonl", '{"text": "a", "label": "long"}\n{"text": "b", "label": "short"}', ["task"], "train.jsonl has changed"),
        ("mine.toml", FILE.replace("share = 3", "share = 13"), ALL, "budget was 6steps and is now 13steps"),
        ("mine.toml", FILE.replace("lines = true", 'lines = true\nset = "hide.budget=0.2"'), ["domain", "task"],
         "settings was not given and is now hide.budget=0.2"),
        ("graph.tsv", "a\tb\tc\n", ["knowledge", "domain", "task"], "graph.tsv has changed"),
    ],
)  # fmt: skip
def test_a_change_says_which_stages_are_run_again_and_why(tmp_path, name, content, stages, why):
    file = folder(tmp_path)
    run(file)
    (tmp_path / name).write_text(content, encoding="utf-8")
    _, again, told = run(file)
    assert again == stages
    assert any(why in one for record in told for one in record["why"])
    reasons = {
        record["stage"]: record["why"] for record in told if record["state"] == "begins" and record["stage"] in ALL
    }
    assert all(reasons.values())


def test_a_stage_is_left_out_by_one_option_and_its_budget_goes_to_the_others(tmp_path):
    results, stages, _ = run(folder(tmp_path), without=["knowledge"])
    assert stages == ["general", "domain", "task"]
    assert results["variants"][0]["budgets"] == {"general": "13steps", "domain": "7steps"}
    assert results["variants"][0]["name"] == "without knowledge"


def test_an_ablation_runs_without_each_stage_in_turn_and_tells_what_each_was_worth(tmp_path):
    file, runner = folder(tmp_path), FakeRunner([0.8, 0.6, 0.75, 0.82, 0.9, 0.5, 0.77, 0.9])
    results, stages, _ = run(file, runner, ablate=True, seeds=2)
    assert stages[:13] == [*ALL, *ALL[1:], "general", "domain", "task", "general", "knowledge", "task"]
    for variant in results["variants"]:
        assert sum(int(budget.removesuffix("steps")) for budget in variant["budgets"].values()) == 20
    worth = {row["stage"]: row["difference"] for row in results["worth"]}
    pairs = {"general": (0.2, 0.4), "knowledge": (0.05, 0.13), "domain": (-0.02, 0.0)}
    for name, differences in pairs.items():
        half = 12.706 * statistics.stdev(differences) / 2**0.5  # Student's t of two runs
        assert worth[name]["mean"] == pytest.approx(statistics.fmean(differences))
        assert worth[name]["high"] - worth[name]["mean"] == pytest.approx(half)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What each stage was worth" in page
    assert page.count("<rect") == 4
    assert "unmask pretrain bert" in page


def test_an_ablation_adds_to_what_was_run_before(tmp_path):
    file = folder(tmp_path)
    run(file)
    _, stages, told = run(file, ablate=True)
    assert stages == ["knowledge", "domain", "task", "general", "domain", "task", "general", "knowledge", "task"]
    assert all(not record["why"] for record in told)  # another variant is no change


def test_several_trainings_of_a_task_give_an_interval(tmp_path):
    file = folder(tmp_path, FILE.replace('set = "epochs=1"', "seeds = 3"))
    results, stages, _ = run(file, FakeRunner([0.5, 0.6, 0.7]))
    assert stages == [*ALL, "task", "task"]
    score = results["variants"][0]["scores"]["task"]
    assert (score["mean"], score["of"], score["runs"]) == (pytest.approx(0.6), "adapting seeds", 3)


def test_one_model_for_many_tasks_has_a_score_and_a_worth_for_each(tmp_path):
    lines = FILE.splitlines()
    file = folder(tmp_path, "\n".join([*lines[: lines.index("[task]")], "[task]", 'train = "tasks/"']))
    tasks_in(tmp_path, "one", "two")
    results, _, _ = run(file, FakeRunner([0.8, 0.6]), without=["general", "knowledge"], ablate=True)
    assert results["variants"][0]["scores"].keys() == {"task/one", "task/two"}
    assert [(row["stage"], row["task"]) for row in results["worth"]] == [("domain", "task/one"), ("domain", "task/two")]
    assert [row["difference"]["mean"] for row in results["worth"]] == [pytest.approx(0.2)] * 2
    assert "one 80.0 (accuracy), two 80.0 (accuracy)" in results["tables"]["stages"]["rows"][-1]


def test_without_any_pretraining_the_task_is_learned_from_random_weights(tmp_path):
    runner = FakeRunner()
    _, stages, _ = run(folder(tmp_path), runner, without=ALL[:3])
    assert stages == ["untrained", "task"]
    assert runner.calls[-2].options["--fresh"] is True


def test_an_error_in_a_stage_names_the_stage(tmp_path):
    def fails(call):
        raise UserError("there is no room")

    with pytest.raises(UserError, match=r"\[tokenizer\]: there is no room"):
        run_pipeline(folder(tmp_path), progress=False, runner=fails)


def test_a_second_command_in_the_same_folder_is_refused(tmp_path):
    file = folder(tmp_path)
    with one_command(tmp_path / "other", "pipeline"):
        run(file)
    with (
        one_command(tmp_path / "out", "pipeline"),
        pytest.raises(UserError, match="another 'unmask pipeline' works in"),
    ):
        run(file)
