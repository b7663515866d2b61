"""A whole comparison on a small text: what it runs, what it remembers, what it says."""

import dataclasses
import json
import shlex
import shutil
import signal
from pathlib import Path

import pytest

import unmask
from tests.command import mistake, run, settings
from unmask import comparison
from unmask.adapt.lora import Lora
from unmask.comparison import job as jobs
from unmask.comparison.entry import Entry
from unmask.comparison.entry import _key as entry_key
from unmask.comparison.estimates import estimate
from unmask.comparison.one_command import one_command
from unmask.errors import UserError

NARROW = ["system.backbone.width=16", "system.backbone.heads=1", "system.backbone.feedforward=32", "schedule.*.rows=8",
          "schedule.*.length=32"]  # fmt: skip
OPTIONS = {"size": "tiny", "settings": NARROW, "device": "cpu", "progress": False}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    rows = [
        {"text": f"the {word} {i}", "label": label}
        for i in range(6)
        for word, label in (("river", "a"), ("judge", "b"))
    ]
    for split in ("train", "test"):
        (folder / "words").mkdir(exist_ok=True)
        (folder / "words" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "words" / "task.json").write_text('{"settings": ["epochs=1", "examples=4"], "examples": 8}')
    (folder / "pairs.jsonl").write_text(json.dumps({"good": "The doctor opened the case.", "bad": "The opened case doctor."}) + "\n")  # fmt: skip
    (folder / "text.txt").write_text("The judge measured the report in the morning.\n")
    return folder


def compare(recipes, out, data, **more):
    return unmask.compare(recipes, out, data=data, **(OPTIONS | more))


def test_every_run_is_pretrained_adapted_scored_and_summarised(here, shards, tasks, tmp_path):
    out = tmp_path / "c"
    found = compare(
        ["gpt2", "roberta"], out, shards["wordpiece"], tasks=tasks, budget="2steps,4steps", seeds=2, task_seeds=2
    )
    assert len(here) == 8
    assert [name for name, control in here if control] == ["gpt2/2steps/seed0", "roberta/2steps/seed0"]
    assert found["tasks"] == {
        "pairs": {"measure": "accuracy", "higher": True},
        "text": {"measure": "bits_per_byte", "higher": False},
        "words": {"measure": "accuracy", "higher": True},
    }
    for run_ in found["runs"]:
        assert run_["state"] == "done"
        assert run_["tokens"] == run_["steps"] * 8 * 32
        assert run_["flops"] > 0
        assert set(run_["scores"]["words"]) == {"0", "1"}
        assert run_["commands"][0].startswith(f"unmask pretrain {run_['entry']} ")
    skipped = {run_["entry"]: set(run_["skipped"]) for run_ in found["runs"]}
    assert skipped == {"gpt2": set(), "roberta": {"text"}}  # plain text is for models that read from left to right
    row = next(r for r in found["summary"] if (r["entry"], r["budget"], r["task"]) == ("roberta", "4steps", "words"))
    scores = {r["seed"]: {int(k): v["score"] for k, v in r["scores"]["words"].items()} for r in found["runs"]
              if (r["entry"], r["budget"]) == ("roberta", "4steps")}  # fmt: skip
    assert row["mean"] == pytest.approx(estimate(scores).mean)
    assert row["untrained"] is not None
    assert row["difference"]["runs"] == 2
    assert set(found["untrained"]) == {"gpt2", "roberta"}
    page = (out / "report.html").read_text()
    assert "http" not in page.replace("http-equiv", "")  # nothing is fetched to open it
    assert page.count("<svg") > 9
    written = json.loads((out / "results.json").read_text())
    assert written["runs"] == found["runs"]


def test_the_commands_of_a_run_give_its_weights(here, shards, tmp_path):
    found = compare(["roberta+hide.budget=0.4"], tmp_path / "c", shards["wordpiece"], budget="2steps")
    words = shlex.split(found["runs"][0]["commands"][0])[1:]
    made = Path(words[words.index("--out") + 1])
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert run(*words, "--device", "cpu").code == 0
    weights = [(folder / "weights.safetensors").read_bytes() for folder in (made, tmp_path / "again")]
    assert weights[0] == weights[1]


