"""What the papers of the family need of their data and of the runs they go on from, told before anything is written."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import unmask
from tests.command import mistake, works
from tests.command import settings as settings_of
from tests.test_write import base_of
from unmask import recipes
from unmask.data.prepare import prepare
from unmask.errors import UserError
from unmask.infer import open_run, save_run
from unmask.pretraining import pretrain
from unmask.system import with_network_of
from unmask.text import Corpus, Lexicon
from unmask.train import checkpoint


@pytest.fixture(scope="module")
def runs(tokenizers, tmp_path_factory):
    """Runs with fresh weights, to go on from."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("bert", "electra"):
        save_run(base_of(name, tokenizers, folder / name, "schedule.*.rows=2"), folder / name)
    return folder


def recipe_of(name: str, *settings: str):
    lengths = [f"schedule.{i}.length=32" for i in range(len(recipes.get(name).schedule))]
    return recipes.get(name, size="tiny", settings=[*lengths, "schedule.*.rows=6", *settings])


def go(recipe, shards, out, **options) -> list[dict]:
    return list(pretrain(recipe, [shards["wordpiece"]], out, budget="2steps", device="cpu", **options))


@pytest.mark.parametrize(
    "name, start, message",
    [
        (
            "electra",
            "bert",
            "electra trains a GeneratorDiscriminator, but the run to continue from is a run of bert and has .* a Single",
        ),
        (
            "bert",
            "electra",
            "bert trains a Single, but the run .* of electra .* a GeneratorDiscriminator: give a run of",
        ),
    ],
)
def test_a_recipe_refuses_the_network_of_a_run_that_it_cannot_train(name, start, message, runs, shards, tmp_path):
    with pytest.raises(UserError, match=message):
        go(recipe_of(name), shards, tmp_path / "run", start=runs / start)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name, start, message", [
    ("bert", "xlnet", "bert does not use a second stream, but the run .* of xlnet and has one: give a run of bert"),
    ("xlnet", "bert", "xlnet needs a second stream, but the run .* of bert and has none: give a run of xlnet"),
])  # fmt: skip
def test_a_second_stream_is_not_taken_over_nor_made(name, start, message):
    with pytest.raises(UserError, match=message):
        with_network_of(recipes.get(name, size="tiny"), recipes.get(start, size="tiny"))


