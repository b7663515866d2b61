"""One model for a folder of tasks: each has its own head, and their batches take turns (MT-DNN)."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.adapt.made import base_of
from tests.command import mistake, settings, works
from tests.data.labelled_files import rows, write
from unmask import load, recipes
from unmask.adapt.many_settings import Many
from unmask.adapt.many_tasks import Labels, adapt_many, to_read
from unmask.curves import Linear
from unmask.data.examples import Text
from unmask.data.loader import TRACK_BITS
from unmask.errors import UserError
from unmask.infer import one_task, save_run
from unmask.infer.passes import laid_out
from unmask.predict import AnswerSteps, Label, San
from unmask.serving.models import Models
from unmask.tasks.classify import Classify, Example
from unmask.trials.label_curve import parse_sizes

SIZES = {"cats": 60, "dogs": 30, "alike": 90, "order": 60}  # training examples
FAST = ["epochs=2", "examples=10", "rate=0.003"]


def texts(kind: str, count: int, seed: int) -> list[dict]:
    """Tasks whose labels have the same names and mean different things."""
    some = rows("classify", count, seed)
    if kind == "cats":
        return [row | {"label": int("river" in row["text"])} for row in some]
    if kind == "dogs":  # the opposite answer to the same question
        return [row | {"label": int("river" not in row["text"])} for row in some]
    if kind == "alike":
        return rows("number", count, seed)
    pairs = [(a["text"], b["text"]) for a, b in zip(some, rows("classify", count, seed + 9), strict=True)]
    return [{"text_a": a, "text_b": b, "label": "same" if i % 2 else "other"} for i, (a, b) in enumerate(pairs)]


@pytest.fixture(scope="module")
def place(tmp_path_factory, tokenizers):
    """A base, a folder of tasks, and the model that was trained on all of them."""
    place = tmp_path_factory.mktemp("many")
    for name, count in SIZES.items():
        for seed, (split, size) in enumerate({"train": count, "dev": 20, "test": 20}.items()):
            write(place / "tasks" / name / f"{split}.jsonl", texts(name, size, seed))
    (place / "tasks" / "dogs" / "dev.jsonl").unlink()  # it does not choose the epoch
    save_run(base_of("bert", tokenizers["wordpiece"], place), place / "base")
    works("adapt", place / "base", place / "tasks", "--out", place / "many", "--device", "cpu", *settings(FAST))
    return place


def history(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_every_batch_of_every_task_is_read_once_in_each_epoch(place):
    ends = {record["epoch"]: record["turns"] for record in history(place / "many") if "epoch" in record}
    batches = {name: count // 10 for name, count in SIZES.items()}
    assert ends == {1: batches, 2: {name: 2 * count for name, count in batches.items()}}


def test_the_turns_of_a_task_are_those_of_its_rows_and_not_of_its_examples(place, tmp_path):
    pool = [
        {"query": f"q{i // 6}", "passage": row["text"], "label": int(i % 6 < 3)}
        for i, row in enumerate(rows("classify", 60))
    ]
    long = [{"tokens": ["the", "river"] * 40, "tags": ["O", "B-X"] * 40}] * 10
    for name, some in {"pick": pool, "tags": long}.items():
        for split in ("train", "test"):
            write(tmp_path / "tasks" / name / f"{split}.jsonl", some)
    values = ["epochs=1", "examples=10", "rate=0.003", "length=32"]
    works("adapt", place / "base", tmp_path / "tasks", "--out", tmp_path / "x", "--device", "cpu", *settings(values))
    model = load(tmp_path / "x", device="cpu")
    counts = {name: len(rows_of(model, name, tmp_path)) for name in ("pick", "tags")}
    assert counts["pick"] == 90  # 10 queries, 3 relevant passages x 3 others
    assert counts["tags"] > 10  # windows
    assert history(tmp_path / "x")[-1]["turns"] == {name: round(count / 10) for name, count in counts.items()}


def test_the_epoch_with_the_best_mean_over_the_dev_sets_is_kept(place):
    last = history(place / "many")[-1]
    scores = [[value for name, value in epoch.items() if name.startswith("dev_")] for epoch in last["epochs"]]
    assert [name for name in last["epochs"][0] if name.startswith("dev_")] == ["dev_alike pearson", "dev_cats accuracy", "dev_order accuracy"]  # fmt: skip
    assert last["kept_score"] == pytest.approx(max(np.mean(one) for one in scores))


def test_each_kind_of_task_has_its_head_and_pairs_have_a_stochastic_answer_network(place):
    recipe = load(place / "many").recipe
    heads = {name: track.own[name] for name, track in recipe.tracks.items()}
    assert isinstance(heads["order"], San)
    assert heads["order"].steps == AnswerSteps(count=5, dropout=0.1)
    assert {name: head.answer for name, head in heads.items() if isinstance(head, Label)} == {
        "cats": "class", "dogs": "class", "alike": "number",
    }  # fmt: skip
    assert type(recipe.optimise).__name__ == "Adamax"
    assert {name: task.trained.examples for name, task in recipe.tasks.items()} == SIZES


def test_labels_with_the_same_names_are_answered_by_different_heads(place):
    model = load(place / "many")
    assert model.task("cats").labels == model.task("dogs").labels == ("0", "1")
    cats, dogs = model.system.predict["cats"], model.system.predict["dogs"]
    with torch.no_grad():
        cats.out.weight.zero_(), dogs.out.weight.zero_()
        cats.out.bias.copy_(torch.tensor([5.0, 0.0])), dogs.out.bias.copy_(torch.tensor([0.0, 5.0]))
    assert [model.task(name).predict("the river")[0].label for name in ("cats", "dogs")] == ["0", "1"]


def test_a_task_that_is_saved_alone_answers_as_it_did(place, tmp_path):
    model = load(place / "many", device="cpu")
    for name in ("cats", "order"):
        save_run(one_task(model, name), tmp_path / name)
        again = load(tmp_path / name, device="cpu")
        examples = [row["text"] if "text" in row else (row["text_a"], row["text_b"]) for row in texts(name, 8, 5)]
        assert again.recipe.task == model.tasks[name]
        found = [[one.probabilities for one in each.predict(examples)] for each in (model.task(name), again)]
        assert found[0] == found[1]


def test_a_folder_of_tasks_is_scored_in_one_table(place, tmp_path):
    shown = works("evaluate", place / "many", place / "tasks")
    for name in (*SIZES, "mean"):
        assert name in shown.out
    found = json.loads(works("evaluate", place / "many", place / "tasks", "--json").out)
    alone = json.loads(works("evaluate", place / "many", place / "tasks/cats/test.jsonl", "--task", "cats", "--json").out)  # fmt: skip
    assert found["cats"]["accuracy"] == alone["accuracy"]
    assert found["alike"]["main"]["measure"] == "pearson"
    write(tmp_path / "tasks/cats/train.jsonl", texts("cats", 20, 0))
    write(tmp_path / "tasks/cats/test.jsonl", texts("cats", 20, 1))
    some = works("evaluate", place / "many", tmp_path / "tasks")
    assert "has no alike, dogs, order" in some.err
    assert "was not trained on several tasks" in mistake("evaluate", place / "base", tmp_path / "tasks")


def test_one_task_is_adapted_from_it_and_starts_with_its_network_and_the_pooler_of_the_largest_task(place, tmp_path):
    file = place / "tasks/order/train.jsonl"
    works("adapt", place / "many", file, "--out", tmp_path / "one", "--device", "cpu", *settings(["epochs=1", "rate=1e-9"]))  # fmt: skip
    many, one = load(place / "many").system, load(tmp_path / "one").system
    for name, value in many.backbone.state_dict().items():
        torch.testing.assert_close(one.backbone.state_dict()[name], value, atol=1e-5, rtol=0)
    torch.testing.assert_close(one.predict["label"].dense.weight, many.predict["alike"].dense.weight, atol=1e-5, rtol=0)


def test_turns_follow_the_power_of_the_sizes_and_may_be_annealed():
    batches = {"large": 81, "small": 16}
    plan = replace(Many(epochs=5).hyperparameters(recipes.get("bert", size="tiny")), length=32)
    assert Many(power=0.5).schedule(batches, plan)[0].turns == {"large": 9, "small": 4}
    assert Many(power=0).schedule(batches, plan)[0].turns == {"large": 1, "small": 1}
    stages = Many(power=Linear(first=1.0, last=0.2)).schedule(batches, plan)
    powers = [1 - 0.8 * (epoch - 1) / 4 for epoch in range(1, 6)]  # Stickland and Murray 2019, section 3.2
    assert [stage.turns["large"] for stage in stages] == pytest.approx([81**power for power in powers])


def test_tasks_with_few_examples_are_read_more_often_unless_the_user_gave_a_number():
    assert Many().sized([320, 320, 320]).epochs == 20  # at most; 10 batches each would need 30 epochs for 300 steps
    assert Many().sized([640, 1280]).epochs == 10  # 30 batches of a task on average
    assert Many().sized([300_000, 300]).epochs == 5  # MT-DNN's
    assert Many(epochs=3).sized([320, 320]).epochs == 3
    assert Many(examples=64).sized([1920, 1920]).epochs == 10  # larger steps, fewer of them in an epoch


def test_a_training_without_a_number_of_epochs_is_sized_by_its_tasks(place, tmp_path):
    base = load(place / "base", device="cpu")
    tasks = [Labels(name, Classify(), str(place / f"tasks/{name}/train.jsonl"), [Example(Text(f"{name} {i}"), str(i % 2)) for i in range(40)]) for name in ("cats", "dogs")]  # fmt: skip
    records = adapt_many(base, tasks, tmp_path / "out", many=Many(examples=20, length=16))
    first = next(record for record in records if "steps" in record)
    assert first["steps"] == 20 * 2 * 2  # 20 epochs of two batches of each task


def test_a_source_of_several_tasks_that_is_stopped_continues_with_the_same_batches(place):
    model = load(place / "many", device="cpu")
    mine = {name: rows_of(model, name, place) for name in SIZES}
    plan = replace(Many(examples=4, power=Linear(first=1.0, last=0.0), epochs=2).hyperparameters(model.recipe), length=32)  # fmt: skip
    stages = Many(power=Linear(first=1.0, last=0.0), epochs=2).schedule({name: len(r) // 4 for name, r in mine.items()}, plan)  # fmt: skip
    _, (_, opened) = to_read(mine, 3, stages, plan, 0, dict.fromkeys(mine)).legs
    whole = opened(None, None)
    found = [whole.batch(4) for _ in range(20)]
    assert set(Counter(batch.tracks[0][0] for batch in found).values()) == {5}  # with a power of 0, all tasks alike
    numbers = {batch.tracks[0][0]: set((batch.row >> TRACK_BITS).tolist()) for batch in found}
    assert numbers == {name: {number} for number, name in enumerate(SIZES, 1)}  # tracks do not share random draws
    first = opened(None, None)
    for _ in range(7):
        first.batch(4)
    second = opened(json.loads(json.dumps(first.state())), None)
    for one, two in zip(found[7:], (second.batch(4) for _ in range(13)), strict=False):
        assert one.tracks == two.tracks
        assert torch.equal(one.ids, two.ids)
        assert torch.equal(one.row, two.row)


def rows_of(model, name, place):
    task = model.tasks[name]
    examples, _ = task.read(place / "tasks" / name / "train.jsonl", None)
    return laid_out(one_task(model, name), task.lay_out(examples))[0]


@pytest.mark.parametrize(
    "name, kind, said",
    [
        ("pop", "classify", "cannot be called 'pop': the name has another meaning"),
        ("a.b", "classify", "use letters, digits, _ and -"),
        ("titles", "write", "has no head of its own"),
    ],
)
def test_tasks_that_cannot_be_trained_together_are_refused_with_the_reason(name, kind, said, place, tmp_path):
    for task, of in ((name, kind), ("other", "classify")):
        for split in ("train", "test"):
            write(tmp_path / "tasks" / task / f"{split}.jsonl", rows(of, 12))
    assert said in mistake("adapt", place / "base", tmp_path / "tasks", "--out", tmp_path / "x", "--device", "cpu")
    assert not (tmp_path / "x").exists()


def test_the_file_of_a_task_that_cannot_be_learned_is_named(place, tmp_path):
    for task, examples in (("alike", [{"text": "a river", "label": "long"}] * 12), ("other", rows("classify", 12))):
        for split in ("train", "test"):
            write(tmp_path / "tasks" / task / f"{split}.jsonl", examples)
    said = mistake("adapt", place / "base", tmp_path / "tasks", "--out", tmp_path / "x", "--device", "cpu")
    assert f"{tmp_path / 'tasks/alike/train.jsonl'}: a classifier needs two labels or more" in said


def test_a_folder_with_one_task_and_options_for_one_task_are_refused(place, tmp_path):
    for split in ("train", "test"):
        write(tmp_path / "tasks/only" / f"{split}.jsonl", rows("classify", 12))
    out = ("--out", tmp_path / "x")
    assert "several tasks are trained together, got 1" in mistake("adapt", place / "base", tmp_path / "tasks", *out)
    assert "is the folder of one task" in mistake("adapt", place / "base", tmp_path / "tasks/only", *out)
    assert "--tune works only with the file" in mistake(
        "adapt", place / "base", place / "tasks", *out, "--tune", "lora"
    )
    assert "this works with one task" in mistake("adapt", place / "base", place / "tasks", *out, "--curve", "1%")
    assert "power must be 0 or more" in mistake("adapt", place / "base", place / "tasks", *out, "--set", "power=-1")


def test_settings_of_a_task_that_all_tasks_share_are_told_to_have_no_effect(place, tmp_path):
    for task in ("one", "two"):
        for split in ("train", "test"):
            write(tmp_path / "tasks" / task / f"{split}.jsonl", rows("classify", 12))
    (tmp_path / "tasks/one/task.json").write_text(
        '{"settings": ["epochs=9", "dropout=0.3"], "examples": 10, "tune": "head"}'
    )
    out = works("adapt", place / "base", tmp_path / "tasks", "--out", tmp_path / "x", "--set", "epochs=1", "--device", "cpu")  # fmt: skip
    assert "one: epochs=9, tune head is not used" in out.err
    assert "tasks: one 10, two 12" in out.err
    tasks = load(tmp_path / "x").tasks
    assert (tasks["one"].epochs, tasks["one"].dropout, tasks["one"].trained.examples) == (1.0, 0.3, 10)


def test_the_service_answers_for_each_task(place):
    models = Models({"many": place / "many"}, device="cpu")
    assert models.names() == ["many", "many.alike", "many.cats", "many.dogs", "many.order"]
    assert "text-classification" in models.get("many.cats").uses
    models.unload("many")
    assert models.names() == []


def test_a_curve_takes_shares_of_the_examples():
    assert parse_sizes("0.1%,1%,10%,all", 2490) == [2, 25, 249, 2490]
    assert parse_sizes("5,50%", 20) == [5, 10]
    for wrong in ("0%", "101%", "x%", "1%,1%"):
        with pytest.raises(UserError, match="--curve takes numbers"):
            parse_sizes(wrong, 100)