def test_a_task_is_adapted_by_its_own_way_of_tuning(here, shards, tasks, tmp_path, monkeypatch):
    folder, out, trained, adapt = tmp_path / "tasks", tmp_path / "c", [], jobs.adapt

    def seen(*given, **options):
        for record in adapt(*given, **options):
            trained.append(record.get("trained_parameters"))
            yield record

    monkeypatch.setattr(jobs, "adapt", seen)
    shutil.copytree(tasks / "words", folder / "words")
    (folder / "words" / "task.json").write_text(
        '{"settings": ["epochs=1", "examples=4", "tune.rank=2"], "tune": "lora"}'
    )
    found = compare(["gpt2"], out, shards["wordpiece"], tasks=folder, budget="2steps", task_seeds=1)
    (run_,) = found["runs"]
    _, adapting, *_ = run_["commands"]
    words = shlex.split(adapting)[1:]
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert run(*words, "--device", "cpu").code == 0
    again = unmask.load(tmp_path / "again")
    assert again.recipe.tune == Lora(rank=2)
    assert set(filter(None, trained)) == {
        row["trained_parameters"] for row in again.history if "trained_parameters" in row
    }
    assert again.evaluate(folder / "words" / "test.jsonl")["accuracy"] == run_["scores"]["words"]["0"]["score"]


def test_a_comparison_goes_on_and_grows(here, shards, tasks, tmp_path):
    out, data = tmp_path / "c", shards["wordpiece"]
    compare(["gpt2"], out, data, budget="2steps")
    compare(["gpt2"], out, data, budget="2steps")
    assert len(here) == 1  # what is done is not run again
    found = compare(["roberta"], out, data, budget="2steps", seeds=2)
    assert [name for name, _ in here[1:]] == ["roberta/2steps/seed0", "roberta/2steps/seed1"]
    assert [entry["name"] for entry in found["entries"]] == ["gpt2", "roberta"]
    with pytest.raises(UserError, match="begun with --task-seeds 3, and now has 1"):
        compare(["roberta"], out, data, budget="2steps", task_seeds=1)
    with pytest.raises(UserError, match="roberta of this comparison had other settings"):
        compare(["roberta"], out, data, budget="2steps", settings=[*NARROW, "optimise.rate=1e-3"])


def test_a_recipe_that_fails_has_a_row_that_says_why_and_the_others_go_on(here, shards, tmp_path):
    found = compare(["gpt2+optimise.rate=1e30", "roberta"], tmp_path / "c", shards["wordpiece"], budget="8steps")
    first, second = found["runs"]
    assert (first["state"], second["state"]) == ("failed", "done")
    assert "diverged" in first["error"]
    assert "diverged" in (tmp_path / "c" / "report.html").read_text()
    compare(["roberta"], tmp_path / "c", shards["wordpiece"], budget="8steps")
    assert [name for name, _ in here].count("gpt2+optimise.rate=1e30/8steps/seed0") == 2  # the next command tries again


def test_a_budget_that_is_smaller_than_a_step_of_a_recipe_is_named_with_what_it_needs(here, shards, tmp_path):
    entries, data = ["gpt2", "roberta+schedule.*.rows=2"], shards["wordpiece"]
    found = compare(entries, tmp_path / "c", data, budget="100tok")
    first, second = found["runs"]
    assert "one step of gpt2 tiny takes 256tok" in first["error"]
    assert "give at least --budget 256tok" in first["error"]
    assert second["steps"] == 2  # of 64 tokens, the nearest to 100
    found = compare(entries, tmp_path / "f", data, budget="1e3flop")
    for one in found["runs"]:
        least = one["error"].split("--budget ")[1]
        again = compare([one["entry"]], tmp_path / one["entry"], data, budget=least)
        assert again["runs"][0]["steps"] == 1


