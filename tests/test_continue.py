"""What the papers of the family need of their data and of the runs they go on from, told before anything is written."""

from __future__ import annotations

import pytest
import torch

from tests.command import mistake, works
from tests.test_write import base_of
from unmask import recipes
from unmask.data.prepare import prepare
from unmask.errors import Mistake
from unmask.infer import open_run, save_run
from unmask.pretraining import pretrain
from unmask.text import Corpus, Lexicon


@pytest.fixture(scope="module")
def runs(tokenizers, tmp_path_factory):
    """Runs with fresh weights, to go on from."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("bert", "electra"):
        save_run(base_of(name, tokenizers, folder / name, "batch_tokens=64"), folder / name)
    return folder


def recipe_of(name: str, *settings: str):
    lengths = [f"schedule.{i}.length=32" for i in range(len(recipes.get(name).schedule))]
    return recipes.get(name, size="tiny", settings=[*lengths, "batch_tokens=64", *settings])


def go(recipe, shards, out, **options) -> list[dict]:
    return list(pretrain(recipe, [shards["wordpiece"]], out, budget="2steps", device="cpu", **options))


@pytest.mark.parametrize(
    "name, start, message",
    [
        ("electra", "bert", "electra predicts replaced: what a generator replaced, and the network has none"),
        ("bert", "electra", "bert predicts tokens, which is the name of a loss that the generator brings"),
    ],
)
def test_a_recipe_refuses_the_network_of_a_run_that_it_cannot_train(name, start, message, runs, shards, tmp_path):
    with pytest.raises(Mistake, match=message):
        go(recipe_of(name), shards, tmp_path / "run", start=runs / start)
    assert not (tmp_path / "run").exists()


def test_a_generator_is_needed_to_judge_what_it_replaced(shards, tmp_path):
    with pytest.raises(Mistake, match="set system=GeneratorDiscriminator"):
        go(recipe_of("electra", "system=Single"), shards, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("view", ["Everything", "RightToLeft", "Prefix"])
def test_the_next_token_is_not_predicted_by_who_sees_it(view, shards, tmp_path):
    with pytest.raises(Mistake, match=f"with see={view} the network sees it: set see=LeftToRight, or hide=Mask"):
        go(recipe_of("bert", "hide=Next", f"see={view}"), shards, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("setting", ["system=Single", "system.backbone.layers=1"])
def test_a_network_is_not_changed_where_it_comes_from_a_run(setting, runs, shards, tmp_path):
    words = ("pretrain", "bert", shards["wordpiece"], "--from", runs / "bert", "--out", tmp_path / "run")
    assert "leave --size and --set system... out" in mistake(*words, "--set", setting, "--device", "cpu")


@pytest.mark.parametrize("name", ["bert-wwm", "spanbert", "structbert", "unilm"])
def test_the_others_go_on_from_a_bert(name, runs, shards, tmp_path):
    """A head of another shape is new: StructBERT's sentence task has three answers, BERT's two."""
    assert go(recipe_of(name), shards, tmp_path / "run", start=runs / "bert")[-2]["done"]


def test_unilm_begins_with_the_segments_of_the_bert_it_goes_on_from(runs, shards, tmp_path):
    """As its released code: left to right and right to left like the first text, source and target like both."""
    bert = open_run(runs / "bert", device="cpu")
    recipe = recipe_of("unilm", "optimise.rate=1e-12")
    go(recipe, shards, tmp_path / "run", start=runs / "bert")
    unilm = open_run(tmp_path / "run", device="cpu")
    before, now = (model.system.backbone.embed.segment.weight for model in (bert, unilm))
    assert now.shape == (6, 128)
    for segment, kind in enumerate((0, 1, 0, 0, 0, 1)):
        assert torch.allclose(now[segment], before[kind], atol=1e-6)
    assert torch.allclose(unilm.system.backbone.embed.token.weight, bert.system.backbone.embed.token.weight, atol=1e-6)


def test_levels_need_a_lexicon_and_the_advice_for_those_without_works(plain_shards, tmp_path):
    with pytest.raises(Mistake, match="hides entity and phrase units.*or set hide.units=Words"):
        go(recipe_of("ernie"), plain_shards, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert go(recipe_of("ernie", "hide.units=Words"), plain_shards, tmp_path / "run")[-2]["done"]


def test_the_command_line_shows_what_is_set_in_every_stage():
    shown = works("show", "ernie", "--size", "tiny", "--set", "hide.budget=0.25", "--json").out
    assert shown.count('"budget": 0.25') == 4  # of the recipe, and of its three stages


def test_a_lexicon_without_entities_is_told(corpus, tokenizers, tmp_path):
    (tmp_path / "phrases.tsv").write_text("open wound\tphrase\n", encoding="utf-8")
    lexicon = Lexicon.load([tmp_path / "phrases.tsv"])
    for _ in prepare(Corpus([corpus]), tokenizers["wordpiece"], tmp_path / "data", workers=1, lexicon=lexicon):
        pass
    records = go(recipe_of("ernie"), {"wordpiece": tmp_path / "data"}, tmp_path / "run")
    said = [record["text"] for record in records if record.get("event") == "notice"]
    assert [text for text in said if "of the level entity" in text]
    assert not [text for text in said if "of the level phrase" in text]
