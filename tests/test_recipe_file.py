"""A recipe in a file of the user's own: trained, resumed and opened with the file, and never run unless the user names it."""

from __future__ import annotations

import json

import pytest

import unmask
from tests.command import mistake, settings, works
from unmask import recipes
from unmask.errors import Notice, UserError
from unmask.pretraining import pretrain
from unmask.run import from_json, to_json

MINE = '''
"""Mine (Somebody 2026): hide every other token, see everything, predict them."""

import dataclasses
from dataclasses import dataclass

import torch

from unmask import hide, predict, recipes
from unmask.axes import Part

SIZES = ("tiny", "mini")
VARIANTS = ("paper", "third")


@dataclass(frozen=True)
class EveryOther(hide.Tokens, Part):
    step: int = 2

    def label(self, batch, seed, visit):
        label = super().label(batch, seed, visit)
        return torch.where(label % self.step == 0, label, -1)


@dataclass(frozen=True)
class Biased(predict.Tokens, Part):
    start: float = 0.25

    def build(self, width, embedding, initial):
        module = super().build(width, embedding, initial)
        with torch.no_grad():
            module.bias.fill_(self.start)
        return module


def recipe(size="base", variant="paper"):
    usual = recipes.get("roberta", size=size, settings=["schedule.*.length=32", "schedule.*.rows=8"])
    units = EveryOther(step=3 if variant == "third" else 2)
    return usual.replace(
        name="mine", variant=variant, hide=dataclasses.replace(usual.hide, units=units), predict={"tokens": Biased()}
    )
'''
OURS = """
from unmask import recipes
from unmask.recipe import Recipe


def recipe() -> Recipe:
    return recipes.get("roberta", size="tiny", settings=["schedule.*.length=32", "schedule.*.rows=8", "hide.budget=0.3"])
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipes") / "mine.py"
    path.write_text(MINE, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(mine, shards, tmp_path_factory):
    """A finished run of three steps."""
    out = tmp_path_factory.mktemp("runs") / "mine"
    words = ["--size", "tiny", "--budget", "3steps", "--device", "cpu"]
    works("pretrain", mine, shards["byte-bpe"], "--out", out, *words)
    return out


def test_a_run_names_the_parts_of_a_recipe_file_and_its_hash(run, mine):
    written = json.loads((run / "recipe.json").read_text())
    assert written["hide"]["units"] == {"part": "mine.py:EveryOther", "step": 2}
    assert written["predict"]["tokens"]["part"] == "mine.py:Biased"
    assert list(written["files"]) == ["mine.py"]
    assert len(written["files"]["mine.py"]) == 64
    assert str(mine.parent) not in (run / "recipe.json").read_text()


def test_a_run_is_opened_with_its_recipe_file(run, mine):
    model = unmask.load(run, device="cpu", recipe=mine)
    assert type(model.recipe.hide.units).__name__ == "EveryOther"
    chosen = ["system.backbone.dropout=0.0"]  # by a pretraining that read the text once
    assert model.recipe == recipes.get(str(mine), size="tiny", settings=chosen)
    assert len(works("fill", run, "The [MASK].", "--recipe", mine, "--device", "cpu", "--json").out) > 10


def test_a_run_is_refused_without_its_recipe_file_even_if_it_is_near(run, mine, monkeypatch):
    monkeypatch.chdir(mine.parent)
    (run / "mine.py").write_text("raise SystemExit('this must never run')")
    message = r"uses the part EveryOther of the recipe file mine\.py: give that file, with --recipe mine\.py"
    with pytest.raises(UserError, match=message):
        unmask.load(run, device="cpu")
    assert "--recipe mine.py" in mistake("fill", run, "The [MASK].")
    assert "--recipe mine.py" in mistake("explain", run, "A text.")
    (run / "mine.py").unlink()


def test_another_file_or_one_without_the_part_is_refused(run, tmp_path):
    (tmp_path / "other.py").write_text(MINE)
    with pytest.raises(UserError, match=r"of the recipe file mine\.py, but .*other\.py was given: give mine\.py"):
        unmask.load(run, recipe=tmp_path / "other.py")
    (tmp_path / "mine.py").write_text(OURS)
    with pytest.raises(UserError, match=r"mine\.py has no such part: give the file that the run was made with"):
        unmask.load(run, recipe=tmp_path / "mine.py")


def test_a_changed_file_is_a_notice(run, tmp_path):
    (tmp_path / "mine.py").write_text(MINE + "\n# a comment\n")
    with pytest.warns(Notice, match="was changed since"):
        unmask.load(run, device="cpu", recipe=tmp_path / "mine.py")
    assert (
        "was changed since" in works("fill", run, "A [MASK].", "--recipe", tmp_path / "mine.py", "--device", "cpu").err
    )


@pytest.mark.filterwarnings("error")
def test_an_unchanged_file_elsewhere_is_no_notice(run, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    assert unmask.load(run, device="cpu", recipe=tmp_path / "mine.py")


def test_a_run_cut_off_is_resumed_with_its_recipe_file(run, mine, shards, tmp_path):
    out, seen = tmp_path / "cut", []
    recipe = recipes.get(str(mine), size="tiny")
    options = {"budget": "3steps", "device": "cpu", "stop": lambda: bool(seen)}
    for record in pretrain(recipe, [shards["byte-bpe"]], out, **options):
        seen += [record] if "step" in record else []
    assert seen[-1]["stopped"]
    resume = ("pretrain", "--resume", "--out", out, "--device", "cpu")
    assert "--recipe mine.py" in mistake(*resume)
    works(*resume, "--recipe", mine)
    assert (out / "weights.safetensors").read_bytes() == (run / "weights.safetensors").read_bytes()


def test_a_run_of_a_recipe_file_is_continued_and_adapted(run, mine, shards, tmp_path):
    more = {"start": run, "budget": "1steps", "device": "cpu", "progress": False}
    data = shards["byte-bpe"]
    assert unmask.pretrain(str(mine), data, tmp_path / "mine", **more).recipe.name == "mine"
    with pytest.raises(UserError, match=r"--recipe mine\.py"):
        unmask.pretrain("roberta", data, tmp_path / "ours", **more)
    short = ["schedule.*.length=32", "schedule.*.rows=8"]
    ours = unmask.pretrain("roberta", data, tmp_path / "ours", settings=short, recipe_file=mine, **more)
    assert ours.recipe.name == "roberta"
    (tmp_path / "changed").mkdir()
    (tmp_path / "changed" / "mine.py").write_text(MINE + "\n# a comment\n")
    with pytest.warns(Notice, match="was changed since"):
        unmask.pretrain(str(tmp_path / "changed" / "mine.py"), data, tmp_path / "after", **more)
    (tmp_path / "train.jsonl").write_text('{"text": "good", "label": "yes"}\n{"text": "bad", "label": "no"}\n' * 8)
    model = unmask.load(run, device="cpu", recipe=mine)
    adapted = model.adapt(tmp_path / "train.jsonl", tmp_path / "adapted", progress=False)
    assert "files" not in json.loads((tmp_path / "adapted" / "recipe.json").read_text())  # no part of it is left
    assert adapted.labels == ("no", "yes")


def test_a_file_that_uses_only_our_parts_is_not_needed_again(shards, tmp_path):
    (tmp_path / "ours.py").write_text(OURS)
    out = tmp_path / "run"
    made = unmask.pretrain(
        str(tmp_path / "ours.py"), shards["byte-bpe"], out, budget="1steps", device="cpu", progress=False
    )
    assert unmask.load(out, device="cpu").recipe == made.recipe
    assert "files" not in json.loads((out / "recipe.json").read_text())
    with pytest.raises(UserError, match="uses no parts of a recipe file: leave --recipe out"):
        unmask.load(out, recipe=tmp_path / "ours.py")
    words = ("pretrain", tmp_path / "ours.py", shards["byte-bpe"], "--out", tmp_path / "new")
    assert "leave --recipe out" in mistake(*words, "--recipe", tmp_path / "ours.py")
    assert not (tmp_path / "new").exists()


def test_every_verb_about_recipes_takes_a_file(mine):
    shown = json.loads(works("show", mine, "--size", "tiny", "--variant", "third", "--json").out)
    assert shown["recipe"]["hide"]["units"] == {"part": "mine.py:EveryOther", "step": 3}
    differing = json.loads(works("diff", "roberta", mine, "--size", "tiny", "--json").out)
    assert differing["hide.units"] == {"roberta": "Tokens", str(mine): "EveryOther"}
    assert "mine" in works("explain", mine, "The doctor examined the patient.", "--size", "tiny").out


def test_a_setting_may_name_a_part_of_the_file(mine):
    recipe = recipes.get(str(mine), size="tiny", settings=["hide.units=EveryOther(step=4)", "hide.budget=0.2"])
    assert (recipe.hide.units.step, recipe.hide.budget) == (4, 0.2)
    assert type(recipes.get(str(mine), size="tiny", settings=["hide.units=Tokens"]).hide.units).__name__ == "Tokens"
    with pytest.raises(UserError, match="unknown part for hide.units 'EveryOther'"):
        recipes.get("roberta", size="tiny", settings=["hide.units=EveryOther"])


def test_a_size_or_variant_that_the_file_does_not_have_is_refused(mine, tmp_path):
    assert "unknown size of" in mistake("show", mine)
    assert "unknown variant of" in mistake("show", mine, "--size", "tiny", "--variant", "fourth")
    (tmp_path / "ours.py").write_text(OURS)
    assert "known: base" in mistake("show", tmp_path / "ours.py", "--size", "zzz")


@pytest.mark.parametrize("content, message", [
    ("def recipe(:\n", "mine.py, line 1: invalid syntax"),
    ("\x00", "mine.py"),
    ("import nothing_of_this_name\n", "mine.py, line 1: ModuleNotFoundError: No module named 'nothing_of_this_name'"),
    ("SIZES = ()\nVARIANTS = 1 / 0\n", "mine.py, line 2: ZeroDivisionError"),
    ("x = 1\n", "mine.py has no function recipe: a recipe file has a function recipe(size, variant)"),
    ("def recipe(size, variant):\n    return 3\n", "mine.py returns int, not a Recipe"),
    ("def recipe(size, variant):\n    return size.nothing\n", "mine.py, line 2: AttributeError"),
    ("from unmask import recipes\ndef recipe(size):\n    return recipes.get('brt')\n", "line 3: unknown recipe 'brt'"),
    ("from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Odd:\n    a: int = 1\n",
     "the part Odd of"),
])  # fmt: skip
def test_a_broken_file_is_one_clear_line(tmp_path, content, message):
    (tmp_path / "mine.py").write_text(content)
    assert message in mistake("show", tmp_path / "mine.py")


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert "no recipe file at" in mistake("show", tmp_path / "none.py")


def test_a_part_of_no_file_cannot_be_written(mine):
    class Elsewhere(type(recipes.get(str(mine), size="tiny").hide.units)):
        pass

    usual = recipes.get("roberta", size="tiny")
    recipe = usual.replace(tokenizer=Elsewhere())
    with pytest.raises(UserError, match=r"is defined in tests\.test_recipe_file, but a run can only name parts"):
        to_json(recipe)


def test_json_with_a_path_to_a_file_runs_nothing(tmp_path):
    (tmp_path / "evil.py").write_text("raise SystemExit('this must never run')")
    text = to_json(recipes.get("roberta", size="tiny"))
    text = text.replace('"unmask.hide.Tokens"', json.dumps(f"{tmp_path}/evil.py:Tokens"))
    with pytest.raises(UserError, match="uses the part Tokens of the recipe file"):
        from_json(text)


def test_a_part_of_the_file_that_a_setting_replaces_is_not_written(shards, tmp_path, mine):
    words = ["--size", "tiny", "--budget", "1steps", "--device", "cpu", *settings(["hide.units=Words"])]
    works("pretrain", mine, shards["byte-bpe"], "--out", tmp_path / "run", *words)
    written = json.loads((tmp_path / "run" / "recipe.json").read_text())
    assert written["hide"]["units"]["part"] == "unmask.hide.Words"


def test_the_parts_of_two_files_in_one_recipe_are_refused(mine, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(MINE.replace("class ", "# another file\nclass ", 1), encoding="utf-8")
    first, second = (recipes.get(str(path), size="tiny") for path in (mine, other))
    both = first.replace(predict=second.predict)
    with pytest.raises(UserError, match=r"one recipe file, got parts of .*mine\.py and .*other\.py: put them into one"):
        to_json(both)