def test_an_unfinished_run_is_marked_next_to_its_scores(here, shards, tasks, tmp_path):
    out = tmp_path / "c"
    compare(["gpt2"], out, shards["wordpiece"], tasks=tasks, budget="2steps", task_seeds=1, untrained=False)
    request = comparison.request.read(out)
    dataclasses.replace(request, asked=(dataclasses.replace(request.asked[0], seeds=2),)).write(out)
    unmask.compare_report(out)
    scores = (out / "report.html").read_text().split("<h2>Scores</h2>")[1].split("<h2>Costs</h2>")[0]
    assert "1 of 2, waiting" in scores


def test_a_sweep_finds_settings_which_pretrain_takes(here, shards, tmp_path):
    out = tmp_path / "c"
    found = compare(["gpt2"], out, shards["wordpiece"], budget="16steps", sweep=["optimise.rate=1e-9,2e-2"])
    assert [name for name, _ in here] == [
        "sweep/gpt2+optimise.rate=1e-9/8steps/seed0", "sweep/gpt2+optimise.rate=2e-2/8steps/seed0", "gpt2/16steps/seed0",
    ]  # fmt: skip
    assert found["entries"][0]["settings"][-1] == "optimise.rate=2e-2"
    assert found["entries"][0]["tuning"]["tokens"] == 2 * 8 * 8 * 32
    best = out / "best" / "gpt2.json"
    made = unmask.pretrain(
        None, shards["wordpiece"], tmp_path / "like", like=best, budget="16steps", device="cpu", progress=False
    )
    assert made.recipe.optimise.rate == 2e-2
    assert (tmp_path / "like" / "weights.safetensors").read_bytes() == (out / "runs" / "gpt2" / "16steps" / "seed0" / "weights.safetensors").read_bytes()  # fmt: skip


def test_a_recipe_next_to_a_file_of_settings_is_refused_as_a_recipe(shards, tmp_path):
    words = ["pretrain", "bert", shards["wordpiece"], "--like", tmp_path / "gpt2.json", "--out", tmp_path / "run"]
    assert "--like names the recipe, its size and its variant: leave them out" in mistake(*words)


def test_too_little_memory_beside_others_is_run_again_alone(here, shards, tmp_path, monkeypatch):
    measure, tried = jobs.Measuring.measure, []

    def short_of_memory(self, tasks, *, control):
        tried.append(self.job.name)
        if tried.count(self.job.name) == 1 and "seed1" in self.job.name:
            raise jobs.torch.OutOfMemoryError
        measure(self, tasks, control=control)

    monkeypatch.setattr(jobs.Measuring, "measure", short_of_memory)
    said = []
    found = compare(
        ["gpt2"], tmp_path / "c", shards["wordpiece"], budget="2steps", seeds=2, at_once=2, progress=said.append
    )
    assert tried.count("gpt2/2steps/seed1") == 2
    assert [run_["state"] for run_ in found["runs"]] == ["done", "done"]
    assert any("smaller --at-once" in record.get("text", "") for record in said)
    assert {run_["at_once"] for run_ in found["runs"]} == {2}


def test_runs_share_the_cores_of_a_cpu_unless_budgets_are_in_time(here, shards, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison.os, "cpu_count", lambda: 3)

    def at_once(out: str, **more) -> set[int]:
        return {one["at_once"] for one in compare(["gpt2"], tmp_path / out, shards["wordpiece"], **more)["runs"]}

    assert at_once("cores", budget="1steps", seeds=4) == {3}
    assert at_once("runs", budget="1steps", seeds=2) == {2}
    assert at_once("time", budget="3s", seeds=2) == {1}


