"""Labelled tracks: the examples of a task are read in turn with text, each task with its own head."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from tests.command import mistake, pretrain, works
from tests.contracts import every
from tests.data.labelled_files import KINDS, rows, write
from unmask import load, recipes
from unmask.contracts import CONTRACTS, Case, make_case
from unmask.data import Labelled
from unmask.errors import UserError
from unmask.predict import AnswerSteps
from unmask.pretraining.labelled import with_tasks
from unmask.recipe import MAIN, Recipe, Stage, Track
from unmask.system import check_training, objectives
from unmask.tasks import Classify, Relation, Write

CHECKED = (
    "turns",
    "JSON",
    "accumulation",
    "recordable",
)  # of every kind; the others train, and are checked for one of each shape


def labelled(name: str, *tracks: tuple[str, Labelled], **more: object) -> Recipe:
    stage = Stage(share=1.0, rows=8, length=32, turns={MAIN: 2} | {track: 1 for track, _ in tracks})
    found = {track: Track(arrange=arrange) for track, arrange in tracks}
    return recipes.get(name, size="tiny").replace(tracks=found, schedule=(stage,), shrink=False, **more)


def case_of(name: str, kind: str, folder) -> Case:
    file = write(folder / f"{kind}.jsonl", rows(kind, 60))
    return make_case(labelled(name, ("mine", Labelled(file=str(file)))), every.SMALL)


def checked(case: Case) -> Case:
    check_training(case.recipe, case.vocabulary)
    return case


def check(case: Case, *names: str) -> None:
    for contract in CONTRACTS:
        if contract.name in names and contract.applies(case):
            contract.check(case)


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_task_can_be_a_track(kind, tmp_path):
    case = checked(case_of("bert", kind, tmp_path))
    check(case, *CHECKED, *(["resume"] if kind in ("classify", "choose") else []))
    losses = {way.track: list(case.system.hide(case.rows(way))[1]) for way in case.ways}
    assert losses == {"main": ["tokens", "sentence"], "mine": ["tokens"] if kind == "write" else ["mine"]}


def test_pairs_with_a_stochastic_answer_network_are_a_track(tmp_path):
    pairs = [{"text_a": row["query"], "text_b": row["passage"], "label": row["label"]} for row in rows("rank", 60)]
    task = Classify(san=AnswerSteps(count=3))
    arrange = Labelled(file=str(write(tmp_path / "pairs.jsonl", pairs)), task=task)
    check(checked(make_case(labelled("bert", ("pairs", arrange)), every.SMALL)), *CHECKED)


@pytest.mark.parametrize("name", ["xlnet", "awd-lstm", "bart", "ernie-2"])
def test_recipes_with_memory_decoders_orders_and_task_embeddings_have_labelled_tracks(name, tmp_path):
    arrange = Labelled(file=str(write(tmp_path / "mine.jsonl", rows("classify", 60))))
    case = make_case(labelled(name, ("mine", arrange), writes_with=None), every.SMALL)
    checked(case)
    check(case, *CHECKED)


@pytest.mark.parametrize(
    "name, task, said",
    [
        ("electra", Classify(), "set tracks.mine.hide=Masked"),
        ("cove", Classify(), r"changes the network, .* adapt the finished model to it instead"),
        ("bart", Write(), "lays a text out as .* adapt the finished model to it instead"),
        ("bert", Relation(marks=True), r"puts \[HD\] and \[TL\] into its texts, and the tokenizer does not have them"),
    ],
)
def test_what_cannot_be_a_track_is_refused_with_the_reason(name, task, said, tmp_path):
    file = write(tmp_path / "mine.jsonl", rows(type(task).__name__.lower(), 60))
    arrange = Labelled(file=str(file), task=task)
    with pytest.raises(UserError, match=said):
        checked(make_case(labelled(name, ("mine", arrange)), every.SMALL))


def test_the_advice_for_a_generator_works(tmp_path):
    arrange = Labelled(file=str(write(tmp_path / "mine.jsonl", rows("classify", 60))))
    recipe = labelled("electra", ("mine", arrange))
    masked = dataclasses.replace(recipe.tracks["mine"], hide=recipe.hide)
    case = make_case(recipe.replace(tracks={"mine": masked}), every.SMALL)
    checked(case)
    mine = next(way for way in case.ways if way.track == "mine")
    assert list(case.system.hide(case.rows(mine))[1]) == ["tokens", "mine"]


def test_the_labels_of_two_tracks_with_the_same_names_stay_apart(tmp_path):
    files = {name: write(tmp_path / f"{name}.jsonl", [{"text": f"{name} {i}", "label": i % 2} for i in range(60)]) for name in ("one", "two")}  # fmt: skip
    case = make_case(labelled("bert", *((n, Labelled(file=str(f))) for n, f in files.items())), every.SMALL)
    assert {name: task.labels for name, task in case.recipe.tasks.items()} == {"one": ("0", "1"), "two": ("0", "1")}
    assert list(objectives(case.recipe)) == ["tokens", "sentence", "one", "two"]
    one, two = (case.system.predict[name].out.weight for name in ("one", "two"))
    assert not torch.equal(one, two)


def test_a_track_with_the_name_of_an_objective_is_refused(tmp_path):
    arrange = Labelled(file=str(write(tmp_path / "mine.jsonl", rows("classify", 60))))
    with pytest.raises(UserError, match="the track 'tokens' has another objective with the name 'tokens'"):
        make_case(labelled("bert", ("tokens", arrange)), every.SMALL).build()


def test_every_example_is_read_once_in_a_visit_and_every_50th_is_held_out(tmp_path):
    texts = [{"text": f"the river {'bridge ' * (i % 5)}{i}", "label": i % 2} for i in range(120)]
    case = make_case(labelled("bert", ("mine", Labelled(file=str(write(tmp_path / "m.jsonl", texts))))), every.SMALL)
    track: Labelled = case.recipe.tracks["mine"].arrange
    reader = track.open(None, case.tokenizer, case.recipe.layout, 32, 0)
    held = track.open(None, case.tokenizer, case.recipe.layout, 32, 0, shuffled=False)
    assert (len(reader.rows), len(held.rows)) == (118, 2)
    loader = case.mixture.loader(case.recipe.alone("mine"), 32, 0, None, 59)
    visit = [loader.batch(59) for _ in range(4)]
    seen = [torch.cat([one.row, two.row]).tolist() for one, two in zip(visit[::2], visit[1::2], strict=True)]
    assert sorted(seen[0]) == sorted(seen[1])
    assert len(set(seen[0])) == 118
    assert seen[0] != seen[1]
    assert {tuple(batch.shape) for batch in visit} == {(59, reader.rows.ids.shape[1])}  # static shapes


def test_a_run_answers_with_the_head_of_a_track_and_resumes_only_with_the_same_file(plain_shards, tmp_path):
    file = write(tmp_path / "reviews.jsonl", rows("classify", 80))
    track = f"tracks.reviews=Track(arrange=Labelled(file='{file}'))"
    pretrain("bert", plain_shards["wordpiece"], tmp_path / "run", "--set", track, "--set", "schedule.*.turns={'main': 1, 'reviews': 3}")  # fmt: skip
    last = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])
    assert last["turns"] == {"main": 1, "reviews": 3}
    said = works("predict", tmp_path / "run", "the river", "--task", "reviews", "--top", 2, "--json").out
    assert set(json.loads(said)["probabilities"]) == {"good", "bad"}
    assert "name one of reviews with --task" in mistake("predict", tmp_path / "run", "the river")
    assert "did you mean reviews" in mistake("predict", tmp_path / "run", "the river", "--task", "review")
    assert works("evaluate", tmp_path / "run", file, "--task", "reviews", "--json")
    works("calibrate", tmp_path / "run", file, "--task", "reviews")
    assert load(tmp_path / "run").tasks["reviews"].temperature != 1.0
    file.write_text(file.read_text() + file.read_text())
    model = load(tmp_path / "run")
    with pytest.raises(UserError, match="was changed since this run was started"):
        model.recipe.tracks["reviews"].arrange.open(None, model.tokenizer, model.recipe.layout, 32, 0)


def test_a_head_is_continued_only_with_the_same_labels(plain_shards, tmp_path):
    made = [{"text": f"the river is {i}", "label": "good" if i % 2 else "bad"} for i in range(60)]
    others = [row | {"label": {"good": "east", "bad": "west"}[row["label"]]} for row in made]
    files = {"same": write(tmp_path / "a.jsonl", made), "other": write(tmp_path / "b.jsonl", others)}

    def trained(out: str, file: Path, *more: object) -> str:
        track = f"tracks.mine=Track(arrange=Labelled(file='{file}'))"
        turns = "schedule.*.turns={'main': 1, 'mine': 1}"
        said = pretrain("bert", plain_shards["wordpiece"], tmp_path / out, "--set", track, "--set", turns, *more)
        return " ".join((said.out + said.err).split())

    trained("first", files["same"])
    said = f"the track mine has other labels than in {tmp_path / 'first'}, so its head starts with random weights"
    assert said not in trained("same", files["same"], "--from", tmp_path / "first")
    assert said in trained("other", files["other"], "--from", tmp_path / "first")


def test_a_file_that_no_task_reads_is_refused_before_anything_is_written(plain_shards, tmp_path):
    for content, said in (("a", "no task reads the columns"), (None, "there is no such file of examples")):
        if content:
            write(tmp_path / "odd.jsonl", [{"odd": 1}])
        track = f"tracks.odd=Track(arrange=Labelled(file='{tmp_path / 'odd.jsonl' if content else 'none.jsonl'}'))"
        found = pretrain("bert", plain_shards["wordpiece"], tmp_path / "run", "--set", track,
                         "--set", "schedule.*.turns={'main': 1, 'odd': 1}", call=mistake)  # fmt: skip
        assert said in found
        assert not (tmp_path / "run").exists()


def test_labelled_examples_as_the_main_track_are_refused(tmp_path):
    recipe = recipes.get("bert", size="tiny").replace(arrange=Labelled(file="x.jsonl"))
    with pytest.raises(UserError, match="labelled examples are a track that takes turns with text"):
        with_tasks(recipe, every.case("bert").tokenizer)
