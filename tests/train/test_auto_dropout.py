"""Dropout that is chosen by how often the text is read: the choice is written down, told, and repeated by a resumed run."""

from __future__ import annotations

import json

import pytest

from tests.train.test_clock import NARROW
from unmask import recipes, run
from unmask.data.prepare import prepare
from unmask.errors import UserError
from unmask.pretraining import Mixture, pretrain
from unmask.text import Corpus
from unmask.train import checkpoint

SHORT = [*NARROW, "schedule.0.length=32", "schedule.*.rows=2", "shrink=false"]


def trained(shards, out, dropout: str, budget: str, **options):
    recipe = recipes.get("roberta", size="tiny", settings=[*SHORT, f"system.backbone.dropout={dropout}"])
    records = list(pretrain(recipe, [shards["byte-bpe"]], out, budget=budget, device="cpu", **options))
    visits = [r["visits"] for r in records if r.get("event") == "start"]
    told = [r["text"] for r in records if r.get("event") == "notice" and "dropout" in r["text"]]
    return visits[0], told, (out / checkpoint.WEIGHTS).read_bytes()


@pytest.mark.parametrize("times, number", [(2.99, 0.0), (3.0, 0.1)])
def test_the_choice_follows_the_visits_and_trains_as_if_it_had_been_given(shards, tmp_path, monkeypatch, times, number):
    read = []
    monkeypatch.setattr(Mixture, "visits", lambda _, tokens: read.append(tokens) or times)
    monkeypatch.setattr(Mixture, "filled", lambda *_: 1.0)
    _, told, weights = trained(shards, tmp_path / "auto", "auto", "640tok")
    assert set(read) == {640}  # the tokens of the whole run
    assert len(told) == 1
    assert f"so dropout is {number:g} (system.backbone.dropout=auto" in told[0]
    assert run.read_recipe(tmp_path / "auto").system.backbone.dropout == number
    _, nothing, same = trained(shards, tmp_path / "given", str(number), "640tok")
    assert not nothing
    assert weights == same


def test_padding_is_not_counted_as_text_that_is_read(tokenizers, tmp_path):
    """Each row holds one pair, and most of it is padding: 8 rows read 8 of 16 pairs, whatever the length of a row."""
    pairs = [{"source": "the doctor examined", "target": "three valves"}] * 16
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    *_, manifest = prepare(
        Corpus([tmp_path / "pairs.jsonl"]), tokenizers["wordpiece"], tmp_path / "data", holdout=0.0, workers=1
    )
    per_pair = manifest["tokens"] / 16
    for length in (32, 64):
        settings = ["schedule.*.rows=8", f"schedule.*.length={length}", "shrink=false"]
        recipe = recipes.get("cove", size="tiny", variant="translator", settings=settings)
        records = pretrain(recipe, [tmp_path / "data"], tmp_path / str(length), budget="1steps", device="cpu")
        visits = next(r["visits"] for r in records if r.get("event") == "start")
        special = 2  # tokens of the layout in each row, which are no padding
        assert visits == pytest.approx(0.5 * (per_pair + special) / per_pair)


def test_a_resumed_run_keeps_its_choice(shards, tmp_path):
    visits, told, whole = trained(shards, tmp_path / "whole", "auto", "12steps")
    assert f"the text is read {visits:.2g} times, so dropout is 0 " in told[0]
    trained(shards, tmp_path / "cut", "auto", "12steps", stop=lambda: True)
    assert checkpoint.newest(tmp_path / "cut") == 1
    assert trained(shards, tmp_path / "cut", "auto", "12steps", resume=True)[2] == whole


def test_each_network_is_chosen_for_itself_and_a_number_stays(shards, tmp_path):
    small = ["system.generator.width=8", "system.generator.heads=1", "system.generator.feedforward=16"]
    settings = [*SHORT, *small, "system.generator.dropout=auto", "system.backbone.dropout=0.2"]
    recipe = recipes.get("electra", size="tiny", settings=settings)
    assert run.from_json(run.to_json(recipe)) == recipe
    list(pretrain(recipe, [shards["wordpiece"]], tmp_path / "run", budget="2steps", device="cpu"))
    system = run.read_recipe(tmp_path / "run").system
    assert (system.generator.dropout, system.backbone.dropout) == (0.0, 0.2)


@pytest.mark.parametrize("name", ["roberta", "xlnet"])
def test_a_network_that_is_not_pretrained_yet_has_the_usual_dropout(name):
    backbone = recipes.get(name, size="tiny", settings=["system.backbone.dropout=auto"]).system.backbone
    assert (backbone.dropout, backbone.drops) == ("auto", 0.1)


@pytest.mark.parametrize(
    "setting, message",
    [
        ("dropout=often", "system.backbone.dropout must be a number or one of auto, got 'often'"),
        ("dropout=1.0", r"backbone.dropout must be in \[0, 1\), got 1.0"),
        ("attention_dropout=auto", "system.backbone.attention_dropout must be a number, got 'auto'"),
    ],
)
def test_what_is_not_a_dropout_is_a_mistake(setting, message):
    with pytest.raises(UserError, match=message):
        recipes.get("roberta", size="tiny", settings=[f"system.backbone.{setting}"])