def test_the_command_line_runs_jobs_in_processes_of_their_own_and_draws_again(shards, tasks, tmp_path):
    data = shutil.copytree(shards["wordpiece"], tmp_path / "data")
    words = ["compare", "gpt2", "--data", data, "--budget", "2steps", "--size", "tiny", "--device", "cpu",
             "--out", tmp_path / "c", *settings(NARROW)]  # fmt: skip
    ran = run(*words)
    assert ran.code == 0, ran.err
    assert "gpt2/2steps/seed0 done" in ran.err
    assert "1 of 1" in ran.out
    (tmp_path / "c" / "report.html").unlink()
    shutil.rmtree(data)  # what was measured is enough
    again = run("compare", "--report", "--out", tmp_path / "c")
    assert again.out == ran.out
    assert (tmp_path / "c" / "report.html").is_file()


def test_mistakes_are_found_before_anything_is_trained(shards, tasks, tmp_path):
    data, out = shards["wordpiece"], tmp_path / "c"
    short = ["--data", data, "--size", "tiny", "--device", "cpu", "--budget", "2steps", "--out", out]
    assert "at least one recipe" in mistake("compare", *short)
    assert "two entries have the name gpt2" in mistake("compare", "gpt2", "gpt2", *short)
    assert "no data given" in mistake("compare", "gpt2", "--out", out)
    assert "must be loss or a task" in mistake("compare", "gpt2", *short, "--sweep-by", "sst2")
    assert "holds no comparison" in mistake("compare", "--report", "--out", out)
    assert "1 or more" in mistake("compare", "gpt2", *short, "--seeds", "0")
    assert "--at-once must be 1 or more, got 0" in mistake("compare", "gpt2", *short, "--at-once", "0")
    assert "--data has no effect with --report" in mistake("compare", "--report", "--data", data, "--out", out)
    for option in (["--seeds", "4"], ["--budget", "5m"], ["--device", "cpu"], ["--no-untrained"], ["--at-once", "0"]):
        assert f"{option[0]} has no effect with --report" in mistake("compare", "--report", *option, "--out", out)
    assert not out.exists()


def test_a_label_that_no_training_example_has_is_refused_before_anything_is_trained(shards, tasks, tmp_path):
    folder, out = tmp_path / "tasks", tmp_path / "c"
    shutil.copytree(tasks, folder)
    with (folder / "words" / "test.jsonl").open("a") as file:
        file.write(json.dumps({"text": "the king", "label": "c"}) + "\n")
    with pytest.raises(UserError, match=r"words.test.jsonl, line 13: no training example has the label 'c'"):
        compare(["gpt2"], out, shards["wordpiece"], tasks=folder, budget="2steps")
    (folder / "words" / "train.jsonl").write_text('{"text": "a", "label": "x"}\n' * 2)
    with pytest.raises(UserError, match=r"words.train.jsonl: a classifier needs two labels or more"):
        compare(["gpt2"], out, shards["wordpiece"], tasks=folder, budget="2steps")
    assert not out.exists()


def test_overwrite_measures_everything_again(here, shards, tmp_path):
    for rate in ("1e-3", "1e-5"):
        settings = [*NARROW, f"optimise.rate={rate}"]
        found = compare(
            ["gpt2"], tmp_path / "c", shards["wordpiece"], budget="2steps", settings=settings, overwrite=True
        )
        assert found["runs"][0]["rate"] == float(rate)
    assert len(here) == 2


def test_an_edited_recipe_file_is_measured_again(here, shards, tmp_path):
    file = tmp_path / "mine.py"
    for rate in ("1e-3", "1e-5"):
        file.write_text(
            "import dataclasses\nfrom unmask import recipes\n\nSIZES = ('tiny',)\n\n\n"
            "def recipe(size='tiny', variant='paper'):\n"
            "    found = recipes.get('gpt2', size=size)\n"
            f"    return found.replace(name='mine', optimise=dataclasses.replace(found.optimise, rate={rate}))\n"
        )
        entry_key.cache_clear()
        found = compare([str(file)], tmp_path / "c", shards["wordpiece"], budget="2steps", seeds=2)
        assert [run_["rate"] for run_ in found["runs"]] == [float(rate)] * 2