def test_a_generator_is_needed_to_judge_what_it_replaced(shards, tmp_path):
    with pytest.raises(UserError, match="set system=GeneratorDiscriminator"):
        go(recipe_of("electra", "system=Single"), shards, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("view", ["Everything", "RightToLeft", "Prefix"])
def test_the_next_token_is_not_predicted_by_who_sees_it(view, shards, tmp_path):
    with pytest.raises(
        UserError, match="hide=Next needs a view in which no token sees a later one.*: set see=LeftToRight"
    ):
        go(recipe_of("bert", "hide=Next", f"see={view}"), shards, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "name, kind, setting, see",
    [("unilm", "wordpiece", "arrange=Blocks", "tracks.prefix.see"), ("roberta", "byte-bpe", "see=Prefix", "see")],
)
def test_a_view_of_a_second_text_needs_one(name, kind, setting, see, shards, tmp_path):
    with pytest.raises(UserError, match=f"^{see}=Prefix needs two texts in each example.*: set arrange=NextSentence$"):
        go(recipe_of(name, setting), {"wordpiece": shards[kind]}, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    recipe = recipe_of("unilm", "arrange=Blocks")
    alone = {name: track for name, track in recipe.tracks.items() if name != "prefix"}  # views of one text do without
    assert go(recipe.replace(tracks=alone, writes_with=None), shards, tmp_path / "run")[-2]["done"]


@pytest.mark.parametrize(
    "setting, lost",
    [
        ("system=Single(backbone=Transformer(layers=12))", "system.backbone.layers=12"),
        ("system.backbone.layers=1", "layers=1 would have"),
    ],
)
def test_a_network_is_not_changed_where_it_comes_from_a_run(setting, lost, runs, shards, tmp_path):
    words = ("pretrain", "bert", shards["wordpiece"], "--from", runs / "bert", "--out", tmp_path / "run")
    said = mistake(*words, "--set", setting, "--device", "cpu")
    assert "leave out --size, --set system..." in said
    assert lost in said
    with pytest.raises(UserError, match=lost):
        unmask.pretrain("bert", shards["wordpiece"], tmp_path / "run", start=runs / "bert", settings=[setting])
    with pytest.raises(UserError, match="leave size out"):
        unmask.pretrain("bert", shards["wordpiece"], tmp_path / "run", start=runs / "bert", size="tiny")
    assert "leave size out (--size)" in mistake(*words, "--size", "tiny", "--device", "cpu")


def said(records: list[dict]) -> list[str]:
    return [record["text"] for record in records if record.get("event") == "notice"]


@pytest.mark.parametrize(
    "name, variant, values",
    [
        ("albert", "paper", {"dropout": "auto"}),
        ("albert", "no-dropout", {"dropout": 0.0}),
        ("electra", "paper", {"learned": False}),
        ("electra", "learned", {"learned": True}),
    ],
)
def test_how_a_network_is_trained_is_the_recipes_and_its_shape_the_runs(name, variant, values, tokenizers, tmp_path):
    """The base has a shape, dropout and weighing of losses that the recipe asked for has not."""
    learned = ["system.learned=true", "schedule.0.weights={}"] if (name, variant) == ("electra", "paper") else []
    settings = ["system.backbone.length=48", "system.backbone.dropout=0.3", "system.backbone.layers=1", *learned]
    base = recipes.get(name, size="tiny", settings=settings)
    made = with_network_of(recipes.get(name, size="tiny", variant=variant), base).system
    assert (made.backbone.layers, made.backbone.length) == (1, 48)
    assert replace(made.backbone, dropout=0.3) == base.system.backbone
    found = {"dropout": made.backbone.dropout, "learned": getattr(made, "learned", None)}
    assert found | values == found


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_dropout_may_be_set_where_a_network_comes_from_a_run(name, runs, shards, tmp_path):
    unmask.pretrain("bert", shards["wordpiece"], tmp_path / "run", start=runs / "bert", budget="1steps", device="cpu",
                    settings=[f"system.backbone.{name}=0.25", "schedule.0.length=32", "schedule.1.length=32",
                              "schedule.*.rows=2"])  # fmt: skip
    assert getattr(open_run(tmp_path / "run", device="cpu").recipe.system.backbone, name) == 0.25


def test_both_ways_in_take_the_rates_and_batches_of_the_runs_size(runs, shards, tmp_path):
    lengths = ["schedule.0.length=32", "schedule.1.length=32"]
    words = ("pretrain", "bert", shards["wordpiece"], "--budget", "1steps", "--device", "cpu", "--from", runs / "bert")
    works(*words, "--out", tmp_path / "one", *settings_of(lengths))
    unmask.pretrain("bert", shards["wordpiece"], tmp_path / "two", start=runs / "bert", budget="1steps", device="cpu",
                    settings=lengths)  # fmt: skip
    one, two = (open_run(tmp_path / name, device="cpu").recipe for name in ("one", "two"))
    assert one == two
    assert (one.size, one.schedule[0].rows, one.optimise.warmup) == ("tiny", 64, 0.1)
    assert one.optimise.rate == pytest.approx(5e-5 * 768 / one.system.backbone.width)


def test_a_recipe_as_a_whole_takes_no_size_or_settings_beside_it(shards, tmp_path):
    for options in ({"size": "tiny"}, {"variant": "code"}, {"settings": ["hide.budget=0.2"]}):
        with pytest.raises(UserError, match="leave them out"):
            unmask.pretrain(recipe_of("bert"), shards["wordpiece"], tmp_path / "run", **options)


def test_what_begins_anew_and_what_is_left_behind_is_told(runs, shards, tmp_path):
    bert, electra = runs / "bert", runs / "electra"
    told = said(go(recipe_of("structbert"), shards, tmp_path / "three", start=bert))
    assert f"{bert} does not have these modules, so they start with random weights: predict.sentence.out" in told
    assert f"this run does not use these modules of {bert}: predict.sentence.out" in told
    told = said(go(recipe_of("roberta"), shards, tmp_path / "less", start=bert))
    assert f"this run does not use these modules of {bert}: predict.sentence.dense, predict.sentence.out" in told
    learned = recipes.get("electra", size="tiny", variant="learned",
                          settings=["schedule.0.length=32", "schedule.*.rows=2"])  # fmt: skip
    told = said(go(learned, shards, tmp_path / "learned", start=electra))
    assert f"{electra} does not have these modules, so they start with random weights: balance" in told
    told = said(go(recipe_of("electra"), shards, tmp_path / "back", start=tmp_path / "learned"))
    assert f"this run does not use these modules of {tmp_path / 'learned'}: balance" in told


@pytest.mark.parametrize("name", ["bert", "unilm"])
def test_nothing_is_told_where_every_weight_goes_on(name, runs, shards, tmp_path):
    """UniLM's segments are of another shape, and begin as those of the BERT."""
    told = said(go(recipe_of(name), shards, tmp_path / "run", start=runs / "bert"))
    assert not [text for text in told if "random weights" in text or "does not use" in text]


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
    with pytest.raises(UserError, match="hides entity and phrase units.*or set hide.units=Words"):
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
    assert [text for text in said(records) if "of the level entity" in text]
    assert not [text for text in said(records) if "of the level phrase" in text]


def test_the_rate_of_a_continued_run_is_printed_and_may_be_set(runs, shards, tmp_path):
    words = ("pretrain", "bert", shards["wordpiece"], "--budget", "1steps", "--device", "cpu", "--from", runs / "bert")
    usual = works(*words, "--out", tmp_path / "usual", *settings_of(["schedule.*.length=32"]))
    rate = open_run(tmp_path / "usual", device="cpu").recipe.optimise.rate
    assert f"at a learning rate of {rate:.2g}" in usual.err
    works(*words, "--out", tmp_path / "own", *settings_of(["schedule.*.length=32", "optimise.rate=1e-3"]))
    own = open_run(tmp_path / "own", device="cpu").recipe.optimise
    assert (own.rate, own.warmup) == (1e-3, 0.1)


def test_a_continued_run_killed_before_its_first_checkpoint_still_starts_from_the_run(
    runs, shards, tmp_path, monkeypatch
):
    recipe, data = recipe_of("bert"), [shards["wordpiece"]]
    # another seed than the base's: with its own, random weights would be those of the base
    options = {"budget": "3steps", "device": "cpu", "start": runs / "bert", "seed": 5}
    list(pretrain(recipe, data, tmp_path / "whole", **options))
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_state", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            list(pretrain(recipe, data, tmp_path / "cut", **options))
    assert checkpoint.newest(tmp_path / "cut") is None
    list(pretrain(None, [], tmp_path / "cut", resume=True, device="cpu"))
    files = [(tmp_path / name / checkpoint.WEIGHTS).read_bytes() for name in ("whole", "cut")]
    assert files[0] == files[1]


def test_both_rates_of_muon_are_those_of_a_trained_network():
    settings = ["optimise=Muon", "optimise.rate=1e-2", "optimise.other_rate=2e-2"]
    recipe = recipes.get("bert", size="tiny", settings=settings)
    found = recipes.gentle(recipe, recipe).optimise
    assert found.rate == found.other_rate < 1e-2