def test_tasks_that_change_come_or_go_are_measured_again(here, shards, tasks, tmp_path):
    folder, data = tmp_path / "tasks", shards["wordpiece"]
    shutil.copytree(tasks, folder)
    options = {"tasks": folder, "budget": "2steps", "task_seeds": 1}
    before = compare(["gpt2"], tmp_path / "c", data, **options)["runs"][0]
    (folder / "pairs.jsonl").write_text(
        json.dumps({"good": "The opened case doctor.", "bad": "The doctor opened the case."}) + "\n"
    )
    (folder / "text.txt").unlink()
    (folder / "more.jsonl").write_text(json.dumps({"good": "The river.", "bad": "River the."}) + "\n")
    after = compare(["gpt2"], tmp_path / "c", data, **options)["runs"][0]
    assert set(after["scores"]) == {"words", "pairs", "more"}
    assert after["scores"]["pairs"]["0"]["score"] == 1 - before["scores"]["pairs"]["0"]["score"]
    assert after["scores"]["words"] == before["scores"]["words"]  # it did not change, and was not measured again
    assert after["seconds"] == before["seconds"]


def test_a_run_that_was_deleted_is_trained_again_when_something_is_missing(here, shards, tasks, tmp_path):
    folder, out = tmp_path / "tasks", tmp_path / "c"
    shutil.copytree(tasks, folder)
    options = {"tasks": folder, "budget": "2steps", "task_seeds": 1}
    before = compare(["gpt2"], out, shards["wordpiece"], **options)["runs"][0]
    shutil.rmtree(out / "runs")
    compare(["gpt2"], out, shards["wordpiece"], **options)
    assert len(here) == 1  # nothing is missing: what was measured stands
    (folder / "text.txt").unlink()
    after = compare(["gpt2"], out, shards["wordpiece"], **options)["runs"][0]
    assert (after["state"], after["error"]) == ("done", None)
    kept = {task: {seed: one["score"] for seed, one in scores.items()} for task, scores in after["scores"].items()}
    assert kept == {task: {"0": before["scores"][task]["0"]["score"]} for task in ("pairs", "words")}
    assert len(after["commands"]) == len(set(after["commands"]))


def test_a_bad_task_is_told_and_the_others_go_on(here, shards, tasks, tmp_path):
    folder = tmp_path / "tasks"
    shutil.copytree(tasks, folder)
    (folder / "long.jsonl").write_text(json.dumps({"good": "the river " * 40, "bad": "the judge " * 40}) + "\n")
    (folder / "damaged").mkdir()
    for split in ("train", "test"):
        (folder / "damaged" / f"{split}.jsonl").write_text(
            '{"text": "a", "label": "x"}\n{"text": "b", "label": null}\n'
        )
    said = []
    found = compare(
        ["gpt2"], tmp_path / "c", shards["wordpiece"], tasks=folder, budget="2steps", task_seeds=1, progress=said.append
    )
    assert set(found["runs"][0]["scores"]) == {"words", "pairs", "text"}
    texts = " | ".join(record.get("text", "") for record in said)
    assert "damaged is left out" in texts
    assert "has no score for long" in texts
    assert "has no score for long" in (tmp_path / "c" / "report.html").read_text()


def test_the_untrained_copies_are_adapted_once_by_a_run_that_can(here, shards, tasks, tmp_path):
    options = {"tasks": tasks, "task_seeds": 1}
    first = compare(["gpt2"], tmp_path / "c", shards["wordpiece"], budget="4steps", untrained=False, **options)
    assert not first["untrained"]
    compare(["gpt2"], tmp_path / "c", shards["wordpiece"], budget="4steps", **options)
    found = compare(["gpt2"], tmp_path / "c", shards["wordpiece"], budget="2steps", **options)
    assert set(found["untrained"]["gpt2"]) == {"words"}
    assert [bool(run_["untrained"]) for run_ in found["runs"]] == [False, True]  # not once more by the smaller budget


def test_a_report_keeps_what_was_measured_when_a_recipe_has_changed(here, shards, tmp_path, monkeypatch):
    found = compare(["gpt2"], tmp_path / "c", shards["wordpiece"], budget="2steps")
    monkeypatch.setattr(Entry, "key", "of a newer version")
    again = unmask.compare_report(tmp_path / "c")
    assert [run_["state"] for run_ in again["runs"]] == ["done"]
    assert again["summary"] == found["summary"]
    compare(["gpt2"], tmp_path / "c", shards["wordpiece"], budget="2steps")
    assert len(here) == 2  # a comparison that goes on trains it again


def test_networks_with_filled_embeddings_are_also_compared_with_their_start(here, shards, tasks, tmp_path):
    options = {"tasks": tasks, "task_seeds": 2, "budget": "2steps"}
    entries = ["gpt2", "gpt2+start=none+name=random"]
    found = compare(entries, tmp_path / "c", shards["wordpiece"], **options)
    assert {name: set(scores) for name, scores in found["start"].items()} == {"gpt2": {"words"}}
    rows = {row["entry"]: row for row in found["summary"] if row["task"] == "words"}
    assert rows["gpt2"]["start"] == pytest.approx(sum(found["start"]["gpt2"]["words"].values()) / 2)
    assert rows["random"]["start"] is None
    filled, random = found["runs"]
    assert not random["start"]
    assert sum("1steps" in command for command in filled["commands"]) == 1
    assert not (tmp_path / "c" / "adapted" / filled["name"] / "start").exists()
    assert "gpt2, start" in (tmp_path / "c" / "report.html").read_text()
    again = compare(entries, tmp_path / "c", shards["wordpiece"], **options)
    assert again["start"] == found["start"]
    assert len(here) == 2  # nothing was measured again


def test_budgets_keep_their_unit_and_their_first_spelling(here, shards, tmp_path):
    data = shards["wordpiece"]
    compare(["gpt2"], tmp_path / "c", data, budget="20steps")
    found = compare(["roberta"], tmp_path / "c", data, budget="2e1steps")
    assert {run_["budget"] for run_ in found["runs"]} == {"20steps"}
    with pytest.raises(UserError, match="budgets in seconds and steps"):
        compare(["gpt2"], tmp_path / "c", data, budget="20s")


def test_a_winner_that_changes_is_run_again(here, shards, tmp_path):
    out, data = tmp_path / "c", shards["wordpiece"]
    options = {"budget": "8steps", "sweep": ["optimise.rate=1e-9,2e-2"]}
    compare(["gpt2"], out, data, **options)
    file = out / "measured" / "sweep" / "gpt2+optimise.rate=1e-9" / "4steps" / "seed0.json"
    changed = json.loads(file.read_text())
    changed["pretraining"]["held_out_loss"] = 0.0
    file.write_text(json.dumps(changed))
    found = compare(["gpt2"], out, data, **options)
    assert found["entries"][0]["settings"][-1] == "optimise.rate=1e-9"
    assert found["runs"][0]["rate"] == 1e-9
    assert json.loads((out / "best" / "gpt2.json").read_text())["settings"][-1] == "optimise.rate=1e-9"


def test_a_second_command_in_the_same_folder_is_refused(here, shards, tmp_path):
    out, data = tmp_path / "c", shards["wordpiece"]
    compare(["gpt2"], out, data, budget="2steps")
    with one_command(out, "compare"), pytest.raises(UserError, match="another 'unmask compare' works"):
        compare(["gpt2"], out, data, budget="2steps")


def test_a_process_whose_parent_is_gone_stops(monkeypatch):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with jobs._stopping() as stop:
        assert not stop()
        monkeypatch.setattr(jobs.os, "getppid", lambda: -1)
        assert stop()
    for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
        signal.signal(number, handler)


def test_a_comparison_goes_on_from_another_folder(here, shards, tasks, tmp_path, monkeypatch):
    data = shards["wordpiece"]
    monkeypatch.chdir(data.parent)
    compare(["gpt2"], tmp_path / "c", f"{data.name}/", budget="2steps")
    monkeypatch.chdir(tmp_path)
    compare(["gpt2"], tmp_path / "c", data, budget="2steps")
    assert len(here) == 1
